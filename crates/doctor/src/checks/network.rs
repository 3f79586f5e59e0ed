//! Paths of packets between clients, the server and its upstreams.

use core::net::IpAddr;
use std::collections::BTreeSet;

use control::text::percent;

use super::network_policy;
use crate::known::known;
use crate::objects::Node;
use crate::{
    Area, Attempt, Check, Evidence, Facts, Finding, Flow, LargeAnswer, Need, Outcome, Probe, Severity, Unknown,
    UpstreamProbe,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-N01",
        area: Area::Network,
        title: "connection tracking drops no packets",
        severity: Severity::Warning,
        needs: &[Need::Host],
        rights: &[],
        meaning: "Two packets of one socket at the same time can create the same entry, and the kernel drops one. \
                  glibc sends the A and the AAAA query so, and waits 5 s. Reads `insert_failed` of this network \
                  namespace: on a node that of all its Pods.",
        fix: "A cache on the nodes (`portolan node`), whose queries are not tracked, or `options \
              single-request-reopen` in the Pods",
        run: conntrack_race,
    },
    Check {
        code: "PD-N02",
        area: Area::Network,
        title: "the connection tracking table has room",
        severity: Severity::Warning,
        needs: &[Need::Host],
        rights: &[],
        meaning: "The table of this network namespace is filled to more than 80 %. When it is full, the kernel drops \
                  packets of new connections, UDP included.",
        fix: "Raise `net.netfilter.nf_conntrack_max` on the node, or use a cache on the nodes, whose queries are not \
              tracked",
        run: conntrack_table,
    },
    Check {
        code: "PD-N03",
        area: Area::Network,
        title: "NetworkPolicies allow 53/UDP and 53/TCP to the cluster DNS",
        severity: Severity::Error,
        needs: &[Need::Api, Need::Network],
        rights: &[
            "list services",
            "list endpointslices",
            "list networkpolicies",
            "list pods",
            "list namespaces",
            "list daemonsets",
        ],
        meaning: "Reads the policies for the Pods of the cluster DNS (ingress) and for all Pods (egress), and asks \
                  the replicas from here. Policies of Cilium and Calico with their own types are not read.",
        fix: "An egress rule with `ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]` and a peer with the \
              labels `kubernetes.io/metadata.name: kube-system` and `k8s-app: kube-dns`",
        run: policies,
    },
    Check {
        code: "PD-N04",
        area: Area::Network,
        title: "the cluster DNS answers over TCP from here",
        severity: Severity::Error,
        needs: &[Need::Network],
        rights: &["list services", "list endpointslices"],
        meaning: "A server that answers over UDP does not over TCP. Answers that do not fit in a datagram then fail.",
        fix: "Open 53/TCP in firewalls, security groups and NetworkPolicies, and add it to the Service",
        run: tcp,
    },
    Check {
        code: "PD-N05",
        area: Area::Network,
        title: "packets of 1,232 bytes reach the servers, and come back, whole",
        severity: Severity::Warning,
        needs: &[Need::Network],
        rights: &[],
        meaning: "Sends a query of 1,232 bytes that may not be fragmented (DF) to the replicas and the upstreams. If \
                  only small queries are answered, the MTU of the path is too small for the answers that EDNS allows. \
                  Asks each upstream over UDP and TCP for the NS, DNSKEY and TXT records of its zone: an answer of \
                  513 to 1,232 bytes that arrives over TCP only is lost on the way back. A private zone may have no \
                  such answer, and then nothing can get lost.",
        fix: "`bufsize 1232` in the Corefile or less, and the MTU of the overlay network set to that of the links \
              minus its headers",
        run: mtu,
    },
    Check {
        code: "PD-N06",
        area: Area::Network,
        title: "the server sees the addresses of its clients",
        severity: Severity::Warning,
        needs: &[Need::Server, Need::Api],
        rights: &["list nodes", "list daemonsets"],
        meaning: "More than half of the queries of the last minute have the address of a node, or one that ends in \
                  `.0`, as their source. Then something on the way replaces the addresses of Pods, and *acl*, *view*, \
                  *log* and `portolan top` see the wrong client. A node cache asks from its node, so this is not \
                  checked with one.",
        fix: "Exclude the network of the Pods in the masquerade rules (ip-masq-agent: `nonMasqueradeCIDRs`); for \
              clients from outside `externalTrafficPolicy: Local` in the Service",
        run: hidden_clients,
    },
    Check {
        code: "PD-N07",
        area: Area::Network,
        title: "no client sends to a replica that is gone",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Host],
        rights: &["list services", "list endpointslices"],
        meaning: "Connection tracking of this network namespace has entries that send queries for the cluster IP to \
                  an address that is not an endpoint any more. These clients get no answer until they change their \
                  port. Needs `/proc/net/nf_conntrack`, which not every kernel has.",
        fix: "`conntrack -D -p udp --orig-dst CLUSTER-IP` on the node; kube-proxy of Kubernetes 1.32 or later removes \
              such entries itself",
        run: stale_flows,
    },
];

