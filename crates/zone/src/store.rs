//! A zone in memory: names in one arena, record sets in another, a node for each name.
//!
//! A node is what RFC 4592 §2.2 calls an existing name: it owns records, or is an empty non-terminal above one that does.
//! Names are kept without the zone's own name behind them. A record of a zone of single addresses takes some 60 octets.

use hashbrown::HashTable;
use wire::{Name, NameRef, Type};

use crate::keys::hash;

/// An authoritative zone; it does not change.
pub struct Zone {
    pub(crate) origin: Name,
    /// Names of the nodes, one behind the other, without `origin`.
    pub(crate) names: Vec<u8>,
    pub(crate) nodes: Vec<NodeEntry>,
    /// The record sets of each node stand together.
    pub(crate) sets: Vec<SetEntry>,
    /// The data of each set stand together, each with its length before it.
    pub(crate) data: Vec<u8>,
    pub(crate) table: HashTable<u32>,
    /// The nodes that own NSEC records, in canonical order.
    pub(crate) chain: Vec<u32>,
    pub(crate) records: usize,
}

/// A name that exists in a zone; it is of no use in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub(crate) u32);

/// A name that exists, as the arenas have it.
#[derive(Clone, Copy)]
pub(crate) struct NodeEntry {
    pub(crate) name_at: u32,
    pub(crate) first_set: u32,
    pub(crate) parent: u32,
    pub(crate) sets: u16,
    pub(crate) name_len: u8,
    pub(crate) flags: u8,
}

/// It owns NS records and is not the apex.
pub(crate) const CUT: u8 = 1;
/// It owns a DNAME record.
pub(crate) const DNAME: u8 = 2;
/// A node above it has one of these.
pub(crate) const BELOW: u8 = 4;
/// It has a child `*`.
pub(crate) const WILDCARD: u8 = 8;
/// It owns a CNAME record.
pub(crate) const ALIAS: u8 = 16;

/// Records of one name and type; signatures (RRSIG) are a set for each type that they cover.
#[derive(Clone, Copy)]
pub(crate) struct SetEntry {
    pub(crate) at: u32,
    pub(crate) ttl: u32,
    pub(crate) rtype: Type,
    /// The type that signatures cover; 0 for other types.
    pub(crate) covered: Type,
    pub(crate) count: u16,
}

/// The index of the apex.
pub(crate) const APEX: u32 = 0;
/// Octets of the length before the data of a record.
pub(crate) const LENGTH_LEN: usize = 2;

/// Records of one name and type.
#[derive(Clone, Copy)]
pub struct RecordSet<'z> {
    /// The type.
    pub rtype: Type,
    /// The time to live, in seconds.
    pub ttl: u32,
    count: u16,
    data: &'z [u8],
}

impl<'z> RecordSet<'z> {
    /// The data of the records, names in full.
    pub fn data(self) -> impl Iterator<Item = &'z [u8]> {
        let mut rest = self.data;
        (0..self.count).map_while(move |_| {
            let (length, after) = rest.split_first_chunk::<LENGTH_LEN>()?;
            let (data, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            Some(data)
        })
    }

    /// The data of the first record.
    #[must_use]
    pub fn first(self) -> &'z [u8] {
        self.data().next().unwrap_or_default()
    }
}

/// The times of a zone, in seconds, and its serial (RFC 1035 §3.3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    /// The version of the zone.
    pub serial: u32,
    /// How often secondaries look for a new one.
    pub refresh: u32,
    /// How soon they try again.
    pub retry: u32,
    /// How long they serve what they have without hearing from a primary.
    pub expire: u32,
    /// The time to live of denials.
    pub minimum: u32,
}

impl Soa {
    /// Reads the data of an SOA record.
    #[must_use]
    pub fn read(rdata: &[u8]) -> Option<Soa> {
        let (_, times) = rdata.split_last_chunk::<20>()?;
        let number = |at: usize| times.get(at..)?.first_chunk().map(|octets| u32::from_be_bytes(*octets));
        Some(Soa {
            serial: number(0)?,
            refresh: number(4)?,
            retry: number(8)?,
            expire: number(12)?,
            minimum: number(16)?,
        })
    }

