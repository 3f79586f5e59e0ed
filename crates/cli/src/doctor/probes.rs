//! Probes: queries to the servers of the cluster, to upstreams, and below search domains.

use std::net::{IpAddr, SocketAddr};

use corefile::Directive;
use doctor::objects::DaemonSet;
use doctor::{
    Attempt, CorefileFacts, DNS_PORT, Encrypted, EncryptedProbe, Facts, Forwarded, Known, LargeAnswer, Probe, Probes,
    SearchProbe, ServiceAnswers, Unknown, UpstreamProbe,
};
use wire::{Name, Rcode, Type};

use super::names::name;
use super::resolv_conf::ResolvConf;
use super::returns::Returns;
use crate::dns_client::{Answer, ProbeError, Query, connect, tcp, udp, udp_repeated, udp_server};
use futures_util::future::join_all;

/// Lengths of the queries that show if large packets arrive: one that passes almost every network, and the largest
/// that EDNS advertises.
const LENGTHS: [usize; 2] = [900, 1_232];
/// Lengths of responses that show if large packets come back: above the limit without EDNS, and at most what the query
/// advertises.
const LARGE: std::ops::RangeInclusive<usize> = 513..=1_232;
/// Types of records at a zone whose responses have such a length most often: the keys and the name servers of a signed
/// zone, and the texts of any.
const LARGE_TYPES: [Type; 3] = [Type::NS, Type::DNSKEY, Type::TXT];
/// Number of queries to an upstream.
const UPSTREAM_QUERIES: usize = 5;
/// Maximum numbers of servers that are asked.
const REPLICAS_MAX: usize = 32;
const UPSTREAMS_MAX: usize = 16;
const SEARCH_MAX: usize = 8;
/// Cluster domain, if nothing says another one.
const ZONE: &str = "cluster.local";
/// Name below which no public name exists (RFC 6761 §6.4).
const INVALID: &str = "invalid";

/// Asks the DNS Service, its ready replicas and the node cache.
pub(super) async fn probes(facts: &Facts, settings: &ResolvConf) -> Known<Probes> {
    let dns = facts.dns()?;
    let query = Query::new(own_name(facts)?, Type::A).marked();
    let service = dns.service.cluster_ips().map(|ip| SocketAddr::new(ip, DNS_PORT));
    let port = dns.endpoint_port();
    let ready = dns.ready_addresses().unwrap_or_default();
    let replicas = ready.into_iter().take(REPLICAS_MAX).map(|ip| SocketAddr::new(ip, port));
    let node_cache = node_cache(facts, settings).into_iter().map(|ip| SocketAddr::new(ip, DNS_PORT));
    let (service, replicas, node_cache) = tokio::join!(
        join_all(service.map(|address| probe(address, &query))),
        join_all(replicas.map(|address| probe(address, &query))),
        join_all(node_cache.map(|address| probe(address, &query))),
    );
    Ok(Probes { service, replicas, node_cache })
}

/// Number of queries that count who answers. With one Pod per node on two nodes, chance alone would have one of 65,536
/// runs see only the own one.
const COUNTED_QUERIES: usize = 16;

/// Asks the addresses of a DNS Service that prefers the own node who answers, from a new port each time.
pub(super) async fn service_answers(facts: &Facts) -> Known<Vec<ServiceAnswers>> {
    let dns = facts.dns()?;
    if dns.service.spec.traffic_distribution.is_empty() {
        return Err(Unknown::inapplicable("the DNS Service has no trafficDistribution"));
    }
    let query = Query::new(own_name(facts)?, Type::A).marked().asking_server();
    let addresses = dns.service.cluster_ips().map(|ip| SocketAddr::new(ip, DNS_PORT));
    Ok(join_all(addresses.map(|address| counted_answers(address, &query))).await)
}

async fn counted_answers(address: SocketAddr, query: &Query) -> ServiceAnswers {
    let mut counted = ServiceAnswers { address: Some(address), ..ServiceAnswers::default() };
    for answer in join_all((0..COUNTED_QUERIES).map(|_| udp_server(address, query))).await {
        match answer {
            Ok(Some(name)) => *counted.named.entry(name).or_default() += 1,
            Ok(None) => counted.unnamed += 1,
            Err(_) => counted.lost += 1,
        }
    }
    counted
}

/// Returns a name that every cluster has.
fn own_name(facts: &Facts) -> Known<Name> {
    let zone = facts.corefile.as_ref().ok().and_then(|corefile| corefile.cluster_zones().into_iter().next());
    name(&format!("kubernetes.default.svc.{}", zone.as_deref().unwrap_or(ZONE)))
}

