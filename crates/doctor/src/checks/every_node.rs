//! Full server on every node, under a Service that prefers the own node.
//!
//! The checks apply if a DaemonSet has the server, if the Service prefers the own node, or if the user asks for the
//! area: before a migration, the cluster has none of it.

use core::net::IpAddr;

use control::text::counted;

use crate::known::known;
use crate::objects::{DaemonSet, DisruptionBudget, Endpoint, EndpointSlice, Selector};
use crate::{
    Area, Check, DNS_PORT, DnsService, Evidence, Facts, Finding, Known, Need, Outcome, ServiceAnswers, Severity,
    Unknown, Workload,
};

/// Value of `trafficDistribution` that the mode needs.
const SAME_NODE: &str = "PreferSameNode";
/// Label of a DaemonSet of the full server in the manifests of this project.
const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "every-node");
/// First minor version of Kubernetes 1 in which the API server takes the value and kube-proxy honours it.
const MINOR_MIN: u32 = 34;
/// Maximum number of names in a finding.
const NAMED_MAX: usize = 3;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-E01",
        area: Area::EveryNode,
        title: "the Pod on this node answers its clients",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Network],
        rights: &["list services", "list daemonsets", "list endpointslices"],
        meaning: "Asks the cluster IP many times from new ports, and counts which Pods answer, by the name that \
                  *nsid* adds. With a ready Pod on this node, all answers must be its own. If they are not, the data \
                  plane ignores `trafficDistribution`: run this on a node after every change of the network plugin.",
        fix: "The other checks of this area find the usual causes. If there are none, the data plane does not honour \
              the field: use `portolan node` (docs/node-cache.md)",
        run: own_node_answers,
    },
    Check {
        code: "PD-E02",
        area: Area::EveryNode,
        title: "all ready endpoints of the DNS Service have a hint for a node",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets", "list endpointslices"],
        meaning: "kube-proxy prefers the own node only if every ready endpoint has a hint. One without it, such as \
                  one of an EndpointSlice that was written by hand, switches the preference off on all nodes.",
        fix: "Give the endpoint a `nodeName` and `hints.forNodes`, or remove it from the Service. If no endpoint has \
              a hint, the controller manager must have version 1.34 or later",
        run: hints,
    },
    Check {
        code: "PD-E03",
        area: Area::EveryNode,
        title: "the DNS Service may send queries to other nodes",
        severity: Severity::Error,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets"],
        meaning: "`internalTrafficPolicy: Local` wins over the preference. It drops all queries of a node without a \
                  ready Pod: while its Pod restarts, and on a new node.",
        fix: "`internalTrafficPolicy: Cluster` in the Service",
        run: internal_policy,
    },
    Check {
        code: "PD-E04",
        area: Area::EveryNode,
        title: "the DNS Service has no session affinity",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets"],
        meaning: "With `sessionAffinity: ClientIP`, a client that once used the Pod of another node stays with it \
                  when that of its own node is ready again.",
        fix: "`sessionAffinity: None` in the Service",
        run: session_affinity,
    },
    Check {
        code: "PD-E05",
        area: Area::EveryNode,
        title: "the DNS Service prefers the own node",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets"],
        meaning: "A DaemonSet has the server, and the Service has no `trafficDistribution: PreferSameNode`, so \
                  queries go to the Pods of all nodes. `kubeadm upgrade` writes the Service without the field, and \
                  starts the Deployment again; a cloud that manages the Service does so at any time.",
        fix: "Set the field again, and upgrade with `--skip-phases=addon/coredns`: `kubeadm upgrade apply`, and \
              `kubeadm upgrade node` on the other control-plane nodes",
        run: preference,
    },
    Check {
        code: "PD-E06",
        area: Area::EveryNode,
        title: "no PodDisruptionBudget covers the Pods of the DaemonSet",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets", "list poddisruptionbudgets"],
        meaning: "The number of Pods that a DaemonSet should have is not known to a budget with percentages or \
                  `maxUnavailable`. It then blocks every eviction of these Pods. A drain leaves them alone without a \
                  budget, and an update does not evict.",
        fix: "Delete the budget, or give it a selector that only the Pods of the Deployment match",
        run: budget,
    },
    Check {
        code: "PD-E07",
        area: Area::EveryNode,
        title: "nothing scales the Deployment of the DNS Service",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets", "list deployments", "list horizontalpodautoscalers"],
        meaning: "A HorizontalPodAutoscaler or a cluster-proportional-autoscaler scales the Deployment up again, \
                  after it was scaled down because the Pods on the nodes have taken over.",
        fix: "Delete the autoscaler",
        run: autoscaler,
    },
    Check {
        code: "PD-E08",
        area: Area::EveryNode,
        title: "no node cache is between Pods and the DNS Service",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Host],
        rights: &["list services", "list daemonsets"],
        meaning: "A node cache that has the cluster IP on its nodes answers in place of the Service. One that was \
                  killed leaves its interface and rules behind, so that nothing answers. The rest is seen on the \
                  network of a node only, or if the Pods of the Service answer from here.",
        fix: "Delete the DaemonSet of the node cache so that its Pods end normally. If they were killed: `ip link \
              delete nodelocaldns` on the node, and the rules for its addresses in the tables raw and filter",
        run: node_cache,
    },
    Check {
        code: "PD-E09",
        area: Area::EveryNode,
        title: "the DNS Service selects the Pods of the DaemonSet",
        severity: Severity::Error,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets"],
        meaning: "A DaemonSet with the label `app.kubernetes.io/component: every-node` has Pods without the labels \
                  that the Service selects. They run and get no queries.",
        fix: "Add the labels of the selector to the template of the DaemonSet; in the chart, \
              `everyNode.existingServiceSelector`",
        run: labels,
    },
    Check {
        code: "PD-E10",
        area: Area::EveryNode,
        title: "only DNS servers are behind the DNS Service",
        severity: Severity::Error,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets", "list deployments"],
        meaning: "A Deployment or DaemonSet whose containers declare ports, but not the one for DNS over UDP, has \
                  the labels that the Service selects. Its Pods get a share of the queries and refuse them.",
        fix: "Remove the labels of the selector from the Pods of this workload",
        run: foreign_pods,
    },
    Check {
        code: "PD-E11",
        area: Area::EveryNode,
        title: "the API server and kube-proxy know the preference",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets"],
        meaning: "`PreferSameNode` is off by default in Kubernetes 1.33, and older API servers reject it. An older \
                  kube-proxy prefers the zone. Reads the version of the API server, the tags of the images of \
                  kube-proxy, and what kubelets report.",
        fix: "Upgrade to Kubernetes 1.34 or later, or use `portolan node` (docs/node-cache.md)",
        run: versions,
    },
    Check {
        code: "PD-E12",
        area: Area::EveryNode,
        title: "Cilium honours the preference",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list daemonsets", "get configmaps"],
        meaning: "Cilium translates cluster IPs of Pods itself, also beside kube-proxy, whose choice it then \
                  ignores. It reads `trafficDistribution` only with kube-proxy replacement and \
                  `loadBalancer.serviceTopology`, which is off by default, and PreferSameNode only in versions of \
                  mid-2026 or later.",
        fix: "`kubeProxyReplacement=true` and `loadBalancer.serviceTopology=true` in the values of Cilium, or \
              `portolan node`",
        run: cilium,
    },
];

