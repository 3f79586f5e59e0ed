//! DNS Service, its endpoints, and the resolver settings that kubelets give to Pods.

use core::net::IpAddr;
use std::collections::BTreeSet;

use control::status::{ProblemCode, Serving};
use control::text::counted;

use super::of_status;
use crate::dns::DNS_PORT;
use crate::known::known;
use crate::objects::{Endpoint, Node, Port};
use crate::{
    Area, Attempt, Check, DnsService, Evidence, Facts, Finding, Known, Kubelet, Need, Outcome, Probe, Severity, Unknown,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-K01",
        area: Area::Kubernetes,
        title: "kubelets name the DNS Service",
        severity: Severity::Error,
        needs: &[Need::Api, Need::Host],
        rights: &["list services", "get configmaps"],
        meaning: "Compares `clusterDNS` of the kubelets with the cluster IPs of the Service and the addresses of the \
                  node cache. The settings come from the ConfigMap kubelet-config, from the kubelet itself, or from \
                  `/etc/resolv.conf` of this Pod.",
        fix: "Set `clusterDNS` in the configuration of the kubelet, restart it, and restart the Pods of the node",
        run: kubelet_address,
    },
    Check {
        code: "PD-K02",
        area: Area::Kubernetes,
        title: "the cluster domain is a zone of *kubernetes*",
        severity: Severity::Error,
        needs: &[Need::Api, Need::Corefile],
        rights: &["get configmaps"],
        meaning: "Compares `clusterDomain` of the kubelets with the zones in the Corefile. If they differ, no short \
                  name of a Service is found.",
        fix: "Change the zone of *kubernetes*, or `clusterDomain` of the kubelets",
        run: cluster_domain,
    },
    Check {
        code: "PD-K03",
        area: Area::Kubernetes,
        title: "the DNS Service has ready endpoints for 53/UDP and 53/TCP",
        severity: Severity::Error,
        needs: &[Need::Api],
        rights: &["list services", "list endpointslices"],
        meaning: "The Service has no ready endpoint, its selector matches no Pod, or a port is missing. Then clients \
                  get no answer at all.",
        fix: "`kubectl get endpointslices,pods` with the namespace and the selector of the Service shows the \
              endpoints; the selector must match the labels of the Pods",
        run: endpoints,
    },
    Check {
        code: "PD-K04",
        area: Area::Kubernetes,
        title: "replicas are on several nodes and zones",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list endpointslices", "list nodes"],
        meaning: "All ready replicas are on one node, or in one topology zone although the cluster has several. Its \
                  failure stops DNS in the whole cluster.",
        fix: "Two replicas or more, with topologySpreadConstraints by kubernetes.io/hostname and \
              topology.kubernetes.io/zone",
        run: spread,
    },
    Check {
        code: "PD-K08",
        area: Area::Kubernetes,
        title: "the cluster IP of the DNS Service answers from here",
        severity: Severity::Error,
        needs: &[Need::Api, Need::Network],
        rights: &["list services", "list endpointslices"],
        meaning: "Asks the cluster IP and the replicas. If replicas answer and the cluster IP does not, the rules of \
                  kube-proxy, or of what replaces it, are missing or old on this node.",
        fix: "Restart kube-proxy on this node. With IPVS, a node cache must not bind the cluster IP",
        run: cluster_ip,
    },
    Check {
        code: "PD-K09",
        area: Area::Kubernetes,
        title: "all plugins and zones of the server are ready",
        severity: Severity::Error,
        needs: &[Need::Server],
        rights: &[],
        meaning: "A plugin has not got what it needs to answer, so `/ready` fails and the replica is not in the \
                  Service. *kubernetes* waits for the first lists of the API server. Or a zone fails, while `/ready` \
                  does not: one of *secondary* that has expired or was never transferred, or one of *dynupdate* whose \
                  database cannot be written.",
        fix: "`portolan status` shows the state of the watches, and the log says what the plugin waits for",
        run: ready,
    },
];

fn ready(facts: &Facts) -> Outcome {
    let status = &known(&facts.server)?.status;
    let ending = (status.serving == Serving::Ending).then(|| Unknown::new("the server shuts down"));
    Evidence::fact("readiness of the server").without_all(ending).found(of_status(facts, ProblemCode::NotReady)?)
}

