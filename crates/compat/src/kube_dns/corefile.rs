//! Writes the Corefile that replaces the pod.
//!
//! One server block serves the cluster and all outside names. Each domain with name servers of its own gets another
//! block. A name server given by host name is written as its known addresses, or as the host name if names have not
//! been resolved.

use core::fmt::Write as _;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use crate::kube_dns::config_map::ConfigMapSettings;
use crate::kube_dns::dnsmasq::{Dnsmasq, Domain, HostRecord, RESOLV_CONF, Record};
use crate::kube_dns::name_server::NameServer;
use crate::kube_dns::probe::Probe;
use crate::kube_dns::settings::{KubeDns, Settings, Sidecar};

/// Known addresses of name servers that are given by host name.
#[derive(Clone, Copy, Debug)]
pub enum HostNames<'a> {
    /// Host names are not resolved. *forward* resolves them when the Corefile is served.
    Unresolved,
    /// Addresses by host name. A host that is missing here has no known address.
    Resolved(&'a BTreeMap<String, Vec<IpAddr>>),
}

/// Time to serve on after the order to end: long enough for clients to stop using this server.
const LAMEDUCK: &str = "5s";
/// Minimum TTL of *cache* in seconds, unless its line sets one.
const CACHE_TTL_MIN: u32 = 5;
/// TTL in seconds of cluster records, and maximum TTL of answers in stub domains ([`stub_blocks`]).
const TTL: u32 = 30;
/// Address of the profiles that `--profiling` enables, as in kube-dns.
const PROFILES: &str = "localhost:6060";
/// Reverse zones.
const REVERSE: [&str; 2] = ["in-addr.arpa", "ip6.arpa"];
/// Hosts file that dnsmasq reads by default.
const HOSTS: &str = "/etc/hosts";
/// Port of kube-dns in its pod, where dnsmasq has port 53.
const BEHIND_DNSMASQ: u16 = 10053;

/// Writes the Corefile.
#[must_use]
pub fn corefile(settings: &Settings, config_map: &ConfigMapSettings, hosts: HostNames<'_>) -> String {
    let writer = Writer { settings, config_map, hosts };
    let mut text = Text::default();
    writer.main_block(&mut text);
    writer.kube_dns_block(&mut text);
    for (domain, servers) in writer.domains() {
        writer.domain_block(&domain, &servers, &mut text);
    }
    text.0
}

/// Returns the host names of all name servers that are given by host name.
#[must_use]
pub fn named_hosts(settings: &Settings, config_map: &ConfigMapSettings) -> BTreeSet<String> {
    let of_dnsmasq = settings.dnsmasq.iter().flat_map(|dnsmasq| {
        let of_domains = dnsmasq.domains.values().flat_map(|domain| match domain {
            Domain::Servers(servers) => servers.as_slice(),
            Domain::DefaultUpstreams => &[],
        });
        dnsmasq.servers.iter().chain(of_domains)
    });
    let all = config_map.stub_domains.values().flatten().chain(of_dnsmasq);
    host::sorting::set(all.filter_map(NameServer::host))
}

/// Writes only the blocks for the ConfigMap's stub domains, as node-cache does: bound to the addresses `listen`, with a
/// cache of at most [`TTL`] seconds.
#[must_use]
pub(crate) fn stub_blocks(
    listen: &[IpAddr],
    port: u16,
    config_map: &ConfigMapSettings,
    hosts: HostNames<'_>,
) -> String {
    let writer = Writer { settings: &Settings::default(), config_map, hosts };
    let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
    let mut text = Text::default();
    for (domain, servers) in config_map.stub_domains.iter().filter(|(_, servers)| !servers.is_empty()) {
        text.open(&format!("{domain}:{port}"));
        text.line("errors");
        text.line(&format!("cache {TTL}"));
        text.line(&format!("bind {}", listen.join(" ")));
        // node-cache writes the servers without a policy or failover.
        if let Some(addresses) = writer.known_addresses(servers, &mut text) {
            text.line(&format!("forward . {}", addresses.iter().map(|to| word(to)).collect::<Vec<_>>().join(" ")));
        }
        text.close();
    }
    text.0
}

