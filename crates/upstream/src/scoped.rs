//! Addresses with the interface that a link-local IPv6 address needs (RFC 4007 §11): `fe80::1%eth0`.
//!
//! This crate does not know the interfaces of the machine. The caller reads the file that lists them.

use core::fmt;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use core::str;

/// File of Linux that lists the IPv6 addresses of the network namespace, with their interfaces. Each line has the
/// address, the number of the interface, three other fields and the name of the interface; numbers are hexadecimal.
const ADDRESSES: &str = "/proc/net/if_inet6";

/// Address, and the name of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedAddress {
    /// Address and port. Its scope is set if the interface is written as a number.
    pub address: SocketAddr,
    /// Name of the interface; `None` if it is missing, or a number.
    pub interface: Option<String>,
}

/// Error: this machine has no interface of this name with an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownInterface(String);

impl fmt::Display for UnknownInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no network interface `{}` has an IPv6 address", self.0)
    }
}

impl core::error::Error for UnknownInterface {}

impl ScopedAddress {
    /// Combines an address with the text after its `%`. Other addresses than link-local ones need no interface, so
    /// theirs is ignored.
    #[must_use]
    pub fn new(ip: IpAddr, port: u16, zone: Option<&str>) -> ScopedAddress {
        let address = SocketAddr::new(ip, port);
        let zone = zone.filter(|_| is_link_local(ip));
        let (IpAddr::V6(ip), Some(zone)) = (ip, zone) else { return ScopedAddress { address, interface: None } };
        match zone.parse() {
            Ok(index) => ScopedAddress { address: SocketAddrV6::new(ip, port, 0, index).into(), interface: None },
            Err(_) => ScopedAddress { address, interface: Some(zone.to_owned()) },
        }
    }

    /// Returns the address with the number of its interface. `read` returns the content of a file.
    ///
    /// # Errors
    /// This machine has no such interface, or no IPv6 address on it.
    pub fn resolve(&self, read: impl FnOnce(&str) -> Option<Vec<u8>>) -> Result<SocketAddr, UnknownInterface> {
        let (SocketAddr::V6(address), Some(name)) = (self.address, &self.interface) else { return Ok(self.address) };
        let listed = read(ADDRESSES).unwrap_or_default();
        let index = str::from_utf8(&listed).ok().and_then(|listed| index_of(name, listed));
        let index = index.ok_or_else(|| UnknownInterface(name.clone()))?;
        Ok(SocketAddrV6::new(*address.ip(), address.port(), 0, index).into())
    }

    /// Returns true if the address can be reached only with an interface, and has none.
    #[must_use]
    pub fn lacks_interface(&self) -> bool {
        let has_scope = matches!(self.address, SocketAddr::V6(address) if address.scope_id() > 0);
        is_link_local(self.address.ip()) && self.interface.is_none() && !has_scope
    }
}

impl From<SocketAddr> for ScopedAddress {
    fn from(address: SocketAddr) -> ScopedAddress {
        ScopedAddress { address, interface: None }
    }
}

/// Returns the number of an interface in the content of [`ADDRESSES`].
fn index_of(name: &str, listed: &str) -> Option<u32> {
    let index = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let index = u32::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(3) == Some(name)).then_some(index)
    };
    listed.lines().find_map(index)
}

/// Returns true if an address is valid on one link only.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &[u8] = b"00000000000000000000000000000001 01 80 10 80       lo\n\
        fe80000000000000000000fffe000001 12 40 20 80     eth0\n";

    #[test]
    fn resolves_the_interface_of_a_link_local_address() {
        let resolve = |ip: &str, zone| {
            let scoped = ScopedAddress::new(ip.parse().unwrap(), 53, zone);
            let read = |path: &str| (path == "/proc/net/if_inet6").then(|| LISTED.to_vec());
            scoped.resolve(read).map_or_else(|error| error.to_string(), |address| address.to_string())
        };
        assert_eq!(resolve("fe80::1", Some("eth0")), "[fe80::1%18]:53");
        assert_eq!(resolve("fe80::1", Some("3")), "[fe80::1%3]:53");
        assert_eq!(resolve("fe80::1", None), "[fe80::1]:53");
        assert_eq!(resolve("2001:db8::1", Some("eth0")), "[2001:db8::1]:53");
        assert_eq!(resolve("192.0.2.1", Some("eth0")), "192.0.2.1:53");
        for name in ["eth1", "eth", ""] {
            let error = format!("no network interface `{name}` has an IPv6 address");
            assert_eq!(resolve("fe80::1", Some(name)), error);
        }
    }

    #[test]
    fn notices_a_link_local_address_without_interface() {
        let lacks = |ip: &str, zone| ScopedAddress::new(ip.parse().unwrap(), 53, zone).lacks_interface();
        assert!(lacks("fe80::1", None));
        assert!(!lacks("fe80::1", Some("1")) && !lacks("fe80::1", Some("eth0")) && !lacks("2001:db8::1", None));
    }
}
