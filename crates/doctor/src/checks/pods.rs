//! Resolver settings of Pods, and what their queries show.

use std::collections::{BTreeMap, BTreeSet};

use control::text::{count, percent};

use crate::known::known;
use crate::objects::{Event, List, Pod};
use crate::{Area, Check, Evidence, Facts, Finding, Known, Need, Outcome, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-P01",
        area: Area::Pods,
        title: "search paths cost less than three queries per answer",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "With `ndots:5`, a name such as www.example.org is first tried in each search domain. Counts the \
                  answers of the last minute: a high share of NXDOMAIN means that most queries are such attempts.",
        fix: "`dnsConfig: {options: [{name: ndots, value: \"2\"}]}` in the Pods that ask most (`portolan top --by \
              waste` names them), a final dot in the names that they use, or *autopath* in the Corefile",
        run: search_path_waste,
    },
    Check {
        code: "PD-P02",
        area: Area::Pods,
        title: "no Pod has more name servers or search domains than resolvers accept",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list pods", "list events"],
        meaning: "The kubelet cuts a list with more than 3 name servers, 32 search domains or 2,048 characters, and \
                  reports DNSConfigForming. glibc before 2.26 reads only 6 search domains and 256 characters.",
        fix: "Shorten `dnsConfig.searches` and `dnsConfig.nameservers` of the Pod, or `resolvConf` of the kubelet",
        run: resolver_limits,
    },
    Check {
        code: "PD-P03",
        area: Area::Pods,
        title: "Pods that use cluster names ask the cluster DNS",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list pods"],
        meaning: "A Pod with `hostNetwork` and the policy `ClusterFirst`, or with the policy `Default`, asks the name \
                  servers of its node, which do not know names of Services. Reports those whose arguments or \
                  environment have such a name. Static Pods are not included.",
        fix: "`dnsPolicy: ClusterFirstWithHostNet` for a Pod with hostNetwork, `ClusterFirst` for any other",
        run: policies,
    },
    Check {
        code: "PD-P04",
        area: Area::Pods,
        title: "no image has a musl without DNS over TCP",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list pods"],
        meaning: "musl before 1.2.4 (Alpine before 3.18) never asks again over TCP, so answers above 512 bytes lose \
                  records or fail. Reports images whose tag names such a version.",
        fix: "An image with Alpine 3.18 or later",
        run: old_musl,
    },
    Check {
        code: "PD-P05",
        area: Area::Pods,
        title: "AAAA queries are useful in this cluster",
        severity: Severity::Warning,
        needs: &[Need::Server, Need::Api],
        rights: &["list services"],
        meaning: "No Service has an IPv6 address, and AAAA queries are more than 40 % of at least 1,000 queries per \
                  second. Most clients ask for both types.",
        fix: "If nothing outside of the cluster has to be reached over IPv6: `template IN AAAA . { rcode NOERROR }` \
              in the Corefile answers them without an upstream",
        run: useless_aaaa,
    },
];

/// Queries per useful answer from which it is a finding.
const WASTE_MAX: u64 = 3;
/// Number of answers below which a share says nothing.
const ANSWERS_MIN: u64 = 1_000;

fn search_path_waste(facts: &Facts) -> Outcome {
    let answers = &known(&facts.server)?.status.answers;
    if answers.per_second.is_none() {
        return Err(Unknown::new("nothing counts answers: no server block has *prometheus*"));
    }
    let of = |name: &str| answers.codes.iter().filter(|code| code.code == name).map(|code| code.answers).sum::<u64>();
    let (useful, missing) = (of("NOERROR"), of("NXDOMAIN"));
    let total = useful + missing;
    if total < ANSWERS_MIN {
        return Err(Unknown::inapplicable(format!("only {} answers in the last minute", count(total))));
    }
    let is_waste = total > useful.saturating_mul(WASTE_MAX);
    let finding = || {
        let share = percent(missing, total);
        Finding::new(format!("{share} % of {} answers are NXDOMAIN", count(total)))
    };
    let uncounted = (answers.uncounted_blocks > 0)
        .then(|| Unknown::new("nothing counts the answers of server blocks without *prometheus*"));
    Evidence::fact(format!("{} answers", count(total))).without_all(uncounted).found(is_waste.then(finding))
}

