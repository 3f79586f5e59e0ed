//! Healthy cluster as data: objects of the API and the status of the server as JSON, and the results of probes.

use std::collections::BTreeMap;
use std::path::Path;

use corefile::NoFiles;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::objects::{List, Objects};
use crate::report::Report;
use crate::{
    Access, Attempt, Certificate, Conntrack, CorefileFacts, Encrypted, EncryptedProbe, Facts, Flow, Interface, Known,
    Kubelet, LargeAnswer, Probe, Probes, Replica, SearchProbe, Unknown, UpstreamProbe, all,
};

const HEALTHY: &str = include_str!("healthy.json");
const COREFILE: &str = "\
.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
}
corp.:53 {
    forward corp 10.0.0.3
}
";

/// Cluster that a fault can change.
pub(super) struct World {
    pub(super) json: Value,
    pub(super) corefile: String,
    pub(super) facts: Facts,
}

impl World {
    pub(super) fn healthy() -> World {
        let json = serde_json::from_str(HEALTHY).unwrap();
        World { json, corefile: COREFILE.to_owned(), facts: probed() }
    }

    pub(super) fn report(mut self) -> Report {
        let problems =
            self.facts.corefile.as_mut().map(|corefile| core::mem::replace(&mut corefile.problems, Ok(Vec::new())));
        let written = corefile::parse(Path::new("Corefile"), self.corefile.clone(), &NoFiles).corefile;
        let name_servers = |_: &str| vec!["10.0.0.2".parse().unwrap()];
        self.facts.corefile = problems.map_err(|reason| reason.clone()).map(|problems| CorefileFacts {
            source: "/etc/coredns/Corefile".to_owned(),
            problems,
            forwarded: CorefileFacts::forwards(&written, &name_servers),
            written,
        });
        self.facts.objects = objects(&mut self.json);
        if self.facts.server.is_ok() {
            self.facts.server = Ok(serde_json::from_value(self.json["server"].take()).unwrap());
        }
        Report::of(&self.facts, &all().collect::<Vec<_>>(), "0.1.0")
    }

    /// Adds an object.
    pub(super) fn add(&mut self, list: &str, object: Value) {
        self.json[list].as_array_mut().unwrap().push(object);
    }

    /// Adds a problem to the status of the server.
    pub(super) fn report_problem(&mut self, code: &str, text: &str) {
        let upstream = text.strip_prefix("upstream ").and_then(|rest| rest.split([' ', ',']).next());
        let upstream = upstream.map(|address| address.trim_end_matches(':'));
        let problem = serde_json::json!({ "code": code, "text": text, "upstream": upstream });
        self.json["server"]["status"]["problems"].as_array_mut().unwrap().push(problem);
    }
}

fn list<T: DeserializeOwned>(json: &mut Value) -> Known<List<T>> {
    match json.take() {
        Value::String(reason) => Err(Unknown::new(reason)),
        items => Ok(List { items: serde_json::from_value(items).unwrap(), cut: false }),
    }
}

fn config_map(json: &mut Value) -> Known<Option<BTreeMap<String, String>>> {
    match json.take() {
        Value::String(reason) => Err(Unknown::new(reason)),
        data => Ok(serde_json::from_value(data).unwrap()),
    }
}

fn objects(json: &mut Value) -> Objects {
    Objects {
        services: list(&mut json["services"]),
        slices: list(&mut json["slices"]),
        endpoints: list(&mut json["endpoints"]),
        namespaces: list(&mut json["namespaces"]),
        pods: list(&mut json["pods"]),
        nodes: list(&mut json["nodes"]),
        deployments: list(&mut json["deployments"]),
        daemon_sets: list(&mut json["daemon_sets"]),
        disruption_budgets: list(&mut json["disruption_budgets"]),
        autoscalers: list(&mut json["autoscalers"]),
        network_policies: list(&mut json["network_policies"]),
        events: list(&mut json["events"]),
        cilium_policies: list(&mut json["cilium_policies"]),
        redirect_policies: list(&mut json["redirect_policies"]),
        kubeadm: Ok(serde_json::from_value(json["kubeadm"].take()).unwrap()),
        cilium: config_map(&mut json["cilium"]),
    }
}