/// Number of dropped packets since boot from which it is a finding: a few happen on every busy node.
const INSERT_FAILED_MIN: u64 = 100;

fn conntrack_race(facts: &Facts) -> Outcome {
    let conntrack = known(&facts.conntrack)?;
    let missing = || Unknown::new("the kernel does not show its counters here");
    let failed = conntrack.insert_failed.ok_or_else(missing)?;
    let text = || format!("{} packets dropped since boot (insert_failed)", control::text::count(failed));
    let finding = (failed >= INSERT_FAILED_MIN).then(|| Finding::new(text()));
    Evidence::fact(format!("insert_failed is {}", control::text::count(failed))).found(finding)
}

/// Fill of the table in percent from which it is a finding.
const TABLE_PERCENT_MAX: u64 = 80;

fn conntrack_table(facts: &Facts) -> Outcome {
    let missing = || Unknown::new("the kernel does not show the table here");
    let (entries, max) = known(&facts.conntrack)?.entries.ok_or_else(missing)?;
    let is_full = entries.saturating_mul(100) > max.saturating_mul(TABLE_PERCENT_MAX);
    let finding = || {
        let double = max.saturating_mul(2);
        Finding::new(format!("{} of {} entries", control::text::count(entries), control::text::count(max)))
            .fix(format!("`sysctl -w net.netfilter.nf_conntrack_max={double}` on the node, or a cache on the nodes"))
    };
    let seen = format!("{} of {} entries", control::text::count(entries), control::text::count(max));
    Evidence::fact(seen).found(is_full.then(finding))
}

fn policies(facts: &Facts) -> Outcome {
    let dns = facts.dns()?;
    let (evidence, mut findings) = match network_policy::blocking(facts, &dns) {
        Ok(looked) => (looked.evidence, looked.findings),
        Err(reason) => (Evidence::fact("queries to the replicas").without(reason), Vec::new()),
    };
    let probes = match known(&facts.probes) {
        Ok(probes) => probes,
        Err(reason) if facts.objects.network_policies.is_err() => return Err(reason),
        Err(reason) => return evidence.without(reason).found(findings),
    };
    // With a silent replica and a known policy, the policy is the cause.
    if findings.is_empty() {
        let silent = probes.replicas.iter().filter(|probe| probe.udp.is_lost());
        findings.extend(silent.map(|probe| unanswered(probe, dns.namespace())));
    }
    evidence.without_all(unprobed(facts)).found(findings)
}

/// Describes a replica that does not answer. A refusal says that the packet has arrived, so no policy is the cause.
fn unanswered(probe: &Probe, namespace: &str) -> Finding {
    let Probe { address, udp, .. } = probe;
    if !udp.is_refused() {
        return Finding::new(format!("replica {address} over UDP: {udp}"));
    }
    let (ip, port) = (address.ip(), address.port());
    Finding::new(format!("replica {address} over UDP: {udp}, so no process listens there")).fix(format!(
        "`kubectl -n {namespace} get pods -o wide` names the Pod with the address {ip}, and its log says where it \
         listens; the Corefile needs a server block for port {port}, or the Service another `targetPort`"
    ))
}

