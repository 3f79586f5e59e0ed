//! Upstreams of *forward*.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;

use control::status::{Problem, ProblemCode, Status, Upstream};
use control::text::duration;

use super::{of_status, problems_of};
use crate::dns::DNS_PORT;
use crate::known::known;
use crate::{Area, Check, EncryptedProbe, Evidence, Facts, Finding, Need, Outcome, Severity, Unknown, UpstreamProbe};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-U01",
        area: Area::Upstream,
        title: "no upstream leads back to this server",
        severity: Severity::Error,
        needs: &[Need::Server, Need::Corefile, Need::Api, Need::Network],
        rights: &["list services"],
        meaning: "An upstream is the stub resolver of systemd on a loopback address, the cluster IP of the DNS \
                  Service, or a replica, or it forwards queries to another server that leads back. A query then runs \
                  in circles until it times out. Sends queries for a random name through each upstream and asks the \
                  server if they came back, and reads what *loop* has found. Only *loop* sends queries through \
                  upstreams over TLS, HTTPS or QUIC.",
        fix: "The addresses of the real name servers in `forward`. If it reads `/etc/resolv.conf`: `dnsPolicy: \
              Default` in the Deployment, and on nodes with systemd-resolved `resolvConf: \
              /run/systemd/resolve/resolv.conf` for the kubelet",
        run: forward_loop,
    },
    Check {
        code: "PD-U02",
        area: Area::Upstream,
        title: "upstreams answer in time",
        severity: Severity::Error,
        needs: &[Need::Server, Need::Corefile, Need::Network],
        rights: &[],
        meaning: "One of: the server's health checks fail; all its queries failed in the last minute; of five probes, \
                  two or more were lost or got SERVFAIL; the median probe took over 0.5 s. An upstream over TLS, \
                  HTTPS or QUIC gets no query from here: it is checked if it takes TCP connections, and if the server \
                  had replies in the last minute.",
        fix: "Ask the upstream itself: `dig ZONE SOA @ADDRESS`. Remove it from `forward` if it stays slow; `policy \
              sequential` prefers the first",
        run: slow,
    },
    Check {
        code: "PD-U03",
        area: Area::Upstream,
        title: "upstreams support EDNS and TCP, and keep the case of names",
        severity: Severity::Warning,
        needs: &[Need::Corefile, Need::Network],
        rights: &[],
        meaning: "Without EDNS, an answer over UDP has at most 512 bytes. Without TCP, clients do not get larger \
                  ones. Clients that check the case of names (0x20) reject the answers of an upstream that changes \
                  it. All upstreams must answer: of one that is silent nothing is known.",
        fix: "Another resolver",
        run: abilities,
    },
    Check {
        code: "PD-U04",
        area: Area::Upstream,
        title: "the rate to the resolver of the cloud is below its limit",
        severity: Severity::Warning,
        needs: &[Need::Server, Need::Api],
        rights: &["list nodes"],
        meaning: "AWS drops packets to its resolver above 1,024 per second and network interface. Counts the replies \
                  of the last minute; above 80 % of the limit it is a finding.",
        fix: "A longer *cache*, a cache on the nodes, or replicas on more nodes",
        run: cloud_limit,
    },
    Check {
        code: "PD-U05",
        area: Area::Upstream,
        title: "search domains of the node have no wildcard",
        severity: Severity::Warning,
        needs: &[Need::Host, Need::Network],
        rights: &[],
        meaning: "A random name below a search domain in `/etc/resolv.conf` has an address. Every name that Pods \
                  misspell, and every name outside of the cluster, then gets this address first.",
        fix: "Remove the search domain from the node's resolv.conf, or a server block `DOMAIN { template ANY ANY { \
              rcode NXDOMAIN } }`",
        run: wildcard,
    },
    Check {
        code: "PD-U06",
        area: Area::Upstream,
        title: "replies of upstreams match queries",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "In the last minute, the server ignored 100 replies or more from the address of an upstream, because \
                  they had a message ID that it had not sent, or another question. Somebody may be guessing IDs to \
                  place a wrong record in the cache; at `unwanted_reply_threshold` of *forward*, the server empties \
                  its caches. Late and repeated replies do not count.",
        fix: "Find out who can send packets with the address of the upstream. An upstream over TLS, HTTPS or QUIC \
              cannot be forged",
        run: unwanted,
    },
];