/// Limits of the kubelet.
const NAME_SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARACTERS_MAX: usize = 2_048;
/// Limits of glibc before 2.26.
const OLD_SEARCHES_MAX: usize = 6;
/// Search domains that the policy `ClusterFirst` adds.
const CLUSTER_SEARCHES: usize = 3;
/// Maximum number of Pods that are named.
const NAMED_MAX: usize = 50;

fn resolver_limits(facts: &Facts) -> Outcome {
    let pods = known(&facts.objects.pods)?;
    let events = facts.objects.events.as_deref().unwrap_or_default();
    let mut findings: BTreeMap<String, Finding> = BTreeMap::new();
    for pod in pods.iter() {
        if let Some(text) = over_limits(pod) {
            findings.entry(pod.metadata.path()).or_insert_with(|| about(pod, &text));
        }
    }
    for event in events {
        let object = &event.involved_object;
        let path = format!("{}/{}", object.namespace, object.name);
        findings.entry(path.clone()).or_insert_with(|| of_event(event, &path));
    }
    let unread = facts.objects.events.as_ref().err().cloned();
    Evidence::list(pods, "Pod")?.without_all(unread).found(findings.into_values().take(NAMED_MAX))
}

fn of_event(event: &Event, path: &str) -> Finding {
    let object = &event.involved_object;
    Finding::new(format!("Pod {path}: {}", event.message)).about("Pod", &object.namespace, &object.name)
}

fn about(pod: &Pod, text: &str) -> Finding {
    Finding::new(format!("Pod {}: {text}", pod.metadata.path())).about(
        "Pod",
        &pod.metadata.namespace,
        &pod.metadata.name,
    )
}

/// Names the lists that are too long: one cut does not hide another.
fn over_limits(pod: &Pod) -> Option<String> {
    let config = &pod.spec.dns_config;
    let from_cluster = if uses_cluster_dns(pod) { CLUSTER_SEARCHES } else { 0 };
    let (searches, servers) = (config.searches.len() + from_cluster, config.nameservers.len() + from_cluster.min(1));
    let characters = config.searches.iter().map(|domain| domain.len() + 1).sum::<usize>();
    let server_limit =
        (servers > NAME_SERVERS_MAX).then(|| format!("{servers} name servers; the kubelet keeps {NAME_SERVERS_MAX}"));
    let search_limit = match () {
        () if searches > SEARCHES_MAX => Some(format!("{searches} search domains; the kubelet keeps {SEARCHES_MAX}")),
        () if characters > SEARCH_CHARACTERS_MAX => {
            Some(format!("search domains of {characters} characters; the kubelet keeps {SEARCH_CHARACTERS_MAX}"))
        }
        () if searches > OLD_SEARCHES_MAX => {
            Some(format!("{searches} search domains; glibc before 2.26 reads {OLD_SEARCHES_MAX}"))
        }
        () => None,
    };
    let found: Vec<String> = [server_limit, search_limit].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join(", and "))
}

fn uses_cluster_dns(pod: &Pod) -> bool {
    match pod.spec.dns_policy.as_str() {
        "ClusterFirst" | "" => !pod.spec.host_network,
        policy => policy == "ClusterFirstWithHostNet",
    }
}

fn policies(facts: &Facts) -> Outcome {
    let pods = known(&facts.objects.pods)?;
    let zones = facts.corefile.as_ref().map(crate::CorefileFacts::cluster_zones).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    let is_asked = |pod: &&Pod| !pod.is_static() && pod.status.phase != "Succeeded" && pod.status.phase != "Failed";
    for pod in pods.iter().filter(is_asked).filter(|pod| pod.spec.dns_policy != "None" && !uses_cluster_dns(pod)) {
        let Some(name) = pod.spec.words().find_map(|word| cluster_name(word, &zones)) else { continue };
        // Pods of the same workload have the same names; one of them is enough.
        if seen.insert((pod.metadata.namespace.clone(), name.to_owned())) && findings.len() < NAMED_MAX {
            let policy = if pod.spec.host_network { "hostNetwork with dnsPolicy" } else { "dnsPolicy" };
            findings.push(about(pod, &format!("{policy} {}, and it uses {name}", pod.spec.dns_policy)));
        }
    }
    let unread = facts.corefile.as_ref().err().cloned();
    Evidence::list(pods, "Pod")?.without_all(unread).found(findings)
}

