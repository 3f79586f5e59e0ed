//! Tests with a real Kubernetes API server, which confirm that fakeapi behaves like it and that the manifests are
//! valid.

use std::path::Path;
use std::process::Command;

use crate::support::kubernetes::{Kubernetes, is_installed};
use crate::support::packages;
use crate::support::served::Served;
use crate::support::wait_until;
use serde_json::{Value, json};
use wire::{Rcode, Type};

/// Extended DNS Error Not Ready (RFC 8914 §4.15).
const NOT_READY: u16 = 14;
const WEB: &str = "web.shop.svc.cluster.local.";
const PETS: &str = "pets.shop.svc.cluster.local.";

/// Starts Portolan with a service account that has the permissions that `portolan check --rbac` prints.
fn serve(kubeconfig: &Path) -> Served {
    let corefile = format!(
        ".:0 {{\n    ready localhost:0\n    prometheus localhost:0\n    kubernetes cluster.local in-addr.arpa ip6.arpa \
         {{\n        kubeconfig {}\n        pods verified\n    }}\n}}\n",
        kubeconfig.display()
    );
    Served::start("real", &corefile)
}

impl Served {
    fn wait_gone(&mut self, name: &str) {
        let is_gone = |answer: crate::support::Answer| answer.rcode() == Rcode::NXDOMAIN;
        wait_until(&format!("{name} is gone"), || self.client.ask(name, Type::A).is_some_and(is_gone));
    }

    fn failures(&self) -> Vec<String> {
        let text = self.metrics();
        let name = "portolan_kubernetes_watch_failures_total{";
        let is_failure = |line: &&str| line.starts_with(name) && !line.ends_with(" 0");
        text.lines().filter(is_failure).map(str::to_owned).collect()
    }
}

fn named(kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "kind": kind, "apiVersion": "v1", "metadata": { "name": name, "namespace": "shop" }, "spec": spec })
}

/// Returns a cluster-scoped object.
fn wide(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "apiVersion": "v1", "metadata": { "name": name } })
}

fn slice(service: &str, address: &str) -> Value {
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4", "ports": [],
        "metadata": { "name": service, "namespace": "shop", "labels": { "kubernetes.io/service-name": service } },
        "endpoints": [{ "addresses": [address], "hostname": "cat", "conditions": { "ready": true } }],
    })
}

/// Returns the permissions that a Corefile needs, as objects for the API server.
fn rules(corefile: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_portolan")).args(["check", "--rbac"]).arg(corefile).output().unwrap();
    serde_saphyr::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

fn allow(api: &Kubernetes, account: &str, role: &Value) {
    api.create(role);
    let binding = json!({
        "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": { "name": account },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"] },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": "default" }],
    });
    api.create(&binding);
}

#[test]
fn follows_a_real_api_server() {
    if !is_installed() {
        return;
    }
    let mut api = Kubernetes::start();
    put_shop(&api);
    let account = api.account("portolan");
    let mut served = serve(&account);
    let role = rules(&served.folder.path().join("Corefile"));
    rights_come_one_by_one(&api, &mut served, &role);
    // Skip the expected failures above; from here on, no request may fail.
    served = serve(&account);
    served.wait_until_ready();
    changes_are_seen(&api, &mut served);
    assert_eq!(served.failures(), [""; 0]);
    assert!(served.server.lines().iter().all(|line| !line.contains("in JSON")), "{:?}", served.server.lines());
    it_conforms(&api, &served);
    it_outlives_the_api_server(&mut api, &mut served);
    served = serve(&api.admin());
    served.wait_until_ready();
    it_sees_that_etcd_was_put_back(&mut api, &mut served);
}

fn put_shop(api: &Kubernetes) {
    api.create(&wide("Namespace", "shop"));
    let web = json!({ "clusterIP": "10.96.7.7", "ports": [{ "name": "http", "port": 80 }] });
    api.create(&named("Service", "web", &web));
    api.create(&named("Service", "pets", &json!({ "clusterIP": "None" })));
    api.create(&slice("pets", "192.0.2.20"));
}

/// Checks that a missing permission affects only its own objects, and that these appear once it is granted.
fn rights_come_one_by_one(api: &Kubernetes, served: &mut Served, role: &Value) {
    let mut partial = role.clone();
    partial["rules"].as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["endpointslices"]));
    allow(api, "portolan", &partial);
    served.wait_for_addresses(WEB, &["10.96.7.7"]);
    let answer = served.client.ask(PETS, Type::A).unwrap();
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(NOT_READY)));
    let name = role["metadata"]["name"].as_str().unwrap();
    api.patch("clusterroles", "", name, &json!({ "rules": role["rules"] }));
    served.wait_for_addresses(PETS, &["192.0.2.20"]);
}

fn changes_are_seen(api: &Kubernetes, served: &mut Served) {
    served.wait_for_addresses("kubernetes.default.svc.cluster.local.", &["10.96.0.1"]);
    api.patch("endpointslices", "shop", "pets", &json!({ "endpoints": [{ "addresses": ["192.0.2.21"] }] }));
    served.wait_for_addresses(PETS, &["192.0.2.21"]);
    api.delete("services", "shop", "pets");
    served.wait_gone(PETS);
    // After the Pod runs on a node, the controller creates the slice.
    wait_until("Pods can be made", || api.has("serviceaccounts", "shop", "default"));
    api.create(&wide("Node", "node"));
    api.create(&named("Service", "cats", &json!({ "clusterIP": "None", "selector": { "is": "cat" } })));
    let mut cat = named("Pod", "cat", &json!({ "nodeName": "node", "containers": [{ "name": "c", "image": "i" }] }));
    cat["metadata"]["labels"] = json!({ "is": "cat" });
    api.create(&cat);
    let running = json!({
        "phase": "Running", "podIP": "10.1.0.9", "podIPs": [{ "ip": "10.1.0.9" }],
        "conditions": [{ "type": "Ready", "status": "True" }],
    });
    api.patch("pods", "shop", "cat/status", &json!({ "status": running }));
    served.wait_for_addresses("10-1-0-9.shop.pod.cluster.local.", &["10.1.0.9"]);
    served.wait_for_addresses("cats.shop.svc.cluster.local.", &["10.1.0.9"]);
}

