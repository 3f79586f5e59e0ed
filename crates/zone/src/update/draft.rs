//! Version of a zone that is being changed: an immutable zone, and the names that differ from it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use wire::{Class, Name, NameRef, Type};

use super::change::{Change, RECORD_FIXED_LEN, WireRecord, push_record};
use super::error::UpdateError;
use crate::store::{Soa, serial_is_newer};
use crate::text::{fold_names, has_names};
use crate::{Builder, Zone, ZoneError};

/// Maximum number of records in an RRset, because a zone counts them with 16 bits.
const SET_MAX: usize = u16::MAX as usize;
/// Distance of the serial from the end of the data of an SOA record.
const SERIAL_FROM_END: usize = 20;

/// Limits of a zone under updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateLimits {
    /// Maximum number of records.
    pub records: usize,
    /// Maximum length of all records in bytes, uncompressed.
    pub bytes: usize,
}

/// Result of an update that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The zone is as before, with the same serial.
    Unchanged,
    /// The zone has a new serial.
    Changed(Change),
}

/// Labels of a name relative to the zone, in lower case.
pub(super) type Labels = Box<[u8]>;

/// A zone, and the names that differ from it.
pub struct Draft {
    base: Arc<Zone>,
    names: BTreeMap<Labels, DraftName>,
    records: usize,
    bytes: usize,
}

/// Name with its records. A name without records does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DraftName {
    /// Owner in wire form, in the case of the zone.
    owner: Box<[u8]>,
    /// RRsets, none of them empty.
    sets: Vec<DraftSet>,
}

/// RRset. All its records have one TTL (RFC 2181 §5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DraftSet {
    pub(super) rtype: Type,
    pub(super) ttl: u32,
    pub(super) records: Vec<Box<[u8]>>,
}

impl Draft {
    /// Starts with a version of a zone.
    #[must_use]
    pub fn new(base: Arc<Zone>) -> Draft {
        Draft { records: base.len(), names: BTreeMap::new(), bytes: records_len(&base), base }
    }

