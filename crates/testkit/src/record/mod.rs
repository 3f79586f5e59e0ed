//! Text form of resource records, one per line, to read and compare files of expectations.
//!
//! The format is the master file format (RFC 1035 §5.1) with all fields on the line: `OWNER TTL CLASS TYPE DATA`.
//! Types not known here use the generic form (RFC 3597 §5).
//!
//! This is a separate implementation for tests: it shares no code with the server's writers, so that each can reveal
//! errors of the other.

mod digits;
mod fields;
mod words;

use core::fmt;
use core::str::FromStr;

use wire::{Class, MessageBuf, Name, NameError, Owner, Section, Type};

use fields::{expand, print, read_data, write};
use words::{Word, split};

/// A resource record. Names in its data are not compressed.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Owner, in its original case.
    pub owner: Name,
    /// TTL in seconds.
    pub ttl: u32,
    /// Class.
    pub class: Class,
    /// Type.
    pub rtype: Type,
    /// Data in wire format.
    pub rdata: Vec<u8>,
}

/// Error in the text of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The text ends before this field.
    Missing(&'static str),
    /// The word is not valid for this field.
    Bad(&'static str, String),
    /// Extra text after the data.
    Trailing(String),
    /// A quote is not closed.
    Unclosed,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Missing(field) => write!(f, "the record ends before its {field}"),
            RecordError::Bad(field, word) => write!(f, "invalid {field}: `{word}`"),
            RecordError::Trailing(word) => write!(f, "unexpected `{word}` after the data of the record"),
            RecordError::Unclosed => f.write_str("a quote is not closed"),
        }
    }
}

impl core::error::Error for RecordError {}

impl FromStr for Record {
    type Err = RecordError;

    fn from_str(line: &str) -> Result<Record, RecordError> {
        let words = split(line)?;
        let mut words = words.iter();
        let owner = field(&mut words, "owner", |word| Name::from_text(word).ok())?;
        let ttl = field(&mut words, "TTL", |word| word.parse().ok())?;
        let class = field(&mut words, "class", |word| word.parse().ok())?;
        let rtype = field(&mut words, "type", |word| word.parse().ok())?;
        let rdata = read_data(rtype, &mut words)?;
        match words.next() {
            Some(word) => Err(RecordError::Trailing(word.text.clone())),
            None => Ok(Record { owner, ttl, class, rtype, rdata }),
        }
    }
}

/// Parses the next word as a field.
fn field<'a, T>(
    words: &mut impl Iterator<Item = &'a Word>,
    name: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, RecordError> {
    let word = words.next().ok_or(RecordError::Missing(name))?;
    read(&word.text).ok_or_else(|| RecordError::Bad(name, word.text.clone()))
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { owner, ttl, class, rtype, rdata } = self;
        write!(f, "{owner} {ttl} {class} {rtype} {}", print(*rtype, rdata))
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Record {
    /// Converts a record of a message.
    ///
    /// # Errors
    /// Fails if a name in the record is malformed.
    pub fn read(record: &wire::Record<'_>) -> Result<Record, NameError> {
        Ok(Record {
            owner: record.owner()?,
            ttl: record.ttl(),
            class: record.class(),
            rtype: record.rtype(),
            rdata: expand(record)?,
        })
    }

    /// Appends the record to a message, with name compression.
    pub fn push_to(&self, message: &mut MessageBuf, section: Section) {
        self.push_as(message, section, Owner::Name(self.owner.as_ref()));
    }

    /// Appends the record like [`Record::push_to`], with a different owner.
    pub(crate) fn push_as(&self, message: &mut MessageBuf, section: Section, owner: Owner<'_>) {
        let fixed = (self.rtype, self.class, self.ttl);
        message.push(section, owner, fixed, |rdata| write(self.rtype, &self.rdata, rdata));
    }
}

#[cfg(test)]
mod tests;