/// Address of the stub resolver of systemd, and of its proxy mode.
const SYSTEMD: [IpAddr; 2] =
    [IpAddr::V4(core::net::Ipv4Addr::new(127, 0, 0, 53)), IpAddr::V4(core::net::Ipv4Addr::new(127, 0, 0, 54))];

/// Returns the addresses of all upstreams.
fn addresses(facts: &Facts) -> Result<Vec<IpAddr>, Unknown> {
    let of_status = |status: &Status| {
        let all = status.upstreams.iter().filter_map(|upstream| upstream.address.parse::<core::net::SocketAddr>().ok());
        all.map(|address| address.ip()).collect::<Vec<_>>()
    };
    let mut all = match (&facts.server, &facts.corefile) {
        (Ok(server), _) => of_status(&server.status),
        (_, Ok(corefile)) => {
            let plain = corefile.forwarded.iter().map(|upstream| upstream.address.ip());
            let encrypted = corefile.encrypted();
            let all: Vec<IpAddr> = plain.chain(encrypted.iter().filter_map(|one| Some(one.address()?.ip()))).collect();
            if all.is_empty() && corefile.has("forward") {
                return Err(Unknown::new("the addresses of the upstreams are not known here"));
            }
            all
        }
        (Err(reason), Err(_)) => return Err(reason.clone()),
    };
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn forward_loop(facts: &Facts) -> Outcome {
    let upstreams = addresses(facts)?;
    let finding = |address: &IpAddr| {
        let reason = loop_reason(facts, *address)?;
        Some(Finding::new(format!("upstream {address} is {reason}")).fix(fix_of_loop(*address)))
    };
    let mut findings: Vec<Finding> = upstreams.iter().filter_map(finding).collect();
    if findings.is_empty() {
        findings
            .extend(of_status(facts, ProblemCode::ForwardingLoop).into_iter().flatten().map(|one| one.fix(FIX_CIRCLE)));
        findings.extend(facts.upstreams.iter().flatten().filter_map(came_back));
        findings.extend(loops_in_corefile(facts));
    }
    Evidence::of(upstreams.len(), "upstream")?.without_all(not_followed(facts)).found(findings)
}

/// Returns the finding for an upstream whose queries came back.
fn came_back(probe: &UpstreamProbe) -> Option<Finding> {
    let text =
        || format!("queries to upstream {} of zone {} come back to this server", probe.address, root_of(&probe.zone));
    (probe.came_back == Ok(true)).then(|| Finding::new(text()).fix(FIX_CIRCLE))
}

/// Returns why it is not known of some upstreams if their queries come back. An address that looks harmless proves
/// nothing: the server behind it may forward to another one.
fn not_followed(facts: &Facts) -> Vec<Unknown> {
    let mut reasons: Vec<Unknown> = match &facts.upstreams {
        Ok(probes) => probes.iter().filter_map(|probe| probe.came_back.as_ref().err().cloned()).collect(),
        Err(reason) => vec![reason.clone()],
    };
    reasons.extend(unprobed(facts));
    let loops = facts.server.iter().flat_map(|server| &server.status.loops);
    let checked: Vec<&str> = loops.filter(|one| one.is_checked()).map(|one| one.zone.trim_end_matches('.')).collect();
    let is_followed = |zone: &str| checked.iter().any(|known| *known == zone || known.is_empty());
    let left = facts.encrypted.iter().filter(|probe| !is_followed(&probe.upstream.zone));
    reasons.extend(left.map(|probe| Unknown::new(format!("*loop* has sent no query to {}", probe.upstream))));
    reasons
}

/// Fix of a loop that only its queries show.
const FIX_CIRCLE: &str = "See to which servers the upstream forwards, and name one in `forward` that does not ask \
                          this server; docs/runbooks/PortolanLoop.md";

/// Returns the loops that the compilation of the Corefile reports: upstreams that are addresses of this machine.
fn loops_in_corefile(facts: &Facts) -> Vec<Finding> {
    let problems = facts.corefile.iter().flat_map(|corefile| &corefile.problems).flatten();
    let loops = problems.filter(|problem| problem.is_loop());
    loops.map(|problem| Finding::new(format!("{}: {}", problem.place, problem.message))).collect()
}

/// Returns what an upstream is, if it leads back to this server.
fn loop_reason(facts: &Facts, address: IpAddr) -> Option<&'static str> {
    if SYSTEMD.contains(&address) {
        return Some("the stub resolver of systemd, which is not in this Pod");
    }
    // A node cache asks the cluster DNS.
    if is_node_cache(facts) {
        return None;
    }
    let dns = facts.dns().ok()?;
    if dns.service.cluster_ips().any(|known| known == address) {
        return Some("the cluster IP of the DNS Service, which is this server");
    }
    dns.ready_addresses().unwrap_or_default().contains(&address).then_some("a replica of this server")
}

