//! Services and their names.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::top_level_domains;
use crate::known::known;
use crate::objects::{Endpoint, EndpointSlice, List, Service};
use crate::{Area, Check, Evidence, Facts, Finding, Need, Outcome, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-S01",
        area: Area::Services,
        title: "no namespace with Services has the name of a top-level domain",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services"],
        meaning: "In a Pod, `web.dev` is first looked up as `web.dev.svc.cluster.local`: the Service web in the \
                  namespace dev. It hides the public name, for every Pod of the cluster. Knows the country codes and \
                  common other domains.",
        fix: "Rename the namespace, or end public names with a dot in the clients",
        run: top_level,
    },
    Check {
        code: "PD-S02",
        area: Area::Services,
        title: "ExternalName Services lead to a name",
        severity: Severity::Warning,
        needs: &[Need::Api, Need::Corefile],
        rights: &["list services"],
        meaning: "An ExternalName is the target of a CNAME. An IP address is not a name, a name of the cluster must \
                  exist, and two of them must not refer to each other.",
        fix: "A Service without a selector and an EndpointSlice for an IP address; the right name otherwise",
        run: external_names,
    },
    Check {
        code: "PD-S03",
        area: Area::Services,
        title: "headless Services have ready endpoints, and answers that fit",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list endpointslices"],
        meaning: "A headless Service without ready endpoints has no address. With more than 100, its answer needs \
                  TCP, which some clients do not use.",
        fix: "`kubectl describe pod` says why Pods are not ready; `publishNotReadyAddresses: true` gives them \
              addresses anyway. For large Services: names of single Pods, or SRV",
        run: headless,
    },
    Check {
        code: "PD-S04",
        area: Area::Services,
        title: "no two Services have the same cluster IP",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services"],
        meaning: "The reverse name of the address is then that of one of them. The API server does not allocate an \
                  address twice, but a restore from a backup may.",
        fix: "Delete one of the Services and create it again without `clusterIP`",
        run: duplicate_addresses,
    },
    Check {
        code: "PD-S05",
        area: Area::Services,
        title: "Services with a selector have ready endpoints",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &["list services", "list endpointslices", "list pods"],
        meaning: "A Service with a cluster IP has its address also if nothing is behind it: the name is answered, and \
                  connections are refused or time out. It looks like a fault of DNS. Usually the selector matches no \
                  Pod, or the Pods are not ready.",
        fix: "Compare the selector of the Service with the labels of the Pods; `kubectl describe pod` says why a Pod \
              is not ready",
        run: nothing_behind,
    },
];

/// Maximum number of findings of a check.
const FINDINGS_MAX: usize = 50;

fn about(service: &Service, text: String) -> Finding {
    Finding::new(text).about("Service", &service.metadata.namespace, &service.metadata.name)
}

fn top_level(facts: &Facts) -> Outcome {
    let services = known(&facts.objects.services)?;
    let mut examples: BTreeMap<&str, &str> = BTreeMap::new();
    for service in services.iter().filter(|service| top_level_domains::is_one(&service.metadata.namespace)) {
        examples.entry(&service.metadata.namespace).or_insert(&service.metadata.name);
    }
    let text = |(namespace, name): (&&str, &&str)| {
        let finding =
            Finding::new(format!("namespace {namespace}: Service {name} hides the public name {name}.{namespace}"));
        finding.about("Namespace", "", namespace)
    };
    Evidence::list(services, "Service")?.found(examples.iter().take(FINDINGS_MAX).map(text))
}

fn external_names(facts: &Facts) -> Outcome {
    let services = known(&facts.objects.services)?;
    let zones = facts.corefile.as_ref().map(crate::CorefileFacts::cluster_zones).unwrap_or_default();
    let zones = if zones.is_empty() { vec!["cluster.local".to_owned()] } else { zones };
    let names = Names { services, zones: &zones };
    let external = services.iter().filter(|service| service.spec.kind == "ExternalName");
    let finding = |service: &Service| {
        let target = service.spec.external_name.as_str();
        Some(about(service, format!("Service {} {}", service.metadata.path(), names.trouble(service, target)?)))
    };
    // Without the Corefile, names of another cluster domain count as names of other servers.
    let unread = facts.corefile.as_ref().err().cloned();
    let findings = external.filter_map(finding).take(FINDINGS_MAX);
    Evidence::list(services, "Service")?.without_all(unread).found(findings)
}

/// Services by their names in the zones of the cluster.
struct Names<'a> {
    services: &'a List<Service>,
    zones: &'a [String],
}

/// Maximum number of steps from one ExternalName to the next, as the server follows them.
const STEPS_MAX: usize = 8;

impl<'a> Names<'a> {
    fn trouble(&self, service: &Service, target: &str) -> Option<String> {
        if target.parse::<IpAddr>().is_ok() {
            return Some(format!("has the address {target} as its name"));
        }
        let mut seen = BTreeSet::from([service.metadata.path()]);
        let mut name = target.to_owned();
        for _ in 0..STEPS_MAX {
            let (namespace, service) = self.parts(&name)?;
            let path = format!("{namespace}/{service}");
            let Some(next) = self.find(&namespace, &service) else {
                let is_certain = !self.services.cut;
                return is_certain.then(|| format!("leads to {target}: there is no Service {path}"));
            };
            if next.spec.kind != "ExternalName" {
                return None;
            }
            if !seen.insert(path) {
                return Some(format!("leads to {target}, and from there back"));
            }
            name.clone_from(&next.spec.external_name);
        }
        Some(format!("leads to {target}, and from there through more than {STEPS_MAX} others"))
    }