    /// Name of the zone.
    #[must_use]
    pub fn origin(&self) -> NameRef<'_> {
        self.base.origin()
    }

    /// Number of records.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.records
    }

    /// Length of all records in bytes, uncompressed.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Serial of the SOA record.
    #[must_use]
    pub fn serial(&self) -> u32 {
        let own = self.names.get(&[][..]).and_then(DraftName::soa);
        own.or_else(|| self.base.soa()).map_or(0, |soa| soa.serial)
    }

    /// Takes over names if the limits allow it, and returns the difference.
    pub(super) fn take(
        &mut self,
        mut names: BTreeMap<Labels, DraftName>,
        limits: UpdateLimits,
    ) -> Result<Change, UpdateError> {
        let (mut records, mut bytes) = (self.records, self.bytes);
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let from = self.serial();
        let to = names.get(&[][..]).and_then(DraftName::soa).map_or(from, |soa| soa.serial);
        names.retain(|labels, now| {
            let before = self.name(labels);
            debug_assert!(before.len() <= records && before.bytes() <= bytes, "the records of a name were counted");
            records = records + now.len() - before.len();
            bytes = bytes + now.bytes() - before.bytes();
            before.write_difference(now, &mut removed);
            now.write_difference(&before, &mut added);
            before.sets != now.sets
        });
        let large = names.values().flat_map(|name| &name.sets).any(|set| set.records.len() > SET_MAX);
        if records > limits.records {
            return Err(UpdateError::ManyRecords(limits.records));
        }
        if bytes > limits.bytes {
            return Err(UpdateError::ManyBytes(limits.bytes));
        }
        if large {
            return Err(UpdateError::LargeSet(SET_MAX));
        }
        debug_assert!(serial_is_newer(from, to), "a change leads to a newer version");
        self.names.append(&mut names);
        (self.records, self.bytes) = (records, bytes);
        Ok(Change { from, to, removed: removed.into(), added: added.into() })
    }

    /// Removes a record. Returns false if the draft does not have it.
    pub(super) fn remove_exactly(&mut self, record: &WireRecord<'_>) -> bool {
        let Some(name) = self.name_mut(record.owner) else { return false };
        let Some(set) = name.set_mut(record.rtype).filter(|set| set.ttl == record.ttl) else { return false };
        let Some(at) = set.records.iter().position(|data| **data == *record.rdata) else { return false };
        set.records.remove(at);
        name.drop_empty();
        debug_assert!(self.records > 0 && record.len() <= self.bytes, "a record of the zone was counted");
        self.records -= 1;
        self.bytes -= record.len();
        true
    }

    /// Adds a record. Returns false if the draft has it already, or if it is malformed.
    pub(super) fn add_exactly(&mut self, record: &WireRecord<'_>) -> bool {
        let Some(name) = self.name_mut(record.owner) else { return false };
        if name.sets.is_empty() {
            name.owner = record.owner.as_bytes().into();
        }
        let set = name.set_or_new(record.rtype, record.ttl);
        let is_new = set.ttl == record.ttl && set.find(record.rdata).is_none();
        set.records.push(record.rdata.into());
        self.records += 1;
        self.bytes += record.len();
        is_new && crate::text::is_well_formed(record.rtype, record.rdata)
    }

    /// Returns a name of the draft to change it. `None` if it is outside of the zone.
    fn name_mut(&mut self, owner: NameRef<'_>) -> Option<&mut DraftName> {
        let len = owner.prefix_len(self.origin())?;
        let labels = owner.as_bytes()[..len].to_ascii_lowercase().into_boxed_slice();
        debug_assert!(len + self.origin().len() == owner.len(), "a name is its labels and the zone");
        if !self.names.contains_key(&labels) {
            let name = self.name(&labels);
            self.names.insert(labels.clone(), name);
        }
        self.names.get_mut(&labels)
    }

    /// Builds the zone.
    ///
    /// # Errors
    /// The records do not form a valid zone, or there is too little memory for it.
    pub fn build(&self, limits: crate::Limits) -> Result<Zone, ZoneError> {
        let origin = self.base.origin();
        let mut builder = Builder::new(origin).within(limits);
        builder.reserve(self.records);
        let mut labels = Vec::new();
        if let Some(soa) = self.base.soa_set().filter(|_| !self.names.contains_key(&[][..])) {
            builder.add(origin, (Type::SOA, Class::IN, soa.ttl), soa.first())?;
        }
        for (_, owner, set) in self.base.sets_from(0) {
            labels.clear();
            labels.extend_from_slice(&owner.as_bytes()[..owner.as_bytes().len() - origin.len()]);
            labels.make_ascii_lowercase();
            if self.names.contains_key(labels.as_slice()) {
                continue;
            }
            for data in set.data() {
                builder.add(owner.as_ref(), (set.rtype, Class::IN, set.ttl), data)?;
            }
        }
        for name in self.names.values() {
            let Ok(owner) = NameRef::from_bytes(&name.owner) else {
                debug_assert!(name.sets.is_empty(), "a name with records has an owner");
                continue;
            };
            for set in &name.sets {
                for data in &set.records {
                    builder.add(owner, (set.rtype, Class::IN, set.ttl), data)?;
                }
            }
        }
        builder.finish()
    }

    /// Returns a name as it is now.
    fn name(&self, labels: &[u8]) -> DraftName {
        if let Some(name) = self.names.get(labels) {
            return name.clone();
        }
        let Some(node) = self.base.find_labels(labels) else { return DraftName::default() };
        let set = |set: crate::RecordSet<'_>| {
            let records = set.data().map(Box::from).collect();
            DraftSet { rtype: set.rtype, ttl: set.ttl, records }
        };
        DraftName { owner: self.base.name(node).as_bytes().into(), sets: self.base.all(node).map(set).collect() }
    }
}

/// Returns the length of all records of a zone in bytes, uncompressed.
#[must_use]
pub fn records_len(zone: &Zone) -> usize {
    let soa_len = zone.soa_set().map_or(0, |soa| zone.origin().len() + RECORD_FIXED_LEN + soa.first().len());
    let len = |owner: &Name, data: &[u8]| owner.as_bytes().len() + RECORD_FIXED_LEN + data.len();
    let sets = zone.sets_from(0).map(|(_, owner, set)| set.data().map(|data| len(&owner, data)).sum::<usize>());
    soa_len + sets.sum::<usize>()
}

/// Names that one request has read or changed so far.
pub(super) struct Trial<'d> {
    pub(super) draft: &'d Draft,
    pub(super) names: BTreeMap<Labels, DraftName>,
}

impl Trial<'_> {
    pub(super) fn origin(&self) -> NameRef<'_> {
        self.draft.origin()
    }

    /// Returns a name, which is copied from the draft once. It must be in the zone.
    pub(super) fn name(&mut self, owner: NameRef<'_>) -> &mut DraftName {
        debug_assert!(owner.is_within(self.draft.origin()), "a name of a draft is in its zone");
        let len = owner.prefix_len(self.draft.origin()).unwrap_or_default();
        let labels = owner.as_bytes()[..len].to_ascii_lowercase().into_boxed_slice();
        let draft = self.draft;
        let name = self.names.entry(labels).or_insert_with_key(|labels| draft.name(labels));
        // A name that has lost its records takes the case of the next record.
        if name.sets.is_empty() {
            name.owner = owner.as_bytes().into();
        }
        name
    }

    /// Increments the serial; 0 is skipped (RFC 2136 §7.11).
    pub(super) fn bump_serial(&mut self) {
        let origin = self.origin().to_name();
        let soa = self.name(origin.as_ref()).set_mut(Type::SOA).and_then(|set| set.records.first_mut());
        let serial = soa.and_then(|soa| {
            let at = soa.len().checked_sub(SERIAL_FROM_END)?;
            soa.get_mut(at..)?.first_chunk_mut::<4>()
        });
        debug_assert!(serial.is_some(), "a zone has an SOA record");
        if let Some(serial) = serial {
            *serial = u32::from_be_bytes(*serial).wrapping_add(1).max(1).to_be_bytes();
        }
    }
}

