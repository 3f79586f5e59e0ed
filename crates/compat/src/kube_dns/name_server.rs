//! Name server addresses: `10.0.0.1`, `10.0.0.1:5353`, `[fd00::1]:53`, a host name, and the form of dnsmasq,
//! `10.0.0.1#5353`.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::kube_dns::names::is_domain;

/// Port of DNS (RFC 1035 §4.2).
pub const DNS_PORT: u16 = 53;

/// Name server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameServer {
    /// Address and port.
    Address(SocketAddr),
    /// Host name. The port is 53.
    Host(String),
}

impl NameServer {
    /// Parses `IP`, `IP:PORT`, `[IPV6]:PORT` or a host name. A host name cannot have a port, as in kube-dns.
    #[must_use]
    pub fn read(text: &str) -> Option<NameServer> {
        let host = || is_domain(text).then(|| NameServer::Host(text.trim_end_matches('.').to_owned()));
        read_address(text, ':').map(NameServer::Address).or_else(host)
    }

    /// Returns the host name, if the server is given by host name.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        if let NameServer::Host(host) = self { Some(host.clone()) } else { None }
    }

    /// Parses `IP` or `IP#PORT`.
    #[must_use]
    pub(crate) fn read_of_dnsmasq(text: &str) -> Option<NameServer> {
        read_address(text, '#').map(NameServer::Address)
    }
}

/// Parses an address with an optional port after `separator`. An IPv6 address before a colon needs brackets.
pub(crate) fn read_address(text: &str, separator: char) -> Option<SocketAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, DNS_PORT));
    }
    let (ip, port) = text.rsplit_once(separator)?;
    let is_v6_in_brackets = ip.starts_with('[') && ip.ends_with(']');
    let ip: IpAddr = ip.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    if separator == ':' && ip.is_ipv6() != is_v6_in_brackets {
        return None;
    }
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    Some(SocketAddr::new(ip, port))
}

impl fmt::Display for NameServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameServer::Address(address) if address.port() == DNS_PORT => write!(out, "{}", address.ip()),
            NameServer::Address(address) => write!(out, "{address}"),
            NameServer::Host(host) => out.write_str(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_and_host_names() {
        for (text, read) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("10.0.0.1:5353", Some("10.0.0.1:5353")),
            ("10.0.0.1:53", Some("10.0.0.1")),
            ("fd00::1", Some("fd00::1")),
            ("[fd00::1]:5353", Some("[fd00::1]:5353")),
            ("ns.example.org", Some("ns.example.org")),
            ("ns.example.org.", Some("ns.example.org")),
            ("ns.example.org:53", None),
            ("[fd00::1]", None),
            ("10.0.0.1:0", None),
            ("10.0.0.1:65536", None),
            ("Upper.example", None),
            ("", None),
            ("a b", None),
        ] {
            assert_eq!(NameServer::read(text).map(|server| server.to_string()).as_deref(), read, "{text}");
        }
        let of_dnsmasq = |text| NameServer::read_of_dnsmasq(text).map(|server| server.to_string());
        assert_eq!(of_dnsmasq("127.0.0.1#10053").as_deref(), Some("127.0.0.1:10053"));
        assert_eq!(of_dnsmasq("fd00::1#5353").as_deref(), Some("[fd00::1]:5353"));
        assert_eq!(of_dnsmasq("ns.example.org"), None);
    }
}
