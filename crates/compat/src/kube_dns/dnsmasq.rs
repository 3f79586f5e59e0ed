//! Arguments of dnsmasq. It has hundreds. Those that are unknown or useless in a cluster get a warning and are not
//! dropped silently.

use core::net::IpAddr;
use std::collections::BTreeMap;

use crate::kube_dns::Warning;
use crate::kube_dns::flags::FlagError;
use crate::kube_dns::name_server::{DNS_PORT, NameServer};
use crate::kube_dns::names::is_loose_domain;

/// Default number of cached answers in dnsmasq.
const CACHE_SIZE: usize = 150;
/// Maximum of `--min-cache-ttl` in seconds.
const TTL_MIN_MAX: u32 = 3600;
/// Default time in seconds for which dnsmasq serves an expired answer.
const STALE: u32 = 86_400;
/// Replaces "no limit" for expired answers: one year in seconds.
const STALE_MAX: u32 = 31_536_000;
/// Bounds of the UDP payload size in bytes.
const UDP_SIZE_MIN: u16 = 512;
const UDP_SIZE_MAX: u16 = 4096;
/// Default of dnsmasq 2.90 and later: fits into one packet on practically every path.
const UDP_SIZE_DEFAULT: u16 = 1232;
const WILDCARD: &str = "names below a domain `*DOMAIN` and the domain itself are treated alike";
const HOSTS_FILE: &str =
    "its names are not looked up in domains of --local, and at most localhost of /etc/hosts is served beside it";
/// File from which dnsmasq reads the upstreams by default.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Configuration of dnsmasq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dnsmasq {
    /// Listening port.
    pub port: u16,
    /// Listening addresses, or empty for all.
    pub listen: Vec<IpAddr>,
    /// Cache size in answers. 0 disables the cache.
    pub cache_size: usize,
    /// True if negative answers are cached.
    pub keeps_denials: bool,
    /// TTL in seconds of negative answers without an SOA record.
    pub denial_ttl: Option<u32>,
    /// Maximum cache time of an answer in seconds.
    pub ttl_max: Option<u32>,
    /// Minimum cache time of an answer in seconds.
    pub ttl_min: Option<u32>,
    /// Upstreams for all other names.
    pub servers: Vec<NameServer>,
    /// Domains with servers of their own.
    pub domains: BTreeMap<String, Domain>,
    /// File with more upstreams, if there is one.
    pub resolv_conf: Option<String>,
    /// Policy of *forward*.
    pub policy: &'static str,
    /// True if a query goes to all upstreams at once.
    pub asks_all: bool,
    /// Maximum number of concurrent queries, or 0 for no limit.
    pub forward_max: u32,
    /// True if queries are logged.
    pub is_logging: bool,
    /// Maximum UDP payload size in bytes.
    pub udp_size: Option<u16>,
    /// Default TTL in seconds of local records. 0 as in dnsmasq, so clients do not cache them.
    pub local_ttl: u32,
    /// True if `/etc/hosts` is read.
    pub reads_hosts: bool,
    /// Further hosts files.
    pub hosts_files: Vec<String>,
    /// Names with their addresses.
    pub hosts: Vec<HostRecord>,
    /// Local records.
    pub local_records: Vec<Record>,
    /// Domains that resolve to these addresses, with all names below them. Without addresses the names do not exist.
    pub addresses: Vec<(String, Vec<IpAddr>)>,
    /// Record types that are filtered from answers.
    pub filtered: Vec<&'static str>,
    /// True if the order of records rotates.
    pub rotates: bool,
    /// Time in seconds for which an expired answer may be served while it is refreshed, or `None` to disable this.
    pub stale: Option<u32>,
    /// True if names of a single label are not forwarded.
    pub keeps_plain_names: bool,
}

/// Treatment of the names in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Query these servers. Without servers, only local records exist in the domain.
    Servers(Vec<NameServer>),
    /// Same upstreams as for names outside all domains.
    DefaultUpstreams,
}

/// Local record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Owner name.
    pub name: String,
    /// Type.
    pub rtype: &'static str,
    /// Data in zone file format.
    pub data: String,
    /// TTL in seconds, if set.
    pub ttl: Option<u32>,
}