/// Servers to query for a domain.
enum DomainTarget {
    Servers(Vec<NameServer>),
    /// Same servers as for outside names.
    DefaultUpstreams,
    NoServer,
}

struct Writer<'a> {
    settings: &'a Settings,
    config_map: &'a ConfigMapSettings,
    hosts: HostNames<'a>,
}

impl Writer<'_> {
    fn main_block(&self, text: &mut Text) {
        let zones = self.kept_zones(&self.domains()).into_iter().map(|zone| self.keys(zone));
        text.open(&core::iter::once(self.keys("")).chain(zones).collect::<Vec<_>>().join(" "));
        self.bind(text);
        text.line("errors");
        if let Some(dnsmasq) = &self.settings.dnsmasq {
            self.logging(dnsmasq, text);
        }
        self.metrics_page(text);
        self.pod(false, self.settings.dnsmasq.as_ref(), text);
        if self.settings.kube_dns.as_ref().is_some_and(|kube_dns| kube_dns.profiling) {
            text.line(&format!("pprof {PROFILES}"));
        }
        if let Some(sidecar) = &self.settings.sidecar {
            sidecar.probes.iter().for_each(|probe| {
                let Probe { label, server, name, seconds, qtype } = probe;
                text.open(&format!("probe {label} {server} {name} {seconds}s {qtype}"));
                if *qtype == "ANY" {
                    text.line("empty");
                }
                text.line(&format!("address {}", sidecar.address));
                text.line(&format!("prefix {}", sidecar.namespace));
                text.close();
            });
        }
        if self.settings.kube_dns.is_some() || self.settings.dnsmasq.is_some() {
            self.answers(text);
        }
        text.close();
    }

    /// Writes the cluster records on the address and port of kube-dns, if dnsmasq did not listen there.
    fn kube_dns_block(&self, text: &mut Text) {
        let Some((ip, port)) = self.separate_address() else { return };
        text.blank();
        text.open(&format!(".:{port}"));
        text.line(&format!("bind {ip}"));
        text.line("errors");
        self.metrics_page(text);
        self.pod(true, None, text);
        self.answers_of(None, text);
        text.close();
    }

    /// Returns the address and port of kube-dns, if it has its own address and a port other than dnsmasq's.
    fn separate_address(&self) -> Option<(IpAddr, u16)> {
        let (kube_dns, dnsmasq) = (self.settings.kube_dns.as_ref()?, self.settings.dnsmasq.as_ref()?);
        (dnsmasq.port != 0 && dnsmasq.port != kube_dns.port).then_some((kube_dns.bind?, kube_dns.port))
    }

    /// Writes the plugins that answer: local records first, then forwarding.
    fn answers(&self, text: &mut Text) {
        self.answers_of(self.settings.dnsmasq.as_ref(), text);
    }

    fn answers_of(&self, dnsmasq: Option<&Dnsmasq>, text: &mut Text) {
        text.line("chaos");
        if dnsmasq.is_none_or(|dnsmasq| dnsmasq.rotates) {
            text.line("loadbalance");
        }
        if let Some(dnsmasq) = dnsmasq {
            self.cache(dnsmasq, text);
            self.own_records(dnsmasq, "", text);
        }
        if let Some(kube_dns) = &self.settings.kube_dns {
            self.federations(kube_dns, text);
            kubernetes(kube_dns, text);
        }
        text.line("loop");
        self.forward(".", &self.upstreams(), text);
    }

    fn domain_block(&self, domain: &str, asked: &DomainTarget, text: &mut Text) {
        text.blank();
        text.open(&self.keys(domain));
        self.bind(text);
        text.line("errors");
        if let Some(dnsmasq) = &self.settings.dnsmasq {
            self.logging(dnsmasq, text);
        }
        self.metrics_page(text);
        self.pod(true, self.settings.dnsmasq.as_ref(), text);
        if self.settings.dnsmasq.as_ref().is_none_or(|dnsmasq| dnsmasq.rotates) {
            text.line("loadbalance");
        }
        if let Some(dnsmasq) = &self.settings.dnsmasq {
            self.cache(dnsmasq, text);
            self.own_records(dnsmasq, domain, text);
        }
        match asked {
            DomainTarget::NoServer => denial(domain, text),
            DomainTarget::DefaultUpstreams => self.forward(".", &self.upstreams(), text),
            DomainTarget::Servers(servers) => self.forward_to(servers, text),
        }
        text.close();
    }

    /// Returns the domains with servers of their own, except those that this server answers itself.
    fn domains(&self) -> BTreeMap<String, DomainTarget> {
        let mut domains = BTreeMap::new();
        for (domain, known) in self.settings.dnsmasq.iter().flat_map(|dnsmasq| &dnsmasq.domains) {
            let asked = match known {
                Domain::DefaultUpstreams => DomainTarget::DefaultUpstreams,
                Domain::Servers(servers) if servers.is_empty() => DomainTarget::NoServer,
                Domain::Servers(servers) if self.is_own(domain, servers) => continue,
                Domain::Servers(servers) => {
                    DomainTarget::Servers(servers.iter().filter(|server| !self.is_here(server)).cloned().collect())
                }
            };
            domains.insert(domain.clone(), asked);
        }
        if self.settings.dnsmasq.is_some() {
            for (domain, servers) in &self.config_map.stub_domains {
                let is_cluster = self.settings.kube_dns.as_ref().is_some_and(|kube_dns| kube_dns.domain == *domain);
                if !servers.is_empty() && !is_cluster {
                    domains.insert(domain.clone(), DomainTarget::Servers(servers.clone()));
                }
            }
        }
        domains
    }

    /// Returns the zones of this server that lie within a domain of other servers. dnsmasq knew both and preferred the
    /// longer name.
    fn kept_zones(&self, others: &BTreeMap<String, DomainTarget>) -> Vec<&str> {
        let of_cluster =
            self.settings.kube_dns.iter().flat_map(|kube_dns| [kube_dns.domain.as_str()].into_iter().chain(REVERSE));
        let own =
            self.settings.dnsmasq.iter().flat_map(|dnsmasq| &dnsmasq.domains).filter_map(
                |(domain, known)| match known {
                    Domain::Servers(servers) if self.is_own(domain, servers) => Some(domain.as_str()),
                    _ => None,
                },
            );
        let zones: BTreeSet<&str> = host::sorting::set(of_cluster.chain(own));
        let is_lost = |zone: &&str| others.keys().any(|other| other != zone && is_within(zone, other));
        zones.into_iter().filter(|zone| is_lost(zone) && !others.contains_key(*zone)).collect()
    }

    /// Returns true if the configured servers of a domain are this server, as in a pod where dnsmasq forwards to
    /// kube-dns. For a zone of the cluster one such server is enough, because kube-dns knows its names.
    fn is_own(&self, domain: &str, servers: &[NameServer]) -> bool {
        let Some(kube_dns) = &self.settings.kube_dns else { return false };
        let is_of_cluster = kube_dns.domain == domain || REVERSE.contains(&domain);
        let mut here = servers.iter().map(|server| self.is_here(server));
        if is_of_cluster { here.any(|is_here| is_here) } else { !servers.is_empty() && here.all(|is_here| is_here) }
    }

    /// Returns true if this is the address where kube-dns listened for dnsmasq in the same pod.
    fn is_here(&self, server: &NameServer) -> bool {
        let Some(kube_dns) = &self.settings.kube_dns else { return false };
        let is_port = |port| port == kube_dns.port || port == BEHIND_DNSMASQ;
        matches!(server, NameServer::Address(address) if address.ip().is_loopback() && is_port(address.port()))
    }

    /// Returns the upstreams for outside names.
    fn upstreams(&self) -> Vec<String> {
        let shown = |address: &SocketAddr| NameServer::Address(*address).to_string();
        if !self.config_map.upstreams.is_empty() {
            return self.config_map.upstreams.iter().map(shown).collect();
        }
        if !self.settings.upstreams.is_empty() {
            return self.settings.upstreams.iter().map(shown).collect();
        }
        let Some(dnsmasq) = &self.settings.dnsmasq else { return vec![RESOLV_CONF.to_owned()] };
        let servers = dnsmasq.servers.iter().filter(|server| !self.is_here(server));
        let asked: Vec<String> =
            servers.flat_map(|server| self.addresses(server)).chain(dnsmasq.resolv_conf.clone()).collect();
        // dnsmasq sent everything to kube-dns, which used the upstreams of the system.
        let is_behind = asked.is_empty() && !dnsmasq.servers.is_empty();
        if is_behind { vec![RESOLV_CONF.to_owned()] } else { asked }
    }

    /// Returns a server as written in a Corefile: its address, the known addresses of its host name, or its host name.
    fn addresses(&self, server: &NameServer) -> Vec<String> {
        match (server, self.hosts) {
            (NameServer::Host(host), HostNames::Resolved(known)) => {
                known.get(host).into_iter().flatten().map(ToString::to_string).collect()
            }
            (server, _) => vec![server.to_string()],
        }
    }

    fn forward_to(&self, servers: &[NameServer], text: &mut Text) {
        if let Some(addresses) = self.known_addresses(servers, text) {
            self.forward(".", &addresses, text);
        }
    }

    /// Returns the addresses of servers, at most as many as *forward* accepts. If there are none, writes a template
    /// that answers SERVFAIL, and returns `None`.
    fn known_addresses(&self, servers: &[NameServer], text: &mut Text) -> Option<Vec<String>> {
        let addresses = servers.iter().flat_map(|server| self.addresses(server));
        let addresses: Vec<String> = addresses.take(crate::kube_dns::config_map::SERVERS_MAX).collect();
        if !addresses.is_empty() {
            return Some(addresses);
        }
        let names: Vec<String> = servers.iter().map(ToString::to_string).collect();
        text.line(&format!("# no address known yet for {}", names.join(", ")));
        text.open("template ANY ANY");
        text.line("rcode SERVFAIL");
        text.line("ederror 22 \"no known address of the name servers\"");
        text.close();
        None
    }

    fn forward(&self, zone: &str, to: &[String], text: &mut Text) {
        if to.is_empty() {
            return;
        }
        let to: Vec<String> = to.iter().take(crate::kube_dns::config_map::SERVERS_MAX).map(|to| word(to)).collect();
        text.open(&format!("forward {zone} {}", to.join(" ")));
        let dnsmasq = self.settings.dnsmasq.as_ref();
        text.line(&format!("policy {}", dnsmasq.map_or("sequential", |dnsmasq| dnsmasq.policy)));
        if dnsmasq.is_some_and(|dnsmasq| dnsmasq.asks_all) {
            text.line("ask_all");
        }
        // Another server may succeed where one failed. kube-dns asked the same one again.
        text.line("failover SERVFAIL");
        if let Some(most) = dnsmasq.map(|dnsmasq| dnsmasq.forward_max).filter(|most| *most > 0) {
            text.line(&format!("max_concurrent {most}"));
        }
        text.close();
    }

    /// Returns the keys of a server block, one per port.
    fn keys(&self, domain: &str) -> String {
        let kube_dns =
            self.settings.kube_dns.as_ref().filter(|_| self.separate_address().is_none()).map(|kube_dns| kube_dns.port);
        // Port 0 turns DNS off in dnsmasq.
        let dnsmasq = self.settings.dnsmasq.iter().map(|dnsmasq| dnsmasq.port).filter(|port| *port != 0);
        let ports: BTreeSet<u16> = host::sorting::set(dnsmasq.chain(kube_dns));
        if ports.is_empty() {
            // No port is served, but a block needs an address.
            return ".:0".to_owned();
        }
        let domain = if domain.is_empty() { "." } else { domain };
        ports.iter().map(|port| format!("{domain}:{port}")).collect::<Vec<_>>().join(" ")
    }

    fn bind(&self, text: &mut Text) {
        let Settings { kube_dns, dnsmasq, .. } = self.settings;
        let listen = dnsmasq.iter().flat_map(|dnsmasq| dnsmasq.listen.iter().copied());
        let own = kube_dns.iter().filter(|_| self.separate_address().is_none()).filter_map(|kube_dns| kube_dns.bind);
        let addresses: BTreeSet<IpAddr> = host::sorting::set(own.chain(listen));
        if kube_dns.is_none() && dnsmasq.is_none() {
            text.line("bind 127.0.0.1");
        } else if !addresses.is_empty() {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            text.line(&format!("bind {}", addresses.join(" ")));
        }
    }

    fn logging(&self, dnsmasq: &Dnsmasq, text: &mut Text) {
        if dnsmasq.is_logging {
            text.line("log");
        }
        if let Some(size) = dnsmasq.udp_size {
            text.line(&format!("bufsize {size}"));
        }
    }

    /// Writes the metrics endpoint.
    fn metrics_page(&self, text: &mut Text) {
        match &self.settings.sidecar {
            Some(sidecar) if sidecar.path != "/metrics" => {
                text.open(&format!("prometheus {}", sidecar.address));
                text.line(&format!("path {}", sidecar.path));
                text.close();
            }
            Some(sidecar) => text.line(&format!("prometheus {}", sidecar.address)),
            None => {}
        }
    }

    /// Writes *kubedns*: the HTTP endpoints, metrics and answers that are specific to the pod. `dnsmasq` is the one
    /// whose answers the block gives.
    fn pod(&self, is_stub: bool, dnsmasq: Option<&Dnsmasq>, text: &mut Text) {
        let kube_dns = self.settings.kube_dns.as_ref();
        match kube_dns.filter(|_| !is_stub) {
            Some(kube_dns) => text.open(&format!("kubedns :{}", kube_dns.pages_port)),
            None => text.open("kubedns"),
        }
        if !is_stub {
            text.line(&format!("lameduck {LAMEDUCK}"));
        } else {
            text.line("stub");
        }
        if let Some(metrics) = kube_dns.and_then(|kube_dns| kube_dns.metrics.as_ref()) {
            text.line(&format!("metrics {} {}", metrics.namespace, metrics.subsystem));
            if !is_stub {
                text.line(&format!("page :{} {}", metrics.port, metrics.path));
            }
        }
        match &self.settings.sidecar {
            Some(sidecar) => text.line(&dnsmasq_line(sidecar, is_stub)),
            // A sidecar in another process queries it.
            None if self.settings.dnsmasq.is_some() => text.line("dnsmasq kubedns"),
            None => {}
        }
        if let Some(dnsmasq) = dnsmasq.filter(|dnsmasq| !dnsmasq.filtered.is_empty()) {
            text.line(&format!("filter {}", dnsmasq.filtered.join(" ")));
        }
        text.close();
    }

    fn cache(&self, dnsmasq: &Dnsmasq, text: &mut Text) {
        if dnsmasq.cache_size == 0 {
            return;
        }
        let most = dnsmasq.ttl_max.map_or(String::new(), |ttl| format!(" {ttl}"));
        text.open(&format!("cache{most}"));
        let least = dnsmasq.ttl_min.or_else(|| alias_ttl(dnsmasq));
        text.line(&format!("success {}{}", dnsmasq.cache_size, bounds(dnsmasq.ttl_max, least)));
        if dnsmasq.keeps_denials {
            text.line(&format!(
                "denial {}{}",
                dnsmasq.cache_size,
                bounds(dnsmasq.denial_ttl.or(dnsmasq.ttl_max), dnsmasq.ttl_min)
            ));
        } else {
            text.line("disable denial");
        }
        if let Some(seconds) = dnsmasq.stale {
            text.line(&format!("serve_stale {seconds}s"));
        }
        text.close();
    }

    fn federations(&self, kube_dns: &KubeDns, text: &mut Text) {
        let Settings { federations, .. } = self.settings;
        let known = if self.config_map.federations.is_empty() { federations } else { &self.config_map.federations };
        if known.is_empty() {
            return;
        }
        text.open(&format!("federations {}", kube_dns.domain));
        known.iter().for_each(|(name, domain)| text.line(&format!("{name} {domain}")));
        text.close();
    }

    /// Returns true if queries for a name reach the block of `domain`, and not that of a longer domain.
    fn comes_to(&self, domain: &str, name: &str) -> bool {
        let others = self.domains();
        // Zones that this server keeps belong to the first block, whose domain is empty.
        let kept = self.kept_zones(&others).into_iter().map(|zone| (zone, ""));
        let known = others.keys().map(|other| (other.as_str(), other.as_str())).chain(kept);
        let holding = known.filter(|(zone, _)| is_within(name, zone)).max_by_key(|(zone, _)| zone.len());
        holding.map_or("", |(_, block)| block) == domain
    }

    /// Writes the records that dnsmasq answers itself in a domain. The empty domain contains all names.
    fn own_records(&self, dnsmasq: &Dnsmasq, domain: &str, text: &mut Text) {
        let comes = |name: &str| self.comes_to(domain, name);
        existing_names(dnsmasq, comes, text);
        if dnsmasq.keeps_plain_names && domain.is_empty() {
            no_plain_names(text);
        }
        for (of, addresses) in dnsmasq.addresses.iter().filter(|(of, _)| comes(of)) {
            own_addresses(of, addresses, dnsmasq.local_ttl, text);
        }
        for record in dnsmasq.local_records.iter().filter(|record| comes(&record.name)) {
            own_record(record, record.ttl.unwrap_or(dnsmasq.local_ttl), text);
        }
        let is_denied = matches!(dnsmasq.domains.get(domain), Some(Domain::Servers(servers)) if servers.is_empty());
        if is_denied {
            let names: BTreeSet<&str> =
                host::sorting::set(dnsmasq.local_records.iter().map(|record| record.name.as_str()));
            names.into_iter().filter(|name| comes(name)).for_each(|name| no_other_types(name, text));
        }
        // Includes hosts in longer domains. Their reverse lookups arrive here, or in the block of a reverse zone.
        let is_reverse = REVERSE.iter().any(|zone| is_within(domain, zone));
        let hosts: Vec<_> = dnsmasq.hosts.iter().filter(|host| is_reverse || is_within(&host.name, domain)).collect();
        if is_denied {
            host_templates(&hosts, dnsmasq.local_ttl, text);
            let names: BTreeSet<&str> = host::sorting::set(hosts.iter().map(|host| host.name.as_str()));
            names.into_iter().for_each(|name| no_other_types(name, text));
            return;
        }
        let has_hosts = !hosts.is_empty() || !dnsmasq.hosts_files.is_empty() || dnsmasq.reads_hosts;
        if is_reverse {
            // With the zone `.`, *hosts* reads the names of all domains.
            if has_hosts {
                hosts_lines(dnsmasq, &hosts, " .", text);
            }
            return;
        }
        let is_timed = |name: &str| hosts.iter().any(|host| host.name == name && host.ttl.is_some());
        let timed: Vec<_> = hosts.iter().copied().filter(|host| is_timed(&host.name)).collect();
        host_templates(&timed, dnsmasq.local_ttl, text);
        if has_hosts {
            hosts_lines(dnsmasq, &hosts, "", text);
        }
    }
}