    /// Whether `serial` is newer than this one's (RFC 1982 §3.2).
    #[must_use]
    pub const fn is_older_than(self, serial: u32) -> bool {
        serial != self.serial && serial.wrapping_sub(self.serial) < 1 << 31
    }
}

impl Zone {
    /// The name of the zone.
    #[must_use]
    pub fn origin(&self) -> NameRef<'_> {
        self.origin.as_ref()
    }

    /// How many records it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records
    }

    /// Whether it has none, which no zone that was built is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Octets that it takes in memory.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.names.capacity()
            + self.nodes.capacity() * size_of::<NodeEntry>()
            + self.sets.capacity() * size_of::<SetEntry>()
            + self.data.capacity()
            + self.table.allocation_size()
            + self.chain.capacity() * size_of::<u32>()
    }

    /// The SOA record set.
    #[must_use]
    pub fn soa_set(&self) -> Option<RecordSet<'_>> {
        self.set(APEX, Type::SOA)
    }

    /// Serial and times.
    #[must_use]
    pub fn soa(&self) -> Option<Soa> {
        Soa::read(self.soa_set()?.first())
    }

    /// Whether it is signed, with NSEC records.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        !self.chain.is_empty()
    }

    pub(crate) fn node(&self, node: u32) -> NodeEntry {
        const NOWHERE: NodeEntry = NodeEntry { name_at: 0, first_set: 0, parent: APEX, sets: 0, name_len: 0, flags: 0 };
        self.nodes.get(node as usize).copied().unwrap_or(NOWHERE)
    }

    /// The labels of a node before the zone's name.
    pub(crate) fn labels(&self, node: u32) -> &[u8] {
        let entry = self.node(node);
        let start = entry.name_at as usize;
        self.names.get(start..start + usize::from(entry.name_len)).unwrap_or_default()
    }

    /// The name of something that was found in this zone.
    #[must_use]
    pub fn name_of(&self, Node(node): Node) -> Name {
        self.name(node)
    }

    /// The whole name of a node.
    pub(crate) fn name(&self, node: u32) -> Name {
        let mut name = Name::root();
        let mut rest = self.labels(node);
        while let Some((length, after)) = rest.split_first() {
            let (label, after) = after.split_at(usize::from(*length).min(after.len()));
            // What is in the store was a name before.
            let _ = name.push_label(label);
            rest = after;
        }
        let _ = name.append(self.origin());
        name
    }

    /// The node with these labels before the zone's name.
    pub(crate) fn find_labels(&self, labels: &[u8]) -> Option<u32> {
        self.table.find(hash(labels), |node| self.labels(*node).eq_ignore_ascii_case(labels)).copied()
    }

    fn entries(&self, node: u32) -> &[SetEntry] {
        let entry = self.node(node);
        let start = entry.first_set as usize;
        self.sets.get(start..start + usize::from(entry.sets)).unwrap_or_default()
    }

    fn view(&self, entry: &SetEntry) -> RecordSet<'_> {
        let data = self.data.get(entry.at as usize..).unwrap_or_default();
        RecordSet { rtype: entry.rtype, ttl: entry.ttl, count: entry.count, data }
    }

    /// The records of a type at a node; not for signatures.
    pub(crate) fn set(&self, node: u32, rtype: Type) -> Option<RecordSet<'_>> {
        self.entries(node).iter().find(|entry| entry.rtype == rtype).map(|entry| self.view(entry))
    }

    /// The signatures over the records of a type at a node.
    pub(crate) fn signatures(&self, node: u32, covered: Type) -> Option<RecordSet<'_>> {
        let signs = |entry: &&SetEntry| entry.rtype == Type::RRSIG && entry.covered == covered;
        self.entries(node).iter().find(signs).map(|entry| self.view(entry))
    }

    /// All records of a node.
    pub(crate) fn all(&self, node: u32) -> impl Iterator<Item = RecordSet<'_>> {
        self.entries(node).iter().map(|entry| self.view(entry))
    }

    /// All record sets with their owners, but for the SOA record: what a transfer sends between its two copies of that.
    /// `from` is 0 at first, and then what this gave with the last set that was taken.
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