/// Mode of the cluster.
struct Mode<'a> {
    dns: DnsService<'a>,
    /// DaemonSet of the full server; `None` before a migration.
    daemon_set: Option<&'a DaemonSet>,
}

impl<'a> Mode<'a> {
    /// Returns the mode.
    ///
    /// # Errors
    /// The cluster does not have it, and the user does not ask for it.
    fn of(facts: &'a Facts) -> Known<Mode<'a>> {
        let dns = facts.dns()?;
        let daemon_sets = known(&facts.objects.daemon_sets)?;
        let daemon_set = match dns.daemon_set()? {
            None => daemon_sets.iter().find(|one| is_labelled(one)),
            selected => selected,
        };
        let mode = Mode { dns, daemon_set };
        if daemon_set.is_some() || mode.prefers() || facts.plans_every_node {
            return Ok(mode);
        }
        if daemon_sets.cut {
            return Err(Unknown::new("no DaemonSet has the full server, as far as they were read"));
        }
        Err(Unknown::inapplicable("no DaemonSet has the full server"))
    }

    fn prefers(&self) -> bool {
        self.dns.service.spec.traffic_distribution == SAME_NODE
    }

    /// Returns the DaemonSet.
    ///
    /// # Errors
    /// The cluster does not have it yet.
    fn daemon_set(&self) -> Known<&'a DaemonSet> {
        self.daemon_set.ok_or_else(|| Unknown::inapplicable("no DaemonSet has the full server yet"))
    }

