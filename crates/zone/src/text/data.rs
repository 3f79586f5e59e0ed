//! RDATA formats: one table of fields per type, used to parse, validate, expand and print.

use core::net::{Ipv4Addr, Ipv6Addr};

use wire::{NameError, Type};

use super::base::{self, Base, Digits};
use super::error::ParseError;
use super::lex::Word;
use super::line::Line;
use super::names::{self, name_at_start};
use super::{gateway, identity, location, parameters, prefixes, special};

/// Maximum length of a character string in bytes (RFC 1035 §3.3).
const STRING_MAX: usize = 255;

/// Field of RDATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Domain name.
    Name,
    U8,
    U16,
    U32,
    /// Duration in seconds, with or without units.
    Seconds,
    V4,
    V6,
    /// Character string.
    String,
    /// One or more character strings, up to the end.
    Strings,
    /// String up to the end, without a length.
    Text,
    /// Two character strings. The text may also have them in one string, or only the first.
    Pair,
    /// Character string. The text may have further words, which have no meaning.
    FirstString,
    /// Binary data up to the end, possibly split into several words.
    Bytes(Base),
    /// Public key up to the end in base64, or none.
    Key,
    /// Binary data with a length prefix, `-` if empty (RFC 5155 §3.3).
    Salt,
    /// Hash with a length prefix (RFC 5155 §3.3).
    Hash,
    /// Type bitmaps up to the end (RFC 4034 §4.1.2).
    Types,
    /// Type mnemonic.
    Type,
    /// DNSSEC algorithm, as a number or mnemonic.
    Algorithm,
    /// Certificate type, as a number or mnemonic (RFC 4398 §2.1).
    Certificate,
    /// Point in time (RFC 4034 §3.2).
    Time,
    /// EUI of this many bytes, as hexadecimal pairs separated by dashes (RFC 7043).
    Eui(usize),
    /// Four groups of hexadecimal digits (RFC 6742 §2.1.2).
    Groups,
    /// Location (RFC 1876).
    Location,
    /// Service parameters up to the end (RFC 9460 §2.1).
    Parameters,
    /// Address prefixes up to the end (RFC 3123 §4).
    Prefixes,
    /// Host identity tag and host identity, with their lengths (RFC 8005 §5).
    Identity,
    /// Names up to the end.
    Names,
    /// Precedence, gateway type, algorithm and gateway (RFC 4025 §2).
    Gateway,
    /// Precedence, discovery bit, relay type and relay (RFC 8777 §4.2).
    Relay,
}

/// Returns the RDATA fields of a type, or `None` for types that have only the generic form.
pub(super) fn fields(rtype: Type) -> Option<&'static [Field]> {
    use Field::{
        Algorithm, Bytes, Certificate, Eui, FirstString, Gateway, Groups, Hash, Identity, Key, Location, Name, Names,
        Pair, Parameters, Prefixes, Relay, Salt, Seconds, String, Strings, Text, Time, Types, U8, U16, U32, V4, V6,
    };
    const HEX: Field = Bytes(Base::Hex);
    const BASE64: Field = Bytes(Base::Base64);
    Some(match rtype {
        Type::A => &[V4],
        Type::AAAA => &[V6],
        Type::NS | Type::CNAME | Type::PTR | Type::DNAME | Type::MB | Type::MD | Type::MF | Type::MG | Type::MR => {
            &[Name]
        }
        Type::NSAP_PTR => &[Name],
        Type::MX | Type::AFSDB | Type::RT | Type::KX | Type::LP => &[U16, Name],
        Type::SRV => &[U16, U16, U16, Name],
        Type::SOA => &[Name, Name, U32, Seconds, Seconds, Seconds, Seconds],
        Type::RP | Type::MINFO | Type::TALINK => &[Name, Name],
        Type::PX => &[U16, Name, Name],
        Type::TXT | Type::SPF | Type::NINFO | Type::AVC | Type::ISDN | Type::RESINFO => &[Strings],
        Type::HINFO => &[Pair],
        Type::UINFO => &[FirstString],
        Type::UID | Type::GID => &[U32],
        Type::EID | Type::NIMLOC => &[HEX],
        Type::APL => &[Prefixes],
        Type::HIP => &[Identity, Names],
        Type::IPSECKEY => &[Gateway, Key],
        Type::AMTRELAY => &[Relay],
        Type::X25 => &[String],
        Type::GPOS => &[String, String, String],
        Type::CAA => &[U8, String, Text],
        Type::URI => &[U16, U16, Text],
        Type::NAPTR => &[U16, U16, String, String, String, Name],
        Type::LOC => &[Location],
        Type::SVCB | Type::HTTPS => &[U16, Name, Parameters],
        Type::DS | Type::CDS | Type::DLV | Type::TA => &[U16, Algorithm, U8, HEX],
        Type::DNSKEY | Type::CDNSKEY | Type::RKEY => &[U16, U8, Algorithm, BASE64],
        // RFC 2535 §3.1.2: flags may say that there is no key.
        Type::KEY => &[U16, U8, Algorithm, Key],
        Type::RRSIG | Type::SIG => &[Field::Type, Algorithm, U8, Seconds, Time, Time, U16, Name, BASE64],
        // NXT with the bitmaps of NSEC, as CoreDNS has it. Those of RFC 2535 §5.2 have been obsolete since RFC 3755.
        Type::NSEC | Type::NXT => &[Name, Types],
        Type::NSEC3 => &[U8, U8, U16, Salt, Hash, Types],
        Type::NSEC3PARAM => &[U8, U8, U16, Salt],
        Type::CSYNC => &[U32, U16, Types],
        Type::ZONEMD => &[U32, U8, U8, HEX],
        Type::TLSA | Type::SMIMEA => &[U8, U8, U8, HEX],
        Type::SSHFP => &[U8, U8, HEX],
        Type::CERT => &[Certificate, U16, Algorithm, BASE64],
        Type::OPENPGPKEY | Type::DHCID => &[BASE64],
        Type::EUI48 => &[Eui(6)],
        Type::EUI64 => &[Eui(8)],
        Type::L32 => &[U16, V4],
        Type::NID | Type::L64 => &[U16, Groups],
        _ => return None,
    })
}

