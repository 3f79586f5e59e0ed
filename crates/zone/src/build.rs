//! Zone builder: accepts records in any order and produces an immutable [`Zone`].

use core::fmt;
use std::collections::HashSet;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wire::{Class, Name, NameRef, Type};

use crate::canonical;
use crate::keys::hash;
use crate::store::{ALIAS, APEX, BELOW, CUT, DNAME, LENGTH_LEN, NodeEntry, SetEntry, WILDCARD, Zone};

/// Maximum number of records in a zone: about 1 GiB of memory.
const RECORDS_MAX: usize = 1 << 24;
/// Maximum number of names in a zone, empty non-terminals included. One record can add 127.
const NODES_MAX: usize = 1 << 26;
/// Typical lengths in bytes of a record's name and RDATA, for preallocation.
const NAME_GUESS: usize = 16;
const DATA_GUESS: usize = 8;
/// Maximum number of labels in a name.
const LABELS_MAX: usize = 128;
/// Maximum length of an arena in bytes, because offsets have 32 bits.
const ARENA_MAX: usize = u32::MAX as usize;

/// Error in a set of records that do not form a valid zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// The zone has no SOA record at its apex.
    NoSoa,
    /// The zone has more than 16,777,216 records or 4 GiB of data.
    TooLarge,
    /// The zone has more records than [`Limits::records`] allows.
    ManyRecords(usize),
    /// The zone has more bytes than [`Limits::bytes`] allows.
    ManyBytes(usize),
    /// Building the zone takes more memory than [`Limits::memory`] allows.
    Memory(usize),
    /// The process has too little memory left ([`Limits::is_tight`]).
    Tight,
    /// Too many records are of no use: repetitions of the record before them, or names outside of the zone.
    Useless,
    /// An RRset has more than 65,535 records, or a name has more than 65,535 RRsets.
    SetTooLarge,
    /// The zone is signed with NSEC3, which is not supported.
    Nsec3,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneError::ManyRecords(most) => return write!(f, "the zone has more than {most} records"),
            ZoneError::ManyBytes(most) => return write!(f, "the zone has more than {most} bytes"),
            ZoneError::Memory(most) => {
                return write!(
                    f,
                    "the zone needs too much memory; {most} bytes are left of its share of the memory limit"
                );
            }
            ZoneError::Tight => "the process has too little memory left for this zone",
            ZoneError::Useless => {
                return write!(
                    f,
                    "the zone has more than {USELESS_MAX} records that repeat others or are outside of it"
                );
            }
            ZoneError::NoSoa => "the zone has no SOA record",
            ZoneError::TooLarge => "the zone is too large; the maximum is 16777216 records and 4 GiB of data",
            ZoneError::SetTooLarge => "an RRset has more than 65535 records, or a name more than 65535 RRsets",
            ZoneError::Nsec3 => "the zone is signed with NSEC3, which is not supported; sign it with NSEC",
        })
    }
}

impl core::error::Error for ZoneError {}

/// Limits of a zone. The default has no limits beyond those of every zone.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of records.
    pub records: usize,
    /// Maximum length of the zone in bytes, as uncompressed records.
    pub bytes: usize,
    /// Maximum memory to build the zone with, in bytes.
    pub memory: usize,
    /// Returns true if the process has too little memory left to build a zone. Called for each megabyte that the zone
    /// takes, because other zones and clients take memory at the same time.
    pub is_tight: fn() -> bool,
    /// Called when a zone is refused because of one of these limits.
    pub note_refusal: fn(),
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { records: RECORDS_MAX, bytes: usize::MAX, memory: usize::MAX, is_tight: || false, note_refusal: || {} }
    }
}

/// Growth of a zone in bytes after which the memory of the process is looked at again.
const LOOKED_AT_EVERY: usize = 1 << 20;
/// Maximum number of records of no use, which take no memory: a transfer of these must end.
const USELESS_MAX: usize = 1 << 16;

/// Length in bytes of the type, class, TTL and length of RDATA in a record.
const RECORD_FIXED_LEN: usize = 10;

/// Collects the records of a zone.
pub struct Builder {
    limits: Limits,
    /// Length of all records, uncompressed.
    bytes: usize,
    origin: Name,
    names: Vec<u8>,
    nodes: Vec<NodeEntry>,
    table: HashTable<u32>,
    pending: Vec<Pending>,
    data: Vec<u8>,
    /// Most recent owner name and its node. Consecutive records usually share their owner.
    last: (Name, u32),
    strangers: usize,
    /// Records that repeat the one before them.
    repeated: usize,
    /// Memory at which the memory of the process is looked at next.
    look_at: usize,
}

