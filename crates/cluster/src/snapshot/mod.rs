//! Log of the events of all watches, so that a later process can serve what this one knew, and resume its watches.
//!
//! A log is a sequence of [`Record`]s. Each has its watch, by kind and namespace, and an event of the watch: a list
//! with its objects, an event with its object, or a position. The objects have all fields, with name and version, so
//! the index need not keep these for the snapshot. [`Restore`](crate::Restore) applies a log to a reducer, which checks
//! the objects like those of an API server.
//!
//! ```text
//! length (4 bytes), CRC-32 of the record (4), record (postcard)
//!
//! Listing, Applied ..., Listed, Applied, Deleted, Position, ...  <- appended before the reducer applies an event
//! |---------- base ----------|  |--- journal
//! ```
//!
//! # Begin of a watch
//! The first record of a watch is `Listing`, also after `Closed`. Earlier records of the watch belong to a list that
//! began before the log, which has only a part of its objects. They are ignored.
//!
//! # Compaction
//! [`Compaction`] finds the records that still count. The log of these leads to the same index.
//!
//! The caller stores the bytes. **A change of a type that is serialised here changes the format**: it needs a new title
//! of the file (`kubeapi::snapshot`) and a new checksum in the test `the_format_is_the_one_of_the_title`.

mod compaction;
mod progress;

use host::invariant::{Expected as _, holds};
use serde::{Deserialize, Serialize};

use crate::object::{Event, Meta, Object};
use crate::{Kind, Watch};
pub use compaction::{Compaction, Piece};
pub(crate) use progress::Progress;

/// Length of the length and the checksum of a record.
const HEADER_LEN: usize = 8;
/// Maximum length of a record without its header, more than an API server stores for one object.
pub const RECORD_MAX: usize = 16 << 20;

/// One record of a log. `O` is the type of objects: those that are written are borrowed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Record<'a, O = Object<'a>> {
    /// The records before this one are a base: only what counts.
    BaseEnd,
    /// Event of a watch.
    Event {
        /// Kind of the watch.
        kind: Kind,
        /// Namespace of the watch; `None` for all.
        #[serde(borrow)]
        namespace: Option<&'a str>,
        /// Event.
        #[serde(borrow)]
        entry: Entry<'a, O>,
    },
}

/// Event in a log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Entry<'a, O = Object<'a>> {
    /// A list begins. The position of the watch is lost.
    Listing,
    /// The list is complete: objects that are not in it do not exist.
    Listed {
        /// Position from which the watch continues; empty for a list without one.
        position: &'a str,
    },
    /// An object exists in this state.
    Applied {
        /// The object.
        object: O,
        /// True for an event after the list. The version of the object is the position then.
        is_live: bool,
    },
    /// The list has an object that is known already, or that cannot be decoded.
    Seen {
        /// Namespace of the object.
        namespace: &'a str,
        /// Name of the object.
        name: &'a str,
    },
    /// An object was deleted.
    Deleted {
        /// Namespace of the object.
        namespace: &'a str,
        /// Name of the object.
        name: &'a str,
        /// Position after the event; empty if it has none.
        version: &'a str,
    },
    /// Everything up to this position is known.
    Position(&'a str),
    /// The watch was closed, and its objects are gone.
    Closed,
}

/// Error: the bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a record of a snapshot")]
pub struct RecordError;

impl<'a> Entry<'a, &'a Object<'a>> {
    /// Returns the entry of an event that is about to be applied. `is_current` is true for an object that is known in
    /// this version. `position` is the one after the event, or `None` within a list. Returns `None` if the event
    /// changes nothing.
    pub(crate) fn of(event: &'a Event<'a>, is_current: bool, position: Option<&'a str>) -> Option<Self> {
        Some(match (event, position) {
            (Event::Listing, _) => Entry::Listing,
            (Event::Listed, position) => Entry::Listed { position: position.unwrap_or_default() },
            (Event::Applied(object), None) if is_current => {
                let Meta { namespace, name, .. } = object.meta();
                Entry::Seen { namespace, name }
            }
            (Event::Applied(_), Some(_)) if is_current => return None,
            (Event::Applied(object), position) => Entry::Applied { object, is_live: position.is_some() },
            (Event::Deleted { namespace, name }, position) => {
                Entry::Deleted { namespace, name, version: position.unwrap_or_default() }
            }
            (Event::Unreadable { namespace, name }, None) => Entry::Seen { namespace, name },
            (Event::Unreadable { .. }, Some(position)) => Entry::Position(position),
        })
    }
}