impl DraftName {
    /// Returns true if the name has records.
    pub(super) fn exists(&self) -> bool {
        !self.sets.is_empty()
    }

    pub(super) fn sets(&self) -> &[DraftSet] {
        &self.sets
    }

    pub(super) fn set(&self, rtype: Type) -> Option<&DraftSet> {
        self.sets.iter().find(|set| set.rtype == rtype)
    }

    pub(super) fn set_mut(&mut self, rtype: Type) -> Option<&mut DraftSet> {
        self.sets.iter_mut().find(|set| set.rtype == rtype)
    }

    /// Returns the RRset of a type, which is created if there is no such set.
    pub(super) fn set_or_new(&mut self, rtype: Type, ttl: u32) -> &mut DraftSet {
        let at = self.sets.iter().position(|set| set.rtype == rtype).unwrap_or_else(|| {
            self.sets.push(DraftSet { rtype, ttl, records: Vec::new() });
            self.sets.len() - 1
        });
        &mut self.sets[at]
    }

    /// Keeps the RRsets for which `keeps` returns true. Returns true if it removed one.
    pub(super) fn retain_sets(&mut self, keeps: impl Fn(Type) -> bool) -> bool {
        let before = self.sets.len();
        self.sets.retain(|set| keeps(set.rtype));
        self.sets.len() < before
    }

    pub(super) fn drop_empty(&mut self) {
        self.sets.retain(|set| !set.records.is_empty());
    }

    pub(super) fn soa(&self) -> Option<Soa> {
        Soa::read(self.set(Type::SOA)?.records.first()?)
    }

    fn len(&self) -> usize {
        self.sets.iter().map(|set| set.records.len()).sum()
    }

    fn bytes(&self) -> usize {
        let data = self.sets.iter().flat_map(|set| &set.records);
        data.map(|data| self.owner.len() + RECORD_FIXED_LEN + data.len()).sum()
    }

    /// Appends the records that `other` does not have. The SOA record goes to the front, as a transfer has it.
    fn write_difference(&self, other: &DraftName, records: &mut Vec<u8>) {
        for set in &self.sets {
            let theirs = other.set(set.rtype).filter(|theirs| theirs.ttl == set.ttl);
            let known: HashSet<&[u8]> = theirs.into_iter().flat_map(|set| &set.records).map(|data| &**data).collect();
            // An SOA record is always replaced, so that each change begins with one.
            let is_kept = |data: &[u8]| set.rtype != Type::SOA && known.contains(data);
            for data in set.records.iter().filter(|data| !is_kept(data)) {
                let mut record = Vec::new();
                push_record(&mut record, &self.owner, (set.rtype, set.ttl), data);
                let at = if set.rtype == Type::SOA { 0 } else { records.len() };
                records.splice(at..at, record);
            }
        }
    }
}

impl DraftSet {
    /// Returns the position of a record, compared without the case of names.
    pub(super) fn find(&self, rdata: &[u8]) -> Option<usize> {
        self.records.iter().position(|known| is_same_data(self.rtype, known, rdata))
    }

    /// Returns true if both have the same records. Order and repetitions in `wanted` do not count.
    pub(super) fn is_same(&self, wanted: &[&[u8]]) -> bool {
        let folded = |data: &[u8]| {
            let mut data = data.to_vec();
            fold_names(self.rtype, &mut data);
            data
        };
        let ours: HashSet<Vec<u8>> = self.records.iter().map(|data| folded(data)).collect();
        let theirs: HashSet<Vec<u8>> = wanted.iter().map(|data| folded(data)).collect();
        ours == theirs
    }
}

/// Compares RDATA without the case of names in it.
fn is_same_data(rtype: Type, one: &[u8], other: &[u8]) -> bool {
    if one == other || one.len() != other.len() || !one.eq_ignore_ascii_case(other) || !has_names(rtype) {
        return one == other;
    }
    let (mut one, mut other) = (one.to_vec(), other.to_vec());
    fold_names(rtype, &mut one);
    fold_names(rtype, &mut other);
    one == other
}