/// Returns the name of a Service in an argument or a value, such as `db.shop.svc` in `--url=http://db.shop.svc:80/x`.
fn cluster_name<'a>(word: &'a str, zones: &[String]) -> Option<&'a str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.';
    let is_service = |name: &&str| {
        let name = name.trim_end_matches('.');
        name.ends_with(".svc") || name.contains(".svc.cluster.") || zones.iter().any(|zone| has_zone(name, zone))
    };
    word.split(|letter| !is_part(letter)).find(is_service)
}

fn has_zone(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|rest| rest.ends_with(".svc.") || rest.ends_with(".pod."))
}

/// First version of Alpine with musl 1.2.4.
const ALPINE_MIN: (u32, u32) = (3, 18);

fn old_musl(facts: &Facts) -> Outcome {
    let pods: &List<Pod> = known(&facts.objects.pods)?;
    let mut images: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for pod in pods.iter() {
        for container in pod.spec.containers.iter().filter(|container| is_old_alpine(&container.image)) {
            images.entry(&container.image).or_insert_with(|| (pod.metadata.path(), 0)).1 += 1;
        }
    }
    let text = |(image, (pod, pods)): (&&str, &(String, usize))| match pods {
        1 => format!("image {image} of Pod {pod}"),
        _ => format!("image {image} of Pod {pod} and {} more", pods - 1),
    };
    Evidence::list(pods, "Pod")?.found(images.iter().take(NAMED_MAX).map(|entry| Finding::new(text(entry))))
}

/// Returns true for the image `alpine:3.17.1`, and for tags such as `1.25-alpine3.17`.
fn is_old_alpine(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or(image);
    let Some((repository, tag)) = name.rsplit_once(':') else { return false };
    let is_alpine = repository.rsplit('/').next() == Some("alpine");
    let version = if is_alpine { Some(tag) } else { tag.split("alpine").nth(1).filter(|_| tag.contains("alpine")) };
    version.and_then(version_of).is_some_and(|version| version < ALPINE_MIN)
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Rate from which useless queries cost something that is worth a change, and their share.
const AAAA_RATE_MIN: f64 = 1_000.0;
const AAAA_PERCENT_MIN: u64 = 40;

fn useless_aaaa(facts: &Facts) -> Outcome {
    let server = known(&facts.server)?;
    let services = known(&facts.objects.services)?;
    let rate: Known<f64> = server
        .status
        .answers
        .per_second
        .ok_or_else(|| Unknown::new("nothing counts queries: no server block has *prometheus*"));
    let has_ipv6 = services.iter().any(|service| service.cluster_ips().any(|address| address.is_ipv6()));
    let total: u64 = server.queries_by_type.values().sum();
    let aaaa = server.queries_by_type.get("AAAA").copied().unwrap_or_default();
    let is_much = rate? >= AAAA_RATE_MIN && aaaa.saturating_mul(100) >= total.saturating_mul(AAAA_PERCENT_MIN);
    let finding =
        || Finding::new(format!("{} % of the queries are AAAA, and no Service has IPv6", percent(aaaa, total)));
    let evidence = Evidence::list(services, "Service")?;
    evidence.found((is_much && !has_ipv6 && total > 0).then(finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_of_services_in_arguments() {
        let zones = ["k8s.corp".to_owned()];
        for (word, name) in [
            ("--url=http://db.shop.svc:80/x", Some("db.shop.svc")),
            ("db.shop.svc.cluster.local", Some("db.shop.svc.cluster.local")),
            ("db.shop.svc.k8s.corp", Some("db.shop.svc.k8s.corp")),
            ("www.k8s.corp", None),
            ("svc", None),
            ("my.svcs", None),
        ] {
            assert_eq!(cluster_name(word, &zones), name, "{word}");
        }
    }

    #[test]
    fn reads_the_version_of_alpine_in_tags() {
        for (image, is_old) in [
            ("alpine:3.17.1", true),
            ("docker.io/library/alpine:3.9", true),
            ("alpine:3.18", false),
            ("alpine", false),
            ("nginx:1.25-alpine3.17", true),
            ("nginx:1.25-alpine", false),
            ("nginx:1.25", false),
            ("registry:5000/app", false),
            ("node:18-alpine3.20@sha256:00", false),
        ] {
            assert_eq!(is_old_alpine(image), is_old, "{image}");
        }
    }
}
