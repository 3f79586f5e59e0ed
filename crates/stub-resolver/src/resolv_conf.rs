//! Configuration in resolv.conf(5): name servers, search list, and the options `ndots`, `timeout` and `attempts`. Other
//! options have no effect.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use wire::Name;

/// Number of name servers that are asked, as in the C library (`MAXNS`).
const SERVERS_MAX: usize = 3;
/// Largest values of the options `ndots`, `timeout` and `attempts`, as in the C library.
const NDOTS_MAX: usize = 15;
const TIMEOUT_MAX: u64 = 30;
const ATTEMPTS_MAX: u32 = 5;
/// Limit for an answer of servers that are not those of the system. The caller has its own fallback.
const NAMED_TIMEOUT: Duration = Duration::from_secs(2);

/// How to look up names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvConf {
    pub(crate) servers: Vec<SocketAddr>,
    search: Vec<Name>,
    ndots: usize,
    /// Limit for the answer of one server.
    pub(crate) timeout: Duration,
    /// Number of rounds through the servers.
    pub(crate) attempts: u32,
}

impl ResolvConf {
    /// Reads a configuration. Without a server, it is the one of this machine, as in the C library.
    pub(crate) fn parse(bytes: &[u8]) -> ResolvConf {
        let text = String::from_utf8_lossy(bytes);
        let servers = upstream::nameservers(&text).flatten();
        // A server on an interface that this machine does not have is left out, as in the C library.
        let servers =
            servers.filter_map(|server| server.resolve(|file| std::fs::read(file).ok()).ok()).take(SERVERS_MAX);
        let mut conf = ResolvConf::with_servers(&servers.collect::<Vec<_>>());
        if conf.servers.is_empty() {
            conf.servers.push((Ipv4Addr::LOCALHOST, 53).into());
        }
        conf.search = upstream::search_list(bytes);
        (conf.timeout, conf.attempts) = (Duration::from_secs(5), 2);
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if words.next() == Some("options") {
                words.for_each(|option| conf.set(option));
            }
        }
        conf
    }

    /// Returns a configuration without a search list.
    pub(crate) fn with_servers(servers: &[SocketAddr]) -> ResolvConf {
        ResolvConf { servers: servers.to_vec(), search: Vec::new(), ndots: 1, timeout: NAMED_TIMEOUT, attempts: 1 }
    }

    fn set(&mut self, option: &str) {
        let Some((name, value)) = option.split_once(':') else { return };
        let Ok(value) = value.parse::<u32>() else { return };
        match name {
            "ndots" => self.ndots = NDOTS_MAX.min(value as usize),
            "timeout" => self.timeout = Duration::from_secs(u64::from(value).clamp(1, TIMEOUT_MAX)),
            "attempts" => self.attempts = value.clamp(1, ATTEMPTS_MAX),
            _ => {}
        }
    }

    /// Returns the names to ask for, in order: with enough dots the name itself first, otherwise last. A name that ends
    /// with a dot is complete. Returns none for an invalid name.
    pub(crate) fn candidates(&self, host: &str) -> Vec<Name> {
        let Ok(name) = Name::from_text(host) else { return Vec::new() };
        let mut names = Vec::new();
        if !host.ends_with('.') {
            names.extend(self.search.iter().filter_map(|domain| below(&name, domain)));
        }
        let dots = host.bytes().filter(|byte| *byte == b'.').count();
        let at = if dots >= self.ndots { 0 } else { names.len() };
        names.insert(at, name);
        names
    }
}

/// Returns a name below a domain, or `None` if that is too long.
fn below(name: &Name, domain: &Name) -> Option<Name> {
    let mut complete = name.clone();
    complete.append(domain.as_ref()).ok()?;
    Some(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_servers_search_list_and_options() {
        let conf = ResolvConf::parse(
            b"# x\nnameserver 192.0.2.1\nnameserver x\nnameserver fe80::1%3\nnameserver fe80::1%nosuch\ndomain old.test\n\
              search a.test b.test\noptions ndots:5 timeout:99 attempts:0 rotate ndots:x\n",
        );
        assert_eq!(conf.servers, ["192.0.2.1:53".parse().unwrap(), "[fe80::1%3]:53".parse().unwrap()]);
        assert_eq!((conf.ndots, conf.timeout, conf.attempts), (5, Duration::from_secs(30), 1));
        let none = ResolvConf::parse(b"");
        assert_eq!(none.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!((none.ndots, none.timeout, none.attempts), (1, Duration::from_secs(5), 2));
    }

    #[test]
    fn applies_the_search_list_by_the_number_of_dots() {
        let conf = ResolvConf::parse(b"search a.test b.test\noptions ndots:2\n");
        for (host, expected) in [
            ("x", "x.a.test. x.b.test. x."),
            ("x.y", "x.y.a.test. x.y.b.test. x.y."),
            ("x.y.z", "x.y.z. x.y.z.a.test. x.y.z.b.test."),
            ("x.", "x."),
            ("a..b", ""),
        ] {
            let names: Vec<String> = conf.candidates(host).iter().map(Name::to_string).collect();
            assert_eq!(names.join(" "), expected, "{host}");
        }
    }
}
