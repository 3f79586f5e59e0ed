//! Records in presentation format (RFC 1035 §5.1, RFC 3597 §5): text in, octets out.
//!
//! One table ([`data`]) says what stands in the data of each type; whatever it does not list is written generically,
//! `TYPE65400 \# 4 0a000001`. Names in the data come out in full, in the case in which they were written.

mod base;
mod data;
mod entry;
mod error;
mod lex;
mod line;
mod location;
mod parameters;
mod print;
mod special;

use wire::{Class, Name, NameRef, Type};

pub use data::{expand, is_well_formed};
pub use error::{Error, Fault};
pub use print::Data;

pub(crate) use data::{lowercase_names, name_at_start};

pub(crate) use entry::{Entries, Entry};
pub(crate) use lex::Word;
pub(crate) use line::Line;
pub(crate) use special::write_bitmaps;

/// A record that stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The owner, its case kept.
    pub owner: Name,
    /// The time to live, in seconds.
    pub ttl: u32,
    /// The class.
    pub class: Class,
    /// The type.
    pub rtype: Type,
    /// The data in wire form, its names in full.
    pub rdata: Vec<u8>,
}

/// Reads one record; it may reach over several lines in parentheses, and a comment may follow it.
///
/// Relative names end in `origin`; a record without a time to live has `default_ttl` (seconds), one without a class is
/// of class IN.
///
/// # Errors
/// What is wrong with the text, and where: also if there is no record in it, or more than one.
pub fn record(line: &str, origin: NameRef<'_>, default_ttl: u32) -> Result<Record, Error> {
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
        Some(_) => Err(entries.missing("nothing after the first record")),
    }
}

/// Reads octets in base 64 (RFC 4648 §4); `None` if the text is none.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let word = Word { raw: text.as_bytes(), quoted: true, place: error::Place { line: 1, column: 1 } };
    let mut octets = Vec::new();
    base::read(base::Base::Base64, &word, &mut octets).ok()?;
    Some(octets)
}

#[cfg(test)]
mod tests;