    fn evidence(&self) -> Evidence {
        Evidence::fact(format!("Service {}", self.dns.path()))
    }

    fn about_service(&self, text: String) -> Finding {
        Finding::new(text).about("Service", self.dns.namespace(), &self.dns.service.metadata.name)
    }

    /// Returns the command that changes a field of the Service.
    fn patch(&self, field: &str, value: &str) -> String {
        let (namespace, name) = (self.dns.namespace(), &self.dns.service.metadata.name);
        let change = format!("{{\"spec\":{{\"{field}\":\"{value}\"}}}}");
        format!("`kubectl -n {namespace} patch service {name} --type=merge --patch '{change}'`")
    }

    /// Returns the reason why a check of the preference has nothing to look at, if the Service does not prefer.
    fn require_preference(&self) -> Known<()> {
        let missing = || Unknown::inapplicable("the Service does not prefer the own node");
        if self.prefers() { Ok(()) } else { Err(missing()) }
    }
}

fn is_labelled(daemon_set: &DaemonSet) -> bool {
    let (key, value) = COMPONENT;
    daemon_set.spec.template.metadata.label(key) == value || daemon_set.metadata.label(key) == value
}

fn own_node_answers(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    mode.require_preference()?;
    let endpoints = mode.dns.endpoints()?;
    let all = known(&facts.answers)?;
    let node = facts.own_node()?;
    let is_local = |endpoint: &&&Endpoint| endpoint.is_ready() && endpoint.node_name == node;
    let Some(local) = endpoints.iter().find(is_local) else {
        return Err(Unknown::inapplicable(format!("{node} has no ready Pod of the Service")));
    };
    let mut findings = Vec::new();
    let (mut own, mut unseen) = (0, Vec::new());
    for answers in all {
        let tally = Tally::of(answers, &endpoints, node);
        own += tally.own;
        unseen.extend(tally.unseen(answers));
        findings.extend(tally.finding(answers, node, &local.target_ref.name).map(|text| mode.about_service(text)));
    }
    if own == 0 && findings.is_empty() {
        let silent = || Unknown::new("the cluster IP of the DNS Service was not asked");
        return Err(unseen.into_iter().next().unwrap_or_else(silent));
    }
    let seen =
        if own == 0 { "answers of other nodes".to_owned() } else { format!("{} of this node", counted(own, "answer")) };
    Evidence::fact(seen).without_all(unseen).found(findings)
}

/// Answers by the place of the server.
struct Tally {
    own: u64,
    /// Names of servers on other nodes, each with its node, and the number of their answers.
    remote: Vec<String>,
    remote_answers: u64,
    /// Names that belong to no endpoint.
    strangers: Vec<String>,
}

impl Tally {
    fn of(answers: &ServiceAnswers, endpoints: &[&Endpoint], node: &str) -> Tally {
        let mut tally = Tally { own: 0, remote: Vec::new(), remote_answers: 0, strangers: Vec::new() };
        for (name, number) in &answers.named {
            match endpoints.iter().find(|endpoint| is_name_of(name, &endpoint.target_ref.name)) {
                Some(endpoint) if endpoint.node_name == node => tally.own += number,
                Some(endpoint) => {
                    tally.remote.push(format!("{name} on {}", endpoint.node_name));
                    tally.remote_answers += number;
                }
                None => tally.strangers.push(name.clone()),
            }
        }
        tally
    }

    fn finding(&self, answers: &ServiceAnswers, node: &str, local: &str) -> Option<String> {
        let (first, rest) = self.remote.split_first()?;
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let address = answers.address.map_or_else(String::new, |address| format!(" to {}", address.ip()));
        Some(format!(
            "{} of {} queries{address} from {node} were answered by {first}{more}, though {local} is ready here",
            self.remote_answers,
            self.own + self.remote_answers
        ))
    }

