//! Random events on a reducer, compared with a naive model: the final objects as texts, searched for every answer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::dashed;
use crate::object::{Endpoint, EndpointSlice, Meta, Object};
use crate::scenario::{ALL, Stage, joined, object};
use crate::{Change, Spec};

pub(crate) const NAMESPACES: [&str; 2] = ["alpha", "beta"];
pub(crate) const SERVICES: [&str; 3] = ["a", "b", "c"];
pub(crate) const ADDRESSES: [&str; 6] = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "fd00::1", "fd00::2", "2001:db8::"];
pub(crate) const KINDS: [&str; 4] = ["ns", "svc", "slice", "pod"];

#[test]
fn incremental_updates_agree_with_a_naive_model() {
    for seed in 1..=40 {
        let mut number = numbers(seed);
        let mut stage = Stage::new(&Spec::new(&ALL, &[]));
        let mut model = Model::default();
        for step in 0..400 {
            if number(20) == 0 {
                relist(&mut stage, &mut model, &mut number);
            } else {
                one_event(&mut stage, &mut model, &mut number, step);
            }
            if step % 10 == 0 {
                model.check(&stage, seed);
            }
        }
        KINDS.iter().for_each(|kind| model.drop_all(&mut stage, kind));
        model.check(&stage, seed);
        assert_eq!(stage.ask("counts"), "0 0 0 0 0");
    }
}

