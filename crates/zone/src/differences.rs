//! IXFR responses (RFC 1995 §4): turns the local version of a zone into a newer one.
//!
//! A response has one of three forms: removed and added records version by version, the whole zone as in AXFR, or a
//! single SOA record if the zone is up to date.
//!
//! ```text
//!   SOA new ─┬─ (nothing more)                                             up to date
//!            ├─ SOA ours ── removed ── SOA ── added ──► (again) ── SOA new  differences
//!            ├─ SOA new                                                    whole zone without records: an error
//!            ├─ SOA other                                                  differences for somebody else: an error
//!            └─ anything else                                              whole zone
//! ```
//!
//! Differences that do not match the local version are an error. The caller then requests the whole zone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wire::{Class, NameRef, Record, Type};

use crate::incoming::finish;
use crate::store::serial_is_newer;
use crate::text::lowercase_names;
use crate::transfer::{self, TransferSoa};
use crate::{Builder, Incoming, Limits, TransferError, Zone};

/// Maximum memory for the changes and for the records of the RRsets that change, in bytes. It holds about fifty
/// thousand records. Beyond, transferring the whole zone is cheaper: its records take half as much each.
const BYTES_MAX: usize = 16 << 20;
/// Memory for an entry of a hash table besides its key, in bytes, while the table grows.
const ENTRY_LEN: usize = 3 * size_of::<(Key, RecordState)>();
const SET_LEN: usize = 3 * size_of::<Key>();

/// Partially received newer version of a zone.
pub struct Differences {
    old: Arc<Zone>,
    /// Serial of the version that the differences received so far lead to.
    serial: u32,
    newest: Option<TransferSoa>,
    stage: Stage,
    /// Builder of the whole zone, as long as the response may have that form. Otherwise it has only the newest SOA
    /// record.
    whole: Incoming,
    /// State of each record in the RRsets that change, including records of the old version.
    records: HashMap<Key, RecordState>,
    /// RRsets already loaded from the old version, as key prefixes.
    sets: HashSet<Key>,
    /// Number of removed and added records.
    count: usize,
    /// Estimated memory of `records` and `sets`, in bytes.
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No record has been received.
    Begin,
    /// The newest SOA record has been received. The next record tells the form of the response.
    Newest,
    /// The response is the whole zone.
    Whole,
    /// Reading the records removed in a version.
    Deletions,
    /// Reading the records added in a version.
    Additions,
    /// The response is complete.
    End { whole: bool },
    /// The zone is up to date.
    Same,
}

/// Identity of a record: owner, type and RDATA, with names in lower case where comparison ignores case.
type Key = Box<[u8]>;

/// State of a record.
enum RecordState {
    /// The old version has the record, and it stays.
    Kept,
    Removed,
    Added(AddedRecord),
}

/// Added record. `at` is the number of the change, which keeps the order.
struct AddedRecord {
    at: usize,
    rtype: Type,
    ttl: u32,
    /// Length of the owner in `data`.
    owner_len: u8,
    /// Owner and RDATA, as they were sent.
    data: Box<[u8]>,
}

impl AddedRecord {
    fn owner(&self) -> Option<NameRef<'_>> {
        NameRef::from_bytes(self.data.get(..usize::from(self.owner_len))?).ok()
    }

    fn rdata(&self) -> &[u8] {
        self.data.get(usize::from(self.owner_len)..).unwrap_or_default()
    }
}

impl Differences {
    /// Starts a transfer relative to the version `old`.
    #[must_use]
    pub fn new(old: Arc<Zone>) -> Differences {
        let serial = old.soa().map_or(0, |soa| soa.serial);
        let whole = Incoming::new(old.origin());
        let (records, sets) = (HashMap::new(), HashSet::new());
        Differences { old, serial, newest: None, stage: Stage::Begin, whole, records, sets, count: 0, bytes: 0 }
    }

    /// Sets the limits of the newer version.
    #[must_use]
    pub fn within(self, limits: Limits) -> Differences {
        Differences { whole: self.whole.within(limits), ..self }
    }