/// Record that is not yet assigned to an RRset.
#[derive(Clone, Copy)]
struct Pending {
    node: u32,
    rtype: Type,
    covered: Type,
    ttl: u32,
    at: u32,
}

impl Builder {
    /// Creates a builder for the zone `origin`.
    #[must_use]
    pub fn new(origin: NameRef<'_>) -> Builder {
        let mut builder = Builder {
            limits: Limits::default(),
            bytes: 0,
            origin: origin.to_name(),
            names: Vec::new(),
            nodes: Vec::new(),
            table: HashTable::new(),
            pending: Vec::new(),
            data: Vec::new(),
            last: (origin.to_name(), APEX),
            strangers: 0,
            repeated: 0,
            look_at: LOOKED_AT_EVERY,
        };
        builder.insert(0, &[], APEX);
        builder
    }

    /// Sets the limits of the zone.
    #[must_use]
    pub fn within(self, limits: Limits) -> Builder {
        Builder { limits, ..self }
    }

    /// Checks the limits after a record.
    fn check(&mut self, record_len: usize) -> Result<(), ZoneError> {
        self.bytes += record_len;
        self.within_limits().inspect_err(|_| (self.limits.note_refusal)())
    }

    fn within_limits(&mut self) -> Result<(), ZoneError> {
        let Limits { records, bytes, memory: most, is_tight, .. } = self.limits;
        let memory = self.memory();
        if self.pending.len() > records {
            return Err(ZoneError::ManyRecords(records));
        }
        if self.bytes > bytes {
            return Err(ZoneError::ManyBytes(bytes));
        }
        if memory > most {
            return Err(ZoneError::Memory(most));
        }
        if self.strangers + self.repeated > USELESS_MAX {
            return Err(ZoneError::Useless);
        }
        if memory >= self.look_at {
            self.look_at = memory + LOOKED_AT_EVERY;
            if is_tight() {
                return Err(ZoneError::Tight);
            }
        }
        Ok(())
    }

    /// Returns the memory in bytes that the builder needs until the zone is finished. A vector that grows is copied
    /// within its new capacity; [`Builder::finish`] copies the RDATA.
    fn memory(&self) -> usize {
        self.names.capacity()
            + self.nodes.capacity() * size_of::<NodeEntry>()
            + self.table.allocation_size()
            + self.pending.capacity() * size_of::<Pending>()
            + self.pending.len() * size_of::<SetEntry>()
            + self.data.capacity()
            + self.data.len()
    }

    /// Returns true if the record is the one that was added last.
    fn repeats(&self, node: u32, rtype: Type, ttl: u32, rdata: &[u8]) -> bool {
        let same = |last: &Pending| (last.node, last.rtype, last.ttl) == (node, rtype, ttl);
        self.pending.last().is_some_and(|last| same(last) && data_at(&self.data, last.at) == rdata)
    }

    /// Reserves memory for `records` records, because growing tables repeatedly is slow.
    pub(crate) fn reserve(&mut self, records: usize) {
        let (names, nodes) = (&self.names, &self.nodes);
        self.table.reserve(records, |node| hash(labels_of(names, nodes, *node)));
        self.names.reserve(records * NAME_GUESS);
        self.nodes.reserve(records);
        self.pending.reserve(records);
        self.data.reserve(records * DATA_GUESS);
    }