impl<'a> Entry<'a> {
    /// Returns the position after the entry; empty if it was lost. `None` if the entry does not change it.
    pub(crate) fn position(&self) -> Option<&'a str> {
        match self {
            Entry::Listing | Entry::Closed => Some(""),
            Entry::Listed { position } | Entry::Position(position) => Some(position),
            Entry::Applied { object, is_live: true } => Some(object.meta().version),
            Entry::Deleted { version, .. } if !version.is_empty() => Some(version),
            Entry::Applied { .. } | Entry::Deleted { .. } | Entry::Seen { .. } => None,
        }
    }

    /// Returns the event for a reducer.
    pub(crate) fn into_event(self) -> Option<Event<'a>> {
        Some(match self {
            Entry::Listing => Event::Listing,
            Entry::Listed { .. } => Event::Listed,
            Entry::Applied { object, .. } => Event::Applied(object),
            // A list marks both alike: the known state stays.
            Entry::Seen { namespace, name } => Event::Unreadable { namespace, name },
            Entry::Deleted { namespace, name, .. } => Event::Deleted { namespace, name },
            Entry::Position(_) | Entry::Closed => return None,
        })
    }
}

impl<'a, O: Serialize> Record<'a, O> {
    /// Creates the record of an event of a watch.
    #[must_use]
    pub fn of(watch: &'a Watch, entry: Entry<'a, O>) -> Record<'a, O> {
        Record::Event { kind: watch.kind, namespace: watch.namespace.as_deref(), entry }
    }

    /// Appends the record to a log.
    ///
    /// # Errors
    /// Fails if the record is longer than [`RECORD_MAX`]. The log is unchanged then.
    pub fn append_to(&self, log: &mut Vec<u8>) -> Result<(), RecordError> {
        let begin = log.len();
        log.extend_from_slice(&[0; HEADER_LEN]);
        let longer = postcard::to_extend(self, core::mem::take(log)).ok().expected("memory takes each record");
        *log = longer.ok_or(RecordError)?;
        let body = log.get(begin + HEADER_LEN..).unwrap_or_default();
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= RECORD_MAX);
        let (Some(length), sum) = (length, crc32fast::hash(body)) else {
            log.truncate(begin);
            return Err(RecordError);
        };
        log[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        log[begin + 4..begin + HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
        let written = log.len() - begin;
        holds(
            length_of_first(&log[begin..]) == Ok(Some(written)),
            "a record is read with the length that it was written",
        );
        Ok(())
    }
}

impl<'a> Record<'a> {
    /// Reads the first record of a log. Returns `None` if it is damaged or incomplete.
    #[must_use]
    pub fn first_of(log: &'a [u8]) -> Option<(Record<'a>, usize)> {
        let length = length_of_first(log).ok()??;
        let (header, body) = log.get(..length)?.split_first_chunk::<HEADER_LEN>()?;
        let [_, _, _, _, sum @ ..] = *header;
        if crc32fast::hash(body) != u32::from_le_bytes(sum) {
            return None;
        }
        let (record, rest) = postcard::take_from_bytes(body).ok()?;
        rest.is_empty().then_some((record, length))
    }
}

/// Returns the length of the first record of a log, which may continue after the last byte. `None` if not even that is
/// known.
///
/// # Errors
/// Fails if no record has this length.
pub fn length_of_first(log: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(length) = log.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    // Zeros, which a crash of the machine may leave, are no record either.
    if length == 0 || length > RECORD_MAX { Err(RecordError) } else { Ok(Some(HEADER_LEN + length)) }
}

/// Calls `each` with every record of a log, its offset and its length. Returns the length of the log up to the first
/// byte that belongs to no complete record.
pub fn for_each_record<'a>(log: &'a [u8], mut each: impl FnMut(usize, usize, Record<'a>)) -> usize {
    let mut at = 0;
    while let Some((record, length)) = log.get(at..).and_then(Record::first_of) {
        holds(at + length <= log.len(), "a record ends within its log");
        each(at, length, record);
        at += length;
    }
    at
}

#[cfg(test)]
mod tests;