/// Returns the fix for an upstream that leads back to this server, the likely one first.
fn fix_of_loop(address: IpAddr) -> &'static str {
    if SYSTEMD.contains(&address) {
        "`resolvConf: /run/systemd/resolve/resolv.conf` for the kubelets, or the addresses of the real name servers \
         in `forward`"
    } else {
        "The addresses of the real name servers in `forward`, or `dnsPolicy: Default` in the Deployment if `forward` \
         reads `/etc/resolv.conf`"
    }
}

/// Returns true if the running server is a node cache: it has an interface with one of the addresses of the DaemonSet.
fn is_node_cache(facts: &Facts) -> bool {
    let addresses = super::local::node_cache_addresses(facts).unwrap_or_default();
    let interfaces = facts.interfaces.as_deref().unwrap_or_default();
    interfaces.iter().flat_map(|interface| &interface.addresses).any(|address| addresses.contains(address))
}

/// Median from which an upstream is slow, in seconds.
const MEDIAN_MAX: f64 = 0.5;
/// Number of lost or failed queries from which it is a finding. One of five may be lost on any network.
const LOST_MIN: usize = 2;

fn unwanted(facts: &Facts) -> Outcome {
    let server = known(&facts.server)?;
    let findings = of_status(facts, ProblemCode::UnwantedReplies)?;
    Evidence::of(server.status.upstreams.len(), "upstream")?.found(findings)
}