fn dnsmasq_line(sidecar: &Sidecar, is_stub: bool) -> String {
    match sidecar.dnsmasq.filter(|_| !is_stub) {
        Some(server) => format!("dnsmasq {} {server} {}ms", sidecar.namespace, sidecar.poll.as_millis()),
        None => format!("dnsmasq {}", sidecar.namespace),
    }
}

/// Returns the lowest TTL of an alias, if it is below the usual minimum of *cache*. The answer has records of an
/// upstream too, so it would be cached, with the minimum as the TTL of all its records.
fn alias_ttl(dnsmasq: &Dnsmasq) -> Option<u32> {
    let aliases = dnsmasq.local_records.iter().filter(|record| record.rtype == "CNAME");
    let ttls = aliases.map(|record| record.ttl.unwrap_or(dnsmasq.local_ttl));
    ttls.min().filter(|ttl| *ttl < CACHE_TTL_MIN)
}

/// Returns ` TTL MINTTL` for a class of the cache, as far as they are set.
fn bounds(most: Option<u32>, least: Option<u32>) -> String {
    match (most, least) {
        (None, None) => String::new(),
        (Some(most), None) => format!(" {most}"),
        (most, Some(least)) => format!(" {} {least}", most.unwrap_or(3600).max(least)),
    }
}