/// Returns the ready replicas that were not asked: doctor asks a limited number, and none that it does not know.
fn unprobed(facts: &Facts) -> Option<Unknown> {
    let ready = match facts.dns().and_then(|dns| dns.ready_addresses()) {
        Ok(ready) => ready,
        Err(reason) => return Some(reason),
    };
    let probes = facts.probes.as_ref().ok()?;
    let is_asked = |address: &&IpAddr| probes.replicas.iter().any(|probe| probe.address.ip() == **address);
    let left = ready.iter().filter(|address| !is_asked(address)).count();
    let none = || Unknown::new("the DNS Service has no ready replica to ask");
    if ready.is_empty() {
        return Some(none());
    }
    (left > 0)
        .then(|| Unknown::new(format!("doctor has not asked {}", control::text::counted(left as u64, "ready replica"))))
}

fn tcp(facts: &Facts) -> Outcome {
    let probes = known(&facts.probes)?;
    let all: Vec<&Probe> = probes.service.iter().chain(&probes.replicas).chain(&probes.node_cache).collect();
    if !all.iter().any(|probe| probe.udp.is_answered()) {
        return Err(Unknown::new("nothing answers over UDP either"));
    }
    let lost = all.iter().filter(|probe| probe.udp.is_answered() && probe.tcp.is_lost());
    let text = |probe: &&&Probe| format!("{} answers over UDP; over TCP: {}", probe.address, probe.tcp);
    let is_unseen = |probe: &&&Probe| !probe.udp.is_answered() || probe.tcp == Attempt::NotTried;
    let unseen = all.iter().filter(is_unseen);
    let unseen = unseen.map(|probe| Unknown::new(format!("{} does not answer over UDP either", probe.address)));
    let evidence = Evidence::of(all.len(), "server")?.without_all(unseen);
    evidence.without_all(unprobed(facts)).found(lost.map(|probe| Finding::new(text(&probe))))
}

fn mtu(facts: &Facts) -> Outcome {
    let in_cluster = known(&facts.probes).map(|probes| {
        let all = probes.replicas.iter().chain(&probes.node_cache);
        all.map(|probe| (probe.address, probe.udp.is_answered(), &probe.large)).collect::<Vec<_>>()
    });
    let asked = known(&facts.upstreams);
    let upstreams = asked
        .as_ref()
        .map(|upstreams| upstreams.iter().map(|one| (one.address, one.answered() > 0, &one.large)).collect::<Vec<_>>())
        .map_err(Clone::clone);
    if let (Err(reason), Err(_)) = (&in_cluster, &upstreams) {
        return Err(reason.clone());
    }
    let gaps: Vec<Unknown> =
        [in_cluster.as_ref().err(), upstreams.as_ref().err()].into_iter().flatten().cloned().collect();
    let all: Vec<_> = in_cluster.into_iter().chain(upstreams).flatten().collect();
    let is_seen = |(_, small, large): &&(_, bool, &Attempt)| *small && **large != Attempt::NotTried;
    if !all.iter().any(|one| is_seen(&one)) {
        return Err(Unknown::new("no server answers small queries"));
    }
    let silent = all.iter().filter(|one| !is_seen(one));
    let silent = silent.map(|(address, ..)| Unknown::new(format!("{address} answers no query of a usual size")));
    let answering = || asked.iter().flat_map(|upstreams| upstreams.iter()).filter(|one| one.answered() > 0);
    let (small, without): (Vec<_>, Vec<_>) =
        answering().filter(|one| one.large_answer.is_none()).partition(|one| has_small_answers(one));
    let without =
        without.iter().map(|one| Unknown::new(format!("{} has no answer above 512 bytes to ask for", one.address)));
    let small = small.iter().map(|one| format!("answers of {} for {} are small", one.address, one.zone));
    let evidence = Evidence::of(all.len(), "server")?.without_all(gaps).without_all(silent).without_all(without);
    let evidence = small.fold(evidence, |evidence, note| evidence.noting(&note));
    let lost = all.iter().filter(|(_, small, large)| *small && large.is_lost());
    let text = |(address, _, large): &(_, _, &Attempt)| format!("{address}: a query of 1,232 bytes with DF: {large}");
    let back = answering().filter_map(lost_answer);
    evidence.found(lost.map(|one| Finding::new(text(one))).chain(back))
}