fn slow(facts: &Facts) -> Outcome {
    let reported = problems_of(facts, ProblemCode::UpstreamFails);
    let probed = known(&facts.upstreams);
    if let (Err(_), Err(reason), true) = (&reported, &probed, facts.encrypted.is_empty()) {
        return Err(reason.clone());
    }
    let reported: Vec<&Problem> = reported.into_iter().flatten().collect();
    let is_reported = |address: &str| reported.iter().any(|problem| problem.upstream.as_deref() == Some(address));
    let mut findings: Vec<Finding> = reported.iter().map(|problem| with_command(facts, problem)).collect();
    // A loop answers nothing; that is the finding of PD-U01.
    let is_loop =
        |probe: &&UpstreamProbe| probe.came_back == Ok(true) || loop_reason(facts, probe.address.ip()).is_some();
    for probe in probed.into_iter().flatten().filter(|probe| !is_loop(probe)) {
        if let Some(text) = trouble(probe)
            && !is_reported(&probe.address.to_string())
        {
            findings.push(Finding::new(text).fix(command(&probe.zone, probe.address, None)));
        }
    }
    for probe in facts.encrypted.iter().filter(|probe| probe.connect.is_lost()) {
        let EncryptedProbe { upstream, connect } = probe;
        if let Some(address) = upstream.address()
            && !is_reported(&upstream.host)
        {
            let text =
                format!("upstream {upstream} of zone {}: no TCP connection ({connect})", root_of(&upstream.zone));
            findings.push(Finding::new(text).fix(command(&upstream.zone, address, Some(&upstream.scheme))));
        }
    }
    let known = facts.server.iter().flat_map(|server| &server.status.upstreams).map(|one| one.address.clone());
    let plain = facts.upstreams.iter().flatten().map(|probe| probe.address.to_string());
    let asked: BTreeSet<String> = host::sorting::set(known.chain(plain));
    let asked = Evidence::of(asked.len().max(facts.encrypted.len()), "upstream")?;
    let unasked = not_asked(facts).or_else(|| unknown_to_all(facts));
    asked.without_all(unasked).without_all(unreported(facts)).found(findings)
}

/// Returns the upstreams that neither a query from here nor the server has reached.
fn unknown_to_all(facts: &Facts) -> Option<Unknown> {
    let has_replied = facts.server.iter().flat_map(|server| &server.status.upstreams).filter(|one| one.replies > 0);
    let replied: Vec<&str> = has_replied.map(|one| one.address.as_str()).collect();
    let probed = facts.upstreams.iter().flatten().filter(|probe| probe.answered() > 0).map(|probe| probe.address);
    let probed: Vec<SocketAddr> = probed.collect();
    let is_lost = |address: &SocketAddr| !probed.contains(address) && !replied.contains(&address.to_string().as_str());
    let mut known = facts.corefile.iter().flat_map(|corefile| &corefile.forwarded).map(|one| one.address);
    known
        .find(is_lost)
        .map(|address| Unknown::new(format!("neither the server nor this command has a reply of upstream {address}")))
}

/// Returns why the health checks and the replies of the server are not known.
fn unreported(facts: &Facts) -> Option<Unknown> {
    facts.server.as_ref().err().cloned()
}

/// Makes a finding with the command that asks the upstream which the server reports.
fn with_command(facts: &Facts, problem: &Problem) -> Finding {
    let finding = Finding::new(problem.text.clone());
    let Some(reported) = &problem.upstream else { return finding };
    let encrypted = facts.encrypted.iter().find(|probe| probe.upstream.host == *reported);
    if let Some(EncryptedProbe { upstream, .. }) = encrypted
        && let Some(address) = upstream.address()
    {
        return finding.fix(command(&upstream.zone, address, Some(&upstream.scheme)));
    }
    let Ok(address) = reported.parse() else { return finding };
    let mut forwarded = facts.corefile.iter().flat_map(|corefile| &corefile.forwarded);
    let zone = forwarded.find(|one| one.address == address).map_or("", |one| &one.zone);
    let mut upstreams = facts.server.iter().flat_map(|server| &server.status.upstreams);
    let failure = upstreams.find(|one| one.address == *reported).and_then(|one| one.last_failure.as_ref());
    // The failed query may have followed a truncated answer over UDP.
    let scheme = failure.is_some_and(|failure| failure.over_tcp).then_some("tcp");
    finding.fix(command(zone, address, scheme))
}

/// Returns the command that queries an upstream, with an introduction.
fn command(zone: &str, address: SocketAddr, scheme: Option<&str>) -> String {
    let program = if scheme == Some("quic") { "kdig" } else { "dig" };
    let zone = if zone.is_empty() { ".".to_owned() } else { format!("{zone}.") };
    let port = if address.port() == DNS_PORT { String::new() } else { format!(" -p {}", address.port()) };
    let transport = match scheme {
        None => String::new(),
        Some("tcp") => " +tcp".to_owned(),
        // Without `+tls-ca`, the certificate is not verified.
        Some(scheme) => format!(" +{scheme} +tls-ca"),
    };
    format!("To query it: `{program} {zone} SOA @{}{port}{transport}`", address.ip())
}

