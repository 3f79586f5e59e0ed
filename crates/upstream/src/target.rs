//! Upstreams as written in a Corefile, and name servers and search lists in resolv.conf(5).

use core::fmt;
use core::net::IpAddr;
use core::str;

use wire::Name;

use crate::scoped::{ScopedAddress, is_link_local};

/// Maximum number of domains in a search list: the limit that Kubernetes sets for a Pod (`MaxDNSSearchPaths`).
const SEARCH_MAX: usize = 32;
/// Default port of DNS.
const DNS_PORT: u16 = 53;

/// Protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP and TCP.
    Dns,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484).
    Https,
    /// DNS over QUIC (RFC 9250).
    Quic,
}

impl Protocol {
    /// Returns the protocol of a scheme in a Corefile.
    fn of_scheme(scheme: &str) -> Option<Protocol> {
        match scheme {
            "dns" => Some(Protocol::Dns),
            "tls" => Some(Protocol::Tls),
            "https" => Some(Protocol::Https),
            "quic" => Some(Protocol::Quic),
            _ => None,
        }
    }

    /// Default port.
    const fn port(self) -> u16 {
        match self {
            Protocol::Dns => DNS_PORT,
            Protocol::Tls | Protocol::Quic => 853,
            Protocol::Https => 443,
        }
    }

    /// Returns true if connections are always encrypted.
    #[must_use]
    pub const fn is_encrypted(self) -> bool {
        !matches!(self, Protocol::Dns)
    }
}

/// Upstream in a Corefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// IP address.
    Address {
        /// Protocol.
        protocol: Protocol,
        /// Address and port, and the interface of a link-local address.
        address: ScopedAddress,
        /// Name expected in the certificate, written after a `%`.
        server_name: Option<String>,
    },
    /// Host name to look up, or path of a file with `nameserver` lines.
    Named {
        /// Protocol.
        protocol: Protocol,
        /// Host name or path.
        name: String,
        /// Port of the addresses found.
        port: u16,
    },
}

/// Error in the text of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// Unsupported scheme before `://`, such as `http` or `grpc`.
    Scheme(String),
    /// `https` upstream with a path.
    Path,
    /// Invalid port.
    Port(String),
    /// Empty, or not a name.
    Name,
    /// Text that ends with a number, but is not an IPv4 address. The last label of a host name is not numeric.
    Numeric,
    /// Character that cannot occur in a host name, such as a comma between two upstreams.
    Character(char),
    /// Placeholder of node-cache's template that has not been replaced.
    Placeholder,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::Scheme(scheme) => {
                write!(f, "'{scheme}' is not supported as a destination protocol in forward; ")?;
                match scheme.as_str() {
                    "http" => f.write_str("it is not encrypted, use `https://`"),
                    "grpc" => f.write_str("use the directive `grpc`"),
                    "https3" | "h3" => f.write_str("HTTP/3 is not supported, use `https://` or `quic://`"),
                    _ => f.write_str("use `dns://`, `tls://`, `https://` or `quic://`"),
                }
            }
            TargetError::Path => {
                f.write_str("paths are not allowed in HTTPS upstream addresses (the path is always /dns-query)")
            }
            TargetError::Port(text) => write!(f, "`{text}` is not a valid port; the maximum is 65535"),
            TargetError::Name => f.write_str("expected an IP address, a host name or the path of a file"),
            TargetError::Numeric => f.write_str("not an IP address, and a host name cannot end with a number"),
            TargetError::Character(character) => {
                write!(f, "`{character}` is not allowed in an address or host name; separate upstreams with spaces")
            }
            TargetError::Placeholder => f.write_str(
                "unreplaced placeholder of node-cache's template; `portolan node --print-corefile` prints the final Corefile",
            ),
        }
    }
}

impl core::error::Error for TargetError {}

impl Target {
    /// Parses an upstream: an IP address with or without a port, optionally after `dns://`, `tls://`, `https://` or
    /// `quic://`; the path of a file; or a host name. After a link-local address, the first `%` begins its interface.
    ///
    /// # Errors
    /// The text has another form.
    pub fn read(text: &str) -> Result<Target, TargetError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("dns", text));
        let protocol = Protocol::of_scheme(scheme).ok_or_else(|| TargetError::Scheme(scheme.to_owned()))?;
        if protocol == Protocol::Https && rest.contains('/') {
            return Err(TargetError::Path);
        }
        let (host, port, server_name) = split(rest, protocol.port())?;
        if let Ok(ip) = host.parse::<IpAddr>() {
            let (zone, server_name) = zone_and_name(ip, server_name);
            let address = ScopedAddress::new(ip, port, zone.as_deref());
            return Ok(Target::Address { protocol, address, server_name });
        }
        match host.split_once('/') {
            None => check_host(&host)?,
            // An address with a prefix length is hardly the name of a file.
            Some((address, _)) if address.parse::<IpAddr>().is_ok() => return Err(TargetError::Name),
            Some(_) => {}
        }
        Ok(Target::Named { protocol, name: host, port })
    }
}

