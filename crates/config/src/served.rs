//! Index of the zones that the listeners of a plan serve. Without it, each block would search all others, and a
//! Corefile with many blocks would take quadratic time.

use core::net::IpAddr;
use std::collections::HashMap;

use engine::{Scheme, ZoneMap};
use wire::Name;

use crate::planned::{PlannedBlock, PlannedListener};

/// Zones of all listeners.
pub(crate) struct Served {
    by_address: HashMap<(Scheme, u16, Option<IpAddr>), usize>,
    zones: Vec<ZoneMap<Servers>>,
    by_block: Vec<Vec<usize>>,
}

/// Blocks of a zone on a listener.
#[derive(Default)]
pub(crate) struct Servers {
    /// Indexes of the blocks, ascending.
    pub(crate) blocks: Vec<usize>,
    /// First block without a view. It takes all queries that reach it.
    pub(crate) taker: Option<usize>,
}

impl Servers {
    /// Returns true if the block serves the zone.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }
}

impl Served {
    pub(crate) fn new(blocks: &[PlannedBlock], listeners: &[PlannedListener]) -> Served {
        let mut served = Served {
            by_address: HashMap::new(),
            zones: Vec::with_capacity(listeners.len()),
            by_block: vec![Vec::new(); blocks.len()],
        };
        for (at, listener) in listeners.iter().enumerate() {
            served.by_address.insert((listener.scheme, listener.port, listener.ip), at);
            let mut zones: ZoneMap<Servers> = ZoneMap::new();
            for (zone, block) in &listener.zones {
                let servers = zones.entry(zone.as_ref(), Servers::default);
                servers.blocks.push(*block);
                if blocks[*block].info.view.is_empty() {
                    servers.taker.get_or_insert(*block);
                }
                if served.by_block[*block].last() != Some(&at) {
                    served.by_block[*block].push(at);
                }
            }
            served.zones.push(zones);
        }
        served
    }

    /// Returns the index of the listener at exactly this address.
    pub(crate) fn at(&self, scheme: Scheme, port: u16, ip: Option<IpAddr>) -> Option<usize> {
        self.by_address.get(&(scheme, port, ip)).copied()
    }

    /// Returns the blocks of exactly this zone (in lower case) on a listener.
    pub(crate) fn servers(&self, listener: usize, zone: &Name) -> Option<&Servers> {
        self.zones[listener].get(zone.as_ref())
    }

    /// Returns the blocks of the longest zone on a listener that contains a name (in lower case).
    pub(crate) fn longest<'a>(&'a self, listener: usize, name: &'a Name) -> Option<&'a Servers> {
        self.zones[listener].longest(name.as_ref()).map(|(_, servers)| servers)
    }

    /// Returns true if a query for a name (in lower case) can reach a block: one of its zones contains the name, and no
    /// longer zone of a block without a view does. Blocks with a view may leave the query to the next one.
    pub(crate) fn reaches(&self, name: &Name, block: usize) -> bool {
        self.by_block[block].iter().any(|listener| {
            for (_, servers) in self.zones[*listener].matches(name.as_ref()) {
                if servers.has(block) {
                    return true;
                }
                if servers.taker.is_some() {
                    return false;
                }
            }
            false
        })
    }
}
