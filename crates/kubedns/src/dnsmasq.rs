//! The arguments of dnsmasq that mean something here. It has hundreds; those that are not known, or that a server of the
//! cluster has no use for, are said and not dropped in silence.

use core::net::IpAddr;
use std::collections::BTreeMap;

use crate::flags::FlagError;
use crate::name_server::{DNS_PORT, NameServer};
use crate::names::is_loose_domain;

/// Answers that dnsmasq keeps if nobody says how many.
const CACHE_SIZE: usize = 150;
/// Seconds of the longest time to live that `--min-cache-ttl` may ask for.
const TTL_MIN_MAX: u32 = 3600;
/// Seconds for which dnsmasq uses an answer after its end if it is not told for how long.
const STALE: u32 = 86_400;
/// Seconds that stand for any time: a year.
const STALE_MAX: u32 = 31_536_000;
/// Octets of an answer over UDP that can be asked for.
const UDP_SIZE_MIN: u16 = 512;
const UDP_SIZE_MAX: u16 = 4096;
const WILD: &str = "names below a domain `*DOMAIN` and the domain itself are treated alike";
/// Where dnsmasq reads the upstreams.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What dnsmasq is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// The port to listen on.
    pub port: u16,
    /// The addresses to listen on; all if empty.
    pub listen: Vec<IpAddr>,
    /// Answers that are kept; none if 0.
    pub cache_size: usize,
    /// Whether denials are kept.
    pub keeps_denials: bool,
    /// Seconds that a denial without a time of its own is kept.
    pub denial_ttl: Option<u32>,
    /// Seconds that an answer is kept at most.
    pub ttl_max: Option<u32>,
    /// Seconds that an answer is kept at least.
    pub ttl_min: Option<u32>,
    /// Who is asked about all other names.
    pub servers: Vec<NameServer>,
    /// What becomes of the names in some domains.
    pub domains: BTreeMap<String, Domain>,
    /// Where more upstreams stand; `None` if nowhere.
    pub resolv_conf: Option<String>,
    /// In which order upstreams are asked.
    pub policy: &'static str,
    /// Whether all upstreams are asked at once.
    pub asks_all: bool,
    /// Questions on their way at one time; 0 for any number.
    pub forward_max: u32,
    /// Whether questions are logged.
    pub is_logging: bool,
    /// Octets of the longest answer over UDP.
    pub udp_size: Option<u16>,
    /// Seconds that own records live where they do not say it; 0 as in dnsmasq: clients keep nothing.
    pub local_ttl: u32,
    /// Files of names and addresses.
    pub hosts_files: Vec<String>,
    /// Names with their addresses.
    pub hosts: Vec<HostRecord>,
    /// Records, each for one name.
    pub records: Vec<Record>,
    /// Domains whose names all have these addresses; none: they do not exist.
    pub addresses: Vec<(String, Vec<IpAddr>)>,
    /// Types of which no record is told.
    pub filtered: Vec<&'static str>,
    /// Whether the order of records changes from answer to answer.
    pub rotates: bool,
    /// Seconds for which an answer is used after its end while it is asked for again; `None` for not at all.
    pub stale: Option<u32>,
    /// Whether names of one label stay here.
    pub keeps_plain_names: bool,
}

/// What becomes of the names in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// These are asked; nobody: none of its names exists but those that are known here.
    Servers(Vec<NameServer>),
    /// The same as for names outside of all domains.
    Usual,
}

/// A record with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its owner.
    pub name: String,
    /// Its type.
    pub rtype: &'static str,
    /// Its data, as in a zone file.
    pub data: String,
    /// Seconds that it lives, if it says it.
    pub ttl: Option<u32>,
}

/// An address of a name (`--host-record`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// The address.
    pub ip: IpAddr,
    /// The name.
    pub name: String,
    /// Seconds that it lives, if it says it.
    pub ttl: Option<u32>,
}