fn kubernetes(kube_dns: &KubeDns, text: &mut Text) {
    let reverse = REVERSE.join(" ");
    text.open(&format!("kubernetes {} {reverse}", kube_dns.domain));
    if let Some(file) = &kube_dns.kubeconfig {
        text.line(&format!("kubeconfig {}", word(file)));
    } else if let Some(url) = &kube_dns.api_server {
        text.line(&format!("endpoint {}", word(url)));
    }
    text.line("compat kube-dns");
    text.line("pods insecure");
    text.line(&format!("ttl {TTL}"));
    text.line(&format!("fallthrough {reverse}"));
    text.close();
}

/// Returns true if a name is in a domain. Every name is in the empty domain.
fn is_within(name: &str, domain: &str) -> bool {
    let (name, domain) = (name.to_ascii_lowercase(), domain.to_ascii_lowercase());
    name.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.') || domain.is_empty())
}

fn own_addresses(domain: &str, addresses: &[IpAddr], ttl: u32, text: &mut Text) {
    if addresses.is_empty() {
        denial(domain, text);
        return;
    }
    for (rtype, is_v4) in [("A", true), ("AAAA", false)] {
        let of_family: Vec<_> = addresses.iter().filter(|ip| ip.is_ipv4() == is_v4).collect();
        if of_family.is_empty() {
            continue;
        }
        text.open(&format!("template IN {rtype} {domain}"));
        for ip in &of_family {
            text.line(&format!("answer {}", word(&format!("{{{{ .Name }}}} {ttl} IN {rtype} {ip}"))));
        }
        text.close();
    }
}