/// Returns the reason if neither the server nor a probe has asked one of the upstreams.
fn not_asked(facts: &Facts) -> Option<Unknown> {
    let reported: &[Upstream] = facts.server.as_ref().map_or(&[], |server| &server.status.upstreams);
    let has_replied = |host: &str| reported.iter().any(|one| one.address == host && one.replies > 0);
    let silent: Vec<&EncryptedProbe> =
        facts.encrypted.iter().filter(|probe| !has_replied(&probe.upstream.host)).collect();
    if !silent.is_empty() {
        let all: Vec<String> = silent.iter().map(|probe| probe.upstream.to_string()).collect();
        let asks = if all.len() == 1 { "it" } else { "them" };
        let own = if facts.server.is_ok() {
            format!(", and the server has not asked {asks} in the last minute")
        } else {
            String::new()
        };
        return Some(Unknown::new(format!("doctor sends no queries to {}{own}", all.join(", "))));
    }
    // Without probes, the replies to the server are all that is known.
    let reason = facts.upstreams.as_ref().err()?;
    let is_idle = |one: &Upstream| one.replies == 0;
    reported.iter().any(is_idle).then(|| reason.clone())
}

fn root_of(zone: &str) -> &str {
    if zone.is_empty() { "." } else { zone }
}

fn trouble(probe: &UpstreamProbe) -> Option<String> {
    let UpstreamProbe { address, attempts, failures, .. } = probe;
    let zone = root_of(&probe.zone);
    let lost = attempts.len() - probe.answered();
    if lost >= LOST_MIN {
        let example = attempts.iter().find(|attempt| attempt.is_lost());
        let example = example.map_or(String::new(), |attempt| format!(" ({attempt})"));
        return Some(format!("upstream {address} of zone {zone}: {lost} of {} queries lost{example}", attempts.len()));
    }
    if *failures >= LOST_MIN {
        return Some(format!(
            "upstream {address} of zone {zone}: {failures} of {} answers are SERVFAIL",
            attempts.len()
        ));
    }
    let median = probe.median().filter(|median| *median > MEDIAN_MAX)?;
    Some(format!("upstream {address} of zone {zone}: half of the answers took more than {}", duration(median)))
}

const FIX_TCP: &str = "Allow 53/TCP to it, or use another resolver";
const FIX_EDNS: &str = "Another resolver, or `force_tcp` in *forward*, which has no limit of 512 bytes";
const FIX_CASE: &str = "Another resolver, or clients without 0x20";

fn abilities(facts: &Facts) -> Outcome {
    let probes = known(&facts.upstreams)?;
    let answering: Vec<&UpstreamProbe> = probes.iter().filter(|probe| probe.answered() > 0).collect();
    if answering.is_empty() {
        return Err(Unknown::new("no upstream answers from here"));
    }
    let evidence = Evidence::of(answering.len(), "upstream")?.without_all(probes.iter().filter_map(unasked));
    let evidence = evidence.without_all(unprobed(facts)).without_all(unprobed_encrypted(facts));
    let mut findings = Vec::new();
    for probe in answering {
        let address = probe.address;
        let mut add = |text: String, fix: &str| findings.push(Finding::new(text).fix(fix));
        if probe.tcp.is_lost() {
            add(format!("upstream {address} does not answer over TCP: {}", probe.tcp), FIX_TCP);
        }
        if probe.edns == Some(false) {
            add(format!("upstream {address} does not support EDNS: its answer has no OPT record"), FIX_EDNS);
        }
        if probe.keeps_case == Some(false) {
            add(format!("upstream {address} changes the case of names"), FIX_CASE);
        }
    }
    evidence.found(findings)
}

