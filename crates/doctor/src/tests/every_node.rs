//! Cluster with the full server on every node: every check of the mode, with seeded faults.

use serde_json::{Value, json};

use super::faults::Fault;
use super::world::World;
use super::{found, makes_its_row_fail};
use crate::report::{Mark, Row};
use crate::{Area, Interface, ServiceAnswers, Unknown, all};

/// Address of a Pod on node-a, in which doctor runs.
const OWN_ADDRESS: &str = "10.244.1.7";
/// Pods of the DaemonSet, with their nodes.
const PODS: [(&str, &str); 2] = [("portolan-every-node-k4x9p", "node-a"), ("portolan-every-node-w2m7c", "node-b")];

/// Returns a cluster with the mode, in which all is well. The Deployment runs beside the DaemonSet.
fn world() -> World {
    let mut world = World::healthy();
    let json = &mut world.json;
    json["services"][0]["spec"]["trafficDistribution"] = "PreferSameNode".into();
    for (at, (pod, node)) in PODS.into_iter().enumerate() {
        let endpoint = &mut json["slices"][0]["endpoints"][at];
        endpoint["targetRef"]["name"] = pod.into();
        endpoint["hints"] = json!({ "forNodes": [{ "name": node }], "forZones": [{ "name": format!("zone-{at}") }] });
        json["pods"][at]["metadata"]["name"] = pod.into();
    }
    json["pods"][3]["status"]["podIPs"] = json!([{ "ip": OWN_ADDRESS }]);
    json["disruption_budgets"] = json!([]);
    json["redirect_policies"] = json!([]);
    json["cilium"] = json!({ "kube-proxy-replacement": "true", "enable-service-topology": "true" });
    json["daemon_sets"] = json!([daemon_set(), kube_proxy("v1.36.2")]);
    let address = OWN_ADDRESS.parse().unwrap();
    world.facts.interfaces = Ok(vec![Interface { name: "eth0".to_owned(), addresses: vec![address] }]);
    world.facts.probes.as_mut().unwrap().node_cache.clear();
    world.facts.answers = Ok(vec![answers(&[(PODS[0].0, 16)])]);
    world.facts.api_version = Ok("v1.36.2".to_owned());
    world
}