/// Forwards other types of the names with local records, as dnsmasq does. If the upstream says NXDOMAIN, the answer is
/// NODATA, because NXDOMAIN would deny the local records too (RFC 8020 §2).
fn existing_names(dnsmasq: &Dnsmasq, comes: impl Fn(&str) -> bool, text: &mut Text) {
    let of_addresses = dnsmasq.addresses.iter().filter(|(of, addresses)| comes(of) && !addresses.is_empty());
    for (domain, _) in of_addresses {
        text.line(&format!("rewrite continue rcode exact {domain}. NXDOMAIN NOERROR"));
        text.line(&format!("rewrite continue rcode suffix .{domain}. NXDOMAIN NOERROR"));
    }
    // An alias answers queries for all types.
    let records = dnsmasq.local_records.iter().filter(|record| record.rtype != "CNAME");
    let names: BTreeSet<&str> =
        host::sorting::set(records.map(|record| record.name.as_str()).filter(|name| comes(name)));
    for name in names {
        text.line(&format!("rewrite continue rcode exact {name}. NXDOMAIN NOERROR"));
    }
}

/// Answers NODATA for the other types of a name that has records in a denied domain.
fn no_other_types(name: &str, text: &mut Text) {
    text.open(&format!("template IN ANY {name}"));
    text.line(&format!("match {}", exactly(name)));
    text.line("rcode NOERROR");
    text.line("fallthrough");
    text.close();
}