/// Splits the text after the `%` of an address: `[INTERFACE][%NAME]` after a link-local address, else `NAME`.
fn zone_and_name(ip: IpAddr, text: Option<String>) -> (Option<String>, Option<String>) {
    match text {
        Some(text) if is_link_local(ip) => match text.split_once('%') {
            Some((zone, name)) => (Some(zone.to_owned()), Some(name.to_owned())),
            None => (Some(text), None),
        },
        name => (None, name),
    }
}

/// Rejects text that is a valid domain name, but hardly a host name.
fn check_host(host: &str) -> Result<(), TargetError> {
    if host.contains("__PILLAR__") {
        return Err(TargetError::Placeholder);
    }
    if let Some(character) = host.chars().find(|character| matches!(character, ',' | ';' | '=')) {
        return Err(TargetError::Character(character));
    }
    // Without a letter or digit, or with a second port, no resolver could look it up.
    let is_name = Name::from_text(host).is_ok() && host.contains(|c: char| c.is_alphanumeric());
    if !is_name || host.contains(':') {
        return Err(TargetError::Name);
    }
    // RFC 1123 §2.1: the last label of a host name is alphabetic, so that a name never looks like an address.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) { Err(TargetError::Numeric) } else { Ok(()) }
}

/// Splits `HOST[%NAME][:PORT]` into host, port, and name in the certificate. An IPv6 address with a port is in
/// brackets.
fn split(text: &str, default: u16) -> Result<(String, u16, Option<String>), TargetError> {
    let (inside, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((inside, "")) => (inside, None),
            Some((inside, rest)) => (inside, Some(rest.strip_prefix(':').ok_or(TargetError::Name)?)),
            None => return Err(TargetError::Name),
        },
        None if text.split('%').next().is_some_and(|host| host.matches(':').count() > 1) => (text, None),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), |port| port.parse().map_err(|_| TargetError::Port(port.to_owned())))?;
    let (host, name) = inside.split_once('%').map_or((inside, None), |(host, name)| (host, Some(name.to_owned())));
    Ok((host.to_owned(), port, name))
}

/// Error in a `nameserver` line: it has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameserverError {
    /// Line number, starting with 1.
    pub line: usize,
    /// Word in place of the address.
    pub word: String,
}

impl fmt::Display for NameserverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NameserverError { line, word } = self;
        write!(f, "{line}: line ignored: `{word}` is not an IP address")
    }
}

impl core::error::Error for NameserverError {}

/// Parses the `nameserver` lines of a resolv.conf(5) file: returns their addresses, and the lines without an address.
/// Ignores other lines.
pub fn nameservers(text: &str) -> impl Iterator<Item = Result<ScopedAddress, NameserverError>> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        let word = words.next().unwrap_or_default();
        let (ip, zone) = word.split_once('%').map_or((word, None), |(ip, zone)| (ip, Some(zone)));
        let address = ip.parse().ok().map(|ip| ScopedAddress::new(ip, DNS_PORT, zone));
        Some(address.ok_or_else(|| NameserverError { line: at + 1, word: word.to_owned() }))
    })
}