fn kubelet_address(facts: &Facts) -> Outcome {
    let dns = facts.dns()?;
    let kubelets = known(&facts.kubelets)?;
    let service: Vec<IpAddr> = dns.service.cluster_ips().collect();
    if service.is_empty() {
        return Err(Unknown::new(format!("Service {} has no cluster IP", dns.path())));
    }
    let mut valid = service.clone();
    valid.extend(super::local::node_cache_addresses(facts).unwrap_or_default());
    let wrong = kubelets.iter().filter(|kubelet| !kubelet.cluster_dns.iter().any(|address| valid.contains(address)));
    let evidence = Evidence::of(kubelets.len(), "kubelet setting")?;
    evidence.found(wrong.map(|kubelet| other_address(kubelet, &service)))
}

fn other_address(kubelet: &Kubelet, service: &[IpAddr]) -> Finding {
    let [own, wanted] = [&kubelet.cluster_dns[..], service].map(joined);
    let own = if own.is_empty() { "nothing".to_owned() } else { own };
    Finding::new(format!("{} has clusterDNS {own}; the Service has {wanted}", kubelet.source))
        .fix(format!("set `clusterDNS: [{wanted}]` in the configuration of the kubelets, and restart them"))
}

fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn cluster_domain(facts: &Facts) -> Outcome {
    let zones = known(&facts.corefile)?.cluster_zones();
    if zones.is_empty() {
        return Err(Unknown::inapplicable("the Corefile has no *kubernetes* with a zone"));
    }
    let kubelets = known(&facts.kubelets)?;
    let (named, unnamed): (Vec<&Kubelet>, Vec<&Kubelet>) =
        kubelets.iter().partition(|kubelet| !kubelet.cluster_domain.is_empty());
    if named.is_empty() {
        return Err(Unknown::new("no kubelet says its cluster domain"));
    }
    let unnamed = unnamed.iter().map(|kubelet| Unknown::new(format!("{} has no clusterDomain", kubelet.source)));
    let evidence = Evidence::of(named.len(), "kubelet setting")?.without_all(unnamed);
    let wrong = named.into_iter().filter(|kubelet| !zones.contains(&kubelet.cluster_domain.to_ascii_lowercase()));
    let finding = |kubelet: &Kubelet| {
        let domain = &kubelet.cluster_domain;
        let text = format!("{} has clusterDomain {domain}; the Corefile serves {}", kubelet.source, zones.join(", "));
        Finding::new(text).fix(format!("add `{domain}` to the zones of *kubernetes* in the Corefile"))
    };
    evidence.found(wrong.map(finding))
}

fn endpoints(facts: &Facts) -> Outcome {
    let dns = facts.dns()?;
    let fix = format!(
        "`kubectl -n {} get endpointslices,pods --show-labels` shows the endpoints and the labels of the Pods, which \
         the selector of the Service must match",
        dns.namespace()
    );
    let about = |text: String| {
        Finding::new(text).about("Service", dns.namespace(), &dns.service.metadata.name).fix(fix.as_str())
    };
    let mut findings: Vec<Finding> = missing_ports(&dns).into_iter().map(about).collect();
    findings.extend(no_endpoint(&dns)?.map(about));
    Evidence::fact(format!("Service {}", dns.path())).found(findings)
}

/// Returns what is wrong with the ports of the Service and of its slices.
fn missing_ports(dns: &DnsService<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    for protocol in ["UDP", "TCP"] {
        let is_dns = |port: &&Port| port.port == DNS_PORT && port.protocol() == protocol;
        let Some(port) = dns.service.spec.ports.iter().find(is_dns) else {
            missing.push(format!("Service {} has no port 53/{protocol}", dns.path()));
            continue;
        };
        let slices = dns.slices().unwrap_or_default();
        let is_same = |other: &Port| other.name == port.name && other.protocol() == protocol;
        let filled: Vec<_> = slices.iter().filter(|slice| !slice.endpoints.is_empty()).collect();
        if !filled.is_empty() && !filled.iter().any(|slice| slice.ports.iter().any(is_same)) {
            let (name, target) = (&port.name, &port.target_port);
            missing.push(format!(
                "no EndpointSlice of {} has the port `{name}` over {protocol}: is targetPort `{target}` a port of the \
                 container?",
                dns.path()
            ));
        }
    }
    missing
}

