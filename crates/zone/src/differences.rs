//! A newer version of a zone as what an answer to IXFR makes of the one that is there (RFC 1995 §4): what went and what came,
//! version by version; all of it as in AXFR; or that nothing is newer.
//!
//! ```text
//!   SOA new ─┬─ (nothing more)                                                  nothing is newer
//!            ├─ SOA ours ── what went ── SOA ── what came ──► (again) ── SOA new  differences
//!            └─ anything else                                                     the whole zone
//! ```
//!
//! What does not fit the zone that is there is an error: the whole zone is asked for then.

use std::collections::HashMap;
use std::sync::Arc;

use wire::{Class, Message, Name, NameRef, Record, Section, Type};

use crate::incoming::{checked, soa_of};
use crate::store::LENGTH_LEN;
use crate::text::lowercase_names;
use crate::{Broken, Builder, Incoming, Soa, Zone};

/// Records that went or came, at most: a million take a hundred megabytes, and a whole zone costs less than many of them.
const CHANGES_MAX: usize = 1 << 20;

/// A newer version of a zone, of which a part has come.
pub struct Differences {
    old: Arc<Zone>,
    /// The serial of the version that the differences so far lead to.
    serial: u32,
    newest: Option<Soa>,
    stage: Stage,
    /// Every record so far, as long as it may be the whole zone; the newest SOA record else.
    whole: Incoming,
    changes: HashMap<Key, Change>,
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has come.
    Begin,
    /// The newest SOA record has come; the next record says in which form the rest is.
    Newest,
    /// The whole zone comes.
    Whole,
    /// What went with a version comes.
    Went,
    /// What came with it.
    Came,
    /// All has come, in one form or the other.
    End { whole: bool },
    /// There is nothing newer.
    Same,
}

/// Owner, type and data of a record, names in lower case as far as they are compared so: what makes two records the same.
type Key = Vec<u8>;

/// What becomes of a record.
struct Change {
    /// Whether it is in the old version.
    is_old: bool,
    now: Now,
}

enum Now {
    There,
    Gone,
    Came(Box<Arrival>),
}

/// A record that came, as the how-many-th change.
struct Arrival {
    at: usize,
    owner: Name,
    rtype: Type,
    ttl: u32,
    rdata: Vec<u8>,
}

impl Differences {
    /// A version newer than this one, of which nothing has come.
    #[must_use]
    pub fn new(old: Arc<Zone>) -> Differences {
        let serial = old.soa().map_or(0, |soa| soa.serial);
        let whole = Incoming::new(old.origin());
        Differences { old, serial, newest: None, stage: Stage::Begin, whole, changes: HashMap::new(), count: 0 }
    }

    /// Takes the next message; says whether more is to come.
    ///
    /// # Errors
    /// If it is no part of a newer version of the zone.
    pub fn take(&mut self, message: &[u8]) -> Result<bool, Broken> {
        let message = Message::parse(message).map_err(|error| Broken::Message(error.to_string()))?;
        checked(&message)?;
        for record in message.records().filter(|record| record.section() == Section::Answer) {
            self.take_record(&record)?;
        }
        match self.stage {
            Stage::Begin => Err(Broken::NoSoa),
            // Some say so that they have no differences, others send what would follow in a message of its own.
            Stage::Newest => Err(Broken::NoDifferences),
            Stage::End { .. } | Stage::Same => Ok(false),
            Stage::Whole | Stage::Went | Stage::Came => Ok(true),
        }
    }

    fn take_record(&mut self, record: &Record<'_>) -> Result<(), Broken> {
        let soa = soa_of(record, self.old.origin())?;
        self.stage = match (self.stage, soa) {
            (Stage::Begin, None) => return Err(Broken::NoSoa),
            (Stage::Begin, Some(soa)) => self.begin(soa, record)?,
            (Stage::Newest, Some(soa)) if soa.serial == self.serial => Stage::Went,
            (Stage::Newest | Stage::Whole, _) => match self.whole.take_record(record)? {
                true => Stage::End { whole: true },
                false => Stage::Whole,
            },
            (Stage::Went, None) | (Stage::Came, None) => self.change(record)?,
            (Stage::Went, Some(soa)) => self.turn(soa)?,
            (Stage::Came, Some(soa)) => self.next_version(soa)?,
            // What stands behind the end means nothing.
            (Stage::End { .. } | Stage::Same, _) => self.stage,
        };
        Ok(())
    }

    fn begin(&mut self, soa: Soa, record: &Record<'_>) -> Result<Stage, Broken> {
        self.newest = Some(soa);
        self.whole.take_record(record)?;
        let is_newer = self.old.soa().is_none_or(|ours| ours.is_older_than(soa.serial));
        Ok(if is_newer { Stage::Newest } else { Stage::Same })
    }

