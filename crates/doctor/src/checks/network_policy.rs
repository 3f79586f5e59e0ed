//! Evaluation of NetworkPolicies: which Pods may not ask the cluster DNS.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use control::text::counted;
use ipnet::IpNet;

use crate::dns::DNS_PORT;
use crate::known::known;
use crate::objects::{NetworkPolicy, Peer, PolicyRule};
use crate::{DnsService, Evidence, Facts, Finding, Outcome, Unknown};

type Labels = BTreeMap<String, String>;

/// Maximum number of findings: a group of Pods with the same policies each.
const FINDINGS_MAX: usize = 50;
/// Label that every namespace has (Kubernetes 1.22).
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
const PROTOCOLS: [&str; 2] = ["UDP", "TCP"];

/// Cluster DNS as the other end of a connection.
struct Target<'a> {
    namespace: &'a str,
    namespace_labels: Labels,
    labels: Labels,
    ports: Vec<u16>,
    addresses: Vec<IpAddr>,
}

/// Returns the policies that keep Pods from asking the cluster DNS.
pub(super) fn blocking(facts: &Facts, dns: &DnsService<'_>) -> Outcome {
    let policies = known(&facts.objects.network_policies)?;
    if policies.is_empty() {
        return Evidence::fact("no NetworkPolicy").found([]);
    }
    let target = Target::new(facts, dns);
    let mut findings = ingress(policies, &target);
    findings.extend(egress(facts, policies, &target));
    findings.truncate(FINDINGS_MAX);
    // Without the Pods, only policies for all Pods of a namespace were judged; without the others, their labels.
    let unread: [Option<&Unknown>; 3] = [
        facts.objects.pods.as_ref().err(),
        facts.objects.namespaces.as_ref().err(),
        facts.objects.daemon_sets.as_ref().err(),
    ];
    let is_empty = facts.objects.pods.as_ref().is_ok_and(|pods| pods.is_empty());
    let empty = is_empty.then(|| Unknown::new("the API server lists no Pod, not even those of the cluster DNS"));
    let evidence = Evidence::list(policies, "NetworkPolicy object")?.without_all(empty);
    evidence.without_all(unread.into_iter().flatten().cloned()).found(findings)
}