/// Parses the RDATA of a record.
pub(super) fn read(rtype: Type, line: &mut Line<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let Some(fields) = fields(rtype) else {
        let sign = line.word("RDATA in the form `\\# LENGTH HEX`")?;
        return generic(rtype, &sign, line, data);
    };
    for (at, field) in fields.iter().enumerate() {
        let word = match line.maybe()? {
            Some(word) => word,
            None if field.may_be_empty() => continue,
            None => return Err(line.missing(field.what())),
        };
        if at == 0 && word.raw == b"\\#" && !word.quoted {
            return generic(rtype, &word, line, data);
        }
        field.read(&word, line, data)?;
    }
    Ok(())
}

/// Parses `\# LENGTH HEX...` (RFC 3597 §5).
fn generic(rtype: Type, sign: &Word<'_>, line: &mut Line<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    if sign.raw != b"\\#" {
        return Err(sign.unexpected("RDATA in the form `\\# LENGTH HEX`"));
    }
    let length = line.word("the length of RDATA in bytes")?;
    let wanted: u16 = length.parse("the length of RDATA in bytes")?;
    let mut digits = Digits::new(Base::Hex);
    let mut last = length;
    while let Some(word) = line.maybe()? {
        digits.read(&word, data)?;
        last = word;
    }
    digits.finish(&last)?;
    if data.len() != usize::from(wanted) {
        return Err(length.unexpected("the number of bytes that follow"));
    }
    if is_well_formed(rtype, data) { Ok(()) } else { Err(last.unexpected("RDATA in the format of its type")) }
}