/// Address of a name (`--host-record`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// The address.
    pub ip: IpAddr,
    /// The name.
    pub name: String,
    /// TTL in seconds, if set.
    pub ttl: Option<u32>,
}

impl Default for Dnsmasq {
    fn default() -> Dnsmasq {
        Dnsmasq {
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
            udp_size: Some(UDP_SIZE_DEFAULT),
            local_ttl: 0,
            reads_hosts: true,
            hosts_files: Vec::new(),
            hosts: Vec::new(),
            local_records: Vec::new(),
            addresses: Vec::new(),
            filtered: Vec::new(),
            rotates: true,
            stale: None,
            keeps_plain_names: false,
        }
    }
}

/// Result of applying an argument.
enum FlagOutcome {
    Applied,
    /// Applied, with a warning.
    AppliedWithWarning(&'static str),
    /// No effect, for this reason.
    Ignored(&'static str),
    Unknown,
    /// The value is invalid.
    Invalid,
}

/// Long names of the arguments without a value.
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
    // Takes a value only after `=`.
    "use-stale-cache",
];

/// Short names with their long names.
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

impl Dnsmasq {
    /// Parses the arguments. Returns the configuration and the warnings.
    ///
    /// # Errors
    /// The first argument with an invalid value. dnsmasq would not start with it.
    pub fn read(words: &[String]) -> Result<(Dnsmasq, Vec<Warning>), FlagError> {
        let (mut dnsmasq, mut said) = (Dnsmasq::default(), Vec::new());
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let Some((name, value)) = argument(word) else {
                return Err(FlagError::Reason("", format!("'{word}' is not an argument of dnsmasq")));
            };
            let takes_value = !SWITCHES.contains(&name);
            let next = words.next_if(|next| value.is_none() && takes_value && !next.starts_with('-'));
            let value = value.or(next).unwrap_or_default();
            match dnsmasq.apply(name, value) {
                FlagOutcome::Applied => {}
                FlagOutcome::AppliedWithWarning(what) => {
                    said.push(Warning::Differs(format!("dnsmasq's --{name}"), what));
                }
                FlagOutcome::Ignored(why) => said.push(Warning::IgnoredArgument(name.to_owned(), why)),
                FlagOutcome::Unknown => said.push(Warning::UnknownArgument(name.to_owned())),
                FlagOutcome::Invalid => {
                    let given = if word.ends_with(value) { String::new() } else { format!(" {value}") };
                    return Err(FlagError::Reason("", format!("dnsmasq's {word}{given}: invalid value")));
                }
            }
        }
        Ok((dnsmasq, said))
    }

    fn apply(&mut self, name: &str, value: &str) -> FlagOutcome {
        match name {
            "keep-in-foreground" | "no-daemon" => FlagOutcome::Applied,
            "no-hosts" => set(&mut self.reads_hosts, false),
            "log-facility" | "user" | "group" | "pid-file" | "dns-loop-detect" => self.apply_given(name, value),
            "cache-size" => number(value, &mut self.cache_size),
            "port" => number(value, &mut self.port),
            "dns-forward-max" => number(value, &mut self.forward_max),
            "no-negcache" => {
                self.keeps_denials = false;
                FlagOutcome::AppliedWithWarning("negative answers are not cached; remove it to cache them")
            }
            "no-resolv" => set(&mut self.resolv_conf, None),
            "resolv-file" => set(&mut self.resolv_conf, Some(value.to_owned())),
            "no-poll" => FlagOutcome::Ignored("changes of resolv.conf are always read"),
            "strict-order" => set(&mut self.policy, "sequential"),
            "all-servers" => set(&mut self.asks_all, true),
            "log-queries" => set(&mut self.is_logging, true),
            "addn-hosts" => self.apply_hosts_file(value),
            "domain-needed" => set(&mut self.keeps_plain_names, true),
            "no-round-robin" => set(&mut self.rotates, false),
            "use-stale-cache" => self.apply_stale(value),
            "filter-A" => add(&mut self.filtered, "A"),
            "filter-AAAA" => add(&mut self.filtered, "AAAA"),
            "listen-address" => self.apply_listen(value),
            "edns-packet-max" => self.apply_udp_size(value),
            "local-ttl" => number(value, &mut self.local_ttl),
            "neg-ttl" | "max-ttl" | "max-cache-ttl" | "min-cache-ttl" => self.apply_ttl(name, value),
            "server" | "local" => self.apply_server(value),
            "rev-server" => self.apply_reverse(value),
            "address" if ["/#/", "//"].iter().any(|all| value.starts_with(all)) || value.parse::<IpAddr>().is_ok() => {
                FlagOutcome::Ignored("use `template` in a Corefile to answer all names with an address")
            }
            "cname" if value.contains('*') => {
                FlagOutcome::Ignored("use `template` in a Corefile for an alias of all names in a domain")
            }
            "address" => self.apply_address(value),
            "host-record" => self.apply_host(value),
            "cname" | "txt-record" | "mx-host" | "srv-host" | "ptr-record" => self.apply_record(name, value),
            _ => refused(name),
        }
    }