fn daemon_set() -> Value {
    let own = json!({ "app.kubernetes.io/component": "every-node", "app.kubernetes.io/name": "portolan" });
    let mut labels = own.clone();
    labels["k8s-app"] = "kube-dns".into();
    let ports = json!([{ "name": "dns", "containerPort": 53, "protocol": "UDP" }]);
    let probe = json!({ "httpGet": { "path": "/ready", "port": 8181 } });
    let container = json!({ "name": "portolan", "image": "portolan:1", "ports": ports, "readinessProbe": probe });
    json!({
        "metadata": { "name": "portolan-every-node", "namespace": "kube-system", "labels": own },
        "spec": { "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } } },
    })
}

fn kube_proxy(version: &str) -> Value {
    let image = format!("registry.k8s.io/kube-proxy:{version}");
    let spec = json!({ "containers": [{ "name": "kube-proxy", "image": image }] });
    let metadata = json!({ "name": "kube-proxy", "namespace": "kube-system" });
    json!({ "metadata": metadata, "spec": { "template": { "spec": spec } } })
}

fn answers(named: &[(&str, u64)]) -> ServiceAnswers {
    let named = named.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    ServiceAnswers { address: Some("10.96.0.10:53".parse().unwrap()), named, unnamed: 0, lost: 0 }
}

fn service(world: &mut World) -> &mut Value {
    &mut world.json["services"][0]["spec"]
}

pub(super) const FAULTS: &[Fault] = &[
    ("PD-E01", "the data plane ignores the field", |world| {
        world.facts.answers = Ok(vec![answers(&[(PODS[0].0, 7), (PODS[1].0, 9)])]);
    }),
    ("PD-E01", "only Pods of other nodes answer", |world| {
        world.facts.answers = Ok(vec![answers(&[(PODS[1].0, 16)])]);
    }),
    ("PD-E02", "an endpoint was written by hand", |world| {
        let metadata = json!({ "name": "kube-dns-by-hand", "namespace": "kube-system",
            "labels": { "kubernetes.io/service-name": "kube-dns" } });
        let endpoint = json!({ "addresses": ["192.0.2.53"], "conditions": { "ready": true } });
        let ports = world.json["slices"][0]["ports"].clone();
        world.add("slices", json!({ "metadata": metadata, "endpoints": [endpoint], "ports": ports }));
        world.facts.probes.as_mut().unwrap().replicas.push(super::world::probe("192.0.2.53:53"));
    }),
    ("PD-E02", "the controller manager is old", |world| {
        for at in 0..PODS.len() {
            world.json["slices"][0]["endpoints"][at]["hints"] = Value::Null;
        }
    }),
    ("PD-E03", "internalTrafficPolicy is Local", |world| {
        service(world)["internalTrafficPolicy"] = "Local".into();
    }),
    ("PD-E04", "clients have an affinity", |world| service(world)["sessionAffinity"] = "ClientIP".into()),
    ("PD-E05", "kubeadm has written the Service again", |world| {
        service(world)["trafficDistribution"] = Value::Null;
    }),
    ("PD-E05", "the Service prefers the zone", |world| {
        service(world)["trafficDistribution"] = "PreferClose".into();
    }),
    ("PD-E06", "the budget of the Deployment is left", |world| {
        world.json["disruption_budgets"] = json!([{
            "metadata": { "name": "coredns", "namespace": "kube-system" },
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "k8s-app": "kube-dns" } } },
        }]);
    }),
    ("PD-E07", "a HorizontalPodAutoscaler is left", |world| {
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns" });
        let metadata = json!({ "name": "coredns", "namespace": "kube-system" });
        world.add("autoscalers", json!({ "metadata": metadata, "spec": { "scaleTargetRef": target } }));
    }),
    ("PD-E07", "a cluster-proportional-autoscaler is left", |world| {
        let command = json!(["/cluster-proportional-autoscaler", "--target=Deployment/coredns"]);
        let spec = json!({ "containers": [{ "name": "autoscaler", "command": command }] });
        let metadata = json!({ "name": "dns-autoscaler", "namespace": "kube-system" });
        world.add("deployments", json!({ "metadata": metadata, "spec": { "template": { "spec": spec } } }));
    }),
    ("PD-E08", "a node cache was killed", |world| {
        let interface =
            Interface { name: "nodelocaldns".to_owned(), addresses: vec!["169.254.20.10".parse().unwrap()] };
        world.facts.interfaces.as_mut().unwrap().push(interface);
    }),
    ("PD-E09", "the template lacks the label of the Service", |world| {
        let labels = &mut world.json["daemon_sets"][0]["spec"]["template"]["metadata"]["labels"];
        labels["k8s-app"] = "portolan".into();
        // The Deployment alone serves, and has its budget.
        world.json["disruption_budgets"] = World::healthy().json["disruption_budgets"].take();
    }),
    ("PD-E10", "the Pods of relays have the label of the Service", |world| {
        let ports = json!([{ "name": "https", "containerPort": 8443 }]);
        let spec = json!({ "containers": [{ "name": "relay", "ports": ports }] });
        let template = json!({ "metadata": { "labels": { "k8s-app": "kube-dns" } }, "spec": spec });
        let metadata = json!({ "name": "portolan-relay", "namespace": "kube-system" });
        world.add("deployments", json!({ "metadata": metadata, "spec": { "template": template } }));
    }),
    ("PD-E11", "the API server is old", |world| world.facts.api_version = Ok("v1.33.4".to_owned())),
    ("PD-E11", "kube-proxy is old", |world| world.json["daemon_sets"][1] = kube_proxy("v1.33.4-eks-1")),
    ("PD-E11", "kubelets report an old kube-proxy", |world| {
        world.json["nodes"][1]["status"]["nodeInfo"] = json!({ "kubeProxyVersion": "v1.32.1" });
    }),
    ("PD-E12", "Cilium has no service topology", |world| {
        world.json["cilium"]["enable-service-topology"] = "false".into();
    }),
    ("PD-E12", "Cilium runs beside kube-proxy", |world| {
        world.json["cilium"]["kube-proxy-replacement"] = "false".into();
    }),
    ("PD-K01", "kubelets name the node cache that is gone", |world| {
        world.facts.kubelets.as_mut().unwrap()[0].cluster_dns = vec!["169.254.20.10".parse().unwrap()];
    }),
];