    /// Returns why some answers say nothing.
    fn unseen(&self, answers: &ServiceAnswers) -> Vec<Unknown> {
        let mut all = Vec::new();
        if answers.unnamed > 0 {
            let text = "answers have no name of their server; it needs *nsid* in the Corefile";
            all.push(Unknown::new(format!("{} of the {text}", answers.unnamed)));
        }
        if answers.lost > 0 {
            all.push(Unknown::new(format!("{} of the queries to the cluster IP had no answer in time", answers.lost)));
        }
        let strangers = self.strangers.iter().take(NAMED_MAX);
        all.extend(strangers.map(|name| Unknown::new(format!("{name} answers and is no endpoint of the Service"))));
        all
    }
}

/// Maximum length of a host name, to which a kubelet cuts the name of a Pod.
const HOST_NAME_MAX: usize = 63;

/// Returns true if a server with this host name is the Pod with this name.
fn is_name_of(host: &str, pod: &str) -> bool {
    host == pod
        || (pod.len() > HOST_NAME_MAX
            && pod.get(..HOST_NAME_MAX).map(|cut| cut.trim_end_matches(['-', '.'])) == Some(host))
}

fn hints(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    mode.require_preference()?;
    let slices = mode.dns.slices()?;
    let pairs = slices.iter().copied().flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (slice, endpoint)));
    let ready: Vec<(&EndpointSlice, &Endpoint)> = pairs.filter(|(_, endpoint)| endpoint.is_ready()).collect();
    let evidence = Evidence::of(ready.len(), "ready endpoint")?;
    let without = ready.iter().filter(|(_, endpoint)| !endpoint.has_node_hint());
    if without.clone().count() == ready.len() {
        let text = format!("none of {} has a hint for a node", counted(ready.len() as u64, "ready endpoint"));
        return evidence.found([mode.about_service(text)]);
    }
    evidence.found(without.take(NAMED_MAX).map(|(slice, endpoint)| without_hint(slice, endpoint)))
}

fn without_hint(slice: &EndpointSlice, endpoint: &Endpoint) -> Finding {
    let (address, path) = (endpoint.addresses.join(", "), slice.metadata.path());
    let why = if endpoint.node_name.is_empty() { ": it names no node" } else { "" };
    let text = format!("endpoint {address} of EndpointSlice {path} has no hint for a node{why}");
    Finding::new(text).about("EndpointSlice", &slice.metadata.namespace, &slice.metadata.name)
}

fn internal_policy(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let is_local = mode.dns.service.spec.internal_traffic_policy == "Local";
    let finding = || {
        let text = format!("Service {} has internalTrafficPolicy Local", mode.dns.path());
        mode.about_service(text).fix(mode.patch("internalTrafficPolicy", "Cluster"))
    };
    mode.evidence().found(is_local.then(finding))
}

fn session_affinity(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let affinity = mode.dns.service.spec.session_affinity.as_str();
    let finding = || {
        let text = format!("Service {} has sessionAffinity {affinity}", mode.dns.path());
        mode.about_service(text).fix(mode.patch("sessionAffinity", "None"))
    };
    mode.evidence().found((!matches!(affinity, "" | "None")).then(finding))
}

fn preference(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let daemon_set = mode.daemon_set()?;
    if mode.prefers() {
        return mode.evidence().found([]);
    }
    let spec = &mode.dns.service.spec;
    let value = match spec.traffic_distribution.as_str() {
        "" => "no trafficDistribution".to_owned(),
        other => format!("trafficDistribution {other}"),
    };
    let back = mode.dns.deployment().ok().filter(|deployment| deployment.spec.replicas != Some(0));
    let back = back.map_or_else(String::new, |deployment| {
        format!("; Deployment {} runs beside it, as after `kubeadm upgrade`", deployment.metadata.path())
    });
    let (service, path) = (mode.dns.path(), daemon_set.metadata.path());
    let text = format!(
        "Service {service} has {value}, so the Pods of DaemonSet {path} do not get the queries of their nodes{back}"
    );
    mode.evidence().found([mode.about_service(text).fix(mode.patch("trafficDistribution", SAME_NODE))])
}