impl Default for Front {
    fn default() -> Front {
        Front {
            port: DNS_PORT,
            listen: Vec::new(),
            cache_size: CACHE_SIZE,
            keeps_denials: true,
            denial_ttl: None,
            ttl_max: None,
            ttl_min: None,
            servers: Vec::new(),
            domains: BTreeMap::new(),
            resolv_conf: Some(RESOLV_CONF.to_owned()),
            policy: "sequential",
            asks_all: false,
            forward_max: 0,
            is_logging: false,
            udp_size: None,
            local_ttl: 0,
            hosts_files: Vec::new(),
            hosts: Vec::new(),
            records: Vec::new(),
            addresses: Vec::new(),
            filtered: Vec::new(),
            rotates: true,
            stale: None,
            keeps_plain_names: false,
        }
    }
}

/// What an argument came to.
enum Outcome {
    Works,
    /// It does what it says, but something is to be said about it.
    Said(&'static str),
    /// Nothing, since this is so here.
    Void(&'static str),
    Unknown,
    /// Its value cannot be used.
    Bad,
}

/// Arguments that take no value, by their long names.
const SWITCHES: [&str; 23] = [
    "keep-in-foreground",
    "no-daemon",
    "no-negcache",
    "no-resolv",
    "no-poll",
    "no-hosts",
    "strict-order",
    "all-servers",
    "dns-loop-detect",
    "log-queries",
    "domain-needed",
    "bogus-priv",
    "filterwin2k",
    "filter-A",
    "filter-AAAA",
    "stop-dns-rebind",
    "rebind-localhost-ok",
    "bind-interfaces",
    "bind-dynamic",
    "dnssec",
    "proxy-dnssec",
    "no-round-robin",
    // A value stands behind `=` only.
    "use-stale-cache",
];

/// Short names and the long ones that they stand for.
const SHORT: [(char, &str); 30] = [
    ('k', "keep-in-foreground"),
    ('d', "no-daemon"),
    ('c', "cache-size"),
    ('N', "no-negcache"),
    ('S', "server"),
    ('A', "address"),
    ('R', "no-resolv"),
    ('r', "resolv-file"),
    ('n', "no-poll"),
    ('h', "no-hosts"),
    ('H', "addn-hosts"),
    ('o', "strict-order"),
    ('p', "port"),
    ('q', "log-queries"),
    ('T', "local-ttl"),
    ('D', "domain-needed"),
    ('b', "bogus-priv"),
    ('f', "filterwin2k"),
    ('a', "listen-address"),
    ('0', "dns-forward-max"),
    ('8', "log-facility"),
    ('P', "edns-packet-max"),
    ('u', "user"),
    ('g', "group"),
    ('x', "pid-file"),
    ('i', "interface"),
    ('Q', "query-port"),
    ('B', "bogus-nxdomain"),
    ('z', "bind-interfaces"),
    ('Y', "txt-record"),
];

impl Front {
    /// Reads arguments, and what there is to say about them.
    ///
    /// # Errors
    /// The first one whose value cannot be used: dnsmasq would not start with it.
    pub fn read(words: &[String]) -> Result<(Front, Vec<String>), FlagError> {
        let (mut front, mut said) = (Front::default(), Vec::new());
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let Some((name, value)) = argument(word) else {
                return Err(FlagError::Reason("", format!("'{word}' is no argument of dnsmasq")));
            };
            let takes_value = !SWITCHES.contains(&name);
            let next = words.next_if(|next| value.is_none() && takes_value && !next.starts_with('-'));
            let value = value.or(next).unwrap_or_default();
            match front.take(name, value) {
                Outcome::Works => {}
                Outcome::Said(what) => said.push(format!("dnsmasq's --{name}: {what}")),
                Outcome::Void(why) => said.push(format!("dnsmasq's --{name} does nothing here: {why}")),
                Outcome::Unknown => said.push(format!("dnsmasq's --{name} is not known here and does nothing")),
                Outcome::Bad => {
                    let given = if word.ends_with(value) { String::new() } else { format!(" {value}") };
                    return Err(FlagError::Reason("", format!("dnsmasq's {word}{given}: this value cannot be used")));
                }
            }
        }
        Ok((front, said))
    }

    fn take(&mut self, name: &str, value: &str) -> Outcome {
        match name {
            "keep-in-foreground" | "no-daemon" => Outcome::Works,
            "log-facility" | "user" | "group" | "pid-file" | "no-hosts" | "dns-loop-detect" => {
                self.take_given(name, value)
            }
            "cache-size" => number(value, &mut self.cache_size),
            "port" => number(value, &mut self.port),
            "dns-forward-max" => number(value, &mut self.forward_max),
            "no-negcache" => {
                self.keeps_denials = false;
                Outcome::Said("denials are asked for again each time; without it they would be kept")
            }
            "no-resolv" => set(&mut self.resolv_conf, None),
            "resolv-file" => set(&mut self.resolv_conf, Some(value.to_owned())),
            "no-poll" => Outcome::Void("a changed resolv.conf is always read"),
            "strict-order" => set(&mut self.policy, "sequential"),
            "all-servers" => set(&mut self.asks_all, true),
            "log-queries" => set(&mut self.is_logging, true),
            "addn-hosts" => self.take_hosts_file(value),
            "domain-needed" => set(&mut self.keeps_plain_names, true),
            "no-round-robin" => set(&mut self.rotates, false),
            "use-stale-cache" => self.take_stale(value),
            "filter-A" => add(&mut self.filtered, "A"),
            "filter-AAAA" => add(&mut self.filtered, "AAAA"),
            "listen-address" => self.take_listen(value),
            "edns-packet-max" => self.take_udp_size(value),
            "local-ttl" => number(value, &mut self.local_ttl),
            "neg-ttl" | "max-ttl" | "max-cache-ttl" | "min-cache-ttl" => self.take_ttl(name, value),
            "server" | "local" => self.take_server(value),
            "rev-server" => self.take_reverse(value),
            "address" if ["/#/", "//"].iter().any(|all| value.starts_with(all)) || value.parse::<IpAddr>().is_ok() => {
                Outcome::Void("an address for all names is `template` in a Corefile")
            }
            "cname" if value.contains('*') => {
                Outcome::Void("an alias of all names of a domain is `template` in a Corefile")
            }
            "address" => self.take_address(value),
            "host-record" => self.take_host(value),
            "cname" | "txt-record" | "mx-host" | "srv-host" | "ptr-record" => self.take_record(name, value),
            _ => refused(name),
        }
    }

    fn take_given(&self, name: &str, value: &str) -> Outcome {
        match (name, value) {
            ("log-facility", "-") | ("no-hosts", _) => Outcome::Works,
            ("dns-loop-detect", _) => Outcome::Works,
            ("log-facility", _) => Outcome::Void("the log is standard output"),
            _ => Outcome::Void("the process stays who it is, and needs no file for its number"),
        }
    }

    fn take_hosts_file(&mut self, value: &str) -> Outcome {
        if value.is_empty() || value.contains(char::is_whitespace) {
            return Outcome::Bad;
        }
        self.hosts_files.push(value.to_owned());
        match self.hosts_files.len() {
            1 => Outcome::Said("its names are not looked for in domains of --local"),
            _ => Outcome::Void("only the first file is read"),
        }
    }

    fn take_listen(&mut self, value: &str) -> Outcome {
        for text in value.split(',') {
            let Ok(ip) = text.parse() else { return Outcome::Bad };
            self.listen.push(ip);
        }
        Outcome::Works
    }

    fn take_udp_size(&mut self, value: &str) -> Outcome {
        let Ok(size) = value.parse::<u16>() else { return Outcome::Bad };
        self.udp_size = Some(size.clamp(UDP_SIZE_MIN, UDP_SIZE_MAX));
        if self.udp_size == Some(size) {
            Outcome::Works
        } else {
            Outcome::Said("the nearest size of 512 to 4096 is used")
        }
    }

    /// `[SECONDS]`; 0 is for any time.
    fn take_stale(&mut self, value: &str) -> Outcome {
        let seconds = if value.is_empty() { Ok(STALE) } else { value.parse() };
        let Ok(seconds) = seconds else { return Outcome::Bad };
        self.stale = Some(if seconds == 0 { STALE_MAX } else { seconds.min(STALE_MAX) });
        Outcome::Works
    }

    /// 0 is no bound.
    fn take_ttl(&mut self, name: &str, value: &str) -> Outcome {
        let Ok(seconds) = value.parse::<u32>() else { return Outcome::Bad };
        let bound = Some(seconds).filter(|seconds| *seconds > 0);
        match name {
            "neg-ttl" => self.denial_ttl = bound,
            "min-cache-ttl" => self.ttl_min = bound.map(|seconds| seconds.min(TTL_MIN_MAX)),
            _ => self.ttl_max = [self.ttl_max, bound].into_iter().flatten().min(),
        }
        Outcome::Works
    }

    /// `/DOMAIN/[DOMAIN/...][SERVER]`, or `SERVER`.
    fn take_server(&mut self, value: &str) -> Outcome {
        let (domains, server) = match value.strip_prefix('/').and_then(|value| value.rsplit_once('/')) {
            None => (None, value),
            // The domain of all names.
            Some(("#", server)) => (None, server),
            Some(("", _)) => return Outcome::Void("servers for names of one label are not supported"),
            Some((domains, server)) => (Some(domains), server),
        };
        let read = match server {
            "" | "#" => None,
            server => match server_of(server) {
                Some(read) => Some(read),
                None if has_port_0(server) => return Outcome::Void("no server listens on port 0"),
                None => return Outcome::Bad,
            },
        };
        let Some(domains) = domains else {
            self.servers.extend(read);
            return if server.is_empty() { Outcome::Void("it names no server") } else { of_place(server) };
        };
        let Some((domains, is_wild)) = read_domains(domains) else { return Outcome::Bad };
        for domain in domains {
            let known = self.domains.entry(domain).or_insert_with(|| Domain::Servers(Vec::new()));
            match known {
                known if server == "#" => *known = Domain::Usual,
                Domain::Servers(servers) => servers.extend(read.clone()),
                Domain::Usual => {}
            }
        }
        if is_wild { Outcome::Said(WILD) } else { of_place(server) }
    }

    /// `NETWORK/LENGTH,SERVER`: the names of the addresses of a network.
    fn take_reverse(&mut self, value: &str) -> Outcome {
        let Some((network, server)) = value.split_once(',') else { return Outcome::Bad };
        match (reverse_zone(network), server_of(server)) {
            (Some(zone), Some(server)) => {
                if let Domain::Servers(servers) =
                    self.domains.entry(zone).or_insert_with(|| Domain::Servers(Vec::new()))
                {
                    servers.push(server);
                }
                of_place(server_text(value))
            }
            (None, Some(_)) => Outcome::Void("networks must be IPv4, of 8, 16 or 24 bits"),
            _ => Outcome::Bad,
        }
    }

    /// `/DOMAIN/[DOMAIN/...][IP|#]`.
    fn take_address(&mut self, value: &str) -> Outcome {
        let parts = value.strip_prefix('/').and_then(|value| value.rsplit_once('/'));
        let Some((domains, address)) = parts else { return Outcome::Bad };
        let Some((domains, is_wild)) = read_domains(domains) else { return Outcome::Bad };
        let addresses = match address {
            "" => Vec::new(),
            "#" => vec![IpAddr::from([0, 0, 0, 0]), IpAddr::from([0; 16])],
            address => match address.parse() {
                Ok(ip) => vec![ip],
                Err(_) => return Outcome::Bad,
            },
        };
        for domain in domains {
            match self.addresses.iter_mut().find(|(known, _)| *known == domain) {
                Some((_, known)) => known.extend_from_slice(&addresses),
                None => self.addresses.push((domain, addresses.clone())),
            }
        }
        if is_wild { Outcome::Said(WILD) } else { Outcome::Works }
    }

    /// `NAME[,NAME...],[IP][,IP][,TTL]`.
    fn take_host(&mut self, value: &str) -> Outcome {
        let fields: Vec<&str> = value.split(',').map(str::trim).collect();
        let (fields, ttl) = split_ttl(&fields);
        let is_address = |text: &&&str| text.parse::<IpAddr>().is_ok();
        let names: Vec<&&str> = fields.iter().filter(|text| !is_address(text)).collect();
        let addresses: Vec<IpAddr> = fields.iter().filter_map(|text| text.parse().ok()).collect();
        if names.is_empty()
            || !names.iter().all(|name| is_loose_domain(name))
            || fields.len() + usize::from(ttl.is_some()) < 2
        {
            return Outcome::Bad;
        }
        for name in names {
            self.hosts.extend(addresses.iter().map(|ip| HostRecord { ip: *ip, name: (**name).to_owned(), ttl }));
        }
        if addresses.is_empty() { Outcome::Void("it has no address") } else { Outcome::Works }
    }

    fn take_record(&mut self, name: &str, value: &str) -> Outcome {
        match record(name, value) {
            Some(records) => {
                self.records.extend(records);
                Outcome::Works
            }
            // An alias needs a target; all other records of dnsmasq may be a name alone, or a text that needs care.
            None if name == "cname" => Outcome::Bad,
            None => Outcome::Void("this record is not supported: write it as `template` in a Corefile"),
        }
    }
}

/// Arguments that are known and do nothing, each with its reason.
fn refused(name: &str) -> Outcome {
    match name {
        "bogus-priv" => Outcome::Void("the addresses of the cluster are among those that it would deny"),
        "stop-dns-rebind" | "rebind-localhost-ok" | "rebind-domain-ok" | "bogus-nxdomain" | "ignore-address" => {
            Outcome::Void("answers of upstreams are passed on as they are; *acl* and *template* can filter")
        }
        "filterwin2k" => Outcome::Void("no such questions are asked any more"),
        "min-port" | "max-port" | "query-port" | "port-limit" => {
            Outcome::Void("questions leave by ports that nobody can guess (RFC 5452)")
        }
        "max-tcp-connections" => Outcome::Void("there is room for thousands"),
        "fast-dns-retry" => Outcome::Void("a lost datagram is always sent once more, after 400 ms"),
        "interface" | "except-interface" | "bind-interfaces" | "bind-dynamic" => {
            Outcome::Void("--listen-address says where to listen")
        }
        "dnssec" | "proxy-dnssec" | "trust-anchor" => Outcome::Void("upstreams validate"),
        "conf-file" | "conf-dir" | "hostsdir" => Outcome::Void("a Corefile has these things"),
        _ => Outcome::Unknown,
    }
}

/// The long name of an argument, and the value that is written together with it.
fn argument(word: &str) -> Option<(&str, Option<&str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return (!name.is_empty()).then_some((name, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let rest = letters.as_str();
    let name = SHORT.iter().find(|(known, _)| *known == letter).map_or("", |(_, name)| name);
    let name = if name.is_empty() { word.get(1..2)? } else { name };
    Some((name, Some(rest.strip_prefix('=').unwrap_or(rest)).filter(|rest| !rest.is_empty())))
}

/// The domains in `a/b`, and whether one of them is written `*a`: names below it only, and not itself.
fn read_domains(domains: &str) -> Option<(Vec<String>, bool)> {
    let plain = |domain: &str| domain.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
    let read: Vec<String> = domains.split('/').map(plain).collect();
    read.iter().all(|domain| is_loose_domain(domain)).then(|| (read, domains.contains('*')))
}

/// The server in `IP[#PORT][@PLACE]` or `HOST`; a port of the place is one to send from.
fn server_of(text: &str) -> Option<NameServer> {
    let server = text.split('@').next().unwrap_or_default();
    NameServer::read_of_dnsmasq(server).or_else(|| NameServer::read(server).filter(|_| !server.contains([':', '#'])))
}

fn has_port_0(text: &str) -> bool {
    let server = text.split('@').next().unwrap_or_default();
    server.split_once('#').is_some_and(|(ip, port)| ip.parse::<IpAddr>().is_ok() && port == "0")
}

/// Fields without a last one that is a time to live, and that.
fn split_ttl<'f, 't>(fields: &'f [&'t str]) -> (&'f [&'t str], Option<u32>) {
    match fields {
        [before @ .., last] => match last.parse() {
            Ok(ttl) => (before, Some(ttl)),
            Err(_) => (fields, None),
        },
        [] => (fields, None),
    }
}

fn server_text(value: &str) -> &str {
    value.split_once(',').map_or(value, |(_, server)| server)
}

/// Where a question leaves is not said here.
fn of_place(server: &str) -> Outcome {
    if server.contains('@') { Outcome::Said("the address or interface behind `@` is not used") } else { Outcome::Works }
}

/// The reverse zone of a network whose length is whole octets.
fn reverse_zone(network: &str) -> Option<String> {
    let (ip, length) = network.split_once('/')?;
    let octets = ip.parse::<core::net::Ipv4Addr>().ok()?.octets();
    let whole = match length {
        "8" => 1,
        "16" => 2,
        "24" => 3,
        _ => return None,
    };
    let labels: Vec<String> = octets[..whole].iter().rev().map(u8::to_string).collect();
    Some(format!("{}.in-addr.arpa", labels.join(".")))
}

fn record(kind: &str, value: &str) -> Option<Vec<Record>> {
    let fields: Vec<&str> = value.split(',').map(str::trim).collect();
    let is_name = |name: &&str| is_loose_domain(name);
    let with = |name: &str, rtype, data: String, ttl| {
        vec![Record { name: name.trim_end_matches('.').to_owned(), rtype, data, ttl }]
    };
    let one = |name: &str, rtype, data: String| with(name, rtype, data, None);
    let dotted = |name: &str| format!("{}.", name.trim_end_matches('.'));
    let number = |at: usize, default: u16| fields.get(at).map_or(Some(default), |text| text.parse::<u16>().ok());
    match (kind, fields.as_slice()) {
        ("cname", [_, _, .., last]) if last.parse::<u32>().is_ok() => {
            let (fields, ttl) = split_ttl(&fields);
            let (target, names) = fields.split_last()?;
            let are_names = fields.iter().all(is_name);
            are_names.then(|| names.iter().flat_map(|name| with(name, "CNAME", dotted(target), ttl)).collect())
        }
        ("cname", [names @ .., target]) if !names.is_empty() && names.iter().all(is_name) => {
            is_name(target).then(|| names.iter().flat_map(|name| one(name, "CNAME", dotted(target))).collect())
        }
        ("ptr-record", [name, target]) if is_name(name) && is_name(target) => Some(one(name, "PTR", dotted(target))),
        ("mx-host", [name, target, ..]) if is_name(name) && is_name(target) => {
            Some(one(name, "MX", format!("{} {}", number(2, 1)?, dotted(target))))
        }
        ("srv-host", [name, target, ..]) if is_name(name) && is_name(target) => {
            let (port, priority, weight) = (number(2, 1)?, number(3, 0)?, number(4, 0)?);
            Some(one(name, "SRV", format!("{priority} {weight} {port} {}", dotted(target))))
        }
        ("txt-record", [name, texts @ ..]) if is_name(name) && texts.iter().all(|text| is_text(text)) => {
            let texts: Vec<String> = texts.iter().map(|text| format!("\"{}\"", text.trim_matches('"'))).collect();
            Some(one(name, "TXT", if texts.is_empty() { "\"\"".to_owned() } else { texts.join(" ") }))
        }
        _ => None,
    }
}

/// Whether a text needs no care in a zone file within a Corefile.
fn is_text(text: &str) -> bool {
    let text = text.trim_matches('"');
    text.len() <= 255 && text.bytes().all(|octet| (b' '..=b'~').contains(&octet) && !b"\"\\`{}".contains(&octet))
}

fn number<N: core::str::FromStr>(value: &str, into: &mut N) -> Outcome {
    match value.parse() {
        Ok(number) => set(into, number),
        Err(_) => Outcome::Bad,
    }
}

fn set<T>(into: &mut T, value: T) -> Outcome {
    *into = value;
    Outcome::Works
}

fn add(into: &mut Vec<&'static str>, value: &'static str) -> Outcome {
    into.push(value);
    Outcome::Works
}

#[cfg(test)]
#[path = "dnsmasq_tests.rs"]
mod tests;