/// Returns true if an upstream has no large answers: it answers over TCP, where nothing gets lost, for a zone of its
/// own. The root zone has some.
fn has_small_answers(upstream: &UpstreamProbe) -> bool {
    let is_root = upstream.zone.trim_end_matches('.').is_empty();
    !is_root && upstream.tcp.is_answered()
}

/// Returns a finding if a large answer of an upstream arrives over TCP only.
fn lost_answer(upstream: &UpstreamProbe) -> Option<Finding> {
    let LargeAnswer { bytes, udp } = upstream.large_answer.as_ref().filter(|answer| answer.udp.is_lost())?;
    let bytes = control::text::count(*bytes as u64);
    Some(Finding::new(format!(
        "{}: an answer of {bytes} bytes arrives over TCP and not over UDP, where smaller ones arrive: {udp}",
        upstream.address
    )))
}

/// Number of queries below which a share says nothing.
const QUERIES_MIN: u64 = 1_000;

fn hidden_clients(facts: &Facts) -> Outcome {
    let clients = &known(&facts.server)?.clients;
    let nodes = known(&facts.objects.nodes)?;
    if !super::local::node_cache_addresses(facts)?.is_empty() {
        return Err(Unknown::inapplicable("a node cache asks from the addresses of the nodes"));
    }
    let total: u64 = clients.iter().map(|client| client.queries).sum();
    if total < QUERIES_MIN {
        let few = format!("only {} queries in the last minute", control::text::count(total));
        return Err(Unknown::inapplicable(few));
    }
    let own: BTreeSet<IpAddr> = host::sorting::set(nodes.iter().flat_map(Node::addresses));
    let is_hidden =
        |text: &str| text.parse().is_ok_and(|address: IpAddr| own.contains(&address) || ends_in_zero(address));
    let hidden: Vec<_> = clients.iter().filter(|client| is_hidden(&client.client)).collect();
    let queries: u64 = hidden.iter().map(|client| client.queries).sum();
    let text = |example: &str| {
        format!("{} % of the queries come from addresses of nodes, such as {example}", percent(queries, total))
    };
    let is_much = queries.saturating_mul(2) > total;
    let finding = hidden.first().filter(|_| is_much).map(|first| Finding::new(text(&first.client)));
    let evidence = Evidence::list(nodes, "node").map(|nodes| nodes.found(finding));
    evidence?
}

/// Returns true for an IPv4 address such as 10.244.1.0, which flannel has for a node in its own network.
fn ends_in_zero(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.to_bits() & 0xff == 0)
}

/// Maximum number of clients that are named.
const NAMED_MAX: usize = 50;

fn stale_flows(facts: &Facts) -> Outcome {
    let missing = || Unknown::new("the kernel does not list the entries here");
    let flows = known(&facts.conntrack)?.flows.as_ref().ok_or_else(missing)?;
    let dns = facts.dns()?;
    let service: Vec<IpAddr> = dns.service.cluster_ips().collect();
    let endpoints = dns.endpoints()?;
    if endpoints.is_empty() {
        return Err(Unknown::new(format!("{} has no endpoints", dns.path())));
    }
    let is_endpoint =
        |address: IpAddr| endpoints.iter().flat_map(|one| &one.addresses).any(|known| known.parse() == Ok(address));
    let is_stale =
        |flow: &&Flow| service.contains(&flow.target) && flow.replica != flow.target && !is_endpoint(flow.replica);
    let text = |flow: &Flow| format!("{} sends to {}, which is not a replica any more", flow.client, flow.replica);
    let texts: BTreeSet<String> = host::sorting::set(flows.iter().filter(is_stale).map(text));
    let seen = format!("{} entries of connection tracking", control::text::count(flows.len() as u64));
    Evidence::fact(seen).found(texts.into_iter().take(NAMED_MAX).map(Finding::new))
}