/// Answers NXDOMAIN for a whole domain.
fn denial(domain: &str, text: &mut Text) {
    text.open(&format!("template ANY ANY {domain}"));
    text.line("rcode NXDOMAIN");
    let soa = format!("{domain}. 60 IN SOA ns.{domain}. hostmaster.{domain}. 1 7200 1800 86400 60");
    text.line(&format!("authority {}", word(&soa)));
    text.close();
}

fn no_plain_names(text: &mut Text) {
    // Other types, such as DS and NS of a top-level domain, are forwarded: validation needs them.
    for rtype in ["A", "AAAA"] {
        text.open(&format!("template IN {rtype}"));
        text.line("match ^[^.]+\\.$");
        text.line("rcode NXDOMAIN");
        text.line("fallthrough");
        text.close();
    }
}

fn own_record(record: &Record, ttl: u32, text: &mut Text) {
    // A CNAME answers queries for all types.
    let asked = if record.rtype == "CNAME" { "ANY" } else { record.rtype };
    text.open(&format!("template IN {asked} {}", record.name));
    text.line(&format!("match {}", exactly(&record.name)));
    text.line(&format!("answer {}", word(&format!("{{{{ .Name }}}} {ttl} IN {} {}", record.rtype, record.data))));
    text.line("fallthrough");
    text.close();
}

