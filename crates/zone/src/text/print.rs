//! Printer for RDATA. [`super::data`] parses its output back to the same bytes.

use core::fmt::{self, Write};
use core::net::{Ipv4Addr, Ipv6Addr};

use wire::Type;

use super::base::Base;
use super::data::{Field, fields};
use super::names::name_at_start;
use super::special::{date, types_of};
use super::{gateway, identity, prefixes};

/// RDATA of a record, displayed in presentation format.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    /// The type.
    pub rtype: Type,
    /// RDATA with uncompressed names.
    pub rdata: &'a [u8],
}

impl fmt::Display for Data<'_> {
    /// Writes the format of the type. If the type has none, or RDATA does not match it, writes the generic form
    /// (RFC 3597 §5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match fields(self.rtype).and_then(|fields| print(fields, self.rdata)) {
            Some(text) => f.write_str(&text),
            None => write!(f, "\\# {} {}", self.rdata.len(), Base::Hex.print(self.rdata)),
        }
    }
}

fn print(fields: &[Field], rdata: &[u8]) -> Option<String> {
    let (mut rest, mut text) = (rdata, String::new());
    for field in fields {
        let (data, after) = rest.split_at(field.len(rest)?);
        let printed = field.print(data)?;
        if !text.is_empty() && !printed.is_empty() {
            text.push(' ');
        }
        text.push_str(&printed);
        rest = after;
    }
    rest.is_empty().then_some(text)
}

impl Field {
    /// Prints this field. Returns `None` if the field can only be written in the generic form.
    fn print(self, data: &[u8]) -> Option<String> {
        Some(match self {
            Field::Name => name_at_start(data)?.to_string(),
            Field::U8 | Field::U16 | Field::U32 | Field::Seconds | Field::Algorithm | Field::Certificate => {
                number(data).to_string()
            }
            Field::V4 => Ipv4Addr::from(*data.first_chunk()?).to_string(),
            Field::V6 => Ipv6Addr::from(*data.first_chunk()?).to_string(),
            Field::String | Field::FirstString => quoted(data.get(1..)?),
            Field::Strings | Field::Pair => strings(data)?,
            Field::Text => quoted(data),
            Field::Bytes(_) if data.is_empty() => return None,
            Field::Bytes(base) => base.print(data),
            Field::Key => Base::Base64.print(data),
            Field::Salt if data.len() == 1 => "-".to_owned(),
            Field::Salt => Base::Hex.print(data.get(1..)?),
            Field::Hash => Base::Base32.print(data.get(1..).filter(|hash| !hash.is_empty())?),
            Field::Types => join(types_of(data).map(|rtype| rtype.to_string())),
            Field::Type => Type(u16::from_be_bytes(*data.first_chunk()?)).to_string(),
            Field::Time => date(number(data)),
            Field::Eui(_) => data.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join("-"),
            Field::Groups => data.chunks(2).map(|pair| Base::Hex.print(pair)).collect::<Vec<_>>().join(":"),
            Field::Prefixes => prefixes::print(data)?,
            Field::Identity => identity::print(data)?,
            Field::Names => names(data)?,
            Field::Gateway => gateway::print(data)?,
            Field::Relay => gateway::print_relay(data)?,
            Field::Location | Field::Parameters => return None,
        })
    }
}

fn number(data: &[u8]) -> u32 {
    data.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn join(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn names(mut data: &[u8]) -> Option<String> {
    let mut words = Vec::new();
    while !data.is_empty() {
        let name = name_at_start(data)?;
        words.push(name.to_string());
        data = data.get(name.len()..)?;
    }
    Some(words.join(" "))
}

fn strings(mut data: &[u8]) -> Option<String> {
    let mut words = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (string, after) = rest.split_at_checked(usize::from(*length))?;
        words.push(quoted(string));
        data = after;
    }
    Some(words.join(" "))
}

/// Puts bytes in quotes, with escapes where necessary (RFC 1035 §5.1).
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03}");
            }
        }
    }
    text + "\""
}