/// Existing objects: version and fields, by kind and path.
#[derive(Default)]
pub(crate) struct Model {
    objects: BTreeMap<(&'static str, String), (u32, String)>,
}

pub(crate) fn one_event(stage: &mut Stage, model: &mut Model, number: &mut impl FnMut(usize) -> usize, version: u32) {
    let kind = KINDS[number(KINDS.len())];
    let path = random_path(kind, number);
    let known = model.objects.contains_key(&(kind, path.clone()));
    if number(4) == 0 {
        let change = stage.apply(&format!("-{kind} {path}"));
        assert_eq!(change == Some(Change::Removed), known);
        model.objects.remove(&(kind, path));
    } else {
        let fields = random_fields(kind, number);
        let change = stage.apply(&format!("{kind} {path}@{version} {fields}"));
        assert_eq!(change, Some(if known { Change::Updated } else { Change::Added }));
        model.objects.insert((kind, path), (version, fields));
    }
}

/// Relists one kind after some objects vanished, appeared or changed unseen. Sometimes the first list is aborted.
pub(crate) fn relist(stage: &mut Stage, model: &mut Model, number: &mut impl FnMut(usize) -> usize) {
    let kind = KINDS[number(KINDS.len())];
    if number(3) == 0 {
        stage.apply(&format!("listing {kind}"));
        for (path, version, fields) in model.of(kind).into_iter().take(number(3)) {
            stage.apply(&format!("{kind} {path}@{version} {fields}"));
        }
    }
    let before = model.of(kind).len();
    model.objects.retain(|(known, _), _| *known != kind || number(3) != 0);
    let swept = before - model.of(kind).len();
    for (_, (version, fields)) in model.objects.iter_mut().filter(|((known, _), _)| *known == kind) {
        if number(3) == 0 {
            (*version, *fields) = (*version + 1000, random_fields(kind, number));
        }
    }
    stage.apply(&format!("listing {kind}"));
    for (path, version, fields) in model.of(kind) {
        stage.apply(&format!("{kind} {path}@{version} {fields}"));
    }
    let swept = u32::try_from(swept).unwrap();
    assert_eq!(stage.apply(&format!("listed {kind}")), Some(Change::Listed { swept }));
}

fn random_path(kind: &str, number: &mut impl FnMut(usize) -> usize) -> String {
    let namespace = NAMESPACES[number(NAMESPACES.len())];
    match kind {
        "ns" => namespace.to_owned(),
        "svc" => format!("{namespace}/{}", SERVICES[number(SERVICES.len())]),
        kind => format!("{namespace}/{kind}-{}", number(5)),
    }
}

fn random_fields(kind: &str, number: &mut impl FnMut(usize) -> usize) -> String {
    match kind {
        "svc" => match number(4) {
            0 => "ips=None".to_owned(),
            1 => "external=www.example.com".to_owned(),
            _ => format!("ips=10.96.0.{},fd00:96::{} ports=http:{}/TCP", 1 + number(3), 1 + number(3), number(2)),
        },
        "slice" => {
            let (family, addresses) = if number(3) == 0 { ("v6", &ADDRESSES[3..]) } else { ("v4", &ADDRESSES[..3]) };
            let endpoints: Vec<String> = (0..number(4))
                .map(|_| {
                    let ready = ["", "", "?", "!"][number(4)];
                    let hostname = ["", "", "#w0", "#w1"][number(4)];
                    format!("{ready}{}{hostname}", addresses[number(addresses.len())])
                })
                .collect();
            let service = SERVICES[number(SERVICES.len())];
            format!("of={service} {family}={} ports=http:{}/TCP", endpoints.join(","), number(2))
        }
        "pod" if number(4) > 0 => format!("ip={}", ADDRESSES[number(ADDRESSES.len())]),
        _ => String::new(),
    }
}

impl Model {
    fn of(&self, kind: &str) -> Vec<(String, u32, String)> {
        let of_kind = self.objects.iter().filter(|((known, _), _)| *known == kind);
        of_kind.map(|((_, path), (version, fields))| (path.clone(), *version, fields.clone())).collect()
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    fn drop_all(&mut self, stage: &mut Stage, kind: &str) {
        stage.apply(&format!("listing {kind}"));
        stage.apply(&format!("listed {kind}"));
        self.objects.retain(|(known, _), _| *known != kind);
    }

    /// Checks every question about every object that could exist.
    pub(crate) fn check(&self, stage: &Stage, seed: u64) {
        let check =
            |question: String, expected: String| assert_eq!(stage.ask(&question), expected, "{seed}: {question}");
        for namespace in NAMESPACES {
            check(format!("ns {namespace}"), self.objects.contains_key(&("ns", namespace.to_owned())).to_string());
            for ip in ADDRESSES {
                check(format!("pod {namespace} {ip}"), self.has_pod(namespace, ip).to_string());
            }
            for service in SERVICES.map(|name| format!("{namespace}/{name}")) {
                check(format!("svc {service}"), self.describe(&service));
                for label in ["w0", "10-1-0-1", "fd00--1", "2001-db8--0", "2001-db8--", "none"] {
                    check(format!("called {service} {label}"), self.called(&service, label));
                }
            }
        }
        ADDRESSES.iter().for_each(|ip| check(format!("at {ip}"), self.at(ip)));
        for ip in (1..4).flat_map(|n| [format!("10.96.0.{n}"), format!("fd00:96::{n}")]) {
            // If several Services have the address, any of them may be returned.
            let (found, owners) = (stage.ask(&format!("ip {ip}")), self.owners(&ip));
            assert!(
                owners.contains(&found) || (owners.is_empty() && found == "none"),
                "{seed}: {ip} {found} {owners:?}"
            );
        }
        let count = |kind| self.of(kind).len();
        check("counts".into(), format!("{} {} {} {} 0", count("ns"), count("svc"), count("slice"), count("pod")));
    }

    fn has_pod(&self, namespace: &str, ip: &str) -> bool {
        let in_namespace = |path: &str| path.split_once('/').is_some_and(|(found, _)| found == namespace);
        self.of("pod").iter().any(|(path, _, fields)| in_namespace(path) && *fields == format!("ip={ip}"))
    }

    fn owners(&self, ip: &str) -> Vec<String> {
        let has = |fields: &str| fields.split([' ', ',', '=']).any(|word| word == ip);
        self.of("svc").into_iter().filter(|(_, _, fields)| has(fields)).map(|(path, ..)| path).collect()
    }

    /// Calls `visit` for each slice: the path of its Service, its ready endpoints with their labels, and its port.
    fn each_slice(&self, mut visit: impl FnMut(&str, &[(String, &str)], &str)) {
        for (path, _, fields) in self.of("slice") {
            let (namespace, _) = path.split_once('/').unwrap();
            let Object::EndpointSlice(slice) = object("slice", Meta::default(), &fields) else { panic!("{fields}") };
            let EndpointSlice { service, endpoints, ports, .. } = slice;
            let ready = endpoints.iter().filter(|endpoint| endpoint.ready != Some(false));
            let ready: Vec<(String, &str)> = ready.map(|endpoint| (label(endpoint), endpoint.address)).collect();
            visit(&format!("{namespace}/{service}"), &ready, &format!("http:{}/TCP", ports[0].number.unwrap()));
        }
    }

    fn describe(&self, service: &str) -> String {
        let Some((_, fields)) = self.objects.get(&("svc", service.to_owned())) else { return "none".to_owned() };
        let own = match fields.split_once('=') {
            Some(("external", name)) => format!("ExternalName {name} :-/"),
            Some(("ips", "None")) => "Headless :-/".to_owned(),
            _ => format!("ClusterIp {}", fields.replace("ips=", "").replace("ports=", "")),
        };
        let mut slices = Vec::new();
        self.each_slice(|owner, endpoints, port| {
            let endpoints: String = endpoints.iter().map(|(label, address)| format!("{label}={address} ")).collect();
            slices.extend((owner == service).then(|| format!("[{endpoints}{port}]")));
        });
        let slices = joined(slices);
        if slices.is_empty() { own } else { format!("{own} {slices}") }
    }

    fn called(&self, service: &str, wanted: &str) -> String {
        let mut found = Vec::new();
        self.each_slice(|owner, endpoints, _| {
            let called = endpoints.iter().filter(|(label, _)| owner == service && label == wanted);
            found.extend(called.map(|(_, address)| (*address).to_owned()));
        });
        let declared = self.objects.contains_key(&("svc", service.to_owned()));
        if declared { joined(found) } else { "none".to_owned() }
    }

    fn at(&self, ip: &str) -> String {
        let mut found = Vec::new();
        self.each_slice(|owner, endpoints, _| {
            let here = endpoints.iter().filter(|(_, address)| *address == ip);
            found.extend(here.map(|(label, _)| format!("{owner}:{label}")));
        });
        joined(found)
    }
}

fn label(endpoint: &Endpoint<'_>) -> String {
    if !endpoint.hostname.is_empty() {
        return endpoint.hostname.to_owned();
    }
    let address: IpAddr = endpoint.address.parse().unwrap();
    String::from_utf8(dashed::write_endpoint(address, &mut [0; wire::LABEL_MAX]).to_vec()).unwrap()
}

/// Small reproducible random number generator (xorshift).
pub(crate) fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    }
}