pub(super) fn probe(address: &str) -> Probe {
    let fine = Attempt::Answered(0.001);
    Probe { address: address.parse().unwrap(), udp: fine.clone(), tcp: fine.clone(), large: fine }
}

fn upstream(address: &str, zone: &str) -> UpstreamProbe {
    UpstreamProbe {
        address: address.parse().unwrap(),
        zone: zone.to_owned(),
        attempts: vec![Attempt::Answered(0.002); 5],
        failures: 0,
        tcp: Attempt::Answered(0.004),
        large: Attempt::Answered(0.002),
        large_answer: Some(LargeAnswer { bytes: 811, udp: Attempt::Answered(0.002) }),
        edns: Some(true),
        keeps_case: Some(true),
        came_back: Ok(false),
    }
}

/// Returns an upstream over TLS.
pub(super) fn encrypted(host: &str, connect: Attempt) -> EncryptedProbe {
    let upstream = Encrypted { zone: "corp".to_owned(), scheme: "tls".to_owned(), host: host.to_owned() };
    EncryptedProbe { upstream, connect }
}

fn access(resource: &str, group: &str, verb: &'static str) -> Access {
    Access {
        user: "system:serviceaccount:kube-system:coredns".to_owned(),
        verb,
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: String::new(),
        allowed: true,
    }
}

/// Returns facts in which every probe is fine.
fn probed() -> Facts {
    let replica = |name: &str| Replica { name: name.to_owned(), hash: Ok("5f2c".to_owned()) };
    let mut facts = Facts::unknown("not part of this world");
    let empty = corefile::parse(Path::new("Corefile"), String::new(), &NoFiles).corefile;
    let corefile =
        CorefileFacts { source: String::new(), problems: Ok(Vec::new()), written: empty, forwarded: Vec::new() };
    facts.corefile = Ok(corefile);
    let server = serde_json::from_str::<Value>(HEALTHY).unwrap()["server"].take();
    facts.server = Ok(serde_json::from_value(server).unwrap());
    facts.access = Ok(["list", "watch"]
        .into_iter()
        .flat_map(|verb| [access("services", "", verb), access("endpointslices", "discovery.k8s.io", verb)])
        .collect());
    facts.api_clock_ahead = Ok(0.4);
    facts.kubelets = Ok(vec![Kubelet {
        source: "ConfigMap kube-system/kubelet-config".to_owned(),
        cluster_dns: vec!["10.96.0.10".parse().unwrap()],
        cluster_domain: "cluster.local".to_owned(),
    }]);
    facts.replicas = Ok(vec![replica("coredns-6c9"), replica("coredns-x2k")]);
    facts.probes = Ok(Probes {
        service: vec![probe("10.96.0.10:53")],
        replicas: vec![probe("10.244.1.2:53"), probe("10.244.2.2:53")],
        node_cache: vec![probe("169.254.20.10:53")],
    });
    facts.upstreams = Ok(vec![upstream("10.0.0.2:53", ""), upstream("10.0.0.3:53", "corp")]);
    facts.search = Ok(vec![SearchProbe { domain: "corp".to_owned(), answered: Some(false) }]);
    let [client, target, replica] = ["10.244.1.7", "10.96.0.10", "10.244.2.2"].map(|address| address.parse().unwrap());
    let flow = Flow { client, target, replica };
    facts.conntrack =
        Ok(Conntrack { entries: Some((10_000, 262_144)), insert_failed: Some(3), flows: Some(vec![flow]) });
    facts.certificates = Ok(vec![Certificate { file: "/etc/tls/tls.crt".to_owned(), expires_in: Ok(60.0 * 86_400.0) }]);
    facts.interfaces = Ok(vec![Interface {
        name: "nodelocaldns".to_owned(),
        addresses: ["169.254.20.10", "10.96.0.10"].map(|address| address.parse().unwrap()).to_vec(),
    }]);
    facts
}
