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

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wire::{Class, Message, Name, NameRef, Record, Section, Type};

use crate::incoming::{checked, soa_of};
use crate::text::lowercase_names;
use crate::{Broken, Builder, Incoming, Soa, Zone};

/// Records that went or came, at most: a million take a hundred megabytes, and a whole zone costs less than many of them.
const CHANGES_MAX: usize = 1 << 20;
/// These, and all records of the sets that they are of, at most.
const KEPT_MAX: usize = 4 << 20;

/// A newer version of a zone, of which a part has come.
pub struct Differences {
    old: Arc<Zone>,
    /// The serial of the version that the differences so far lead to.
    serial: u32,
    newest: Option<Soa>,
    stage: Stage,
    /// Every record so far, as long as it may be the whole zone; the newest SOA record else.
    whole: Incoming,
    /// What becomes of the records of each set that has changes, those of the old version included.
    records: HashMap<Key, Now>,
    /// The sets, by what their keys begin with.
    sets: HashSet<Key>,
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
enum Now {
    /// It is in the old version and stays.
    Stays,
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
        let (records, sets) = (HashMap::new(), HashSet::new());
        Differences { old, serial, newest: None, stage: Stage::Begin, whole, records, sets, count: 0 }
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
        self.take_set(owner.as_ref(), rtype)?;
        let now = self.records.entry(key(owner.as_ref(), rtype, &rdata)).or_insert(Now::Gone);
        let is_gone = matches!(now, Now::Gone);
        // What went was there, and what came was not.
        if is_gone != (self.stage == Stage::Came) {
            return Err(Broken::Differences);
        }
        let came = || Now::Came(Box::new(Arrival { at: self.count, owner, rtype, ttl: record.ttl(), rdata }));
        *now = if is_gone { came() } else { Now::Gone };
        Ok(self.stage)
    }

    /// Takes in the records that the old version has of this owner and type, once: each change is then found at once.
    fn take_set(&mut self, owner: NameRef<'_>, rtype: Type) -> Result<(), Broken> {
        if !self.sets.insert(key(owner, rtype, &[])) {
            return Ok(());
        }
        let labels = owner.prefix_len(self.old.origin()).and_then(|len| owner.octets().get(..len));
        let node = labels.and_then(|labels| self.old.find_labels(labels));
        let sets = node.into_iter().flat_map(|node| self.old.all(node)).filter(|set| set.rtype == rtype);
        for rdata in sets.flat_map(crate::RecordSet::data) {
            self.records.insert(key(owner, rtype, rdata), Now::Stays);
            if self.records.len() > KEPT_MAX {
                return Err(Broken::ManyDifferences);
            }
        }
        Ok(())
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
                if matches!(self.records.get(&key), None | Some(Now::Stays)) {
                    builder.add(owner.as_ref(), (set.rtype, Class::IN, set.ttl), rdata).map_err(Broken::Unfit)?;
                }
            }
        }
        let came = self.records.into_values().filter_map(|now| match now {
            Now::Came(arrival) => Some(arrival),
            Now::Stays | Now::Gone => None,
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

fn key(owner: NameRef<'_>, rtype: Type, rdata: &[u8]) -> Key {
    let mut key = Vec::with_capacity(owner.octets().len() + size_of::<u16>() + rdata.len());
    write_key(owner, rtype, rdata, &mut key);
    key
}

fn write_key(owner: NameRef<'_>, rtype: Type, rdata: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(owner.octets());
    key.make_ascii_lowercase();
    key.extend(rtype.0.to_be_bytes());
    let start = key.len();
    key.extend_from_slice(rdata);
    lowercase_names(rtype, &mut key[start..]);
}

#[cfg(test)]
#[path = "differences_tests.rs"]
mod tests;
