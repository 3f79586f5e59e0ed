//! Fields in the data of each type: one table for parsing, writing and printing.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::slice::Iter;
use std::fmt::Display;

use wire::{Name, NameError, NameRef, RdataWriter, Type};

use super::RecordError;
use super::digits::{self, BASE16, BASE32, BASE64};
use super::words::{Word, quote};

/// A field of a record's data.
#[derive(Clone, Copy)]
enum Field {
    /// Domain name.
    Name,
    /// Number with this length in bytes.
    Number(usize),
    /// IPv4 address.
    V4,
    /// IPv6 address.
    V6,
    /// Character string, quoted in text.
    String,
    /// Character string, not quoted in text.
    Tag,
    /// Character strings up to the end of the data.
    Strings,
    /// Bytes up to the end of the data, quoted in text.
    Rest,
    /// Service parameters up to the end of the data (RFC 9460 §2.2).
    Parameters,
    /// Type.
    Type,
    /// Types up to the end of the data, as bitmaps.
    Types,
    /// Bytes up to the end of the data, in this alphabet.
    Digits(&'static str),
    /// Bytes preceded by their length, in this alphabet; `-` if empty.
    Counted(&'static str),
}

/// Returns the fields of a type, or `None` for a type that is written in the generic form.
fn fields(rtype: Type) -> Option<&'static [Field]> {
    use Field::{Counted, Digits, Name, Number, Parameters, Rest, String, Strings, Tag, Types, V4, V6};
    Some(match rtype {
        Type::A => &[V4],
        Type::AAAA => &[V6],
        Type::NS | Type::CNAME | Type::PTR | Type::DNAME => &[Name],
        Type::MX => &[Number(2), Name],
        Type::SRV => &[Number(2), Number(2), Number(2), Name],
        Type::SOA => &[Name, Name, Number(4), Number(4), Number(4), Number(4), Number(4)],
        Type::TXT | Type::SPF => &[Strings],
        Type::HINFO => &[String, String],
        Type::CAA => &[Number(1), Tag, Rest],
        Type::NAPTR => &[Number(2), Number(2), String, String, String, Name],
        Type::SVCB | Type::HTTPS => &[Number(2), Name, Parameters],
        Type::DNSKEY | Type::CDNSKEY => &[Number(2), Number(1), Number(1), Digits(BASE64)],
        Type::DS | Type::CDS => &[Number(2), Number(1), Number(1), Digits(BASE16)],
        Type::RRSIG => {
            &[Field::Type, Number(1), Number(1), Number(4), Number(4), Number(4), Number(2), Name, Digits(BASE64)]
        }
        Type::NSEC => &[Name, Types],
        Type::NSEC3 => &[Number(1), Number(1), Number(2), Counted(BASE16), Counted(BASE32), Types],
        Type::NSEC3PARAM => &[Number(1), Number(1), Number(2), Counted(BASE16)],
        _ => return None,
    })
}

/// Returns true if names in the data may be compressed: only in types of RFC 1035 (RFC 3597 §4).
const fn compresses(rtype: Type) -> bool {
    matches!(rtype, Type::NS | Type::CNAME | Type::PTR | Type::MX | Type::SOA)
}

impl Field {
    /// Returns the length of this field at the start of `data`, or `None` if it is incomplete.
    fn len(self, data: &[u8]) -> Option<usize> {
        let len = match self {
            Field::Name => name_at_start(data)?.len(),
            Field::Number(len) => len,
            Field::V4 => 4,
            Field::V6 => 16,
            Field::Type => 2,
            Field::String | Field::Tag | Field::Counted(_) => 1 + usize::from(*data.first()?),
            Field::Strings | Field::Rest | Field::Parameters | Field::Types | Field::Digits(_) => data.len(),
        };
        (len <= data.len()).then_some(len)
    }

    fn print(self, data: &[u8]) -> Option<String> {
        Some(match self {
            Field::Name => name_at_start(data)?.to_string(),
            Field::Number(_) => number(data).to_string(),
            Field::V4 => Ipv4Addr::from(*data.first_chunk::<4>()?).to_string(),
            Field::V6 => Ipv6Addr::from(*data.first_chunk::<16>()?).to_string(),
            Field::String => quote(data.get(1..)?),
            Field::Tag => String::from_utf8_lossy(data.get(1..)?).into_owned(),
            Field::Rest => quote(data),
            Field::Strings => join(character_strings(data)?.into_iter().map(quote)),
            Field::Parameters => join(parameters(data)?.into_iter().map(|(key, value)| parameter(key, value))),
            Field::Type => Type(u16::from_be_bytes(*data.first_chunk()?)).to_string(),
            Field::Types => join(digits::types(data)?.into_iter().map(|rtype| rtype.to_string())),
            Field::Digits(digits) => digits::print(digits, data),
            Field::Counted(_) if data.len() == 1 => "-".to_owned(),
            Field::Counted(digits) => digits::print(digits, data.get(1..)?),
        })
    }

