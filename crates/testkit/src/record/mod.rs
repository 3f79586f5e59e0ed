//! Records as text: one line each, as other tools print them, so that a file of expectations can be read and compared.
//!
//! The form is that of RFC 1035 §5.1 with all fields on the line: `OWNER TTL CLASS TYPE DATA`. Types without a form of
//! their own here are written generically (RFC 3597 §5). This is the tests' own reading of the formats: it shares no code
//! with the server's writers, so that one can find fault with the other.

mod digits;
mod fields;
mod words;

use core::fmt;
use core::str::FromStr;

use wire::{Class, MessageBuf, Name, NameError, Owner, Section, Type};

use fields::{expand, print, read_data, write};
use words::{Word, split};

/// A record that stands for itself: the names in its data are not compressed.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The owner, its case kept.
    pub owner: Name,
    /// The time to live, in seconds.
    pub ttl: u32,
    /// The class.
    pub class: Class,
    /// The type.
    pub rtype: Type,
    /// The data in wire form.
    pub rdata: Vec<u8>,
}

/// Why a text is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It ends before this field.
    Missing(&'static str),
    /// This word is not what stands in this field.
    Bad(&'static str, String),
    /// Something follows the data.
    Trailing(String),
    /// A quote without its end.
    Unclosed,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Missing(field) => write!(f, "the record ends before its {field}"),
            RecordError::Bad(field, word) => write!(f, "`{word}` is no {field}"),
            RecordError::Trailing(word) => write!(f, "`{word}` stands behind the record's data"),
            RecordError::Unclosed => f.write_str("a quote is not closed"),
        }
    }
}

impl FromStr for Record {
    type Err = RecordError;

    fn from_str(line: &str) -> Result<Record, RecordError> {
        let words = split(line)?;
        let mut words = words.iter();
        let owner = field(&mut words, "owner", |word| Name::from_text(word).ok())?;
        let ttl = field(&mut words, "time to live", |word| word.parse().ok())?;
        let class = field(&mut words, "class", |word| word.parse().ok())?;
        let rtype = field(&mut words, "type", |word| word.parse().ok())?;
        let rdata = read_data(rtype, &mut words)?;
        match words.next() {
            Some(word) => Err(RecordError::Trailing(word.text.clone())),
            None => Ok(Record { owner, ttl, class, rtype, rdata }),
        }
    }
}

/// Takes the next word as a field.
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
    /// A record of a message, read.
    ///
    /// # Errors
    /// If a name in it cannot be read.
    pub fn read(record: &wire::Record<'_>) -> Result<Record, NameError> {
        Ok(Record {
            owner: record.owner()?,
            ttl: record.ttl(),
            class: record.class(),
            rtype: record.rtype(),
            rdata: expand(record)?,
        })
    }

    /// Appends it to a message, compressed as servers do.
    pub fn push_to(&self, message: &mut MessageBuf, section: Section) {
        self.push_as(message, section, Owner::Name(self.owner.as_ref()));
    }

    /// As [`Record::push_to`], its owner written otherwise.
    pub fn push_as(&self, message: &mut MessageBuf, section: Section, owner: Owner<'_>) {
        let fixed = (self.rtype, self.class, self.ttl);
        message.push(section, owner, fixed, |rdata| write(self.rtype, &self.rdata, rdata));
    }
}

#[cfg(test)]
mod tests;