    /// What went has come; what came with this version follows.
    fn turn(&mut self, soa: Soa) -> Result<Stage, Broken> {
        if self.serial == soa.serial || (soa.serial.wrapping_sub(self.serial)) >= 1 << 31 {
            return Err(Broken::Differences);
        }
        self.serial = soa.serial;
        Ok(Stage::Came)
    }

    /// A version is complete: it is the newest, or the next one follows.
    fn next_version(&mut self, soa: Soa) -> Result<Stage, Broken> {
        if soa.serial != self.serial {
            return Err(Broken::Differences);
        }
        let is_newest = self.newest.is_some_and(|newest| newest.serial == soa.serial);
        Ok(if is_newest { Stage::End { whole: false } } else { Stage::Went })
    }

    fn change(&mut self, record: &Record<'_>) -> Result<Stage, Broken> {
        let broken = |error| Broken::Record(record.rtype(), error);
        let owner = record.owner().map_err(broken)?;
        let mut rdata = Vec::new();
        crate::text::expand(record, &mut rdata).map_err(broken)?;
        // Records that are not the zone's were not taken from the old version either.
        if owner.as_ref().prefix_len(self.old.origin()).is_none() || record.class() != Class::IN {
            return Ok(self.stage);
        }
        self.count += 1;
        if self.count > CHANGES_MAX {
            return Err(Broken::ManyDifferences);
        }
        let rtype = record.rtype();
        let mut key = Vec::new();
        write_key(owner.as_ref(), rtype, &rdata, &mut key);
        let old = &self.old;
        let change = self.changes.entry(key).or_insert_with_key(|key| {
            let is_old = has(old, owner.as_ref(), rtype, key);
            Change { is_old, now: if is_old { Now::There } else { Now::Gone } }
        });
        let is_gone = matches!(change.now, Now::Gone);
        // What went was there, and what came was not.
        if is_gone != (self.stage == Stage::Came) {
            return Err(Broken::Differences);
        }
        let came = || Now::Came(Box::new(Arrival { at: self.count, owner, rtype, ttl: record.ttl(), rdata }));
        change.now = if is_gone { came() } else { Now::Gone };
        Ok(self.stage)
    }

    /// How many records went or came; `None` if the whole zone came.
    #[must_use]
    pub fn changes(&self) -> Option<usize> {
        (self.stage == Stage::End { whole: false }).then_some(self.count)
    }

    /// The newer version; `None` if there is nothing newer.
    ///
    /// # Errors
    /// If it is no zone, or not all of it has come.
    pub fn finish(self) -> Result<Option<Zone>, Broken> {
        match self.stage {
            Stage::Same => Ok(None),
            Stage::End { whole: true } => self.whole.finish().map(Some),
            Stage::End { whole: false } => self.build().map(Some),
            _ => Err(Broken::NoSoa),
        }
    }

    /// The old version with what has changed.
    fn build(self) -> Result<Zone, Broken> {
        // It has the newest SOA record.
        let mut builder: Builder = self.whole.into_builder();
        builder.reserve(self.old.len());
        let mut key = Vec::new();
        for (_, owner, set) in self.old.sets_from(0) {
            for rdata in set.data() {
                key.clear();
                write_key(owner.as_ref(), set.rtype, rdata, &mut key);
                if !self.changes.get(&key).is_some_and(|change| change.is_old) {
                    builder.add(owner.as_ref(), (set.rtype, Class::IN, set.ttl), rdata).map_err(Broken::Unfit)?;
                }
            }
        }
        let came = self.changes.into_values().filter_map(|change| match change.now {
            Now::Came(arrival) => Some(arrival),
            Now::There | Now::Gone => None,
        });
        let mut came: Vec<_> = came.collect();
        came.sort_unstable_by_key(|arrival| arrival.at);
        for arrival in came {
            let Arrival { owner, rtype, ttl, rdata, .. } = *arrival;
            builder.add(owner.as_ref(), (rtype, Class::IN, ttl), &rdata).map_err(Broken::Unfit)?;
        }
        builder.finish().map_err(Broken::Unfit)
    }
}

fn write_key(owner: NameRef<'_>, rtype: Type, rdata: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(owner.octets());
    key.make_ascii_lowercase();
    key.extend(rtype.0.to_be_bytes());
    let start = key.len();
    key.extend_from_slice(rdata);
    lowercase_names(rtype, &mut key[start..]);
}

/// Whether a zone has a record of this owner, type and key.
fn has(zone: &Zone, owner: NameRef<'_>, rtype: Type, key: &[u8]) -> bool {
    let labels = owner.prefix_len(zone.origin()).and_then(|len| owner.octets().get(..len));
    let Some(node) = labels.and_then(|labels| zone.find_labels(labels)) else { return false };
    let mut other = Vec::with_capacity(key.len() + LENGTH_LEN);
    zone.all(node).filter(|set| set.rtype == rtype).flat_map(crate::RecordSet::data).any(|rdata| {
        other.clear();
        write_key(owner, rtype, rdata, &mut other);
        other == key
    })
}

#[cfg(test)]
#[path = "differences_tests.rs"]
mod tests;
