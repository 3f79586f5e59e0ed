//! What the texts of an entry mean. What cannot be read is left out, and the first such thing is remembered so that it can
//! be told; the rest of the entry holds.

use core::fmt;
use std::net::IpAddr;

use wire::{Name, NameRef};

use crate::ip::read_ip;

/// Hosts, addresses or endpoints that are kept of one entry. The API server takes 256 hosts and addresses, and has no
/// bound for endpoints.
pub(crate) const PARTS_MAX: usize = 1024;
/// Characters that are told of a text that cannot be read.
const TOLD_MAX: usize = 80;

/// A host: a name, or all names below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) is_wildcard: bool,
    octets: Box<[u8]>,
}

/// How an entry finds the endpoints of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It does not: the client's address is taken, so the name is for others to answer.
    None,
    /// They are listed.
    Static,
    /// By looking up their names, or that of the host.
    Dns,
    /// By looking up the name that was asked for.
    Dynamic,
}

/// What is wrong with an entry or a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has no hosts.
    NoHosts,
    /// This is no host name, nor one with `*` in the place of its first label.
    Host(Box<str>),
    /// This is no IP address.
    Address(Box<str>),
    /// This is neither an IP address nor, where names are looked up, a name.
    Endpoint(Box<str>),
    /// There is no such `resolution`.
    Resolution(Box<str>),
    /// It has more of something than is kept.
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoHosts => out.write_str("it has no hosts"),
            Fault::Host(text) => write!(out, "{text:?} is no host name"),
            Fault::Address(text) => write!(out, "{text:?} is no IP address"),
            Fault::Endpoint(text) => write!(out, "{text:?} is no address of an endpoint"),
            Fault::Resolution(text) => write!(out, "{text:?} is no resolution"),
            Fault::TooMany => write!(out, "it has more than {PARTS_MAX} hosts, addresses or endpoints"),
        }
    }
}

/// The first fault that was found.
#[derive(Default)]
pub(crate) struct Faults(pub(crate) Option<Fault>);

impl Faults {
    fn note(&mut self, fault: Fault) {
        self.0.get_or_insert(fault);
    }

    /// Reads each text, and leaves out those that cannot be read and those that are too many.
    pub(crate) fn read_all<'a, T: PartialEq>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
        read: impl Fn(&str) -> Result<Option<T>, Fault>,
    ) -> Vec<T> {
        let mut parts = Vec::new();
        for text in texts {
            match read(text) {
                Ok(Some(part)) if parts.contains(&part) => {}
                Ok(Some(_)) if parts.len() >= PARTS_MAX => self.note(Fault::TooMany),
                Ok(Some(part)) => parts.push(part),
                Ok(None) => {}
                Err(fault) => self.note(fault),
            }
        }
        parts
    }

    /// An entry whose resolution cannot be read is one without.
    pub(crate) fn resolution(&mut self, text: &str) -> Resolution {
        match text {
            "" | "NONE" => Resolution::None,
            "STATIC" => Resolution::Static,
            "DNS" | "DNS_ROUND_ROBIN" => Resolution::Dns,
            "DYNAMIC_DNS" => Resolution::Dynamic,
            _ => {
                self.note(Fault::Resolution(told(text)));
                Resolution::None
            }
        }
    }
}

impl Host {
    /// Reads `a.example`, or `*.example`.
    pub(crate) fn read(text: &str) -> Result<Option<Host>, Fault> {
        let (is_wildcard, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        match read_name(rest) {
            Some(octets) => Ok(Some(Host { is_wildcard, octets })),
            None => Err(Fault::Host(told(text))),
        }
    }

    /// The name; of a wildcard, the one below which it holds. It is in lower case.
    pub(crate) fn name(&self) -> NameRef<'_> {
        NameRef::from_octets(&self.octets).unwrap_or(NameRef::ROOT)
    }
}

/// Istio's old DNS plugin wrote wildcards with a leading dot, and so do logs that people look through.
impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_wildcard { "." } else { "" }, self.name())
    }
}

/// Reads an address that stands for a host: an IP address or, what is the same, a network of one. A larger network is
/// none, and no fault.
pub(crate) fn address(text: &str) -> Result<Option<IpAddr>, Fault> {
    let fault = || Fault::Address(told(text));
    let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
    let address = read_ip(address).ok_or_else(fault)?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.map_or(Ok(bits), |prefix| prefix.parse::<u8>().map_err(|_| fault()))?;
    if prefix > bits { Err(fault()) } else { Ok((prefix == bits).then_some(address)) }
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    Ip(IpAddr),
    /// A name, wire form, in lower case.
    Name(Box<[u8]>),
}

/// Reads the address of an endpoint. A socket in the file system and an endpoint without address, which is behind a
/// gateway, are none that DNS could tell.
pub(crate) fn endpoint(text: &str) -> Result<Option<Endpoint>, Fault> {
    if text.is_empty() || text.starts_with("unix:") {
        return Ok(None);
    }
    let ip = read_ip(text).map(Endpoint::Ip);
    let endpoint = ip.or_else(|| read_name(text).map(Endpoint::Name));
    endpoint.map(Some).ok_or_else(|| Fault::Endpoint(told(text)))
}

/// Reads an endpoint where names are not looked up.
pub(crate) fn static_endpoint(text: &str) -> Result<Option<Endpoint>, Fault> {
    match endpoint(text)? {
        Some(Endpoint::Name(_)) => Err(Fault::Endpoint(told(text))),
        endpoint => Ok(endpoint),
    }
}

/// The name of a host in wire form and lower case; `None` if it has other characters than such names have.
fn read_name(text: &str) -> Option<Box<[u8]>> {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    let name = Name::from_text(text).ok().filter(|_| !text.is_empty() && text != "." && text.bytes().all(is_plain))?;
    Some(name.into_lowercase().octets().into())
}

fn told(text: &str) -> Box<str> {
    text.chars().take(TOLD_MAX).collect::<String>().into()
}