fn budget(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let budgets = known(&facts.objects.disruption_budgets)?;
    let labels = mode.daemon_set.map_or(&mode.dns.service.spec.selector, |one| &one.spec.template.metadata.labels);
    let covers = |budget: &&DisruptionBudget| {
        let selector = budget.spec.selector.as_ref();
        budget.metadata.namespace == mode.dns.namespace() && selector.is_some_and(|one: &Selector| one.matches(labels))
    };
    let finding = |budget: &DisruptionBudget| {
        let (namespace, name) = (&budget.metadata.namespace, &budget.metadata.name);
        let text = format!("PodDisruptionBudget {} covers Pods of the DaemonSet", budget.metadata.path());
        let fix = format!("`kubectl -n {namespace} delete poddisruptionbudget {name}`");
        Finding::new(text).fix(fix).about("PodDisruptionBudget", namespace, name)
    };
    let evidence = Evidence::fact(counted(budgets.len() as u64, "PodDisruptionBudget object"));
    let cut = budgets.cut.then(|| Unknown::new("the cluster has more PodDisruptionBudgets than were read"));
    evidence.without_all(cut).found(budgets.iter().filter(covers).map(finding))
}

fn autoscaler(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let deployments = known(&facts.objects.deployments)?;
    let scaled: Vec<_> = deployments.iter().filter(|one| mode.dns.selects((*one).into())).collect();
    // The flag of the cluster-proportional-autoscaler, such as `--target=Deployment/coredns`.
    let is_target = |word: &str| {
        let word = word.to_ascii_lowercase();
        scaled.iter().any(|one| word.ends_with(&format!("deployment/{}", one.metadata.name)))
    };
    let proportional = deployments.iter().filter(|one| one.spec.template.spec.words().any(is_target));
    let mut findings: Vec<Finding> =
        proportional.filter(|one| one.spec.replicas != Some(0)).map(|one| scales(one.into())).collect();
    let evidence = Evidence::fact(counted(deployments.len() as u64, "Deployment"));
    let autoscalers = match known(&facts.objects.autoscalers) {
        Ok(autoscalers) => autoscalers,
        Err(reason) if findings.is_empty() => return Err(reason),
        Err(reason) => return evidence.without(reason).found(findings),
    };
    for one in autoscalers.iter().filter(|one| one.metadata.namespace == mode.dns.namespace()) {
        let target = &one.spec.scale_target_ref;
        if target.kind == "Deployment" && scaled.iter().any(|scaled| scaled.metadata.name == target.name) {
            let (namespace, name) = (&one.metadata.namespace, &one.metadata.name);
            let text = format!("HorizontalPodAutoscaler {} scales Deployment {}", one.metadata.path(), target.name);
            let fix = format!("`kubectl -n {namespace} delete horizontalpodautoscaler {name}`");
            findings.push(Finding::new(text).fix(fix).about("HorizontalPodAutoscaler", namespace, name));
        }
    }
    evidence.found(findings)
}

fn scales(workload: Workload<'_>) -> Finding {
    let (namespace, name) = (&workload.metadata.namespace, &workload.metadata.name);
    let text = format!("{} is a cluster-proportional-autoscaler of the Deployment", workload.path());
    let fix = format!("`kubectl -n {namespace} delete deployment {name}`");
    Finding::new(text).fix(fix).about("Deployment", namespace, name)
}

/// Interfaces that may have a cluster IP without a node cache: that of kube-proxy in IPVS mode, and the loopback one.
const OTHER_INTERFACES: [&str; 2] = ["kube-ipvs0", "lo"];
/// Interface of a node cache, and its usual address.
const CACHE_INTERFACE: &str = "nodelocaldns";
const CACHE_ADDRESS: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(169, 254, 20, 10));