    fn apply_given(&self, name: &str, value: &str) -> FlagOutcome {
        match (name, value) {
            ("log-facility", "-") | ("dns-loop-detect", _) => FlagOutcome::Applied,
            ("log-facility", _) => FlagOutcome::Ignored("the log goes to standard output"),
            _ => FlagOutcome::Ignored("the process keeps its user and needs no PID file"),
        }
    }

    fn apply_hosts_file(&mut self, value: &str) -> FlagOutcome {
        if value.is_empty() || value.contains(char::is_whitespace) {
            return FlagOutcome::Invalid;
        }
        self.hosts_files.push(value.to_owned());
        match self.hosts_files.len() {
            1 => FlagOutcome::AppliedWithWarning(HOSTS_FILE),
            _ => FlagOutcome::Ignored("only the first file or directory is read"),
        }
    }

    fn apply_listen(&mut self, value: &str) -> FlagOutcome {
        for text in value.split(',') {
            let Ok(ip) = text.parse() else { return FlagOutcome::Invalid };
            self.listen.push(ip);
        }
        FlagOutcome::Applied
    }

    fn apply_udp_size(&mut self, value: &str) -> FlagOutcome {
        let Ok(size) = value.parse::<u16>() else { return FlagOutcome::Invalid };
        self.udp_size = Some(size.clamp(UDP_SIZE_MIN, UDP_SIZE_MAX));
        if self.udp_size == Some(size) {
            FlagOutcome::Applied
        } else {
            FlagOutcome::AppliedWithWarning("the nearest size of 512 to 4096 is used")
        }
    }

    /// `[SECONDS]`. 0 means no limit.
    fn apply_stale(&mut self, value: &str) -> FlagOutcome {
        let seconds = if value.is_empty() { Ok(STALE) } else { value.parse() };
        let Ok(seconds) = seconds else { return FlagOutcome::Invalid };
        self.stale = Some(if seconds == 0 { STALE_MAX } else { seconds.min(STALE_MAX) });
        FlagOutcome::Applied
    }

    /// 0 means no limit.
    fn apply_ttl(&mut self, name: &str, value: &str) -> FlagOutcome {
        let Ok(seconds) = value.parse::<u32>() else { return FlagOutcome::Invalid };
        let bound = Some(seconds).filter(|seconds| *seconds > 0);
        match name {
            "neg-ttl" => self.denial_ttl = bound,
            "min-cache-ttl" => self.ttl_min = bound.map(|seconds| seconds.min(TTL_MIN_MAX)),
            _ => self.ttl_max = [self.ttl_max, bound].into_iter().flatten().min(),
        }
        FlagOutcome::Applied
    }

