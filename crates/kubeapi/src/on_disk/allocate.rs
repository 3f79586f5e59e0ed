//! Cluster IPs for Services without one. Most manifests have none, because the API server allocates them.
//!
//! The address is derived from namespace and name, so that it is the same after a restart and on other machines. The
//! ranges are `10.96.0.0/16`, which lies within kubeadm's default, and `fd00:10:96::/112` for IPv6. If the address is
//! taken by a Service that comes earlier in the order of names, or is written in a manifest, the next free one is used.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use host::invariant::{Expected as _, holds};

/// First offset to allocate. API servers reserve the lowest addresses for static allocation, such as 10.96.0.1 and
/// 10.96.0.10.
const FIRST: u32 = 256;
/// End of the offsets, exclusive. 10.96.255.255 is the broadcast address.
const END: u32 = 65_535;

/// Set of allocated offsets.
#[derive(Default)]
pub(crate) struct Allocator {
    taken: HashSet<u32>,
}

impl Allocator {
    /// Marks an address from a manifest as taken.
    pub(crate) fn take(&mut self, address: IpAddr) {
        let number = match address {
            IpAddr::V4(v4) => u32::from(v4) ^ u32::from(v4_of(0)),
            IpAddr::V6(v6) => u32::try_from(u128::from(v6) ^ u128::from(v6_of(0))).unwrap_or(u32::MAX),
        };
        if number <= END {
            self.taken.insert(number);
        }
    }

    /// Allocates one address of each family for a Service, or returns `None` if all are taken.
    pub(crate) fn give(&mut self, namespace: &str, name: &str) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let size = END - FIRST;
        let wanted = u32::try_from(hash(namespace, name) % u64::from(size)).ok().expected("a number below a `u32`");
        let wanted = wanted.unwrap_or_default();
        let number = (0..size).map(|step| FIRST + (wanted + step) % size).find(|number| self.taken.insert(*number))?;
        holds((FIRST..END).contains(&number), "an address that is allocated is in the range");
        Some((v4_of(number), v6_of(number)))
    }
}

fn v4_of(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 96, 0, 0)) + number)
}

fn v6_of(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0)) + u128::from(number))
}

/// FNV-1a hash of `namespace/name`, which is the same on every machine and in every version.
fn hash(namespace: &str, name: &str) -> u64 {
    let bytes = namespace.bytes().chain([b'/']).chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_do_not_change_between_versions() {
        let mut allocator = Allocator::default();
        for (namespace, name, v4, v6) in [
            ("default", "web", "10.96.12.129", "fd00:10:96::c81"),
            ("shop", "web", "10.96.179.92", "fd00:10:96::b35c"),
            ("shop", "cart", "10.96.181.51", "fd00:10:96::b533"),
        ] {
            let (given_v4, given_v6) = allocator.give(namespace, name).unwrap();
            assert_eq!((given_v4.to_string(), given_v6.to_string()), (v4.to_owned(), v6.to_owned()), "{name}");
        }
    }

    #[test]
    fn skips_addresses_that_are_taken() {
        let (first, _) = Allocator::default().give("default", "web").unwrap();
        let mut allocator = Allocator::default();
        allocator.take(first.into());
        allocator.take("192.0.2.1".parse().unwrap());
        allocator.take("2001:db8::1".parse().unwrap());
        let (second, second_v6) = allocator.give("default", "web").unwrap();
        assert_eq!(u32::from(second), u32::from(first) + 1);
        let mut allocator = Allocator::default();
        allocator.take(first.into());
        allocator.take(second_v6.into());
        assert_eq!(u32::from(allocator.give("default", "web").unwrap().0), u32::from(first) + 2);
    }

    #[test]
    fn allocates_each_address_once_until_the_range_is_full() {
        let mut allocator = Allocator::default();
        let given: HashSet<_> =
            (FIRST..END).map(|number| allocator.give("default", &format!("s{number}")).unwrap().0).collect();
        assert_eq!(given.len(), (END - FIRST) as usize);
        assert!(given.iter().all(|v4| v4.octets()[..2] == [10, 96] && v4.octets()[2] > 0));
        assert!(!given.contains(&Ipv4Addr::new(10, 96, 255, 255)));
        assert_eq!(allocator.give("default", "one-more"), None);
    }
}