/// Returns the addresses of the node cache that this machine has, or uses.
fn node_cache(facts: &Facts, settings: &ResolvConf) -> Vec<IpAddr> {
    let addresses = facts.objects.daemon_sets.iter().flat_map(|all| all.iter());
    let addresses = addresses.filter_map(DaemonSet::node_cache_addresses).flatten();
    let has = |ip: &IpAddr| facts.interfaces.iter().flatten().any(|interface| interface.addresses.contains(ip));
    let uses = |ip: &IpAddr| settings.servers.iter().any(|server| server.ip() == *ip);
    addresses.filter(|ip| has(ip) || uses(ip)).collect()
}

/// Returns the outcome of a query for the facts.
fn attempt(outcome: &Result<Answer, ProbeError>) -> Attempt {
    match outcome {
        Ok(answer) => Attempt::Answered(answer.seconds),
        Err(ProbeError::Silent) => Attempt::Silent,
        Err(error) => Attempt::Failed(error.to_string()),
    }
}

async fn probe(address: SocketAddr, query: &Query) -> Probe {
    let (udp, tcp, large) = tokio::join!(udp_repeated(address, query), tcp(address, query), large(address, query));
    Probe { address, udp: attempt(&udp), tcp: attempt(&tcp), large }
}

/// Sends a query of 1,232 bytes with DF, and one of 900 bytes to see if the server answers long queries at all.
async fn large(address: SocketAddr, query: &Query) -> Attempt {
    let [short, long] = LENGTHS.map(|length| Query { length: Some(length), ..query.clone() });
    let (short, long) = tokio::join!(udp(address, &short), udp(address, &long));
    if long.is_err() && short.is_err() { Attempt::NotTried } else { attempt(&long) }
}

/// Returns the upstreams over plain DNS: those that the running server names, or those in the Corefile.
///
/// # Errors
/// None is known here.
pub(super) fn upstreams(facts: &Facts) -> Known<Vec<Forwarded>> {
    let mut all: Vec<Forwarded> = facts.corefile.iter().flat_map(|corefile| corefile.forwarded.clone()).collect();
    let known = facts.server.iter().flat_map(|server| &server.status.upstreams);
    for upstream in known.filter(|upstream| matches!(upstream.transport.as_str(), "udp" | "tcp")) {
        let Ok(address) = upstream.address.parse::<SocketAddr>() else { continue };
        if !all.iter().any(|one| one.address == address) {
            all.push(Forwarded { zone: String::new(), address });
        }
    }
    if !all.is_empty() {
        return Ok(all);
    }
    let has_forward = |corefile: &CorefileFacts| corefile.has("forward");
    Err(Unknown::new(match &facts.corefile {
        Err(reason) => reason.to_string(),
        Ok(corefile) if !corefile.encrypted().is_empty() => {
            "doctor sends no queries over TLS, HTTPS or QUIC".to_owned()
        }
        Ok(corefile) if has_forward(corefile) => "the addresses of the upstreams are not known here".to_owned(),
        Ok(_) => return Err(Unknown::inapplicable("the Corefile has no *forward*")),
    }))
}

/// Returns the other upstreams, like [`upstreams`].
pub(super) fn encrypted_upstreams(facts: &Facts) -> Vec<Encrypted> {
    let mut all: Vec<Encrypted> = facts.corefile.iter().flat_map(CorefileFacts::encrypted).collect();
    if let Ok(server) = &facts.server {
        // The server knows the addresses of names.
        all.retain(|one| one.address().is_some());
        let known = server.status.upstreams.iter();
        for upstream in known.filter(|upstream| !matches!(upstream.transport.as_str(), "udp" | "tcp")) {
            let (scheme, host) = (upstream.transport.clone(), upstream.address.clone());
            if !all.iter().any(|one| one.host == host && one.scheme == scheme) {
                all.push(Encrypted { zone: String::new(), scheme, host });
            }
        }
    }
    all
}

/// Connects to upstreams over TCP. Without `sends`, and to those over QUIC, it does not.
pub(super) async fn encrypted_probes(upstreams: Vec<Encrypted>, facts: &Facts, sends: bool) -> Vec<EncryptedProbe> {
    let is_http3 =
        |line: &Directive| line.lines().iter().any(|line| line.words.first().is_some_and(|word| word.text == "http3"));
    let has_http3 = facts.corefile.iter().any(|corefile| corefile.directives("forward").any(is_http3));
    let takes_tcp = |scheme: &str| scheme == "tls" || scheme == "https" && !has_http3;
    join_all(upstreams.into_iter().enumerate().map(|(at, upstream)| async move {
        let is_tried = sends && at < UPSTREAMS_MAX && takes_tcp(&upstream.scheme);
        let connect = match upstream.address().filter(|_| is_tried) {
            Some(address) => connected(connect(address).await),
            None => Attempt::NotTried,
        };
        EncryptedProbe { upstream, connect }
    }))
    .await
}