    /// `/DOMAIN/[DOMAIN/...][SERVER]`, or `SERVER`.
    fn apply_server(&mut self, value: &str) -> FlagOutcome {
        let (domains, server) = match value.strip_prefix('/').and_then(|value| value.rsplit_once('/')) {
            None => (None, value),
            // `#` means all names.
            Some(("#", server)) => (None, server),
            Some(("", _)) => return FlagOutcome::Ignored("servers for names of one label are not supported"),
            Some((domains, server)) => (Some(domains), server),
        };
        let read = match server {
            "" | "#" => None,
            server => match server_of(server) {
                Some(read) => Some(read),
                None if has_port_0(server) => return FlagOutcome::Ignored("no server listens on port 0"),
                None => return FlagOutcome::Invalid,
            },
        };
        let Some(domains) = domains else {
            self.servers.extend(read);
            return if server.is_empty() { FlagOutcome::Ignored("no server is given") } else { of_place(server) };
        };
        let Some((domains, is_wild)) = read_domains(domains) else { return FlagOutcome::Invalid };
        for domain in domains {
            let known = self.domains.entry(domain).or_insert_with(|| Domain::Servers(Vec::new()));
            match known {
                known if server == "#" => *known = Domain::DefaultUpstreams,
                Domain::Servers(servers) => servers.extend(read.clone()),
                Domain::DefaultUpstreams => {}
            }
        }
        if is_wild { FlagOutcome::AppliedWithWarning(WILDCARD) } else { of_place(server) }
    }

    /// `NETWORK/LENGTH,SERVER`: server for the reverse zone of a network.
    fn apply_reverse(&mut self, value: &str) -> FlagOutcome {
        let Some((network, server)) = value.split_once(',') else { return FlagOutcome::Invalid };
        match (reverse_zone(network), server_of(server)) {
            (Some(zone), Some(server)) => {
                if let Domain::Servers(servers) =
                    self.domains.entry(zone).or_insert_with(|| Domain::Servers(Vec::new()))
                {
                    servers.push(server);
                }
                of_place(server_text(value))
            }
            (None, Some(_)) => FlagOutcome::Ignored("networks must be IPv4, of 8, 16 or 24 bits"),
            _ => FlagOutcome::Invalid,
        }
    }

    /// `/DOMAIN/[DOMAIN/...][IP|#]`.
    fn apply_address(&mut self, value: &str) -> FlagOutcome {
        let parts = value.strip_prefix('/').and_then(|value| value.rsplit_once('/'));
        let Some((domains, address)) = parts else { return FlagOutcome::Invalid };
        let Some((domains, is_wild)) = read_domains(domains) else { return FlagOutcome::Invalid };
        let addresses = match address {
            "" => Vec::new(),
            "#" => vec![IpAddr::from([0, 0, 0, 0]), IpAddr::from([0; 16])],
            address => match address.parse() {
                Ok(ip) => vec![ip],
                Err(_) => return FlagOutcome::Invalid,
            },
        };
        for domain in domains {
            match self.addresses.iter_mut().find(|(known, _)| *known == domain) {
                Some((_, known)) => known.extend_from_slice(&addresses),
                None => self.addresses.push((domain, addresses.clone())),
            }
        }
        if is_wild { FlagOutcome::AppliedWithWarning(WILDCARD) } else { FlagOutcome::Applied }
    }

    /// `NAME[,NAME...],[IP][,IP][,TTL]`.
    fn apply_host(&mut self, value: &str) -> FlagOutcome {
        let fields: Vec<&str> = value.split(',').map(str::trim).collect();
        let (fields, ttl) = split_ttl(&fields);
        let is_address = |text: &&&str| text.parse::<IpAddr>().is_ok();
        let names: Vec<&&str> = fields.iter().filter(|text| !is_address(text)).collect();
        let addresses: Vec<IpAddr> = fields.iter().filter_map(|text| text.parse().ok()).collect();
        if names.is_empty()
            || !names.iter().all(|name| is_loose_domain(name))
            || fields.len() + usize::from(ttl.is_some()) < 2
        {
            return FlagOutcome::Invalid;
        }
        for name in names {
            self.hosts.extend(addresses.iter().map(|ip| HostRecord { ip: *ip, name: (**name).to_owned(), ttl }));
        }
        if addresses.is_empty() { FlagOutcome::Ignored("it has no address") } else { FlagOutcome::Applied }
    }

    fn apply_record(&mut self, name: &str, value: &str) -> FlagOutcome {
        match record(name, value) {
            Some(records) => {
                self.local_records.extend(records);
                FlagOutcome::Applied
            }
            // Only an alias must have a target. dnsmasq also accepts other records with a name alone or with text that
            // needs escaping.
            None if name == "cname" => FlagOutcome::Invalid,
            None => FlagOutcome::Ignored("this record is not supported; use `template` in a Corefile"),
        }
    }
}