#[test]
fn a_healthy_cluster_with_the_mode_has_nothing_to_report() {
    let report = world().report();
    let is_fine = |row: &&Row| matches!(row.outcome, Mark::Fine | Mark::NotApplicable);
    let other: Vec<_> = report.rows.iter().filter(|row| !is_fine(row)).collect();
    assert!(other.is_empty(), "{other:#?}");
    let rows = report.rows.iter().filter(|row| row.area == Area::EveryNode.name());
    let unseen: Vec<_> = rows.filter(|row| row.outcome != Mark::Fine).collect();
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn each_fault_of_the_mode_makes_exactly_its_row_fail() {
    FAULTS.iter().for_each(|fault| makes_its_row_fail(world(), fault));
}

/// Kinds of faults, not checks: a cluster with one of them looks healthy otherwise.
#[test]
fn at_least_twelve_kinds_of_faults_are_found() {
    let mut codes: Vec<&str> = FAULTS.iter().map(|(code, ..)| *code).collect();
    codes.dedup();
    assert!(codes.len() >= 12, "{codes:?}");
}

#[test]
fn a_node_cache_with_the_cluster_ip_hides_the_pods() {
    let mut world = world();
    let node_cache = World::healthy().json["daemon_sets"][0].take();
    world.add("daemon_sets", node_cache);
    assert!(found(&world.report()).contains(&"PD-E08"));
}

#[test]
fn the_finding_about_the_field_names_the_deployment_that_is_back() {
    let text = |replicas: u64| {
        let mut world = world();
        service(&mut world)["trafficDistribution"] = Value::Null;
        world.json["deployments"][0]["spec"]["replicas"] = replicas.into();
        row(world, "PD-E05").findings.remove(0).text
    };
    assert!(
        text(2).ends_with("Deployment kube-system/coredns runs beside it, as after `kubeadm upgrade`"),
        "{}",
        text(2)
    );
    assert!(!text(0).contains("Deployment"), "{}", text(0));
}

fn row(world: World, code: &str) -> Row {
    world.report().rows.into_iter().find(|row| row.code == code).unwrap()
}

#[test]
fn a_cluster_without_the_mode_has_nothing_to_look_at_unless_the_user_plans_it() {
    let is_every_node = |row: &&Row| row.area == Area::EveryNode.name();
    let report = World::healthy().report();
    assert!(report.rows.iter().filter(is_every_node).all(|row| row.outcome == Mark::NotApplicable));
    let mut planned = World::healthy();
    planned.facts.plans_every_node = true;
    planned.facts.api_version = Ok("v1.36.2".to_owned());
    // What must go before a migration, and what it will need.
    assert_eq!(found(&planned.report()), ["PD-E06", "PD-E08"]);
}

#[test]
fn a_slice_that_was_written_by_hand_does_not_hide_the_pod_with_its_address() {
    let mut world = world();
    let slices = world.json["slices"].as_array_mut().unwrap();
    let mut by_hand = slices[0].clone();
    by_hand["metadata"]["name"] = "kube-dns-by-hand".into();
    by_hand["endpoints"] =
        json!([{ "addresses": by_hand["endpoints"][0]["addresses"], "conditions": { "ready": true } }]);
    slices.insert(0, by_hand);
    assert_eq!(row(world, "PD-E01").outcome, Mark::Fine);
}

#[test]
fn an_object_that_names_no_node_does_not_hide_the_next_one_with_the_own_address() {
    let mut world = world();
    let nameless = json!({ "metadata": { "name": "a" }, "status": { "podIPs": [{ "ip": OWN_ADDRESS }] } });
    world.json["pods"].as_array_mut().unwrap().insert(0, nameless);
    assert_eq!(row(world, "PD-E01").outcome, Mark::Fine);
}

#[test]
fn answers_that_prove_nothing_are_not_fine() {
    type Change = fn(&mut World);
    let changes: [(Change, &str); 6] = [
        (|world| world.facts.answers = Err(Unknown::new("no packets are sent")), "no packets are sent"),
        (
            |world| world.facts.answers.as_mut().unwrap()[0].lost = 3,
            "3 of the queries to the cluster IP had no answer in time",
        ),
        (|world| world.facts.answers.as_mut().unwrap()[0].unnamed = 3, "*nsid* in the Corefile"),
        (|world| world.facts.answers.as_mut().unwrap()[0].named = [("else".to_owned(), 16)].into(), "else answers"),
        (|world| world.facts.interfaces = Ok(Vec::new()), "the node of this process is not known"),
        (|world| world.facts.answers = Ok(Vec::new()), "was not asked"),
    ];
    for (change, reason) in changes {
        let mut world = world();
        change(&mut world);
        let row = row(world, "PD-E01");
        assert_eq!(row.outcome, Mark::Unknown, "{row:#?}");
        assert!(row.reason.as_deref().unwrap_or_default().contains(reason), "{row:#?}");
    }
    let mut elsewhere = world();
    elsewhere.json["slices"][0]["endpoints"][0]["conditions"]["ready"] = false.into();
    assert_eq!(row(elsewhere, "PD-E01").outcome, Mark::NotApplicable);
}

#[test]
fn what_could_not_be_gathered_is_not_fine() {
    for (code, change) in [
        ("PD-E11", (|world| world.facts.api_version = Err(Unknown::new("refused"))) as fn(&mut World)),
        ("PD-E11", |world| world.json["daemon_sets"].as_array_mut().unwrap().truncate(1)),
        ("PD-E12", |world| world.json["cilium"] = "refused".into()),
        ("PD-E08", |world| world.facts.answers = Err(Unknown::new("refused"))),
    ] {
        let mut world = world();
        // Cilium in place of kube-proxy would explain that there is no kube-proxy.
        world.json["cilium"]["kube-proxy-replacement"] = "false".into();
        change(&mut world);
        let row = row(world, code);
        assert!(row.reason.is_some() && row.outcome != Mark::Fine, "{code}: {row:#?}");
    }
}

#[test]
fn a_pod_with_a_long_name_is_known_by_the_start_of_it() {
    let mut world = world();
    let long = format!("{}-k4x9p", "a".repeat(70));
    world.json["slices"][0]["endpoints"][0]["targetRef"]["name"] = long.as_str().into();
    world.facts.answers = Ok(vec![answers(&[(&long[..63], 16)])]);
    assert_eq!(row(world, "PD-E01").outcome, Mark::Fine);
}

#[test]
fn every_check_of_the_mode_names_the_lists_that_it_cannot_do_without() {
    for (list, plural) in super::LISTS {
        let mut world = world();
        world.json[list] = "refused".into();
        let report = world.report();
        for row in report.rows.iter().filter(|row| row.reason.as_deref() == Some("refused")) {
            let check = all().find(|check| check.code == row.code).unwrap();
            let right = format!("list {plural}");
            assert!(check.rights.contains(&right.as_str()), "{}: {right}", row.code);
        }
    }
}