/// Parses the search list of a resolv.conf(5) file: the domains on the last line that starts with `search` or `domain`.
/// Invalid names are skipped.
#[must_use]
pub fn search_list(bytes: &[u8]) -> Vec<Name> {
    let domains = bytes.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let mut words = str::from_utf8(line).ok()?.split_whitespace();
        matches!(words.next(), Some("search" | "domain")).then_some(words)
    });
    let names = domains.into_iter().flatten().filter_map(|domain| Name::from_text(domain).ok());
    names.take(SEARCH_MAX).map(Name::into_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    #[test]
    fn parses_upstreams() {
        let address = |protocol, address: &str, name: Option<&str>| {
            let address = address.parse::<SocketAddr>().unwrap().into();
            Ok(Target::Address { protocol, address, server_name: name.map(str::to_owned) })
        };
        let on_eth0 = |protocol, port, name: Option<&str>| {
            let address = ScopedAddress::new("fe80::1".parse().unwrap(), port, Some("eth0"));
            Ok(Target::Address { protocol, address, server_name: name.map(str::to_owned) })
        };
        let named = |protocol, name: &str, port| Ok(Target::Named { protocol, name: name.to_owned(), port });
        let cases = [
            ("127.0.0.1", address(Protocol::Dns, "127.0.0.1:53", None)),
            ("127.0.0.1:8080", address(Protocol::Dns, "127.0.0.1:8080", None)),
            ("::1", address(Protocol::Dns, "[::1]:53", None)),
            ("[::1]", address(Protocol::Dns, "[::1]:53", None)),
            ("[2001:db8::1]:5353", address(Protocol::Dns, "[2001:db8::1]:5353", None)),
            ("dns://127.0.0.1", address(Protocol::Dns, "127.0.0.1:53", None)),
            ("tls://127.0.0.1", address(Protocol::Tls, "127.0.0.1:853", None)),
            ("tls://127.0.0.1%n.test:854", address(Protocol::Tls, "127.0.0.1:854", Some("n.test"))),
            ("tls://[2001:db8::1%n.test]:853", address(Protocol::Tls, "[2001:db8::1]:853", Some("n.test"))),
            ("fe80::1%eth0", on_eth0(Protocol::Dns, 53, None)),
            ("[fe80::1%eth0]:5353", on_eth0(Protocol::Dns, 5353, None)),
            ("tls://fe80::1%eth0%n.test", on_eth0(Protocol::Tls, 853, Some("n.test"))),
            ("fe80::1%3", address(Protocol::Dns, "[fe80::1%3]:53", None)),
            ("https://127.0.0.1", address(Protocol::Https, "127.0.0.1:443", None)),
            ("https://127.0.0.1%n.test:8443", address(Protocol::Https, "127.0.0.1:8443", Some("n.test"))),
            ("quic://127.0.0.1", address(Protocol::Quic, "127.0.0.1:853", None)),
            ("quic://[::1%n.test]:8853", address(Protocol::Quic, "[::1]:8853", Some("n.test"))),
            ("quic://dns.test", named(Protocol::Quic, "dns.test", 853)),
            ("https://dns.test", named(Protocol::Https, "dns.test", 443)),
            ("/etc/resolv.conf", named(Protocol::Dns, "/etc/resolv.conf", 53)),
            ("dns.test:5353", named(Protocol::Dns, "dns.test", 5353)),
            ("a27.0.0.1", Err(TargetError::Numeric)),
            ("https://1.1.1.1/", Err(TargetError::Path)),
            ("http://1.1.1.1", Err(TargetError::Scheme("http".to_owned()))),
            ("grpc://1.1.1.1", Err(TargetError::Scheme("grpc".to_owned()))),
            ("1.1.1.1:dns", Err(TargetError::Port("dns".to_owned()))),
            ("", Err(TargetError::Name)),
            ("[::1", Err(TargetError::Name)),
            ("8.8.8.8.8", Err(TargetError::Numeric)),
            ("1.2.3.400", Err(TargetError::Numeric)),
            ("dns.test.5:53", Err(TargetError::Numeric)),
            ("8.8.8.8,", Err(TargetError::Character(','))),
            ("1.1.1.1;", Err(TargetError::Character(';'))),
            ("=", Err(TargetError::Character('='))),
            ("__PILLAR__UPSTREAM__SERVERS__", Err(TargetError::Placeholder)),
            ("8.8.8.8:53:53", Err(TargetError::Name)),
            ("--", Err(TargetError::Name)),
            ("10.0.0.0/8", Err(TargetError::Name)),
            ("/etc/resolv,1", named(Protocol::Dns, "/etc/resolv,1", 53)),
        ];
        for (text, target) in cases {
            assert_eq!(Target::read(text), target, "{text}");
        }
    }

    fn show(server: &ScopedAddress) -> String {
        [server.address.to_string()].into_iter().chain(server.interface.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_nameservers_from_resolv_conf() {
        let text = "# c\nsearch a.test\nnameserver 10.0.0.1\n nameserver\tfe80::1%eth0 x\nnameserver fe80::2%3\nnameserver x\noptions ndots:5\n";
        let found: Vec<_> =
            nameservers(text).map(|found| found.map_or_else(|bad| bad.to_string(), |good| show(&good))).collect();
        let bad = "6: line ignored: `x` is not an IP address";
        assert_eq!(found, ["10.0.0.1:53", "[fe80::1]:53 eth0", "[fe80::2%3]:53", bad]);
    }

    #[test]
    fn parses_search_lists_like_resolvers() {
        let many = format!("search {}", "a.test ".repeat(SEARCH_MAX + 1));
        for (text, list) in [
            ("", ""),
            ("nameserver 192.0.2.1\n", ""),
            ("search A.test b.test.\nnameserver 192.0.2.1\n", "a.test. b.test."),
            ("search a.test\ndomain b.test\n", "b.test."),
            ("domain b.test\n search a..b c.test", "c.test."),
            (&many, "a.test. ".repeat(SEARCH_MAX).trim_end()),
        ] {
            let found: Vec<_> = search_list(text.as_bytes()).iter().map(Name::to_string).collect();
            assert_eq!(found.join(" "), list, "{text}");
        }
    }
}
