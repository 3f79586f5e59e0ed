//! Explicit mappings of addresses (RFC 7757), and the prefix for the rest.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::shared::embedded_addresses::Prefix;

/// Mappings between IPv6 and IPv4.
pub(super) struct Table {
    pub(super) prefix: Prefix,
    explicit: HashMap<Ipv6Net, Ipv4Net>,
    /// Lengths of the networks in `explicit`.
    lengths: BTreeSet<u8>,
    /// IPv6 network of each IPv4 network, by the length of the IPv4 network and its first address.
    back: BTreeMap<u8, HashMap<Ipv4Addr, Ipv6Net>>,
}

impl Table {
    /// Creates a table without explicit mappings.
    pub(super) fn new(prefix: Prefix) -> Table {
        Table { prefix, explicit: HashMap::new(), lengths: BTreeSet::new(), back: BTreeMap::new() }
    }

    /// Maps an IPv6 network to an IPv4 network with as many addresses. A later mapping of the same network wins.
    pub(super) fn map(&mut self, v4: Ipv4Net, v6: Ipv6Net) {
        self.lengths.insert(v6.prefix_len());
        self.explicit.insert(v6, v4);
        self.back.entry(v4.prefix_len()).or_default().insert(v4.network(), v6);
    }

    /// Returns the IPv4 address of an IPv6 address: by the longest network that contains it (RFC 7757 §3.3.2), or by
    /// the prefix. IPv4-mapped addresses have none.
    pub(super) fn translate(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        if address.to_ipv4_mapped().is_some() {
            return None;
        }
        let mapped = self.lengths.iter().rev().find_map(|length| {
            let network = Ipv6Net::new(address, *length).ok()?.trunc();
            let to = self.explicit.get(&network)?;
            let host = u32::from_be_bytes(*address.octets().last_chunk()?) & u32::from(to.hostmask());
            Some(Ipv4Addr::from(u32::from(to.network()) | host))
        });
        mapped.or_else(|| self.prefix.extract(address))
    }

    /// Returns the IPv6 address of an IPv4 address: by the longest network that contains it (RFC 7757 §3.3.1), or with
    /// the prefix.
    pub(super) fn translate_back(&self, address: Ipv4Addr) -> Ipv6Addr {
        let mapped = self.back.iter().rev().find_map(|(length, networks)| {
            let network = Ipv4Net::new(address, *length).ok()?.trunc();
            let to = networks.get(&network.network())?;
            let host = u128::from(u32::from(address) & u32::from(network.hostmask()));
            Some(Ipv6Addr::from(u128::from(to.network()) | host))
        });
        mapped.unwrap_or_else(|| self.prefix.embed(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_network_wins() {
        let mut table = Table::new(Prefix::WELL_KNOWN);
        for (v4, v6) in [
            ("198.51.100.0/24", "2001:db8::/120"),
            ("203.0.113.7/32", "2001:db8::7/128"),
            ("192.0.2.1/32", "64:ff9b::c000:209/128"),
            ("203.0.113.9/32", "2001:db8::9/128"),
            ("203.0.113.10/32", "2001:db8::9/128"),
        ] {
            table.map(v4.parse().unwrap(), v6.parse().unwrap());
        }
        for (v6, v4) in [
            ("2001:db8::6", Some("198.51.100.6")),
            ("2001:db8::7", Some("203.0.113.7")),
            ("2001:db8::9", Some("203.0.113.10")),
            ("2001:db8::100", None),
            ("64:ff9b::c000:208", Some("192.0.2.8")),
            ("64:ff9b::c000:209", Some("192.0.2.1")),
            ("64:ff9b:1::c000:208", None),
            ("::ffff:192.0.2.1", None),
        ] {
            assert_eq!(table.translate(v6.parse().unwrap()), v4.map(|v4| v4.parse().unwrap()), "{v6}");
        }
        for (v4, v6) in [
            ("198.51.100.6", "2001:db8::6"),
            ("198.51.100.7", "2001:db8::7"),
            ("203.0.113.7", "2001:db8::7"),
            ("203.0.113.8", "64:ff9b::203.0.113.8"),
            ("192.0.2.1", "64:ff9b::c000:209"),
        ] {
            assert_eq!(table.translate_back(v4.parse().unwrap()), v6.parse::<Ipv6Addr>().unwrap(), "{v4}");
        }
    }
}