    fn read(self, words: &mut Iter<'_, Word>, data: &mut Vec<u8>) -> Result<(), RecordError> {
        let what = self.what();
        let rest = matches!(self, Field::Strings | Field::Parameters | Field::Types);
        if words.as_slice().is_empty() && !matches!(self, Field::Parameters | Field::Types) {
            return Err(RecordError::Missing(what));
        }
        let count = if rest { words.len() } else { 1 };
        let mut field = Vec::new();
        for word in words.by_ref().take(count) {
            self.read_word(word, &mut field).ok_or_else(|| RecordError::Bad(what, word.text.clone()))?;
        }
        data.extend(field);
        Ok(())
    }

    fn read_word(self, word: &Word, data: &mut Vec<u8>) -> Option<()> {
        match self {
            Field::Name => data.extend(Name::from_text(&word.text).ok()?.as_bytes()),
            Field::Number(len) => {
                let number: u32 = word.text.parse().ok()?;
                let bytes = number.to_be_bytes();
                let (above, kept) = bytes.split_at(bytes.len() - len);
                data.extend(above.iter().all(|byte| *byte == 0).then_some(kept)?);
            }
            Field::V4 => data.extend(word.text.parse::<Ipv4Addr>().ok()?.octets()),
            Field::V6 => data.extend(word.text.parse::<Ipv6Addr>().ok()?.octets()),
            Field::String | Field::Tag | Field::Strings => {
                let bytes = word.unescaped()?;
                data.push(u8::try_from(bytes.len()).ok()?);
                data.extend(bytes);
            }
            Field::Rest => data.extend(word.unescaped()?),
            Field::Parameters => read_parameter(word, data)?,
            Field::Type => data.extend(word.text.parse::<Type>().ok()?.0.to_be_bytes()),
            Field::Types => digits::push_type(word.text.parse().ok()?, data)?,
            Field::Digits(digits) => data.extend(digits::read(digits, &word.text)?),
            Field::Counted(digits) => {
                let bytes = if word.text == "-" { Vec::new() } else { digits::read(digits, &word.text)? };
                data.push(u8::try_from(bytes.len()).ok()?);
                data.extend(bytes);
            }
        }
        Some(())
    }

    const fn what(self) -> &'static str {
        match self {
            Field::Name => "name",
            Field::Number(_) => "number",
            Field::V4 => "IPv4 address",
            Field::V6 => "IPv6 address",
            Field::String | Field::Strings | Field::Rest => "text",
            Field::Tag => "tag",
            Field::Parameters => "service parameter",
            Field::Type | Field::Types => "type",
            Field::Digits(_) | Field::Counted(_) => "digits",
        }
    }
}

/// Prints the data of a record.
pub(super) fn print(rtype: Type, rdata: &[u8]) -> String {
    fields(rtype).and_then(|fields| print_fields(fields, rdata)).unwrap_or_else(|| {
        let hex: String = rdata.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("\\# {} {hex}", rdata.len()).trim_end().to_owned()
    })
}

fn print_fields(fields: &[Field], rdata: &[u8]) -> Option<String> {
    let mut rest = rdata;
    let mut words = Vec::new();
    for field in fields {
        let (data, after) = rest.split_at(field.len(rest)?);
        words.push(field.print(data)?);
        rest = after;
    }
    rest.is_empty().then(|| join(words.into_iter()))
}