impl<'a> Target<'a> {
    fn new(facts: &Facts, dns: &DnsService<'a>) -> Target<'a> {
        let template = dns.workload().map(|workload| workload.template.metadata.labels.clone());
        let mut ports = vec![DNS_PORT];
        let slices = dns.slices().unwrap_or_default();
        ports.extend(slices.iter().flat_map(|slice| &slice.ports).map(|port| port.port));
        let mut addresses: Vec<IpAddr> = dns.service.cluster_ips().collect();
        addresses.extend(dns.ready_addresses().unwrap_or_default());
        addresses.extend(super::local::node_cache_addresses(facts).unwrap_or_default());
        Target {
            namespace: dns.namespace(),
            namespace_labels: labels_of_namespace(facts, dns.namespace()),
            labels: template.unwrap_or_else(|_| dns.service.spec.selector.clone()),
            ports,
            addresses,
        }
    }

    /// Returns true if a rule of a policy in `namespace` allows connections to the cluster DNS.
    fn is_reached(&self, rule: &PolicyRule, namespace: &str, protocol: &str) -> bool {
        self.has_port(rule, protocol)
            && (rule.to.is_empty() || rule.to.iter().any(|peer| self.is_peer(peer, namespace)))
    }

    fn has_port(&self, rule: &PolicyRule, protocol: &str) -> bool {
        rule.ports.is_empty() || rule.ports.iter().any(|port| port.includes(protocol, &self.ports))
    }

    fn is_peer(&self, peer: &Peer, namespace: &str) -> bool {
        if let Some(block) = &peer.ip_block {
            let contains = |text: &str| {
                text.parse::<IpNet>().is_ok_and(|net| self.addresses.iter().any(|address| net.contains(address)))
            };
            return contains(&block.cidr) && !block.except.iter().any(|except| contains(except));
        }
        let in_namespace = match &peer.namespace_selector {
            Some(selector) => selector.matches(&self.namespace_labels),
            None => namespace == self.namespace,
        };
        in_namespace && peer.pod_selector.as_ref().is_none_or(|selector| selector.matches(&self.labels))
    }
}

fn labels_of_namespace(facts: &Facts, name: &str) -> Labels {
    let found = facts.objects.namespaces.as_ref().ok();
    let found = found.and_then(|all| all.iter().find(|one| one.metadata.name == name));
    let named = || Labels::from([(NAMESPACE_NAME.to_owned(), name.to_owned())]);
    found.map_or_else(named, |namespace| namespace.metadata.labels.clone())
}

/// Finds the protocols that no policy of the cluster DNS lets in from other namespaces.
fn ingress(policies: &[NetworkPolicy], target: &Target<'_>) -> Vec<Finding> {
    let selects = |policy: &&NetworkPolicy| {
        policy.metadata.namespace == target.namespace
            && policy.restricts("Ingress")
            && policy.spec.pod_selector.matches(&target.labels)
    };
    let own: Vec<&NetworkPolicy> = policies.iter().filter(selects).collect();
    let is_open = |protocol: &str| {
        let mut rules = own.iter().flat_map(|policy| &policy.spec.ingress);
        rules.any(|rule| target.has_port(rule, protocol) && is_from_anywhere(rule))
    };
    if own.is_empty() {
        return Vec::new();
    }
    let closed: Vec<&str> = PROTOCOLS.into_iter().filter(|protocol| !is_open(protocol)).collect();
    let finding = |protocols: &[&str]| {
        let text = format!(
            "{} lets only some Pods or none reach the cluster DNS over 53/{}",
            names(&own),
            protocols.join(", 53/")
        );
        Finding::new(text)
            .fix("add the rule `- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]` to its `ingress`")
    };
    if closed.is_empty() { Vec::new() } else { vec![finding(&closed)] }
}

/// Returns true for a rule that allows all Pods. A range of addresses counts, because it may be that of all Pods.
fn is_from_anywhere(rule: &PolicyRule) -> bool {
    let is_all = |peer: &Peer| {
        peer.ip_block.is_some()
            || (peer.namespace_selector.as_ref().is_some_and(crate::objects::Selector::is_empty)
                && peer.pod_selector.as_ref().is_none_or(crate::objects::Selector::is_empty))
    };
    rule.from.is_empty() || rule.from.iter().any(is_all)
}

/// Group of Pods with the same policies.
#[derive(Default)]
struct Group {
    pods: u64,
    example: String,
}

/// Finds the Pods that may not connect to the cluster DNS.
fn egress(facts: &Facts, policies: &[NetworkPolicy], target: &Target<'_>) -> Vec<Finding> {
    let restricting: Vec<&NetworkPolicy> = policies.iter().filter(|policy| policy.restricts("Egress")).collect();
    let mut groups: BTreeMap<Vec<usize>, Group> = BTreeMap::new();
    let mut add = |namespace: &str, labels: Option<&Labels>, name: String| {
        let selects = |policy: &NetworkPolicy| {
            let selector = &policy.spec.pod_selector;
            policy.metadata.namespace == namespace
                && labels.map_or(selector.is_empty(), |labels| selector.matches(labels))
        };
        let own: Vec<usize> = (0..restricting.len()).filter(|at| selects(restricting[*at])).collect();
        if !own.is_empty() {
            let group = groups.entry(own).or_insert_with(|| Group { pods: 0, example: name });
            group.pods += 1;
        }
    };
    match &facts.objects.pods {
        Ok(pods) => {
            let clients = pods.iter().filter(|pod| !pod.spec.host_network);
            clients.for_each(|pod| add(&pod.metadata.namespace, Some(&pod.metadata.labels), pod.metadata.path()));
        }
        // Without the Pods, only policies for all Pods of a namespace can be judged.
        Err(_) => {
            let namespaces: BTreeSet<&str> =
                host::sorting::set(restricting.iter().map(|one| one.metadata.namespace.as_str()));
            namespaces.into_iter().for_each(|namespace| add(namespace, None, format!("{namespace}/*")));
        }
    }
    let finding = |(own, group): (Vec<usize>, Group)| {
        let own: Vec<&NetworkPolicy> = own.into_iter().map(|at| restricting[at]).collect();
        closed_for(&own, &group, target)
    };
    groups.into_iter().filter_map(finding).collect()
}

fn closed_for(own: &[&NetworkPolicy], group: &Group, target: &Target<'_>) -> Option<Finding> {
    let is_open = |protocol: &&str| {
        own.iter().any(|policy| {
            let namespace = policy.metadata.namespace.as_str();
            policy.spec.egress.iter().any(|rule| target.is_reached(rule, namespace, protocol))
        })
    };
    let closed: Vec<&str> = PROTOCOLS.into_iter().filter(|protocol| !is_open(protocol)).collect();
    if closed.is_empty() {
        return None;
    }
    let who = match group.pods {
        1 => format!("Pod {}", group.example),
        pods => format!("{} such as {}", counted(pods, "Pod"), group.example),
    };
    let text = format!("{who} may not send 53/{} to the cluster DNS: {}", closed.join(" and 53/"), names(own));
    let first = own.first()?;
    let finding = Finding::new(text).about("NetworkPolicy", &first.metadata.namespace, &first.metadata.name);
    // Most queries work without TCP.
    Some(if closed == ["TCP"] { finding.severity(crate::Severity::Warning) } else { finding })
}

fn names(policies: &[&NetworkPolicy]) -> String {
    let paths: Vec<String> = policies.iter().map(|policy| policy.metadata.path()).collect();
    format!("NetworkPolicy {}", paths.join(", "))
}