fn node_cache(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let daemon_sets = known(&facts.objects.daemon_sets)?;
    let service: Vec<IpAddr> = mode.dns.service.cluster_ips().collect();
    let caches: Vec<_> = daemon_sets.iter().filter_map(|one| Some((one, one.node_cache_addresses()?))).collect();
    let taking = caches.iter().filter_map(|(one, addresses)| {
        let taken = addresses.iter().find(|address| service.contains(address))?;
        let path = one.metadata.path();
        let text = format!("DaemonSet {path} has {taken} on its nodes, so the Pods of the Service are not asked there");
        Some(Finding::new(text).about("DaemonSet", &one.metadata.namespace, &one.metadata.name))
    });
    let findings: Vec<Finding> = taking.collect();
    let evidence = Evidence::fact(counted(daemon_sets.len() as u64, "DaemonSet"));
    if !findings.is_empty() || !caches.is_empty() {
        return evidence.found(findings);
    }
    let interfaces = known(&facts.interfaces)?;
    let is_taken = |address: &IpAddr| *address == CACHE_ADDRESS || service.contains(address);
    let is_left = |name: &str, addresses: &[IpAddr]| {
        name == CACHE_INTERFACE || (!OTHER_INTERFACES.contains(&name) && addresses.iter().any(is_taken))
    };
    let left = interfaces.iter().find(|interface| is_left(&interface.name, &interface.addresses));
    if let Some(left) = left {
        let text = format!("no DaemonSet is a node cache, and this node still has the interface {}", left.name);
        return evidence.found([Finding::new(text).severity(Severity::Error)]);
    }
    let is_seen = facts.is_on_node_network() || pods_answer(facts, &mode.dns);
    let unseen = || Unknown::new("what a node cache has left is seen on the network of a node only");
    evidence.without_all((!is_seen).then(unseen)).found([])
}

/// Returns true if only Pods of the Service answer its address from here.
fn pods_answer(facts: &Facts, dns: &DnsService<'_>) -> bool {
    let Ok(endpoints) = dns.endpoints() else { return false };
    let is_pod = |name: &String| endpoints.iter().any(|endpoint| is_name_of(name, &endpoint.target_ref.name));
    let answers = facts.answers.iter().flatten();
    let mut answers = answers.filter(|answers| answers.address.is_some()).peekable();
    answers.peek().is_some()
        && answers.all(|one| one.unnamed == 0 && !one.named.is_empty() && one.named.keys().all(is_pod))
}

fn labels(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    mode.daemon_set()?;
    let daemon_sets = known(&facts.objects.daemon_sets)?;
    let ours = |one: &&DaemonSet| {
        let is_here = one.metadata.namespace == mode.dns.namespace();
        is_here && (is_labelled(one) || (one.node_cache_addresses().is_none() && mode.dns.selects((*one).into())))
    };
    let servers: Vec<&DaemonSet> = daemon_sets.iter().filter(ours).collect();
    let finding = |one: &&&DaemonSet| {
        let selector = &mode.dns.service.spec.selector;
        let own = &one.spec.template.metadata.labels;
        let missing = selector.iter().filter(|(key, value)| own.get(*key) != Some(*value));
        let missing: Vec<String> = missing.map(|(key, value)| format!("{key}={value}")).collect();
        let (path, service) = (one.metadata.path(), mode.dns.path());
        let text = format!("the Pods of DaemonSet {path} lack {}, which Service {service} selects", missing.join(","));
        Finding::new(text).about("DaemonSet", &one.metadata.namespace, &one.metadata.name)
    };
    let lost = servers.iter().filter(|one| !mode.dns.selects((**one).into()));
    Evidence::of(servers.len(), "DaemonSet")?.found(lost.map(|one| finding(&one)))
}

fn foreign_pods(facts: &Facts) -> Outcome {
    let mode = Mode::of(facts)?;
    let workloads = mode.dns.workloads()?;
    let port = if mode.dns.endpoint_port() == 0 { DNS_PORT } else { mode.dns.endpoint_port() };
    let is_foreign = |one: &&Workload<'_>| one.template.spec.declares_port(port, "UDP") == Some(false);
    let finding = |one: &Workload<'_>| {
        let text = format!("{} has the labels of Service {}, and no port {port}/UDP", one.path(), mode.dns.path());
        Finding::new(text).about(one.kind, &one.metadata.namespace, &one.metadata.name)
    };
    let evidence = Evidence::of(workloads.len(), "workload")?;
    evidence.found(workloads.iter().filter(is_foreign).map(finding))
}

