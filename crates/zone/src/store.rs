//! Zone in memory: one arena for names, one for RDATA, and a node for each existing name.
//!
//! A node is an existing name in the sense of RFC 4592 §2.2: it owns records, or is an empty non-terminal above a name
//! that does. Names are stored relative to the zone. In a zone with one address per name, a record takes about 60
//! bytes.

use hashbrown::HashTable;
use wire::{Name, NameRef, Type};

use crate::keys::hash;

/// Authoritative zone. Immutable once built.
pub struct Zone {
    pub(crate) origin: Name,
    /// Names of all nodes, concatenated, without `origin`.
    pub(crate) names: Vec<u8>,
    pub(crate) nodes: Vec<NodeEntry>,
    /// RRsets of all nodes. Those of one node are consecutive.
    pub(crate) sets: Vec<SetEntry>,
    /// RDATA of all RRsets. The records of one RRset are consecutive, each with a length prefix.
    pub(crate) data: Vec<u8>,
    pub(crate) table: HashTable<u32>,
    /// Nodes that own NSEC records, in canonical order.
    pub(crate) chain: Vec<u32>,
    pub(crate) records: usize,
}

/// Handle of an existing name. Only valid for the zone that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub(crate) u32);

/// Node: an existing name with its position in the arenas.
#[derive(Clone, Copy)]
pub(crate) struct NodeEntry {
    pub(crate) name_at: u32,
    pub(crate) first_set: u32,
    pub(crate) parent: u32,
    pub(crate) sets: u16,
    pub(crate) name_len: u8,
    pub(crate) flags: u8,
}

/// Flag: the node owns NS records and is not the apex.
pub(crate) const CUT: u8 = 1;
/// Flag: the node owns a DNAME record.
pub(crate) const DNAME: u8 = 2;
/// Flag: an ancestor has the flag [`CUT`] or [`DNAME`].
pub(crate) const BELOW: u8 = 4;
/// Flag: the node has a child `*`.
pub(crate) const WILDCARD: u8 = 8;
/// Flag: the node owns a CNAME record.
pub(crate) const ALIAS: u8 = 16;

/// RRset in the arenas. Signatures (RRSIG) form one set per covered type.
#[derive(Clone, Copy)]
pub(crate) struct SetEntry {
    pub(crate) at: u32,
    pub(crate) ttl: u32,
    pub(crate) rtype: Type,
    /// Covered type of signatures, 0 for all other types.
    pub(crate) covered: Type,
    pub(crate) count: u16,
}

/// Index of the apex node.
pub(crate) const APEX: u32 = 0;
/// Length in bytes of the length prefix before each record's RDATA.
pub(crate) const LENGTH_LEN: usize = 2;

/// RRset of a zone.
#[derive(Clone, Copy)]
pub struct RecordSet<'z> {
    /// The record type.
    pub rtype: Type,
    /// TTL in seconds.
    pub ttl: u32,
    count: u16,
    data: &'z [u8],
}

impl<'z> RecordSet<'z> {
    /// Returns the RDATA of each record. Names in it are uncompressed.
    pub fn data(self) -> impl Iterator<Item = &'z [u8]> {
        let mut rest = self.data;
        (0..self.count).map_while(move |_| {
            let (length, after) = rest.split_first_chunk::<LENGTH_LEN>()?;
            let (data, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            Some(data)
        })
    }

    /// Returns the RDATA of the first record.
    #[must_use]
    pub fn first(self) -> &'z [u8] {
        debug_assert!(self.count > 0, "a set has at least one record");
        self.data().next().unwrap_or_default()
    }
}

/// Numeric fields of an SOA record (RFC 1035 §3.3.13). Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    /// Version of the zone.
    pub serial: u32,
    /// Interval at which secondaries check for a new version.
    pub refresh: u32,
    /// Interval at which secondaries retry a failed check.
    pub retry: u32,
    /// Time after which secondaries stop serving the zone if they cannot reach a primary.
    pub expire: u32,
    /// Upper bound for the TTL of negative answers (RFC 2308 §4).
    pub minimum: u32,
}

/// Returns true if the serial `newer` is newer than `older` (RFC 1982 §3.2).
pub(crate) const fn serial_is_newer(older: u32, newer: u32) -> bool {
    older != newer && newer.wrapping_sub(older) < 1 << 31
}

impl Soa {
    /// Decodes the RDATA of an SOA record.
    #[must_use]
    pub fn read(rdata: &[u8]) -> Option<Soa> {
        let (_, times) = rdata.split_last_chunk::<20>()?;
        let number = |at: usize| times.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Some(Soa {
            serial: number(0)?,
            refresh: number(4)?,
            retry: number(8)?,
            expire: number(12)?,
            minimum: number(16)?,
        })
    }

    /// Returns true if `serial` is newer than this one (RFC 1982 §3.2).
    #[must_use]
    pub const fn is_older_than(self, serial: u32) -> bool {
        serial_is_newer(self.serial, serial)
    }
}

