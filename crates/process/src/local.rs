//! Addresses, interfaces, host name and place of this machine.

use std::net::IpAddr;
use std::sync::Arc;

use if_addrs::{Interface, get_if_addrs};
use plugins::{HostName, LocalAddresses};

/// Returns the addresses of this machine's interfaces, without loopback.
pub fn addresses() -> LocalAddresses {
    let addresses = interfaces().into_iter().filter(|interface| !interface.is_loopback());
    LocalAddresses(addresses.map(|interface| interface.ip()).collect::<Arc<[IpAddr]>>())
}

/// Returns the host name from the kernel, or `localhost` if it is not available.
pub fn host_name() -> HostName {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    HostName(if name.is_empty() { "localhost" } else { name }.to_owned())
}

/// Returns true if this process runs in a Pod: Kubernetes sets the variable in each.
pub fn is_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// Returns the addresses of the interface `name`; `None` if it does not exist or has no address.
pub(crate) fn interface_addresses(name: &str) -> Option<Vec<IpAddr>> {
    let of_name = interfaces().into_iter().filter(|interface| interface.name == name);
    let addresses: Vec<IpAddr> = of_name.map(|interface| interface.ip()).collect();
    (!addresses.is_empty()).then_some(addresses)
}

/// Lists the interfaces; returns an empty list on an error.
fn interfaces() -> Vec<Interface> {
    get_if_addrs().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes_loopback_and_link_local_from_the_local_addresses() {
        let loopback = interfaces().into_iter().find(Interface::is_loopback).unwrap();
        assert!(interface_addresses(&loopback.name).unwrap().contains(&loopback.ip()));
        assert!(!addresses().0.contains(&loopback.ip()));
        let is_link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        assert!(!addresses().0.iter().any(is_link_local));
        assert_eq!(interface_addresses("no such interface"), None);
    }
}