/// Returns the outcome of known arguments without effect, each with its reason.
fn refused(name: &str) -> FlagOutcome {
    match name {
        "bogus-priv" => FlagOutcome::Ignored("it would deny reverse lookups of cluster addresses"),
        "stop-dns-rebind" | "rebind-localhost-ok" | "rebind-domain-ok" | "bogus-nxdomain" | "ignore-address" => {
            FlagOutcome::Ignored("answers of upstreams are passed on as they are; *acl* and *template* can filter")
        }
        "filterwin2k" => FlagOutcome::Ignored("clients no longer send such queries"),
        "min-port" | "max-port" | "query-port" | "port-limit" => {
            FlagOutcome::Ignored("source ports are always random (RFC 5452)")
        }
        "max-tcp-connections" => FlagOutcome::Ignored("thousands of connections are allowed"),
        "fast-dns-retry" => FlagOutcome::Ignored("lost datagrams are always retransmitted after 400 ms"),
        "interface" | "except-interface" | "bind-interfaces" | "bind-dynamic" => {
            FlagOutcome::Ignored("use --listen-address to choose addresses")
        }
        "dnssec" | "proxy-dnssec" | "trust-anchor" => FlagOutcome::Ignored("upstreams validate"),
        "conf-file" | "conf-dir" | "hostsdir" => FlagOutcome::Ignored("put these settings into a Corefile"),
        _ => FlagOutcome::Unknown,
    }
}

/// Splits an argument into its long name and the value attached to it.
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

/// Parses domains such as `a/b`. The flag is true if one is written `*a`, which means only the names below it.
fn read_domains(domains: &str) -> Option<(Vec<String>, bool)> {
    let plain = |domain: &str| domain.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
    let read: Vec<String> = domains.split('/').map(plain).collect();
    read.iter().all(|domain| is_loose_domain(domain)).then(|| (read, domains.contains('*')))
}

/// Parses the server in `IP[#PORT][@SOURCE]` or `HOST`. The part after `@` is a source address or interface.
fn server_of(text: &str) -> Option<NameServer> {
    let server = text.split('@').next().unwrap_or_default();
    NameServer::read_of_dnsmasq(server).or_else(|| NameServer::read(server).filter(|_| !server.contains([':', '#'])))
}

fn has_port_0(text: &str) -> bool {
    let server = text.split('@').next().unwrap_or_default();
    server.split_once('#').is_some_and(|(ip, port)| ip.parse::<IpAddr>().is_ok() && port == "0")
}

/// Splits off the last field if it is a TTL.
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

/// Warns if a server has a source address or interface, which is not supported.
fn of_place(server: &str) -> FlagOutcome {
    if server.contains('@') {
        FlagOutcome::AppliedWithWarning("the source after `@` is ignored")
    } else {
        FlagOutcome::Applied
    }
}

/// Returns the reverse zone of an IPv4 network with a prefix of 8, 16 or 24 bits.
fn reverse_zone(network: &str) -> Option<String> {
    let (ip, length) = network.split_once('/')?;
    let bytes = ip.parse::<core::net::Ipv4Addr>().ok()?.octets();
    let whole = match length {
        "8" => 1,
        "16" => 2,
        "24" => 3,
        _ => return None,
    };
    let labels: Vec<String> = bytes[..whole].iter().rev().map(u8::to_string).collect();
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

/// Returns true if a text needs no escaping in a zone file within a Corefile.
fn is_text(text: &str) -> bool {
    let text = text.trim_matches('"');
    text.len() <= 255 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\`{}".contains(&byte))
}

fn number<N: core::str::FromStr>(value: &str, into: &mut N) -> FlagOutcome {
    match value.parse() {
        Ok(number) => set(into, number),
        Err(_) => FlagOutcome::Invalid,
    }
}

fn set<T>(into: &mut T, value: T) -> FlagOutcome {
    *into = value;
    FlagOutcome::Applied
}

fn add(into: &mut Vec<&'static str>, value: &'static str) -> FlagOutcome {
    into.push(value);
    FlagOutcome::Applied
}

#[cfg(test)]
#[path = "dnsmasq_tests.rs"]
mod tests;
