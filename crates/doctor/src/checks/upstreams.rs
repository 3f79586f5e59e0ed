//! Upstreams of *forward*.

use core::net::{IpAddr, SocketAddr};

use control::status::{Status, Upstream};
use control::text::duration;

use super::of_status;
use crate::dns::DNS_PORT;
use crate::known::known;
use crate::{Area, Check, EncryptedProbe, Facts, Finding, Need, Outcome, Severity, Unknown, UpstreamProbe};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-U01",
        area: Area::Upstream,
        title: "no upstream leads back to this server",
        severity: Severity::Error,
        needs: &[Need::Server, Need::Corefile, Need::Api],
        rights: &["list services"],
        meaning: "An upstream is the stub resolver of systemd on a loopback address, the cluster IP of the DNS Service, or a \
                  replica. A query then runs in circles until it times out.",
        fix: "The addresses of the real name servers in `forward`. If it reads `/etc/resolv.conf`: `dnsPolicy: Default` in the \
              Deployment, and on nodes with systemd-resolved `resolvConf: /run/systemd/resolve/resolv.conf` for the kubelet",
        run: forward_loop,
    },
    Check {
        code: "PD-U02",
        area: Area::Upstream,
        title: "upstreams answer in time",
        severity: Severity::Error,
        needs: &[Need::Server, Need::Corefile, Need::Network],
        rights: &[],
        meaning: "The health checks of the server fail, or all its queries of the last minute, or of five queries from here at least two were lost, or SERVFAIL, or the \
                  median took more than half a second. An upstream over TLS, HTTPS or QUIC gets no query from here: it is \
                  checked if it takes TCP connections, and if the server had replies in the last minute.",
        fix: "Ask the upstream itself: `dig ZONE SOA @ADDRESS`. Remove it from `forward` if it stays slow; `policy sequential` \
              prefers the first",
        run: slow,
    },
    Check {
        code: "PD-U03",
        area: Area::Upstream,
        title: "upstreams support EDNS and TCP, and keep the case of names",
        severity: Severity::Warning,
        needs: &[Need::Corefile, Need::Network],
        rights: &[],
        meaning: "Without EDNS, an answer over UDP has at most 512 bytes. Without TCP, clients do not get larger ones. Clients \
                  that check the case of names (0x20) reject the answers of an upstream that changes it.",
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
        meaning: "AWS drops packets to its resolver above 1,024 per second and network interface. Counts the replies of the last \
                  minute; above 80 % of the limit it is a finding.",
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
        meaning: "A random name below a search domain in `/etc/resolv.conf` has an address. Every name that Pods misspell, and \
                  every name outside of the cluster, then gets this address first.",
        fix: "Remove the search domain from the node's resolv.conf, or a server block `DOMAIN { template ANY ANY { rcode \
              NXDOMAIN } }`",
        run: wildcard,
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
        findings.extend(loops_in_corefile(facts));
    }
    match facts.dns() {
        // Without the addresses of the Service, only the stub resolver can be recognised.
        Err(reason) if findings.is_empty() => Err(reason),
        _ => Ok(findings),
    }
}

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
        "`resolvConf: /run/systemd/resolve/resolv.conf` for the kubelets, or the addresses of the real name servers in `forward`"
    } else {
        "The addresses of the real name servers in `forward`, or `dnsPolicy: Default` in the Deployment if `forward` reads \
         `/etc/resolv.conf`"
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

fn slow(facts: &Facts) -> Outcome {
    let reported = of_status(facts, "PD-U02");
    let probed = known(&facts.upstreams);
    if let (Err(_), Err(reason), true) = (&reported, &probed, facts.encrypted.is_empty()) {
        return Err(reason.clone());
    }
    let mut findings: Vec<Finding> =
        reported.unwrap_or_default().into_iter().map(|one| with_command(facts, one)).collect();
    // A loop answers nothing; that is the finding of PD-U01.
    let is_loop = |probe: &&UpstreamProbe| loop_reason(facts, probe.address.ip()).is_some();
    for probe in probed.into_iter().flatten().filter(|probe| !is_loop(probe)) {
        if let Some(text) = trouble(probe)
            && !findings.iter().any(|finding| names(&finding.text, &probe.address.to_string()))
        {
            findings.push(Finding::new(text).fix(command(&probe.zone, probe.address, None)));
        }
    }
    for probe in facts.encrypted.iter().filter(|probe| probe.connect.is_lost()) {
        let EncryptedProbe { upstream, connect } = probe;
        if let Some(address) = upstream.address()
            && !findings.iter().any(|finding| names(&finding.text, &upstream.host))
        {
            let text =
                format!("upstream {upstream} of zone {}: no TCP connection ({connect})", root_of(&upstream.zone));
            findings.push(Finding::new(text).fix(command(&upstream.zone, address, Some(&upstream.scheme))));
        }
    }
    match not_asked(facts) {
        Some(reason) if findings.is_empty() => Err(reason),
        _ => Ok(findings),
    }
}

/// Returns true if a text has an address as a word. The server reports its upstreams as texts.
fn names(text: &str, address: &str) -> bool {
    text.split(' ').any(|word| word.trim_end_matches(':') == address)
}

/// Adds the command that asks the upstream which the server reports.
fn with_command(facts: &Facts, finding: Finding) -> Finding {
    let encrypted = facts.encrypted.iter().find(|probe| names(&finding.text, &probe.upstream.host));
    if let Some(EncryptedProbe { upstream, .. }) = encrypted
        && let Some(address) = upstream.address()
    {
        return finding.fix(command(&upstream.zone, address, Some(&upstream.scheme)));
    }
    let mut forwarded = facts.corefile.iter().flat_map(|corefile| &corefile.forwarded);
    let zone = forwarded.find(|one| names(&finding.text, &one.address.to_string())).map_or("", |one| &one.zone);
    let address = finding.text.split(' ').find_map(|word| word.trim_end_matches(':').parse().ok());
    match address {
        Some(address) => finding.fix(command(zone, address, None)),
        None => finding,
    }
}

/// Returns the command that asks an upstream.
fn command(zone: &str, address: SocketAddr, scheme: Option<&str>) -> String {
    let program = if scheme == Some("quic") { "kdig" } else { "dig" };
    let zone = if zone.is_empty() { ".".to_owned() } else { format!("{zone}.") };
    let port = if address.port() == DNS_PORT { String::new() } else { format!(" -p {}", address.port()) };
    let transport = scheme.map_or(String::new(), |scheme| format!(" +{scheme}"));
    format!("`{program} {zone} SOA @{}{port}{transport}` asks it", address.ip())
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
    if !probes.iter().any(|probe| probe.answered() > 0) {
        return Err(Unknown::new("no upstream answers from here"));
    }
    let mut findings = Vec::new();
    for probe in probes.iter().filter(|probe| probe.answered() > 0) {
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
    Ok(findings)
}

/// Limit of AWS in packets per second, and the share of it from which it is a finding.
const AWS_PACKETS_MAX: f64 = 1_024.0;
const AWS_SHARE: f64 = 0.8;

fn cloud_limit(facts: &Facts) -> Outcome {
    let status = &known(&facts.server)?.status;
    let nodes = known(&facts.objects.nodes)?;
    if !nodes.iter().any(|node| node.spec.provider_id.starts_with("aws://")) {
        return Err(Unknown::new("the nodes are not at AWS"));
    }
    let window = status.answers.window_seconds.max(1.0);
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let rate = |upstream: &&Upstream| upstream.replies as f64 / window;
    let near = status.upstreams.iter().filter(|upstream| rate(upstream) > AWS_PACKETS_MAX * AWS_SHARE);
    let text = |upstream: &Upstream| {
        format!("{} answers {} queries/s of at most 1,024", upstream.address, control::text::rate(rate(&upstream)))
    };
    Ok(near.map(|upstream| Finding::new(text(upstream))).collect())
}

fn wildcard(facts: &Facts) -> Outcome {
    let probes = known(&facts.search)?;
    let answered = probes.iter().filter(|probe| probe.answered);
    Ok(answered.map(|probe| Finding::new(format!("random names below {} have addresses", probe.domain))).collect())
}
