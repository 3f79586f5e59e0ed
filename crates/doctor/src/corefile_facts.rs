//! Corefile: problems that its compilation reports, and what checks read in it.

use core::net::{IpAddr, SocketAddr};

use corefile::{Corefile, Directive};

use crate::Known;
use crate::dns::DNS_PORT;

/// Ports of upstreams over HTTPS, and over TLS and QUIC.
const HTTPS_PORT: u16 = 443;
const TLS_PORT: u16 = 853;
/// End of the message about an upstream that is an address of the server.
const FORWARD_LOOP: &str = "[chain/forward-loop]";

/// Corefile of the server.
pub struct CorefileFacts {
    /// Source, such as a path or `ConfigMap kube-system/coredns`.
    pub source: String,
    /// Problems, or why it could not be compiled.
    pub problems: Known<Vec<Problem>>,
    /// Content.
    pub written: Corefile,
    /// Upstreams of `forward`, with name servers in place of files such as `/etc/resolv.conf`. Those that are not plain
    /// DNS are not included.
    pub forwarded: Vec<Forwarded>,
}

/// Problem that the compilation of a Corefile reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// True for an error.
    pub is_error: bool,
    /// Position: file and line.
    pub place: String,
    /// Message with its code.
    pub message: String,
}

impl Problem {
    /// Returns true for an upstream that leads back to the server, which is the finding of a check of its own.
    pub(crate) fn is_loop(&self) -> bool {
        self.message.ends_with(FORWARD_LOOP)
    }
}

/// Upstream of `forward`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Zone.
    pub zone: String,
    /// Address.
    pub address: SocketAddr,
}

/// Upstream of `forward` over TLS, HTTPS or QUIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    /// Zone.
    pub zone: String,
    /// Scheme in the Corefile: `tls`, `https` or `quic`.
    pub scheme: String,
    /// Address and port, or the text of the Corefile without the scheme if that is a name.
    pub host: String,
}

impl Encrypted {
    /// Returns the address, if it is known.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.host.parse().ok()
    }
}

impl core::fmt::Display for Encrypted {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{}://{}", self.scheme, self.host)
    }
}

impl CorefileFacts {
    /// Lines of a directive, in all server blocks.
    pub fn directives<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Directive> {
        let all = self.written.blocks.iter().flat_map(|block| &block.directives);
        all.filter(move |directive| directive.name.text == name)
    }

    /// Returns true if a server block has the directive.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.directives(name).next().is_some()
    }

    /// Zones of `kubernetes`, without the final dot and without reverse zones.
    #[must_use]
    pub fn cluster_zones(&self) -> Vec<String> {
        let of = |directive: &Directive| directive.args.iter().map(|zone| plain(&zone.text)).collect::<Vec<_>>();
        let all: Vec<String> = self.directives("kubernetes").flat_map(of).collect();
        all.into_iter().filter(|zone| !zone.is_empty() && !zone.ends_with(".arpa")).collect()
    }

    /// Returns the upstreams of `forward` lines. `name_servers` reads files such as `/etc/resolv.conf`.
    pub fn forwards(written: &Corefile, name_servers: &dyn Fn(&str) -> Vec<IpAddr>) -> Vec<Forwarded> {
        let mut all: Vec<Forwarded> = Vec::new();
        let directives = written.blocks.iter().flat_map(|block| &block.directives);
        for directive in directives.filter(|directive| directive.name.text == "forward") {
            let Some((zone, targets)) = directive.args.split_first() else { continue };
            for address in targets.iter().flat_map(|target| addresses(&target.text, name_servers)) {
                let found = Forwarded { zone: plain(&zone.text), address };
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        all
    }

    /// Returns the upstreams of `forward` lines that are not plain DNS.
    #[must_use]
    pub fn encrypted(&self) -> Vec<Encrypted> {
        let mut all: Vec<Encrypted> = Vec::new();
        for directive in self.directives("forward") {
            let Some((zone, targets)) = directive.args.split_first() else { continue };
            for found in targets.iter().filter_map(|target| encrypted(&plain(&zone.text), &target.text)) {
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        all
    }

    /// Returns the duration of `lameduck` in seconds; `None` without it.
    #[must_use]
    pub fn lameduck_seconds(&self) -> Option<f64> {
        let mut lines = self.directives("health").flat_map(Directive::lines);
        lines.find_map(|line| match line.words.as_slice() {
            [name, value] if name.text == "lameduck" => seconds(&value.text),
            _ => None,
        })
    }
}

fn plain(zone: &str) -> String {
    zone.trim_end_matches('.').to_ascii_lowercase()
}

fn addresses(target: &str, name_servers: &dyn Fn(&str) -> Vec<IpAddr>) -> Vec<SocketAddr> {
    if target.starts_with('/') {
        return name_servers(target).into_iter().map(|address| SocketAddr::new(address, DNS_PORT)).collect();
    }
    let text = target.strip_prefix("dns://").unwrap_or(target);
    let with_port = text.parse::<SocketAddr>().ok();
    let bare = || text.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, DNS_PORT));
    with_port.or_else(bare).into_iter().collect()
}

/// Reads an upstream such as `tls://192.0.2.1%dns.example`; `None` for plain DNS.
fn encrypted(zone: &str, target: &str) -> Option<Encrypted> {
    let (scheme, rest) = target.split_once("://").filter(|(scheme, _)| *scheme != "dns")?;
    let rest = rest.split(['/', '%']).next().unwrap_or(rest);
    let port = if scheme == "https" { HTTPS_PORT } else { TLS_PORT };
    let bare = || rest.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port));
    let address = rest.parse::<SocketAddr>().ok().or_else(bare);
    let host = address.map_or_else(|| rest.to_owned(), |address| address.to_string());
    Some(Encrypted { zone: zone.to_owned(), scheme: scheme.to_owned(), host })
}

/// Parses a duration with one unit, such as `5s` or `500ms`.
fn seconds(text: &str) -> Option<f64> {
    let at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().ok()?;
    match unit {
        "ms" => Some(number / 1e3),
        "s" => Some(number),
        "m" => Some(number * 60.0),
        _ => None,
    }
}
