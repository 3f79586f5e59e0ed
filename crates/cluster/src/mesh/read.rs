//! Parser for the values of entries. Invalid values are skipped and the first of them is reported; the rest of the
//! entry is used.

use core::fmt;
use std::net::IpAddr;

use host::invariant::Expected as _;
use wire::{Name, NameRef};

use crate::ip::read_ip;

/// Hosts, addresses or endpoints kept per entry. The API server accepts 256 hosts and 256 addresses, and any number
/// of endpoints.
pub(crate) const PARTS_MAX: usize = 1024;
/// Maximum length of an invalid text in a message, in characters.
const SHOWN_MAX: usize = 80;

/// Host of an entry: a name, or a wildcard for all names below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) is_wildcard: bool,
    bytes: Box<[u8]>,
}

/// `resolution` of an entry: the source of its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// None. Istio forwards to the address that the client chose: one of the entry, or what other servers answer.
    None,
    /// Listed in the entry.
    Static,
    /// Resolved from the endpoints' names or from the host.
    Dns,
    /// Resolved from the queried name.
    Dynamic,
}

/// Error in an entry or a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryError {
    /// No hosts.
    #[error("it has no hosts")]
    NoHosts,
    /// Not a host name, nor one with `*` as its first label.
    #[error("{0:?} is not a host name")]
    Host(Box<str>),
    /// Not an IP address.
    #[error("{0:?} is not an IP address")]
    Address(Box<str>),
    /// Neither an IP address nor, where endpoints may be names, a host name.
    #[error("{0:?} is not the address of an endpoint")]
    Endpoint(Box<str>),
    /// Unknown `resolution`.
    #[error("unknown resolution {0:?}")]
    Resolution(Box<str>),
    /// More hosts, addresses or endpoints than are kept.
    #[error("it has more than {} hosts, addresses or endpoints", PARTS_MAX)]
    TooMany,
}

/// Collects the errors of an object and keeps the first one.
#[derive(Default)]
pub(crate) struct ErrorCollector(pub(crate) Option<EntryError>);

impl ErrorCollector {
    fn note(&mut self, error: EntryError) {
        self.0.get_or_insert(error);
    }

    /// Parses each text. Skips invalid ones, duplicates, and those beyond the limit.
    pub(crate) fn read_all<'a, T: PartialEq>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
        read: impl Fn(&str) -> Result<Option<T>, EntryError>,
    ) -> Vec<T> {
        let mut parts = Vec::new();
        for text in texts {
            match read(text) {
                Ok(Some(part)) if parts.contains(&part) => {}
                Ok(Some(_)) if parts.len() >= PARTS_MAX => self.note(EntryError::TooMany),
                Ok(Some(part)) => parts.push(part),
                Ok(None) => {}
                Err(error) => self.note(error),
            }
        }
        parts
    }

    /// Parses `resolution`. An unknown value counts as `NONE`.
    pub(crate) fn resolution(&mut self, text: &str) -> Resolution {
        match text {
            "" | "NONE" => Resolution::None,
            "STATIC" => Resolution::Static,
            "DNS" | "DNS_ROUND_ROBIN" => Resolution::Dns,
            "DYNAMIC_DNS" => Resolution::Dynamic,
            _ => {
                self.note(EntryError::Resolution(shorten(text)));
                Resolution::None
            }
        }
    }
}

impl Host {
    /// Parses a host name such as `a.example` or `*.example`.
    pub(crate) fn read(text: &str) -> Result<Option<Host>, EntryError> {
        let (is_wildcard, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        match read_name(rest) {
            Some(bytes) => Ok(Some(Host { is_wildcard, bytes })),
            None => Err(EntryError::Host(shorten(text))),
        }
    }

    /// Returns the name in lower case; for a wildcard, the name below which it matches.
    pub(crate) fn name(&self) -> NameRef<'_> {
        NameRef::from_bytes(&self.bytes).ok().expected("a name that was parsed").unwrap_or(NameRef::ROOT)
    }
}

/// Formats a wildcard with a leading dot, like Istio's retired CoreDNS plugin and its logs.
impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_wildcard { "." } else { "" }, self.name())
    }
}

/// Parses an address of a host: an IP address or a network of a single address. Returns `None` for a larger network,
/// which is valid but yields no address.
pub(crate) fn address(text: &str) -> Result<Option<IpAddr>, EntryError> {
    let error = || EntryError::Address(shorten(text));
    let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
    let address = read_ip(address).ok_or_else(error)?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.map_or(Ok(bits), |prefix| prefix.parse::<u8>().map_err(|_| error()))?;
    if prefix > bits { Err(error()) } else { Ok((prefix == bits).then_some(address)) }
}

/// Endpoint of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    Ip(IpAddr),
    /// Host name, in wire format and lower case.
    Name(Box<[u8]>),
}

/// Parses the address of an endpoint. Returns `None` for endpoints that DNS cannot express: a Unix domain socket, or
/// an endpoint behind a gateway, which has no address.
pub(crate) fn endpoint(text: &str) -> Result<Option<Endpoint>, EntryError> {
    if text.is_empty() || text.starts_with("unix:") {
        return Ok(None);
    }
    let ip = read_ip(text).map(Endpoint::Ip);
    let endpoint = ip.or_else(|| read_name(text).map(Endpoint::Name));
    endpoint.map(Some).ok_or_else(|| EntryError::Endpoint(shorten(text)))
}

/// Parses an endpoint of an entry with resolution `STATIC`, where names are not allowed.
pub(crate) fn static_endpoint(text: &str) -> Result<Option<Endpoint>, EntryError> {
    match endpoint(text)? {
        Some(Endpoint::Name(_)) => Err(EntryError::Endpoint(shorten(text))),
        endpoint => Ok(endpoint),
    }
}

/// Returns a host name in wire format and lower case, or `None` if it contains characters that host names do not
/// have.
fn read_name(text: &str) -> Option<Box<[u8]>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let name = Name::from_text(text).ok().filter(|_| !text.is_empty() && text != "." && text.bytes().all(is_plain))?;
    Some(name.into_lowercase().as_bytes().into())
}

fn shorten(text: &str) -> Box<str> {
    text.chars().take(SHOWN_MAX).collect::<String>().into()
}
