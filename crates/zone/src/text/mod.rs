//! Records in presentation format (RFC 1035 §5.1, RFC 3597 §5): parser and printer.
//!
//! A single table ([`data`]) defines the RDATA fields of each type. Types not in the table use the generic form
//! `TYPE65400 \# 4 0a000001`. Names in RDATA are made absolute and keep their case.

mod base;
mod data;
mod entry;
mod error;
mod gateway;
mod identity;
mod lex;
mod line;
mod location;
mod names;
mod parameters;
mod prefixes;
mod print;
mod special;

use wire::{Class, Name, NameRef, Type};

pub use data::{expand, is_well_formed};
pub use error::{ParseError, ParseErrorKind};
pub use print::Data;

pub(crate) use data::{fold_names, has_names, lowercase_names};

pub(crate) use entry::{Entries, Entry};
pub(crate) use lex::Word;
pub(crate) use line::Line;
pub(crate) use names::name_at_start;
pub(crate) use special::write_bitmaps;

/// Parsed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Owner name in its original case.
    pub owner: Name,
    /// TTL in seconds.
    pub ttl: u32,
    /// The class.
    pub class: Class,
    /// The type.
    pub rtype: Type,
    /// RDATA in wire form, with uncompressed names.
    pub rdata: Vec<u8>,
}

/// Parses a single record. It may span several lines in parentheses, and a comment may follow it.
///
/// Relative names are completed with `origin`. The TTL defaults to `default_ttl` (seconds), the class to IN.
///
/// # Errors
/// The text is not exactly one valid record. The error has the position.
///
/// ```
/// let origin = wire::Name::from_text("example.org.").unwrap();
/// let record = zone::text::record("www 60 A 192.0.2.1", origin.as_ref(), 300).unwrap();
/// assert_eq!((record.ttl, record.rdata), (60, vec![192, 0, 2, 1]));
/// ```
pub fn record(line: &str, origin: NameRef<'_>, default_ttl: u32) -> Result<Record, ParseError> {
    let mut entries = Entries::new(line.as_bytes(), origin);
    entries.default_ttl = Some(default_ttl);
    let (ttl, class, rtype) = match entries.next()? {
        Some(Entry::Record { ttl, class, rtype }) => (ttl, class, rtype),
        Some(Entry::Directive(word)) => return Err(word.unexpected("a record")),
        None => return Err(entries.missing("a record")),
    };
    let record = Record { owner: entries.owner().to_name(), ttl, class, rtype, rdata: entries.rdata().to_vec() };
    match entries.next()? {
        None => Ok(record),
        Some(_) => Err(ParseError { kind: ParseErrorKind::SecondRecord, ..entries.missing("the end of the text") }),
    }
}

/// Decodes base64 (RFC 4648 §4). Returns `None` if the text is not valid base64.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let word = Word { raw: text.as_bytes(), quoted: true, position: error::Position { line: 1, column: 1 } };
    let mut bytes = Vec::new();
    base::read(base::Base::Base64, &word, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests;