    /// Processes the next message. Returns true if more messages are expected.
    ///
    /// # Errors
    /// The message is not part of a newer version of the zone.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, TransferError> {
        let message = transfer::read(message, self.old.origin())?;
        for record in transfer::answers(&message) {
            self.add_record(&record)?;
        }
        match self.stage {
            Stage::Begin => Err(TransferError::NoSoa),
            // Some servers send only the SOA record if they have no differences. Others send the rest in another
            // message. The two cannot be told apart.
            Stage::Newest => Err(TransferError::NoDifferences),
            Stage::End { .. } | Stage::Same => Ok(false),
            Stage::Whole | Stage::Deletions | Stage::Additions => Ok(true),
        }
    }

    fn add_record(&mut self, record: &Record<'_>) -> Result<(), TransferError> {
        // The rest of a response to a client that is up to date is not needed.
        if self.stage == Stage::Same {
            return Ok(());
        }
        let soa = TransferSoa::of(record, self.old.origin())?;
        self.stage = match (self.stage, soa) {
            (Stage::Begin, None) => return Err(TransferError::NoSoa),
            (Stage::Begin, Some(soa)) => self.begin(soa, record)?,
            (Stage::Newest, Some(soa)) => self.first_version(&soa, record)?,
            (Stage::Newest | Stage::Whole, _) => self.part_of_whole(record)?,
            (Stage::Deletions, None) | (Stage::Additions, None) => self.change(record)?,
            (Stage::Deletions, Some(soa)) => self.turn(&soa)?,
            (Stage::Additions, Some(soa)) => self.next_version(&soa)?,
            (Stage::End { .. }, _) => return Err(TransferError::AfterEnd),
            (Stage::Same, _) => Stage::Same,
        };
        Ok(())
    }

    fn begin(&mut self, soa: TransferSoa, record: &Record<'_>) -> Result<Stage, TransferError> {
        self.whole.add_record(record)?;
        let is_newer = self.old.soa().is_none_or(|ours| ours.is_older_than(soa.soa.serial));
        self.newest = Some(soa);
        Ok(if is_newer { Stage::Newest } else { Stage::Same })
    }

    /// Tells by the second SOA record if the differences start at the local version (RFC 1995 §4).
    fn first_version(&mut self, soa: &TransferSoa, record: &Record<'_>) -> Result<Stage, TransferError> {
        let theirs = soa.soa.serial;
        if theirs == self.serial {
            return Ok(Stage::Deletions);
        }
        match &self.newest {
            Some(newest) if newest.soa.serial == theirs => self.part_of_whole(record),
            _ => Err(TransferError::Start { ours: self.serial, theirs }),
        }
    }

    fn part_of_whole(&mut self, record: &Record<'_>) -> Result<Stage, TransferError> {
        Ok(if self.whole.add_record(record)? { Stage::End { whole: true } } else { Stage::Whole })
    }

    /// Switches from removed to added records at the SOA record of the next version, which is not newer than the
    /// newest.
    fn turn(&mut self, soa: &TransferSoa) -> Result<Stage, TransferError> {
        let (from, to) = (self.serial, soa.soa.serial);
        let newest = self.newest.as_ref().map_or(to, |newest| newest.soa.serial);
        if !serial_is_newer(from, to) || serial_is_newer(newest, to) {
            return Err(TransferError::Gap { from, to });
        }
        self.serial = to;
        Ok(Stage::Additions)
    }

    /// Ends a version: it is the newest, or the next one follows.
    fn next_version(&mut self, soa: &TransferSoa) -> Result<Stage, TransferError> {
        let (from, to) = (self.serial, soa.soa.serial);
        if from != to {
            return Err(TransferError::Gap { from, to });
        }
        match &self.newest {
            Some(newest) if newest.soa.serial == to => soa.must_end(newest).map(|()| Stage::End { whole: false }),
            _ => Ok(Stage::Deletions),
        }
    }

    fn change(&mut self, record: &Record<'_>) -> Result<Stage, TransferError> {
        let invalid = |error| TransferError::Record(record.rtype(), error);
        let owner = record.owner().map_err(invalid)?;
        let mut rdata = Vec::new();
        crate::text::expand(record, &mut rdata).map_err(invalid)?;
        // Records outside the zone are ignored, as in the old version.
        if owner.as_ref().prefix_len(self.old.origin()).is_none() {
            return Ok(self.stage);
        }
        self.count += 1;
        let rtype = record.rtype();
        self.load_set(owner.as_ref(), rtype)?;
        let key = key(owner.as_ref(), rtype, &rdata);
        if !self.records.contains_key(&key) {
            self.reserve(ENTRY_LEN + key.len())?;
        }
        let is_addition = self.stage == Stage::Additions;
        if is_addition {
            self.reserve(owner.as_bytes().len() + rdata.len())?;
        }
        let now = self.records.entry(key).or_insert(RecordState::Removed);
        // A removed record must exist, and an added record must not.
        if matches!(now, RecordState::Removed) != is_addition {
            return Err(TransferError::Differences);
        }
        let (at, ttl, owner) = (self.count, record.ttl(), owner.as_ref().as_bytes());
        let owner_len = u8::try_from(owner.len());
        debug_assert!(owner_len.is_ok(), "a name has at most 255 bytes");
        let owner_len = owner_len.unwrap_or(u8::MAX);
        let data = || [owner, &rdata].concat().into_boxed_slice();
        let added = || RecordState::Added(AddedRecord { at, rtype, ttl, owner_len, data: data() });
        *now = if is_addition { added() } else { RecordState::Removed };
        Ok(self.stage)
    }

    /// Counts memory for the changes.
    ///
    /// # Errors
    /// The changes need too much memory.
    fn reserve(&mut self, bytes: usize) -> Result<(), TransferError> {
        self.bytes += bytes;
        if self.bytes > BYTES_MAX { Err(TransferError::ManyDifferences) } else { Ok(()) }
    }

    /// Loads the RRset of this owner and type from the old version once, so that each change is a single hash lookup.
    fn load_set(&mut self, owner: NameRef<'_>, rtype: Type) -> Result<(), TransferError> {
        let set = key(owner, rtype, &[]);
        if self.sets.contains(&set) {
            return Ok(());
        }
        self.reserve(SET_LEN + set.len())?;
        self.sets.insert(set);
        let old = Arc::clone(&self.old);
        let labels = owner.prefix_len(old.origin()).and_then(|len| owner.as_bytes().get(..len));
        let node = labels.and_then(|labels| old.find_labels(labels));
        let sets = node.into_iter().flat_map(|node| old.all(node)).filter(|set| set.rtype == rtype);
        for rdata in sets.flat_map(crate::RecordSet::data) {
            let key = key(owner, rtype, rdata);
            self.reserve(ENTRY_LEN + key.len())?;
            self.records.insert(key, RecordState::Kept);
        }
        Ok(())
    }

    /// Returns the number of removed and added records, or `None` if the whole zone was received.
    #[must_use]
    pub fn changes(&self) -> Option<usize> {
        (self.stage == Stage::End { whole: false }).then_some(self.count)
    }

    /// Builds the newer version. Returns `None` if the zone is up to date.
    ///
    /// # Errors
    /// The records do not form a valid zone, or the transfer is incomplete.
    pub fn finish(self) -> Result<Option<Zone>, TransferError> {
        match self.stage {
            Stage::Same => Ok(None),
            Stage::End { whole: true } => self.whole.finish().map(Some),
            Stage::End { whole: false } => self.build().map(Some),
            _ => Err(TransferError::NoSoa),
        }
    }

    /// Applies the changes to the old version.
    fn build(self) -> Result<Zone, TransferError> {
        // This builder already has the newest SOA record.
        let mut builder: Builder = self.whole.into_builder();
        builder.reserve(self.old.len());
        let mut key: Vec<u8> = Vec::new();
        for (_, owner, set) in self.old.sets_from(0) {
            for rdata in set.data() {
                key.clear();
                write_key(owner.as_ref(), set.rtype, rdata, &mut key);
                if matches!(self.records.get(key.as_slice()), None | Some(RecordState::Kept)) {
                    builder
                        .add(owner.as_ref(), (set.rtype, Class::IN, set.ttl), rdata)
                        .map_err(TransferError::Invalid)?;
                }
            }
        }
        let added = self.records.into_values().filter_map(|now| match now {
            RecordState::Added(added) => Some(added),
            RecordState::Kept | RecordState::Removed => None,
        });
        let mut added: Vec<_> = added.collect();
        added.sort_unstable_by_key(|added| added.at);
        debug_assert!(added.is_sorted_by(|one, next| one.at < next.at), "each record was added at another place");
        for added in added {
            let owner = added.owner();
            debug_assert!(owner.is_some(), "the owner of a record was a valid name");
            let Some(owner) = owner else { continue };
            let fixed = (added.rtype, Class::IN, added.ttl);
            builder.add(owner, fixed, added.rdata()).map_err(TransferError::Invalid)?;
        }
        finish(builder)
    }
}

fn key(owner: NameRef<'_>, rtype: Type, rdata: &[u8]) -> Key {
    let mut key: Vec<u8> = Vec::with_capacity(owner.as_bytes().len() + size_of::<u16>() + rdata.len());
    write_key(owner, rtype, rdata, &mut key);
    key.into_boxed_slice()
}

fn write_key(owner: NameRef<'_>, rtype: Type, rdata: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(owner.as_bytes());
    key.make_ascii_lowercase();
    key.extend(rtype.0.to_be_bytes());
    let start = key.len();
    key.extend_from_slice(rdata);
    lowercase_names(rtype, &mut key[start..]);
}

#[cfg(test)]
#[path = "differences_tests.rs"]
mod tests;