/// Returns the outcome of a connection for the facts.
fn connected(outcome: Result<f64, ProbeError>) -> Attempt {
    match outcome {
        Ok(seconds) => Attempt::Answered(seconds),
        Err(ProbeError::Silent) => Attempt::Silent,
        Err(error) => Attempt::Failed(error.to_string()),
    }
}

/// Asks a server over both transports for what has a response of 513 to 1,232 bytes in usual zones. A response that
/// arrives over TCP only is lost on the way.
async fn large_answer(address: SocketAddr, zone: &Name) -> Option<LargeAnswer> {
    let both = LARGE_TYPES.map(|qtype| {
        let query = Query::new(zone.clone(), qtype).with_dnssec();
        async move { tokio::join!(tcp(address, &query), udp_repeated(address, &query)) }
    });
    let is_large = |answer: &Answer| LARGE.contains(&answer.length) && answer.rcode == Rcode::NOERROR;
    let seen = join_all(both).await.into_iter().filter_map(|(tcp, udp)| {
        let bytes = tcp.ok().filter(is_large)?.length;
        // A server may allow less over UDP.
        let is_cut = udp.as_ref().is_ok_and(|answer| answer.is_truncated);
        (!is_cut).then(|| LargeAnswer { bytes, udp: attempt(&udp) })
    });
    seen.max_by_key(|answer| (answer.udp.is_lost(), answer.bytes))
}

/// Asks upstreams. `returns` sees queries that come back.
pub(super) async fn upstream_probes(upstreams: Vec<Forwarded>, returns: &Returns) -> Known<Vec<UpstreamProbe>> {
    let probes = upstreams.into_iter().take(UPSTREAMS_MAX);
    Ok(join_all(probes.map(|upstream| upstream_probe(upstream, returns))).await)
}

async fn upstream_probe(Forwarded { zone, address }: Forwarded, returns: &Returns) -> UpstreamProbe {
    let soa = Query::new(name(&zone).unwrap_or_default(), Type::SOA);
    let parent = if zone.is_empty() { INVALID } else { &zone };
    let mixed = Query::new(name(&format!("DoCtOr.{parent}")).unwrap_or_default(), Type::A);
    let (came_back, answers, mixed, tcp, large, large_answer) = tokio::join!(
        returns.came_back(address, &zone),
        join_all((0..UPSTREAM_QUERIES).map(|_| udp(address, &soa))),
        udp(address, &mixed),
        tcp(address, &soa),
        large(address, &soa),
        large_answer(address, &soa.name),
    );
    let received: Vec<&Answer> = answers.iter().flatten().collect();
    UpstreamProbe {
        address,
        zone,
        attempts: answers.iter().map(attempt).collect(),
        failures: received.iter().filter(|answer| answer.rcode == Rcode::SERVFAIL).count(),
        tcp: attempt(&tcp),
        large,
        large_answer,
        edns: (!received.is_empty()).then(|| received.iter().any(|answer| answer.has_edns)),
        keeps_case: mixed.ok().map(|answer| answer.keeps_case),
        came_back,
    }
}

/// Asks for random names below the search domains that are not those of the cluster.
pub(super) async fn search_probes(settings: &ResolvConf) -> Known<Vec<SearchProbe>> {
    let domains = settings.foreign_search();
    if domains.is_empty() {
        return Ok(Vec::new());
    }
    let Some(server) = settings.servers.first() else {
        return Err(Unknown::new("/etc/resolv.conf has no name server"));
    };
    let left = domains.len().saturating_sub(SEARCH_MAX);
    let probes = join_all(domains.into_iter().take(SEARCH_MAX).map(|domain| search_probe(*server, domain))).await;
    if left > 0 {
        return Err(Unknown::new(format!("/etc/resolv.conf has more than {SEARCH_MAX} search domains")));
    }
    if probes.iter().all(|probe| probe.answered.is_none()) {
        return Err(Unknown::new(format!("the name server {} in /etc/resolv.conf does not answer", server.ip())));
    }
    Ok(probes)
}

/// Asks for a random name below a domain.
async fn search_probe(server: SocketAddr, domain: &str) -> SearchProbe {
    let label = format!("portolan-doctor-{:08x}", rand::random::<u32>());
    let answered = match name(&format!("{label}.{domain}")) {
        Ok(name) => udp(server, &Query::new(name, Type::A)).await.ok().map(|answer| answer.has_address),
        Err(_) => None,
    };
    SearchProbe { domain: domain.to_owned(), answered }
}