fn join(words: impl Iterator<Item = String>) -> String {
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Parses the data of a record.
pub(super) fn read_data(rtype: Type, words: &mut Iter<'_, Word>) -> Result<Vec<u8>, RecordError> {
    let generic = words.as_slice().first().is_some_and(|word| word.text == "\\#");
    let Some(fields) = fields(rtype).filter(|_| !generic) else { return read_generic(words) };
    let mut data = Vec::new();
    fields.iter().try_for_each(|field| field.read(words, &mut data))?;
    Ok(data)
}

/// Parses `\# LENGTH HEX...` (RFC 3597 §5).
fn read_generic(words: &mut Iter<'_, Word>) -> Result<Vec<u8>, RecordError> {
    let sign = words.next().ok_or(RecordError::Missing("data"))?;
    if sign.text != "\\#" {
        return Err(RecordError::Bad("start of generic data, expected `\\#`", sign.text.clone()));
    }
    let length = words.next().ok_or(RecordError::Missing("length"))?;
    let hex: String = words.map(|word| word.text.as_str()).collect();
    let data = crate::hex(&hex).ok_or_else(|| RecordError::Bad("hexadecimal data", hex.clone()))?;
    match length.text.parse() {
        Ok(wanted) if data.len() == wanted => Ok(data),
        _ => Err(RecordError::Bad("length of the data", length.text.clone())),
    }
}

/// Returns the data of a record in a message, with uncompressed names.
pub(super) fn expand(record: &wire::Record<'_>) -> Result<Vec<u8>, NameError> {
    let rdata = record.rdata();
    let (mut data, mut at) = (Vec::new(), 0);
    for field in fields(record.rtype()).unwrap_or_default() {
        let rest = rdata.get(at..).unwrap_or_default();
        if let Field::Name = field {
            let (name, end) = record.name_at(at)?;
            data.extend(name.as_bytes());
            at = end;
        } else {
            let len = field.len(rest).ok_or(NameError::Short)?;
            data.extend(&rest[..len]);
            at += len;
        }
    }
    data.extend(rdata.get(at..).unwrap_or_default());
    Ok(data)
}

/// Writes the data of a record into a message.
pub(super) fn write(rtype: Type, rdata: &[u8], writer: &mut RdataWriter<'_>) {
    let mut rest = rdata;
    for field in fields(rtype).unwrap_or_default() {
        let Some(len) = field.len(rest) else { break };
        let (data, after) = rest.split_at(len);
        match (field, name_at_start(data)) {
            (Field::Name, Some(name)) if compresses(rtype) => writer.name(name),
            _ => writer.bytes(data),
        }
        rest = after;
    }
    writer.bytes(rest);
}

/// Returns the uncompressed name at the start of `data`.
fn name_at_start(data: &[u8]) -> Option<NameRef<'_>> {
    let mut end = 0;
    loop {
        let length = *data.get(end)?;
        end += 1 + usize::from(length);
        if length == 0 {
            return NameRef::from_bytes(data.get(..end)?).ok();
        }
    }
}

fn number(data: &[u8]) -> u32 {
    data.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn character_strings(mut data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut strings = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (string, after) = rest.split_at_checked(usize::from(*length))?;
        strings.push(string);
        data = after;
    }
    Some(strings)
}

/// Splits service parameters into keys and values.
fn parameters(mut data: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut parameters = Vec::new();
    while let Some(([key_high, key_low, len_high, len_low], rest)) = data.split_first_chunk() {
        let (value, after) = rest.split_at_checked(usize::from(u16::from_be_bytes([*len_high, *len_low])))?;
        parameters.push((u16::from_be_bytes([*key_high, *key_low]), value));
        data = after;
    }
    data.is_empty().then_some(parameters)
}

/// Service parameter keys with a name.
const KEYS: [(u16, &str); 6] =
    [(1, "alpn"), (2, "no-default-alpn"), (3, "port"), (4, "ipv4hint"), (6, "ipv6hint"), (7, "dohpath")];

fn parameter(key: u16, value: &[u8]) -> String {
    let name = KEYS.iter().find(|(known, _)| *known == key).map(|(_, name)| *name);
    let list = match name {
        Some("alpn") => character_strings(value)
            .map(|ids| ids.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect::<Vec<_>>().join(",")),
        Some("port") => Some(number(value).to_string()),
        Some("ipv4hint") => Some(listed(value.as_chunks::<4>().0.iter().map(|bytes| Ipv4Addr::from(*bytes)))),
        Some("ipv6hint") => Some(listed(value.as_chunks::<16>().0.iter().map(|bytes| Ipv6Addr::from(*bytes)))),
        Some("dohpath") | None => None,
        Some(flag) => return flag.to_owned(),
    };
    let name = name.map_or_else(|| format!("key{key}"), str::to_owned);
    list.map_or_else(|| format!("{name}={}", quote(value)), |list| format!("{name}=\"{list}\""))
}

fn listed(values: impl Iterator<Item = impl Display>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

/// Parses `NAME="VALUE"`, `NAME=VALUE` or `NAME`.
fn read_parameter(word: &Word, data: &mut Vec<u8>) -> Option<()> {
    let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
    let value = Word { text: value.trim_matches('"').to_owned() };
    let known = KEYS.iter().find(|(_, known)| *known == name).map(|(key, _)| *key);
    let key = known.or_else(|| name.strip_prefix("key")?.parse().ok())?;
    let list = || value.text.split(',').filter(|item| !item.is_empty());
    let mut bytes = Vec::new();
    match name {
        "alpn" => list().try_for_each(|id| Field::String.read_word(&Word { text: id.to_owned() }, &mut bytes))?,
        "port" => Field::Number(2).read_word(&value, &mut bytes)?,
        "ipv4hint" => list().try_for_each(|hint| Field::V4.read_word(&Word { text: hint.to_owned() }, &mut bytes))?,
        "ipv6hint" => list().try_for_each(|hint| Field::V6.read_word(&Word { text: hint.to_owned() }, &mut bytes))?,
        _ => bytes.extend(value.unescaped()?),
    }
    data.extend(key.to_be_bytes());
    data.extend(u16::try_from(bytes.len()).ok()?.to_be_bytes());
    data.extend(bytes);
    Some(())
}
