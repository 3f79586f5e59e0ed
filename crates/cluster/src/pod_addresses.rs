//! Addresses of a pod, as its record keeps them: in 22 bytes, so that a pod with two addresses takes no more memory
//! than one with a single address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of addresses kept per pod. The API server accepts two, one per address family (core/v1, `podIPs`).
const ADDRESSES_MAX: usize = 2;
/// Bytes for the addresses: an IPv4 and an IPv6 address, or two IPv4 addresses.
const BYTES: usize = 20;

/// Addresses of a pod in the order of its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodAddresses {
    lengths: [u8; ADDRESSES_MAX],
    bytes: [u8; BYTES],
}

impl PodAddresses {
    /// Adds an address, unless it is already there. Returns `None` if there is no room.
    pub(crate) fn push(&mut self, address: IpAddr) -> Option<()> {
        if self.contain(address) {
            return Some(());
        }
        let slot = self.lengths.iter().position(|length| *length == 0)?;
        let begin: usize = self.lengths.iter().copied().map(usize::from).sum();
        let rest = self.bytes.get_mut(begin..)?;
        self.lengths[slot] = match address {
            IpAddr::V4(v4) => {
                *rest.first_chunk_mut()? = v4.octets();
                4
            }
            IpAddr::V6(v6) => {
                *rest.first_chunk_mut()? = v6.octets();
                16
            }
        };
        debug_assert!(self.contain(address), "an address is read as it was added");
        Some(())
    }

    /// Returns the addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().filter_map(move |length| match length {
            4 => rest.split_off(..4)?.try_into().ok().map(|bytes: [u8; 4]| Ipv4Addr::from(bytes).into()),
            16 => rest.split_off(..16)?.try_into().ok().map(|bytes: [u8; 16]| Ipv6Addr::from(bytes).into()),
            _ => None,
        })
    }

    /// Returns true if this address is one of them.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.iter().any(|known| known == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_two_addresses_in_order_and_each_once() {
        assert_eq!(size_of::<PodAddresses>(), 22);
        for (added, kept, fits) in [
            ("", "", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1 fd00::1", "10.0.0.1 fd00::1", true),
            ("fd00::1 10.0.0.1", "fd00::1 10.0.0.1", true),
            ("10.0.0.1 127.0.0.1 10.0.0.3", "10.0.0.1 127.0.0.1", false),
            ("10.0.0.1 10.0.0.1 fd00::1", "10.0.0.1 fd00::1", true),
            ("fd00::1 fd00::2", "fd00::1", false),
        ] {
            let mut addresses = PodAddresses::default();
            let fitted = added.split_whitespace().all(|text| addresses.push(text.parse().unwrap()).is_some());
            let found: Vec<String> = addresses.iter().map(|address| address.to_string()).collect();
            assert_eq!((found.join(" ").as_str(), fitted), (kept, fits), "{added}");
        }
    }
}