    /// Returns the zone's name.
    #[must_use]
    pub fn origin(&self) -> NameRef<'_> {
        self.origin.as_ref()
    }

    /// Returns true if the zone has no records yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the number of records ignored because their owner is outside the zone or their class is not IN.
    #[must_use]
    pub const fn strangers(&self) -> usize {
        self.strangers
    }

    /// Adds a record. RDATA must be valid ([`crate::text::is_well_formed`]).
    ///
    /// # Errors
    /// The zone is too large, or the record is NSEC3 or NSEC3PARAM.
    pub fn add(
        &mut self,
        owner: NameRef<'_>,
        (rtype, class, ttl): (Type, Class, u32),
        rdata: &[u8],
    ) -> Result<(), ZoneError> {
        let Some(labels_len) = owner.prefix_len(self.origin()).filter(|_| class == Class::IN) else {
            self.strangers += 1;
            return self.check(RECORD_FIXED_LEN);
        };
        if matches!(rtype, Type::NSEC3 | Type::NSEC3PARAM) {
            return Err(ZoneError::Nsec3);
        }
        if self.last.0.as_bytes() != owner.as_bytes() {
            self.last.1 = self.node(&owner.as_bytes()[..labels_len]);
            self.last.0.set(owner);
        }
        let record_len = owner.as_bytes().len() + RECORD_FIXED_LEN + rdata.len();
        if self.repeats(self.last.1, rtype, ttl, rdata) {
            self.repeated += 1;
            return self.check(record_len);
        }
        let covered =
            if rtype == Type::RRSIG { rdata.first_chunk().map_or(0, |type_| u16::from_be_bytes(*type_)) } else { 0 };
        let at = u32::try_from(self.data.len()).map_err(|_| ZoneError::TooLarge)?;
        if self.pending.len() == RECORDS_MAX
            || self.nodes.len() > NODES_MAX
            || self.names.len() > ARENA_MAX - wire::NAME_MAX
        {
            return Err(ZoneError::TooLarge);
        }
        self.pending.push(Pending { node: self.last.1, rtype, covered: Type(covered), ttl, at });
        push_data(&mut self.data, rdata);
        self.check(record_len)
    }

    /// Returns the node of a name. Creates it and its missing ancestors if necessary.
    fn node(&mut self, labels: &[u8]) -> u32 {
        self.find(labels).unwrap_or_else(|| self.create(labels))
    }

    fn find(&self, labels: &[u8]) -> Option<u32> {
        let is_it = |node: &u32| labels_of(&self.names, &self.nodes, *node).eq_ignore_ascii_case(labels);
        self.table.find(hash(labels), is_it).copied()
    }

    /// Creates the node of a name and its missing ancestors. The labels of an ancestor are the end of those of the
    /// name, so all of them share the bytes of the longest: a name with 110 labels would take 13 KB otherwise.
    fn create(&mut self, labels: &[u8]) -> u32 {
        let (mut missing, mut count) = ([0; LABELS_MAX], 0);
        let (mut at, mut parent) = (0, APEX);
        while let Some(length) = labels.get(at) {
            if let Some(known) = self.find(&labels[at..]) {
                parent = known;
                break;
            }
            debug_assert!(count < LABELS_MAX, "a name has at most 128 labels");
            missing[count] = at;
            count += 1;
            at += 1 + usize::from(*length);
        }
        let name_at = self.names.len();
        self.names.extend_from_slice(labels);
        for start in missing[..count].iter().rev() {
            if labels[*start..].starts_with(b"\x01*") {
                self.nodes[parent as usize].flags |= WILDCARD;
            }
            parent = self.insert(name_at + start, &labels[*start..], parent);
        }
        parent
    }

    /// Adds a node whose labels are in the arena at `name_at`.
    fn insert(&mut self, name_at: usize, labels: &[u8], parent: u32) -> u32 {
        let (node, name_at) = (index(self.nodes.len()), index(name_at));
        let name_len = u8::try_from(labels.len());
        debug_assert!(name_len.is_ok(), "a name has at most 255 bytes");
        let name_len = name_len.unwrap_or(u8::MAX);
        self.nodes.push(NodeEntry { name_at, first_set: 0, parent, sets: 0, name_len, flags: 0 });
        let (names, nodes) = (&self.names, &self.nodes);
        let hasher = |node: &u32| hash(labels_of(names, nodes, *node));
        if let Entry::Vacant(vacant) = self.table.entry(hash(labels), |_| false, hasher) {
            vacant.insert(node);
        }
        node
    }

    /// Builds the zone from all records.
    ///
    /// # Errors
    /// The records do not form a valid zone.
    pub fn finish(mut self) -> Result<Zone, ZoneError> {
        // The sort is stable: records keep their order within an RRset.
        self.pending.sort_by_key(|record| (record.node, record.rtype, record.covered));
        let mut zone = Zone {
            origin: self.origin,
            names: self.names,
            nodes: self.nodes,
            sets: Vec::with_capacity(self.pending.len()),
            data: Vec::with_capacity(self.data.len()),
            table: self.table,
            chain: Vec::new(),
            records: 0,
        };
        let same = |one: &Pending, other: &Pending| {
            (one.node, one.rtype, one.covered) == (other.node, other.rtype, other.covered)
        };
        for records in self.pending.chunk_by(same) {
            zone.push_set(records, &self.data)?;
        }
        zone.place_sets();
        zone.names.shrink_to_fit();
        zone.nodes.shrink_to_fit();
        zone.sets.shrink_to_fit();
        zone.data.shrink_to_fit();
        zone.shrink_table();
        zone.mark();
        if zone.soa_set().is_some() { Ok(zone) } else { Err(ZoneError::NoSoa) }
    }
}