    /// Returns namespace and name of the Service that a name of the cluster is about; `None` for any other name.
    fn parts(&self, name: &str) -> Option<(String, String)> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let of_zone = |zone: &String| {
            name.strip_suffix(zone.as_str())?.strip_suffix('.')?.strip_suffix(".svc").map(str::to_owned)
        };
        let path = self.zones.iter().find_map(of_zone)?;
        let mut labels = path.rsplit('.');
        let (namespace, service) = (labels.next()?, labels.next()?);
        Some((namespace.to_owned(), service.to_owned()))
    }

    fn find(&self, namespace: &str, name: &str) -> Option<&'a Service> {
        let is_it = |service: &&Service| service.metadata.namespace == namespace && service.metadata.name == name;
        self.services.iter().find(is_it)
    }
}

/// Number of endpoints from which an answer does not fit in any datagram.
const ENDPOINTS_MAX: usize = 100;

fn headless(facts: &Facts) -> Outcome {
    let services = known(&facts.objects.services)?;
    let slices = known(&facts.objects.slices)?;
    let mut by_service: BTreeMap<(&str, &str), Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in slices.iter() {
        by_service.entry((&slice.metadata.namespace, slice.service())).or_default().push(slice);
    }
    let of = |service: &Service| {
        let key = (service.metadata.namespace.as_str(), service.metadata.name.as_str());
        let endpoints = by_service.get(&key).into_iter().flatten().flat_map(|slice| &slice.endpoints);
        let (total, ready) =
            endpoints.fold((0, 0), |(total, ready), one| (total + 1, ready + usize::from(one.is_ready())));
        let path = service.metadata.path();
        match (total, ready) {
            (1.., 0) if !service.spec.publish_not_ready_addresses => {
                let finding = about(service, format!("headless Service {path}: none of {total} endpoints is ready"));
                Some(finding.fix(format!(
                    "`kubectl -n {} describe pod` says why Pods are not ready; `publishNotReadyAddresses: true` gives \
                     them addresses anyway",
                    service.metadata.namespace
                )))
            }
            (_, ready) if ready > ENDPOINTS_MAX => Some(about(
                service,
                format!("headless Service {path} has {ready} ready endpoints: its answer needs TCP"),
            )),
            _ => None,
        }
    };
    Evidence::list(slices, "EndpointSlice")?;
    let cut = slices.cut.then(|| Unknown::new("the cluster has more EndpointSlices than were read"));
    let findings = services.iter().filter(|service| service.is_headless()).filter_map(of).take(FINDINGS_MAX);
    Evidence::list(services, "Service")?.without_all(cut).found(findings)
}

fn nothing_behind(facts: &Facts) -> Outcome {
    let services = known(&facts.objects.services)?;
    let slices = known(&facts.objects.slices)?;
    let pods = known(&facts.objects.pods)?;
    let ready = slices.iter().filter(|slice| slice.endpoints.iter().any(Endpoint::is_ready));
    let served: BTreeSet<(&str, &str)> =
        host::sorting::set(ready.map(|slice| (&*slice.metadata.namespace, slice.service())));
    let of = |service: &Service| {
        let (namespace, name) = (&*service.metadata.namespace, &*service.metadata.name);
        // PD-K03 is about the DNS Service itself.
        let is_dns = facts.dns().is_ok_and(|dns| core::ptr::eq(dns.service, service));
        let is_served = is_dns || served.contains(&(namespace, name));
        if is_served || service.cluster_ips().next().is_none() || service.spec.selector.is_empty() {
            return None;
        }
        let selected = pods.iter().filter(|pod| {
            let labels = &pod.metadata.labels;
            let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
            pod.metadata.namespace == namespace && service.spec.selector.iter().all(has)
        });
        let path = service.metadata.path();
        let selector: Vec<String> = service.spec.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selector = selector.join(",");
        Some(match selected.count() {
            0 if pods.cut => {
                about(service, format!("Service {path} has no ready endpoint; its selector is {selector}"))
            }
            0 => about(service, format!("Service {path} has no endpoint: its selector {selector} matches no Pod")).fix(
                format!(
                    "`kubectl -n {namespace} get pods --show-labels` shows the labels to compare with the selector"
                ),
            ),
            count => {
                about(service, format!("Service {path} has no ready endpoint, and selects {count} Pods ({selector})"))
                    .fix(format!("`kubectl -n {namespace} describe pod -l {selector}` says why Pods are not ready"))
            }
        })
    };
    Evidence::list(slices, "EndpointSlice")?;
    let cut = slices.cut.then(|| Unknown::new("the cluster has more EndpointSlices than were read"));
    Evidence::list(pods, "Pod")?;
    // Without all slices, an endpoint may be in one that was not read.
    let findings = services.iter().filter(|_| !slices.cut).filter_map(of).take(FINDINGS_MAX);
    Evidence::list(services, "Service")?.without_all(cut).found(findings)
}

fn duplicate_addresses(facts: &Facts) -> Outcome {
    let services = known(&facts.objects.services)?;
    let mut owners: BTreeMap<IpAddr, Vec<&Service>> = BTreeMap::new();
    for service in services.iter() {
        service.cluster_ips().for_each(|address| owners.entry(address).or_default().push(service));
    }
    let several = owners.iter().filter(|(_, services)| services.len() > 1);
    let finding = |(address, services): (&IpAddr, &Vec<&Service>)| {
        let names: Vec<String> = services.iter().map(|service| service.metadata.path()).collect();
        Some(about(services.first()?, format!("{address} is the cluster IP of {}", names.join(" and "))))
    };
    Evidence::list(services, "Service")?.found(several.filter_map(finding).take(FINDINGS_MAX))
}
