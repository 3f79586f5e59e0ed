//! Cache on the nodes.

use core::net::IpAddr;

use crate::known::known;
use crate::objects::{CiliumPolicy, DaemonSet};
use crate::{Area, Check, Evidence, Facts, Finding, Known, Need, Outcome, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-L01",
        area: Area::Local,
        title: "the node cache has its addresses and answers",
        severity: Severity::Error,
        needs: &[Need::Api, Need::Host, Need::Network],
        rights: &["list daemonsets"],
        meaning: "On a node with a node cache: an interface must have its addresses, and a query to them must be \
                  answered over UDP. Run it on the network of the node, for example in the Pod of the node cache.",
        fix: "Restart the Pod of the node cache on this node; its log says which interface or rule could not be set",
        run: node_cache,
    },
    Check {
        code: "PD-L02",
        area: Area::Local,
        title: "Pods use the node cache",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Host],
        rights: &["list daemonsets", "get configmaps"],
        meaning: "A node cache runs, and the kubelets name an address that it does not serve. Then all queries go \
                  past it.",
        fix: "`clusterDNS: [169.254.20.10]` for the kubelets, the cluster IP of the DNS Service in `-localip` of the \
              node cache (not with IPVS), or the redirect policy of Cilium",
        run: bypassed,
    },
    Check {
        code: "PD-L03",
        area: Area::Local,
        title: "FQDN policies of Cilium see the answers of the node cache",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list ciliumnetworkpolicies", "list ciliumlocalredirectpolicies"],
        meaning: "Policies with `toFQDNs` learn addresses from answers that pass the DNS proxy of Cilium. With a \
                  CiliumLocalRedirectPolicy, the answers come from the Pods of the node cache, so a rule must name \
                  them.",
        fix: "In the egress rule with `rules.dns`, add an endpoint with the labels of the node cache (`k8s-app: \
              node-local-dns`)",
        run: fqdn_policies,
    },
];

/// Returns the local addresses of the node caches; empty without one.
pub(super) fn node_cache_addresses(facts: &Facts) -> Known<Vec<IpAddr>> {
    let daemon_sets = known(&facts.objects.daemon_sets)?;
    Ok(daemon_sets.iter().filter_map(DaemonSet::node_cache_addresses).flatten().collect())
}

fn required_addresses(facts: &Facts) -> Known<Vec<IpAddr>> {
    let addresses = node_cache_addresses(facts)?;
    if !addresses.is_empty() {
        return Ok(addresses);
    }
    let is_cut = facts.objects.daemon_sets.as_ref().is_ok_and(|list| list.cut);
    let reason = "no DaemonSet is a node cache";
    Err(if is_cut {
        Unknown::new(format!("{reason}, as far as they were read"))
    } else {
        Unknown::inapplicable(reason)
    })
}

fn node_cache(facts: &Facts) -> Outcome {
    let addresses = required_addresses(facts)?;
    let interfaces = known(&facts.interfaces)?;
    let has = |address: &IpAddr| interfaces.iter().any(|interface| interface.addresses.contains(address));
    let is_node = interfaces.iter().any(|interface| interface.name == "nodelocaldns") || addresses.iter().any(has);
    let runs_here = facts.probes.as_ref().is_ok_and(|probes| !probes.node_cache.is_empty());
    if !is_node && !runs_here {
        return Err(Unknown::new(
            "this is not the network of a node with the node cache; run this in the Pod of the node cache",
        ));
    }
    let mut findings: Vec<Finding> = Vec::new();
    if is_node {
        let missing = addresses.iter().filter(|address| !has(address));
        findings.extend(missing.map(|address| Finding::new(format!("no interface of this node has {address}"))));
    }
    let evidence = Evidence::fact("addresses of the node cache");
    if !findings.is_empty() {
        return evidence.found(findings);
    }
    let probes = known(&facts.probes)?;
    let silent = probes.node_cache.iter().filter(|probe| probe.udp.is_lost());
    findings.extend(silent.map(|probe| Finding::new(format!("{} over UDP: {}", probe.address, probe.udp))));
    // Of several addresses, a node may have those of one family.
    let is_asked = probes.node_cache.iter().any(|probe| probe.udp.is_answered() || probe.udp.is_lost());
    let unasked = (!is_asked).then(|| Unknown::new("no address of the node cache was asked"));
    evidence.without_all(unasked).found(findings)
}

fn bypassed(facts: &Facts) -> Outcome {
    let addresses = required_addresses(facts)?;
    if facts.objects.redirect_policies.as_ref().is_ok_and(|policies| !policies.is_empty()) {
        return Evidence::fact("a CiliumLocalRedirectPolicy").found([]);
    }
    let kubelets = known(&facts.kubelets)?;
    let past = kubelets.iter().filter(|kubelet| !kubelet.cluster_dns.iter().any(|address| addresses.contains(address)));
    let text = |list: &[IpAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unnamed = kubelets.iter().filter(|kubelet| kubelet.cluster_dns.is_empty());
    let unnamed = unnamed.map(|kubelet| Unknown::new(format!("{} has no clusterDNS", kubelet.source)));
    let evidence = Evidence::of(kubelets.len(), "kubelet setting")?.without_all(unnamed);
    evidence.found(past.filter(|kubelet| !kubelet.cluster_dns.is_empty()).map(|kubelet| {
        let (named, served) = (text(&kubelet.cluster_dns), text(&addresses));
        Finding::new(format!("{} has clusterDNS {named}; the node cache serves {served}", kubelet.source))
    }))
}

/// Value of the label of the Pods of a node cache.
const NODE_CACHE: &str = "node-local-dns";

fn fqdn_policies(facts: &Facts) -> Outcome {
    let redirects = known(&facts.objects.redirect_policies)?;
    if redirects.is_empty() {
        return Err(Unknown::inapplicable("there is no CiliumLocalRedirectPolicy"));
    }
    let policies = known(&facts.objects.cilium_policies)?;
    let is_blind = |policy: &&CiliumPolicy| {
        let text = policy.spec["egress"].to_string();
        text.contains("\"toFQDNs\"") && !text.contains(NODE_CACHE)
    };
    let finding = |policy: &CiliumPolicy| {
        let text = format!("CiliumNetworkPolicy {} has toFQDNs, and no rule for {NODE_CACHE}", policy.metadata.path());
        Finding::new(text).about("CiliumNetworkPolicy", &policy.metadata.namespace, &policy.metadata.name)
    };
    let evidence = Evidence::list(policies, "CiliumNetworkPolicy object")?;
    evidence.found(policies.iter().filter(is_blind).map(finding))
}