/// Returns the labels of a node, relative to the zone.
fn labels_of<'n>(names: &'n [u8], nodes: &[NodeEntry], node: u32) -> &'n [u8] {
    let Some(entry) = nodes.get(node as usize) else { return &[] };
    let start = entry.name_at as usize;
    names.get(start..start + usize::from(entry.name_len)).unwrap_or_default()
}

/// Returns an index or offset as it is stored.
fn index(at: usize) -> u32 {
    let index = u32::try_from(at);
    debug_assert!(index.is_ok(), "`RECORDS_MAX` and `ARENA_MAX` bound indices and offsets");
    index.unwrap_or(u32::MAX)
}

fn push_data(data: &mut Vec<u8>, rdata: &[u8]) {
    let length = u16::try_from(rdata.len());
    debug_assert!(length.is_ok(), "RDATA has at most 65,535 bytes");
    let length = length.unwrap_or(u16::MAX);
    data.extend_from_slice(&length.to_be_bytes());
    data.extend_from_slice(&rdata[..usize::from(length)]);
}

fn data_at(data: &[u8], at: u32) -> &[u8] {
    let rest = data.get(at as usize..).unwrap_or_default();
    debug_assert!(rest.len() >= LENGTH_LEN, "the length of a record is in the arena");
    let Some((length, rest)) = rest.split_first_chunk::<LENGTH_LEN>() else { return &[] };
    rest.get(..usize::from(u16::from_be_bytes(*length))).unwrap_or_default()
}

impl Zone {
    /// Appends an RRset. Drops duplicates (RFC 2181 §5) and uses the lowest TTL of its records (§5.2). Keeps only the
    /// last SOA record, because a zone has at most one (RFC 1035 §5.2).
    fn push_set(&mut self, records: &[Pending], data: &[u8]) -> Result<(), ZoneError> {
        let is_soa = records.first().is_some_and(|first| first.rtype == Type::SOA);
        let records = if is_soa { &records[records.len() - 1..] } else { records };
        let Some(first) = records.first() else { return Ok(()) };
        let at = u32::try_from(self.data.len()).map_err(|_| ZoneError::TooLarge)?;
        let mut seen = HashSet::new();
        let mut count: u16 = 0;
        for record in records {
            let rdata = data_at(data, record.at);
            if records.len() == 1 || seen.insert(rdata) {
                push_data(&mut self.data, rdata);
                count = count.checked_add(1).ok_or(ZoneError::SetTooLarge)?;
            }
        }
        let ttl = records.iter().map(|record| record.ttl).min().unwrap_or_default();
        debug_assert!(count > 0, "a set has at least one record");
        self.records += usize::from(count);
        self.sets.push(SetEntry { at, ttl, rtype: first.rtype, covered: first.covered, count });
        let node = &mut self.nodes[first.node as usize];
        node.sets = node.sets.checked_add(1).ok_or(ZoneError::SetTooLarge)?;
        Ok(())
    }

    fn shrink_table(&mut self) {
        let (names, nodes) = (&self.names, &self.nodes);
        self.table.shrink_to_fit(|node| hash(labels_of(names, nodes, *node)));
    }

    /// Sets each node's index of its first RRset. RRsets are in the order of the nodes.
    fn place_sets(&mut self) {
        let mut next = 0;
        for node in &mut self.nodes {
            node.first_set = next;
            next += u32::from(node.sets);
        }
        debug_assert!(next as usize == self.sets.len(), "each set is one of a node");
    }