fn no_endpoint(dns: &DnsService<'_>) -> Known<Option<String>> {
    let endpoints = dns.endpoints()?;
    if endpoints.iter().any(|endpoint| endpoint.is_ready()) {
        return Ok(None);
    }
    let path = dns.path();
    if !endpoints.is_empty() {
        return Ok(Some(format!("none of the {} of {path} is ready", counted(endpoints.len() as u64, "endpoint"))));
    }
    if dns.service.spec.selector.is_empty() {
        return Ok(Some(format!("{path} has no endpoints and no selector")));
    }
    let labels: Vec<String> = dns.service.spec.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let selector = labels.join(",");
    Ok(Some(match dns.pods() {
        Ok(pods) if pods.is_empty() => format!("the selector of {path}, {selector}, matches no Pod"),
        _ => format!("{path} has no endpoints; its selector is {selector}"),
    }))
}

fn spread(facts: &Facts) -> Outcome {
    let dns = facts.dns()?;
    let ready: Vec<&Endpoint> = dns.endpoints()?.into_iter().filter(|endpoint| endpoint.is_ready()).collect();
    if ready.is_empty() {
        return Err(Unknown::new(format!("{} has no ready endpoint", dns.path())));
    }
    let nodes = known(&facts.objects.nodes)?;
    let usable = nodes.iter().filter(|node| !node.spec.unschedulable).count();
    if usable < 2 && !nodes.cut {
        return Err(Unknown::inapplicable(format!("the cluster has {}", counted(usable as u64, "schedulable node"))));
    }
    let evidence = Evidence::of(ready.len(), "ready replica")?;
    let used: BTreeSet<&str> = host::sorting::set(ready.iter().map(|endpoint| endpoint.node_name.as_str()));
    if used.len() == 1 {
        let count = counted(ready.len() as u64, "ready replica");
        let node = used.first().copied().unwrap_or_default();
        return match node {
            "" => evidence.without(Unknown::new("the endpoints do not name their nodes")).found([]),
            node => evidence.found([Finding::new(format!("{count}, on node {node} only"))]),
        };
    }
    let zones: BTreeSet<&str> = host::sorting::set(nodes.iter().map(Node::zone).filter(|zone| !zone.is_empty()));
    let used: BTreeSet<&str> = host::sorting::set(ready.iter().map(|endpoint| endpoint.zone.as_str()));
    let one_zone = used.first().filter(|zone| used.len() == 1 && !zone.is_empty() && zones.len() > 1);
    let text = |zone: &&str| format!("all {} replicas are in zone {zone} of {} zones", ready.len(), zones.len());
    let unnamed = used.contains("") && zones.len() > 1;
    let unnamed = unnamed.then(|| Unknown::new("endpoints do not name their zones"));
    evidence.without_all(unnamed).found(one_zone.map(|zone| Finding::new(text(zone))))
}

fn cluster_ip(facts: &Facts) -> Outcome {
    let probes = known(&facts.probes)?;
    if probes.service.is_empty() {
        return Err(Unknown::new("the DNS Service has no cluster IP to ask"));
    }
    if !probes.replicas.iter().any(|probe| probe.udp.is_answered()) {
        return Err(Unknown::new("no replica answers from here either"));
    }
    let silent = probes.service.iter().filter(|probe| probe.udp.is_lost());
    let untried = probes.service.iter().filter(|probe| probe.udp == Attempt::NotTried);
    let untried = untried.map(|probe| Unknown::new(format!("{} was not asked", probe.address)));
    let text = |probe: &Probe| format!("{} over UDP: {}; replicas answer", probe.address, probe.udp);
    let evidence = Evidence::of(probes.service.len(), "cluster IP")?.without_all(untried);
    evidence.found(silent.map(|probe| Finding::new(text(probe))))
}