fn hosts_lines(dnsmasq: &Dnsmasq, hosts: &[&HostRecord], zones: &str, text: &mut Text) {
    let default = if dnsmasq.reads_hosts { HOSTS } else { "/dev/null" };
    let file = dnsmasq.hosts_files.first().map_or(default, String::as_str);
    text.open(&format!("hosts {}{zones}", word(file)));
    // *hosts* reads one file. Of `/etc/hosts`, the name is left that must not be forwarded (RFC 6761 §6.3).
    if dnsmasq.reads_hosts && file != HOSTS {
        ["127.0.0.1 localhost", "::1 localhost"].into_iter().for_each(|line| text.line(line));
    }
    hosts.iter().for_each(|host| text.line(&format!("{} {}", host.ip, host.name)));
    text.line(&format!("ttl {}", dnsmasq.local_ttl));
    text.line("fallthrough");
    text.line("fallthrough_nodata");
    text.close();
}

/// Writes hosts that *hosts* cannot serve: hosts with their own TTL, and hosts in a denied domain, because the denial
/// precedes *hosts* in the chain.
fn host_templates(hosts: &[&HostRecord], local_ttl: u32, text: &mut Text) {
    let names: BTreeSet<&str> = host::sorting::set(hosts.iter().map(|host| host.name.as_str()));
    for name in names {
        for (rtype, is_v4) in [("A", true), ("AAAA", false)] {
            let of_family = || hosts.iter().filter(|host| host.name == name && host.ip.is_ipv4() == is_v4);
            if of_family().next().is_none() {
                continue;
            }
            text.open(&format!("template IN {rtype} {name}"));
            text.line(&format!("match {}", exactly(name)));
            for host in of_family() {
                let (ip, ttl) = (host.ip, host.ttl.unwrap_or(local_ttl));
                text.line(&format!("answer {}", word(&format!("{{{{ .Name }}}} {ttl} IN {rtype} {ip}"))));
            }
            text.line("fallthrough");
            text.close();
        }
    }
}

/// Returns a regular expression that matches one name.
fn exactly(name: &str) -> String {
    format!("^{}\\.$", name.trim_end_matches('.').to_ascii_lowercase().replace('.', "\\."))
}

/// Quotes a word of a Corefile if necessary.
fn word(text: &str) -> String {
    let is_plain = !text.is_empty() && !text.contains([' ', '\t', '"', '{', '}', '#', '\n']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\\\"")) }
}

/// Corefile under construction, with its indentation level.
#[derive(Default)]
struct Text(String, usize);

impl Text {
    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.1);
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{indent}{line}");
    }

    fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.1 += 1;
    }

    fn close(&mut self) {
        self.1 = self.1.saturating_sub(1);
        self.line("}");
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }
}

#[cfg(test)]
#[path = "corefile_tests.rs"]
mod tests;
