//! What this machine is.

use std::net::IpAddr;
use std::sync::Arc;

use if_addrs::{Interface, get_if_addrs};
use plugins::{HostName, LocalAddresses};

/// The addresses of this machine's interfaces, without loopback.
pub(crate) fn addresses() -> LocalAddresses {
    let addresses = interfaces().into_iter().filter(|interface| !interface.is_loopback());
    LocalAddresses(addresses.map(|interface| interface.ip()).collect::<Arc<[IpAddr]>>())
}

/// The name of this host, as the kernel has it; `localhost` where it does not say.
pub(crate) fn host_name() -> HostName {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    HostName(if name.is_empty() { "localhost" } else { name }.to_owned())
}

/// The addresses of one interface, if there is one of that name.
pub(crate) fn interface_addresses(name: &str) -> Option<Vec<IpAddr>> {
    let of_name = interfaces().into_iter().filter(|interface| interface.name == name);
    let addresses: Vec<IpAddr> = of_name.map(|interface| interface.ip()).collect();
    (!addresses.is_empty()).then_some(addresses)
}

/// What the kernel lists; nothing where it does not.
fn interfaces() -> Vec<Interface> {
    get_if_addrs().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_loopback() {
        let loopback = interfaces().into_iter().find(Interface::is_loopback).unwrap();
        assert!(interface_addresses(&loopback.name).unwrap().contains(&loopback.ip()));
        assert!(!addresses().0.contains(&loopback.ip()));
        assert_eq!(interface_addresses("no such interface"), None);
    }
}