impl Zone {
    /// Returns the zone's name.
    #[must_use]
    pub fn origin(&self) -> NameRef<'_> {
        self.origin.as_ref()
    }

    /// Returns the number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records
    }

    /// Returns true if the zone has no records. A built zone always has at least the SOA record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Returns the memory used by the zone, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.names.capacity()
            + self.nodes.capacity() * size_of::<NodeEntry>()
            + self.sets.capacity() * size_of::<SetEntry>()
            + self.data.capacity()
            + self.table.allocation_size()
            + self.chain.capacity() * size_of::<u32>()
    }

    /// Returns the SOA RRset.
    #[must_use]
    pub fn soa_set(&self) -> Option<RecordSet<'_>> {
        self.set(APEX, Type::SOA)
    }

    /// Returns true if the zone has an NS record at its apex.
    #[must_use]
    pub fn has_name_servers(&self) -> bool {
        self.set(APEX, Type::NS).is_some()
    }

    /// Returns the fields of the SOA record.
    #[must_use]
    pub fn soa(&self) -> Option<Soa> {
        Soa::read(self.soa_set()?.first())
    }

    /// Returns true if the zone is signed, with NSEC records.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        !self.chain.is_empty()
    }

    pub(crate) fn node(&self, node: u32) -> NodeEntry {
        const NOWHERE: NodeEntry = NodeEntry { name_at: 0, first_set: 0, parent: APEX, sets: 0, name_len: 0, flags: 0 };
        debug_assert!((node as usize) < self.nodes.len(), "a node is one of its zone");
        self.nodes.get(node as usize).copied().unwrap_or(NOWHERE)
    }

    /// Returns the labels of a node, relative to the zone.
    pub(crate) fn labels(&self, node: u32) -> &[u8] {
        let entry = self.node(node);
        let start = entry.name_at as usize;
        let end = start + usize::from(entry.name_len);
        debug_assert!(end <= self.names.len(), "the labels of a node are in the arena of names");
        self.names.get(start..end).unwrap_or_default()
    }

    /// Returns the name of a node of this zone.
    #[must_use]
    pub fn name_of(&self, Node(node): Node) -> Name {
        self.name(node)
    }

    /// Returns the absolute name of a node.
    pub(crate) fn name(&self, node: u32) -> Name {
        let mut name = Name::root();
        let mut rest = self.labels(node);
        while let Some((length, after)) = rest.split_first() {
            let (label, after) = after.split_at(usize::from(*length).min(after.len()));
            let pushed = name.push_label(label);
            debug_assert!(pushed.is_ok(), "the labels of a node were a valid name");
            rest = after;
        }
        let appended = name.append(self.origin());
        debug_assert!(appended.is_ok(), "the name of a node was valid with its zone");
        name
    }

    /// Finds the node with these labels, relative to the zone.
    pub(crate) fn find_labels(&self, labels: &[u8]) -> Option<u32> {
        self.table.find(hash(labels), |node| self.labels(*node).eq_ignore_ascii_case(labels)).copied()
    }

    fn entries(&self, node: u32) -> &[SetEntry] {
        let entry = self.node(node);
        let start = entry.first_set as usize;
        let end = start + usize::from(entry.sets);
        debug_assert!(end <= self.sets.len(), "the sets of a node are in the list of sets");
        self.sets.get(start..end).unwrap_or_default()
    }

    fn view(&self, entry: &SetEntry) -> RecordSet<'_> {
        debug_assert!(entry.at as usize <= self.data.len(), "the records of a set are in the arena of RDATA");
        let data = self.data.get(entry.at as usize..).unwrap_or_default();
        RecordSet { rtype: entry.rtype, ttl: entry.ttl, count: entry.count, data }
    }

    /// Returns the RRset of a type at a node. Use [`Zone::signatures`] for RRSIG records.
    pub(crate) fn set(&self, node: u32, rtype: Type) -> Option<RecordSet<'_>> {
        self.entries(node).iter().find(|entry| entry.rtype == rtype).map(|entry| self.view(entry))
    }

    /// Returns the signatures over the RRset of a type at a node.
    pub(crate) fn signatures(&self, node: u32, covered: Type) -> Option<RecordSet<'_>> {
        let signs = |entry: &&SetEntry| entry.rtype == Type::RRSIG && entry.covered == covered;
        self.entries(node).iter().find(signs).map(|entry| self.view(entry))
    }

    /// Returns all RRsets of a node.
    pub(crate) fn all(&self, node: u32) -> impl Iterator<Item = RecordSet<'_>> {
        self.entries(node).iter().map(|entry| self.view(entry))
    }

    /// Returns all RRsets except SOA with their owners, as a zone transfer sends them between the two SOA records. Each
    /// item has the value of `from` that continues after it. Start with 0.
    pub fn sets_from(&self, from: usize) -> impl Iterator<Item = (usize, Name, RecordSet<'_>)> {
        let first = self.nodes.partition_point(|node| node.first_set as usize + usize::from(node.sets) <= from);
        (first..self.nodes.len()).flat_map(move |node| {
            let index = u32::try_from(node).unwrap_or(u32::MAX);
            let start = self.node(index).first_set as usize;
            let sets = self.entries(index).iter().enumerate().map(move |(at, entry)| (start + at, entry));
            let sets = sets.filter(move |(at, entry)| *at >= from && entry.rtype != Type::SOA);
            sets.map(move |(at, entry)| (at + 1, self.name(index), self.view(entry)))
        })
    }
}