fn it_conforms(api: &Kubernetes, served: &Served) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.args(["conformance", "--server", &served.address.to_string(), "--kubeconfig"]).arg(api.admin());
    let output = command.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains("pass  service/dual-stack") && report.contains("pass  live/"), "{report}");
    let scratch = report.split("namespace ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    wait_until("the scratch namespace is gone", || !api.has("namespaces", "", &scratch));
}

fn it_outlives_the_api_server(api: &mut Kubernetes, served: &mut Served) {
    api.kill();
    served.server.wait_for("Failed to watch");
    assert_eq!(served.addresses(WEB), ["10.96.7.7"]);
    api.run();
    api.create(&named("Service", "late", &json!({ "clusterIP": "10.96.7.8", "ports": [{ "port": 80 }] })));
    served.wait_for_addresses("late.shop.svc.cluster.local.", &["10.96.7.8"]);
}

/// Checks that the server notices an etcd that was restored from an older backup.
fn it_sees_that_etcd_was_put_back(api: &mut Kubernetes, served: &mut Served) {
    api.kill();
    api.etcd.kill();
    api.etcd.forget();
    api.etcd.run();
    api.run();
    served.wait_gone(WEB);
    served.wait_for_addresses("kubernetes.default.svc.cluster.local.", &["10.96.0.1"]);
}

/// First minor version of Kubernetes 1 whose API server takes `trafficDistribution: PreferSameNode`.
const SAME_NODE_MINOR: u32 = 34;

/// Checks that the manifests are valid, also those that the Helm chart and the Kustomize overlays render.
#[test]
fn manifests_are_valid() {
    if !is_installed() {
        return;
    }
    let api = Kubernetes::start();
    api.create(&wide("Namespace", "shop"));
    let minor = api.minor_version();
    let files = [packages::files(&packages::repository().join("deploy")), packages::golden()].concat();
    let manifests = files.iter().filter(|file| file.extension().is_some_and(|end| end == "yaml"));
    for mut object in manifests.flat_map(|file| packages::read(file)) {
        // `deploy/kube-dns.yaml` is a patch without a name.
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!("kube-dns");
        }
        // The API server knows no objects of the Prometheus operator. It rejects the part of a Deployment in `swap`
        // and that of a Service in `deploy/same-node.yaml`.
        let is_custom = object["apiVersion"].as_str().is_some_and(|version| version.starts_with("monitoring."));
        let required = if object["kind"] == "Deployment" { "selector" } else { "ports" };
        let is_part = ["Deployment", "Service"].iter().any(|kind| object["kind"] == *kind);
        let is_part = is_part && object["spec"][required].is_null();
        // The chart renders the field for this version and later ones.
        let is_preference = object["spec"]["trafficDistribution"] == "PreferSameNode";
        if is_preference && minor < SAME_NODE_MINOR {
            object["spec"]["trafficDistribution"] = Value::Null;
        }
        if !is_custom && !is_part {
            api.try_out(&object);
        }
    }
}

/// Runs `portolan doctor` with the role of `deploy/doctor.yaml`, in a cluster that has the objects of
/// `deploy/new-cluster.yaml`, but no node and so no Pods.
#[test]
fn doctor_reads_a_cluster_with_its_role() {
    if !is_installed() {
        return;
    }
    let api = Kubernetes::start();
    for object in packages::read(&packages::repository().join("deploy/new-cluster.yaml")) {
        api.create(&object);
    }
    let token = api.account("portolan-doctor");
    for mut object in packages::read(&packages::repository().join("deploy/doctor.yaml")) {
        if object["subjects"].is_array() {
            object["subjects"][0]["namespace"] = "default".into();
        }
        if !["ServiceAccount", "Job"].iter().any(|kind| object["kind"] == *kind) {
            api.create(&object);
        }
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.args(["doctor", "--json", "--socket", "/nonexistent", "--kubeconfig"]).arg(token);
    let output = command.env_remove("KUBERNETES_SERVICE_HOST").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let is_refused = |row: &&Value| row["reason"].as_str().is_some_and(|reason| reason.contains("403"));
    let refused: Vec<&Value> = rows.iter().filter(is_refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let outcome = |code: &str| rows.iter().find(|row| row["code"] == code).unwrap()["outcome"].as_str().unwrap();
    for code in ["PD-C01", "PD-R01", "PD-R03", "PD-K07", "PD-P02", "PD-N03", "PD-L03", "PD-S01", "PD-S04", "PD-T01"] {
        assert_eq!(outcome(code), "fine", "{code}: {report:#}");
    }
    let found: Vec<&Value> = rows.iter().filter(|row| row["findings"] != json!([])).map(|row| &row["code"]).collect();
    // Without nodes there are no endpoints, and the manifests have no PodDisruptionBudget.
    assert_eq!(found, ["PD-K03", "PD-K05"], "{report:#}");
}