impl Field {
    /// Parses this field. `word` is its first word.
    fn read<'a>(self, word: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
        let what = self.what();
        match self {
            Field::Name => names::read(word, line.origin.as_ref(), data)?,
            Field::U8 => data.push(word.parse(what)?),
            Field::U16 => data.extend(word.parse::<u16>(what)?.to_be_bytes()),
            Field::U32 => data.extend(word.parse::<u32>(what)?.to_be_bytes()),
            Field::Seconds => data.extend(special::seconds(word).ok_or_else(|| word.unexpected(what))?.to_be_bytes()),
            Field::V4 => data.extend(word.parse::<Ipv4Addr>(what)?.octets()),
            Field::V6 => data.extend(word.parse::<Ipv6Addr>(what)?.octets()),
            Field::String => string(word, data)?,
            Field::Strings => line.each_from(word, |word| strings(word, data))?,
            Field::Text => word.unescaped(|byte| data.push(byte))?,
            Field::Pair => pair(word, line, data)?,
            Field::FirstString => {
                string(word, data)?;
                while line.maybe()?.is_some() {}
            }
            Field::Bytes(base) => bytes(base, word, line, data)?,
            Field::Key => bytes(Base::Base64, word, line, data)?,
            Field::Salt | Field::Hash => {
                let base = if self == Field::Hash { Base::Base32 } else { Base::Hex };
                counted(word, data, |data| if word.raw == b"-" { Ok(()) } else { base::read(base, word, data) })?;
            }
            Field::Type => data.extend(word.parse::<Type>(what)?.0.to_be_bytes()),
            Field::Algorithm => data.push(special::algorithm(word).ok_or_else(|| word.unexpected(what))?),
            Field::Certificate => {
                data.extend(special::certificate(word).ok_or_else(|| word.unexpected(what))?.to_be_bytes());
            }
            Field::Time => data.extend(special::time(word).ok_or_else(|| word.unexpected(what))?.to_be_bytes()),
            Field::Eui(len) => special::eui(word, len, data).ok_or_else(|| word.unexpected(what))?,
            Field::Groups => special::groups(word, data).ok_or_else(|| word.unexpected(what))?,
            Field::Location => location::read(word, line, data)?,
            Field::Types => special::types(word, line, data)?,
            Field::Parameters => parameters::read(word, line, data)?,
            Field::Prefixes => prefixes::read(word, line, data)?,
            Field::Identity => identity::read(word, line, data)?,
            Field::Names => {
                let origin = line.origin.clone();
                line.each_from(word, |word| names::read(word, origin.as_ref(), data))?;
            }
            Field::Gateway => gateway::read(word, line, data)?,
            Field::Relay => gateway::read_relay(word, line, data)?,
        }
        Ok(())
    }

    /// Returns true for fields that take the rest of the line and need no word.
    const fn may_be_empty(self) -> bool {
        matches!(self, Field::Types | Field::Parameters | Field::Key | Field::Prefixes | Field::Names)
    }

    const fn what(self) -> &'static str {
        match self {
            Field::Name | Field::Names => "a name",
            Field::U8 | Field::Identity | Field::Gateway | Field::Relay => "a number from 0 to 255",
            Field::U16 => "a number from 0 to 65535",
            Field::U32 => "a number from 0 to 4294967295",
            Field::Seconds => "a time in seconds",
            Field::V4 => "an IPv4 address",
            Field::V6 => "an IPv6 address",
            Field::String | Field::Strings | Field::Pair | Field::FirstString | Field::Text => "a string",
            Field::Bytes(Base::Base64) | Field::Key => "base64 digits",
            Field::Bytes(_) => "hexadecimal digits",
            Field::Salt => "a salt in hexadecimal digits, or `-`",
            Field::Hash => "a hash in base32",
            Field::Types | Field::Type => "a type",
            Field::Algorithm => "a DNSSEC algorithm number or mnemonic",
            Field::Certificate => "a certificate type number or mnemonic",
            Field::Time => "a time as YYYYMMDDHHmmSS or in seconds",
            Field::Eui(_) => "pairs of hexadecimal digits separated by `-`",
            Field::Groups => "four groups of hexadecimal digits separated by `:`",
            Field::Location => "a location",
            Field::Parameters => "service parameters",
            Field::Prefixes => prefixes::WHAT,
        }
    }

    /// Returns the length in bytes of this field at the start of `data`, or `None` if the field is incomplete or
    /// malformed.
    pub(super) fn len(self, data: &[u8]) -> Option<usize> {
        let len = match self {
            Field::Name => name_at_start(data)?.len(),
            Field::U8 | Field::Algorithm => 1,
            Field::U16 | Field::Type | Field::Certificate => 2,
            Field::U32 | Field::Seconds | Field::Time | Field::V4 => 4,
            Field::V6 | Field::Location => 16,
            Field::Eui(len) => len,
            Field::Groups => 8,
            Field::String | Field::FirstString | Field::Salt | Field::Hash => 1 + usize::from(*data.first()?),
            Field::Strings => character_strings(data)?,
            Field::Pair => {
                let first = Field::String.len(data)?;
                first + Field::String.len(data.get(first..)?)?
            }
            Field::Text | Field::Bytes(_) | Field::Key => data.len(),
            Field::Types => special::bitmaps(data)?,
            Field::Parameters => parameters::well_formed(data)?,
            Field::Prefixes => prefixes::well_formed(data)?,
            Field::Identity => identity::len(data)?,
            Field::Names => names::well_formed(data)?,
            Field::Gateway => gateway::len(data)?,
            Field::Relay => gateway::len_of_relay(data)?,
        };
        (len <= data.len()).then_some(len)
    }
}

/// Runs `write` and inserts the number of bytes written before them, as one byte.
fn counted(
    word: &Word<'_>,
    data: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let at = data.len();
    data.push(0);
    write(data)?;
    data[at] = u8::try_from(data.len() - at - 1).map_err(|_| word.unexpected("at most 255 bytes"))?;
    Ok(())
}

pub(super) fn string(word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    counted(word, data, |data| word.unescaped(|byte| data.push(byte)))
}