/// Returns what the probes of an upstream do not show.
fn unasked(probe: &UpstreamProbe) -> Option<Unknown> {
    let address = probe.address;
    if probe.answered() == 0 {
        return Some(Unknown::new(format!("upstream {address} does not answer from here")));
    }
    let is_unknown = probe.edns.is_none() || probe.keeps_case.is_none() || probe.tcp == crate::Attempt::NotTried;
    is_unknown.then(|| Unknown::new(format!("not all queries to upstream {address} had an answer")))
}

/// Returns the upstreams over plain DNS that got no query from here, although others did: doctor asks a limited number.
fn unprobed(facts: &Facts) -> Option<Unknown> {
    let probes = facts.upstreams.as_ref().ok()?;
    let of_corefile = facts.corefile.iter().flat_map(|corefile| &corefile.forwarded).map(|one| one.address);
    let reported = facts.server.iter().flat_map(|server| &server.status.upstreams);
    let is_plain = |one: &&Upstream| matches!(one.transport.as_str(), "udp" | "tcp");
    let of_server = reported.filter(is_plain).filter_map(|one| one.address.parse::<SocketAddr>().ok());
    let is_probed = |address: &SocketAddr| probes.iter().any(|probe| probe.address == *address);
    let left: BTreeSet<SocketAddr> =
        host::sorting::set(of_corefile.chain(of_server).filter(|address| !is_probed(address)));
    let first = left.first()?;
    Some(Unknown::new(match left.len() {
        1 => format!("doctor has not asked upstream {first}"),
        count => format!("doctor has not asked {count} upstreams, such as {first}"),
    }))
}

/// Returns the upstreams that get no query from here because they are not plain DNS.
fn unprobed_encrypted(facts: &Facts) -> Option<Unknown> {
    let all: Vec<String> = facts.encrypted.iter().map(|probe| probe.upstream.to_string()).collect();
    (!all.is_empty()).then(|| Unknown::new(format!("doctor sends no queries to {}", all.join(", "))))
}

/// Limit of AWS in packets per second, and the share of it from which it is a finding.
const AWS_PACKETS_MAX: f64 = 1_024.0;
const AWS_SHARE: f64 = 0.8;

fn cloud_limit(facts: &Facts) -> Outcome {
    let status = &known(&facts.server)?.status;
    let nodes = known(&facts.objects.nodes)?;
    if !nodes.iter().any(|node| node.spec.provider_id.starts_with("aws://")) {
        let reason = "the nodes are not at AWS";
        return Err(if nodes.cut {
            Unknown::new(format!("{reason}, as far as they were read"))
        } else {
            Unknown::inapplicable(reason)
        });
    }
    let window = status.answers.window_seconds.max(1.0);
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let rate = |upstream: &&Upstream| upstream.replies as f64 / window;
    let near = status.upstreams.iter().filter(|upstream| rate(upstream) > AWS_PACKETS_MAX * AWS_SHARE);
    let text = |upstream: &Upstream| {
        format!("{} answers {} queries/s of at most 1,024", upstream.address, control::text::rate(rate(&upstream)))
    };
    Evidence::of(status.upstreams.len(), "upstream")?.found(near.map(|upstream| Finding::new(text(upstream))))
}

fn wildcard(facts: &Facts) -> Outcome {
    let probes = known(&facts.search)?;
    let silent = probes.iter().filter(|probe| probe.answered.is_none());
    let silent = silent.map(|probe| Unknown::new(format!("no answer to a random name below {}", probe.domain)));
    let answered = probes.iter().filter(|probe| probe.answered == Some(true));
    let findings = answered.map(|probe| Finding::new(format!("random names below {} have addresses", probe.domain)));
    Evidence::of(probes.len(), "search domain")?.without_all(silent).found(findings)
}