fn versions(facts: &Facts) -> Outcome {
    Mode::of(facts)?;
    let mut findings = Vec::new();
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    match known(&facts.api_version).and_then(|text| {
        let minor = minor_of(text).ok_or_else(|| Unknown::new(format!("the API server has the version `{text}`")))?;
        Ok((text, minor))
    }) {
        Ok((text, minor)) => {
            seen.push(format!("API server {text}"));
            if minor < MINOR_MIN {
                findings.push(Finding::new(format!("the API server has version {text}")));
            }
        }
        Err(reason) => unseen.push(reason),
    }
    let proxies = kube_proxies(facts);
    match proxies.iter().min_by_key(|(minor, _)| *minor) {
        Some((minor, text)) => {
            seen.push(format!("kube-proxy {text}"));
            if *minor < MINOR_MIN {
                findings.push(Finding::new(format!("kube-proxy has version {text}")));
            }
        }
        None if has_proxy_replacement(facts) => seen.push("Cilium in place of kube-proxy".to_owned()),
        None => unseen.push(Unknown::new("no Pod of kube-proxy shows its version")),
    }
    if seen.is_empty() {
        return Err(unseen.into_iter().next().unwrap_or_else(|| Unknown::new("no version is known")));
    }
    Evidence::fact(seen.join(" and ")).without_all(unseen).found(findings)
}

/// Name of the container and the image of kube-proxy.
const KUBE_PROXY: &str = "kube-proxy";

/// Returns the versions of kube-proxy: in the tags of its images, and as kubelets report them.
fn kube_proxies(facts: &Facts) -> Vec<(u32, String)> {
    let pods = facts.objects.pods.iter().flat_map(|pods| pods.iter()).map(|pod| &pod.spec);
    let daemon_sets = facts.objects.daemon_sets.iter().flat_map(|all| all.iter());
    let specs = pods.chain(daemon_sets.map(|one| &one.spec.template.spec));
    let containers = specs.flat_map(|spec| &spec.containers).filter(|one| one.name == KUBE_PROXY);
    let tags = containers.filter_map(|one| {
        let name = one.image.split('@').next().unwrap_or_default();
        let (_, tag) = name.rsplit_once(':')?;
        Some(tag.to_owned())
    });
    let nodes = facts.objects.nodes.iter().flat_map(|nodes| nodes.iter());
    let reported = nodes.map(|node| node.kube_proxy_version().to_owned());
    tags.chain(reported).filter_map(|text| Some((minor_of(&text)?, text))).collect()
}

/// Returns the minor version in a text such as `v1.34.2-eks-1`. Any version after 1 is later than all of 1.
fn minor_of(text: &str) -> Option<u32> {
    let mut numbers = text.strip_prefix('v').unwrap_or(text).split(|letter: char| !letter.is_ascii_digit());
    let (major, minor): (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(if major > 1 { u32::MAX } else { minor })
}

/// Keys in the ConfigMap of Cilium.
const REPLACEMENT: &str = "kube-proxy-replacement";
const TOPOLOGY: &str = "enable-service-topology";

fn has_proxy_replacement(facts: &Facts) -> bool {
    let settings = facts.objects.cilium.as_ref().ok().and_then(Option::as_ref);
    settings.is_some_and(|settings| settings.get(REPLACEMENT).is_some_and(|value| is_on(value)))
}

/// Values of the setting in current and in older versions.
fn is_on(value: &str) -> bool {
    matches!(value, "true" | "strict")
}

fn cilium(facts: &Facts) -> Outcome {
    Mode::of(facts)?;
    let Some(settings) = known(&facts.objects.cilium)? else {
        return Err(Unknown::inapplicable("there is no ConfigMap kube-system/cilium-config"));
    };
    let has = |key: &str| settings.get(key).is_some_and(|value| is_on(value));
    let about = |text: &str| Finding::new(text).about("ConfigMap", "kube-system", "cilium-config");
    let replacement = (!has(REPLACEMENT)).then(|| {
        about(
            "Cilium runs beside kube-proxy (kube-proxy-replacement is off), and ignores its choice for queries of Pods",
        )
    });
    let topology =
        (!has(TOPOLOGY)).then(|| about("Cilium ignores trafficDistribution: enable-service-topology is off"));
    let evidence = Evidence::fact("ConfigMap kube-system/cilium-config");
    evidence.found(replacement.into_iter().chain(topology))
}