/// Parses two strings. As in CoreDNS, a text of one string is split at its blanks, and all strings after the first are
/// joined by blanks.
fn pair<'a>(first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut words = Vec::new();
    line.each_from(first, |word| {
        words.push(*word);
        Ok(())
    })?;
    if words.len() == 1 && first.raw.contains(&b' ') {
        let pieces = first.raw.split(|byte| *byte == b' ').filter(|piece| !piece.is_empty());
        words = pieces.map(|raw| Word { raw, ..*first }).collect();
    }
    let (first, others) = words.split_first().unwrap_or((first, &[]));
    string(first, data)?;
    counted(others.last().unwrap_or(first), data, |data| {
        for (at, word) in others.iter().enumerate() {
            if at > 0 {
                data.push(b' ');
            }
            word.unescaped(|byte| data.push(byte))?;
        }
        Ok(())
    })
}

/// Encodes a text as one or more character strings. A quote begins or ends a string also within a word: `a"b"` is two.
fn strings(word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    if word.quoted || !word.raw.contains(&b'"') {
        return long_string(word, data);
    }
    let (mut rest, mut is_quoted) = (word.raw, false);
    loop {
        let end = quote_in(rest);
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        if is_quoted || !piece.is_empty() {
            long_string(&Word { raw: piece, ..*word }, data)?;
        }
        let Some((_, after)) = after.split_first() else { return Ok(()) };
        (rest, is_quoted) = (after, !is_quoted);
    }
}

/// Returns the place of the first quote that is not escaped.
fn quote_in(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })
}

/// Encodes a text of any length as one or more character strings, because users write long keys in one piece.
fn long_string(word: &Word<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut length_at = data.len();
    data.push(0);
    word.unescaped(|byte| {
        if usize::from(data[length_at]) == STRING_MAX {
            length_at = data.len();
            data.push(0);
        }
        data[length_at] += 1;
        data.push(byte);
    })
}

fn bytes<'a>(base: Base, first: &Word<'a>, line: &mut Line<'a>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut digits = Digits::new(base);
    let mut last = *first;
    line.each_from(first, |word| {
        last = *word;
        digits.read(word, data)
    })?;
    digits.finish(&last)
}

fn character_strings(data: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(length) = data.get(at) {
        at += 1 + usize::from(*length);
    }
    (at == data.len() && at > 0).then_some(at)
}

/// Returns true if `data` is valid RDATA of this type with uncompressed names. Any data is valid for an unknown type.
#[must_use]
pub fn is_well_formed(rtype: Type, data: &[u8]) -> bool {
    let Some(fields) = fields(rtype) else { return true };
    let mut rest = data;
    for field in fields {
        match field.len(rest).and_then(|len| rest.split_at_checked(len)) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Converts names in RDATA to lower case for the canonical form. RFC 4034 §6.2 lists the affected types. Newer types
/// are not among them, and RFC 6840 §5.1 removed NSEC. The names must be uncompressed. Names inside other
/// fields, such as those of HIP, IPSECKEY and AMTRELAY, are not converted (RFC 3597 §7).
pub(crate) fn lowercase_names(rtype: Type, data: &mut [u8]) {
    const NEWER: [Type; 6] = [Type::NSEC, Type::SVCB, Type::HTTPS, Type::LP, Type::TALINK, Type::NSAP_PTR];
    if !NEWER.contains(&rtype) {
        fold_names(rtype, data);
    }
}

/// Converts all names in RDATA to lower case, for comparison. The names must be uncompressed.
pub(crate) fn fold_names(rtype: Type, data: &mut [u8]) {
    let mut at = 0;
    for field in fields(rtype).unwrap_or_default() {
        let Some(len) = data.get(at..).and_then(|rest| field.len(rest)) else { return };
        if *field == Field::Name {
            data[at..at + len].make_ascii_lowercase();
        }
        at += len;
    }
}

/// Returns true if RDATA of this type contains names.
pub(crate) fn has_names(rtype: Type) -> bool {
    fields(rtype).unwrap_or_default().contains(&Field::Name)
}

/// Appends the RDATA of a record from a message to `data`, with uncompressed names.
///
/// # Errors
/// A name cannot be read, or RDATA is not valid for the type.
pub fn expand(record: &wire::Record<'_>, data: &mut Vec<u8>) -> Result<(), NameError> {
    let rdata = record.rdata();
    let (start, mut at) = (data.len(), 0);
    for field in fields(record.rtype()).unwrap_or_default() {
        if *field == Field::Name {
            let (name, end) = record.name_at(at)?;
            data.extend_from_slice(name.as_bytes());
            at = end;
        } else {
            let rest = rdata.get(at..).ok_or(NameError::Short)?;
            let len = field.len(rest).ok_or(NameError::Short)?;
            data.extend_from_slice(&rest[..len]);
            at += len;
        }
    }
    data.extend_from_slice(rdata.get(at..).unwrap_or_default());
    if is_well_formed(record.rtype(), &data[start..]) { Ok(()) } else { Err(NameError::Short) }
}