    /// Sets the flags of all nodes and builds the NSEC chain. A parent always precedes its children.
    fn mark(&mut self) {
        for index in 0..self.nodes.len() {
            let node = self::index(index);
            debug_assert!(node == APEX || self.nodes[index].parent < node, "a node follows its parent");
            let mut flags = self.nodes[index].flags;
            let above = self.nodes[self.nodes[index].parent as usize].flags;
            for (rtype, flag) in [(Type::NS, CUT), (Type::DNAME, DNAME), (Type::CNAME, ALIAS)] {
                let counts = self.set(node, rtype).is_some() && (node != APEX || flag == DNAME);
                flags |= if counts { flag } else { 0 };
            }
            if node != APEX && above & (CUT | DNAME | BELOW) != 0 {
                flags |= BELOW;
            }
            self.nodes[index].flags = flags;
        }
        let all = (0..self.nodes.len()).filter_map(|node| u32::try_from(node).ok());
        let mut chain: Vec<u32> = all.filter(|node| self.set(*node, Type::NSEC).is_some()).collect();
        chain.sort_by(|one, other| canonical::compare(self.labels(*one), self.labels(*other)));
        self.chain = chain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn refuses_what_exceeds_the_limits() {
        let origin = Name::from_text("example.org.").unwrap();
        let add_all = |limits: Limits, changes: bool| {
            let mut builder = Builder::new(origin.as_ref()).within(limits);
            let outcome = (0..200_000_u32).find_map(|at| {
                let data = if changes { at } else { 0 }.to_be_bytes();
                builder.add(origin.as_ref(), (Type::A, Class::IN, 60), &data).err()
            });
            (outcome, builder.memory())
        };
        static REFUSALS: AtomicU32 = AtomicU32::new(0);
        let note_refusal = || _ = REFUSALS.fetch_add(1, Ordering::Relaxed);
        let none = Limits { note_refusal, ..Limits::default() };
        assert_eq!(add_all(none, true).0, None);
        assert_eq!(REFUSALS.load(Ordering::Relaxed), 0);
        let some = Limits { records: 10, ..none };
        assert_eq!(add_all(some, true).0, Some(ZoneError::ManyRecords(10)));
        let some = Limits { memory: 1 << 20, ..none };
        let (outcome, memory) = add_all(some, true);
        assert_eq!(outcome, Some(ZoneError::Memory(1 << 20)));
        assert!(memory < 3 << 20, "{memory}");
        // A record that is repeated without end takes no memory, and ends the transfer.
        let some = Limits { bytes: 1 << 20, ..none };
        let (outcome, memory) = add_all(some, false);
        assert_eq!(outcome, Some(ZoneError::ManyBytes(1 << 20)));
        assert!(memory < 4 << 10, "{memory}");
        assert_eq!(add_all(none, false).0, Some(ZoneError::Useless));
        let (outcome, memory) = add_all(Limits { is_tight: || true, ..none }, true);
        assert_eq!(outcome, Some(ZoneError::Tight));
        assert!(memory < 3 << 20, "{memory}");
        assert_eq!(REFUSALS.load(Ordering::Relaxed), 5, "each refusal is noted once");
    }

    /// Empty non-terminals share the bytes of the longest name below them.
    #[test]
    fn deep_names_cost_little() {
        const NAMES: u32 = 1_000;
        const LABELS: usize = 110;
        let origin = Name::from_text("example.org.").unwrap();
        let mut builder = Builder::new(origin.as_ref());
        let soa = [&[0, 0][..], &[0; 20]].concat();
        builder.add(origin.as_ref(), (Type::SOA, Class::IN, 60), &soa).unwrap();
        let owner = |host: u32| Name::from_text(&format!("{}h{host:06}.example.org.", "a.".repeat(LABELS))).unwrap();
        for host in 0..NAMES {
            builder.add(owner(host).as_ref(), (Type::A, Class::IN, 60), &host.to_be_bytes()).unwrap();
        }
        let zone = builder.finish().unwrap();
        let each = zone.size() / NAMES as usize;
        assert!(each < 5_000, "{each} bytes for each name");
        for host in [0, NAMES - 1] {
            let mut name = owner(host);
            let found = zone.find(name.as_ref(), Type::A);
            assert!(matches!(found, Some(crate::Lookup::Name(node)) if zone.name_of(node) == name), "{found:?}");
            // Each ancestor exists, and is the closest encloser of what is missing below it.
            while let Some(above) = name.as_ref().parent().filter(|above| *above != origin.as_ref()) {
                name = above.to_name();
                let found = zone.find(name.as_ref(), Type::A);
                assert!(matches!(found, Some(crate::Lookup::Name(node)) if zone.name_of(node) == name), "{found:?}");
                let mut other = Name::root();
                other.push_label(b"b").and_then(|()| other.append(name.as_ref())).unwrap();
                let found = zone.find(other.as_ref(), Type::A);
                assert!(matches!(found, Some(crate::Lookup::Nothing(node)) if zone.name_of(node) == name), "{found:?}");
            }
        }
    }
}
