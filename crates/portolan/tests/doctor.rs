//! `portolan doctor` as users run it: in the Pod of a server with a cluster around it, and from outside with a
//! kubeconfig. The Pod is a network and a mount namespace with the addresses of the cluster on its loopback interface.
//! Where that is not possible, the test prints a message and is skipped.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::support::control::{ControlSocket, Ran};
use crate::support::namespace::{enter, is_inside, run};
use crate::support::{Folder, Server, packages, skip, wait_until};
use fakeapi::{FakeApi, Fault, ReceivedRequest};
use serde_json::{Value, json};

/// Objects of a cluster without problems.
const CLUSTER: &str = include_str!("../../doctor/src/tests/healthy.json");
/// Lists of the file, with the kinds of their objects.
const KINDS: [(&str, &str); 10] = [
    ("services", "Service"),
    ("slices", "EndpointSlice"),
    ("endpoints", "Endpoints"),
    ("namespaces", "Namespace"),
    ("pods", "Pod"),
    ("nodes", "Node"),
    ("deployments", "Deployment"),
    ("disruption_budgets", "PodDisruptionBudget"),
    ("network_policies", "NetworkPolicy"),
    ("events", "Event"),
];
/// Time that the command promises, and as much again for a busy machine.
const PROMISED: Duration = Duration::from_secs(2 * 5);
/// Addresses on the loopback interface: the DNS Service, its replicas, and the upstream.
const ADDRESSES: [&str; 4] = ["10.96.0.10", "10.244.1.2", "10.244.2.2", "10.0.0.2"];
const CONFIG_MAP: &str = "\
.:53 {
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    reload
}
";

/// Returns an API server with the cluster.
fn cluster(api: FakeApi) -> FakeApi {
    api.json_only();
    api.install("DaemonSet", "apps/v1");
    api.install("Event", "v1");
    let mut lists: Value = serde_json::from_str(CLUSTER).unwrap();
    lists["deployments"][0]["spec"]["template"]["spec"]["volumes"] = json!([{ "configMap": { "name": "coredns" } }]);
    for (list, kind) in KINDS {
        for object in lists[list].as_array_mut().unwrap() {
            let mut object = object.take();
            let metadata = object["metadata"].take();
            object.as_object_mut().unwrap().remove("metadata");
            object["addressType"] = "IPv4".into();
            let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
            let mut full = fakeapi::object(kind, &text("namespace"), &text("name"), object);
            for part in ["labels", "annotations"].into_iter().filter(|part| metadata[part].is_object()) {
                full["metadata"][part] = metadata[part].clone();
            }
            api.put(full);
        }
    }
    let config_map = |name: &str, key: &str, text: &str| {
        api.put(fakeapi::object("ConfigMap", "kube-system", name, json!({ "data": { key: text } })));
    };
    config_map("coredns", "Corefile", CONFIG_MAP);
    config_map("kubelet-config", "kubelet", "clusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\n");
    config_map("kubeadm-config", "ClusterConfiguration", lists["kubeadm"]["ClusterConfiguration"].as_str().unwrap());
    ["node-a", "node-b"].into_iter().for_each(|node| configure_kubelet(&api, node, "10.96.0.10"));
    api
}

fn configure_kubelet(api: &FakeApi, node: &str, address: &str) {
    let settings = json!({ "clusterDNS": [address], "clusterDomain": "cluster.local" });
    api.put_document(&format!("/api/v1/nodes/{node}/proxy/configz"), json!({ "kubeletconfig": settings }));
}

/// Codes of the rows of a report with this outcome.
fn codes(report: &Value, is_wanted: impl Fn(&Value) -> bool) -> Vec<&str> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.filter(|row| is_wanted(row)).map(|row| row["code"].as_str().unwrap()).collect()
}

fn found(report: &Value) -> Vec<&str> {
    codes(report, |row| !row["findings"].as_array().unwrap().is_empty())
}

fn row<'r>(report: &'r Value, code: &str) -> &'r Value {
    report["rows"].as_array().unwrap().iter().find(|row| row["code"] == code).unwrap()
}

/// Pod of a server, with the cluster around it.
struct Pod {
    api: FakeApi,
    folder: Folder,
    server: Server,
    socket: ControlSocket,
    upstream: Option<Server>,
}

impl Pod {
    /// Starts all parts in these namespaces.
    fn start() -> Pod {
        let folder = Folder::new("doctor");
        for address in ADDRESSES {
            assert!(run("ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]).0, "{address}");
        }
        let settings = folder.write("resolv.conf", "nameserver 10.0.0.2\nsearch corp.test\n");
        assert!(run("mount", &["--bind", settings.to_str().unwrap(), "/etc/resolv.conf"]).0);
        let api = cluster(FakeApi::start_tls());
        let account = "/run/secrets/kubernetes.io/serviceaccount";
        assert!(run("mount", &["-t", "tmpfs", "tmpfs", "/run"]).0);
        std::fs::create_dir_all(account).unwrap();
        std::fs::write(format!("{account}/token"), "secret").unwrap();
        std::fs::write(format!("{account}/ca.crt"), &api.pems().unwrap().authority).unwrap();
        let upstream = start_upstream(&folder, "");
        let mut command = in_pod(&api);
        command.arg("-conf").arg(folder.write("Corefile", &corefile("/etc/resolv.conf")));
        let mut server = Server::start_command(command);
        let socket = ControlSocket::of(&mut server);
        let pod = Pod { api, folder, server, socket, upstream: Some(upstream) };
        wait_until("it is ready", || pod.socket.run(&["status"]).code == 0);
        pod
    }

    /// Runs the command, which must end in the promised time, and returns its report.
    fn report(&self) -> Value {
        let start = Instant::now();
        let ran = self.run(&["--json"]);
        assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
    }

    fn run(&self, words: &[&str]) -> Ran {
        let mut command = in_pod(&self.api);
        command.arg("doctor").args(words).args(["--socket", &self.socket.0]);
        command.output().unwrap().into()
    }

    /// Loads a Corefile, and waits until the status shows it or its refusal.
    fn reload(&self, corefile: &str) {
        let before = self.socket.status()["corefile"]["generation"].clone();
        self.folder.write("Corefile", corefile);
        self.server.signal("USR1");
        wait_until("it is loaded or refused", || {
            let now = &self.socket.status()["corefile"];
            now["generation"] != before || !now["refused"].is_null()
        });
        wait_until("it is ready", || self.socket.status()["serving"] == "ready");
    }

    fn change(&self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let before = self.api.get(resource, namespace, name).unwrap();
        let mut after = before.clone();
        change(&mut after);
        self.api.put(after);
        before
    }

    /// Expects findings in this row only, after `seed`.
    fn expect(&mut self, code: &str, name: &str, seed: impl FnOnce(&mut Pod), heal: impl FnOnce(&mut Pod)) {
        seed(self);
        let report = self.report();
        assert_eq!(found(&report), [code], "{name}: {report:#}");
        heal(self);
    }
}

/// Returns the command with the environment of a Pod.
fn in_pod(api: &FakeApi) -> Command {
    let (host, port) = api.url().strip_prefix("https://").unwrap().split_once(':').unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
    command
}

fn corefile(upstream: &str) -> String {
    let bind = format!("    bind {}\n    health", ADDRESSES[..3].join(" "));
    CONFIG_MAP.replacen("    health", &bind, 1).replace("/etc/resolv.conf", upstream)
}

/// Server block that answers every name below `corp.test`.
const WILDCARD: &str = "\
corp.test:53 {
    bind 10.0.0.2
    template IN A {
        answer \"{{ .Name }} 60 IN A 192.0.2.80\"
    }
}
";

/// Starts an upstream without names, except for those of further server blocks.
fn start_upstream(folder: &Folder, more: &str) -> Server {
    // The name servers of the root fill 700 bytes, like those of the real one with their signature.
    let servers: String =
        (0..12).map(|at| format!("        answer \". 60 IN NS {}{at}.test.\"\n", "n".repeat(40))).collect();
    let root = format!("    template IN NS . {{\n        match ^\\.$\n{servers}        fallthrough\n    }}\n");
    let text =
        format!(".:53 {{\n    bind 10.0.0.2\n{root}    template ANY ANY {{\n        rcode NXDOMAIN\n    }}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile.upstream", &format!("{text}{more}")));
    server.wait_for("Portolan-");
    server
}

fn nft(words: &str) {
    assert!(run("nft", &words.split(' ').collect::<Vec<_>>()).0, "nft {words}");
}

/// Drops packets that match until [`pass`].
fn drop_packets(matching: &str) {
    nft("add table inet doctor");
    // At the input, so that the sender does not see an error.
    nft("add chain inet doctor input { type filter hook input priority 0 ; }");
    nft(&format!("add rule inet doctor input {matching} drop"));
}

fn pass() {
    nft("delete table inet doctor");
}

#[test]
fn names_each_fault_and_nothing_else() {
    let test = "names_each_fault_and_nothing_else";
    let flags = ["--net", "--mount"];
    if !is_inside() && !run("unshare", &[&flags[..], &["nft", "list", "ruleset"]].concat()).0 {
        return skip(format_args!("{test}: no network and mount namespaces or no nft here"));
    }
    enter(module_path!(), test, &flags, || {
        let mut pod = Pod::start();
        healthy(&pod);
        objects(&mut pod);
        packets(&mut pod);
        configurations(&mut pod);
        every_node(&mut pod);
        permissions(&mut pod);
    });
}

/// Rows that cannot look in this cluster, or not on every machine.
const NOT_HERE: [&str; 9] = ["PD-P01", "PD-P05", "PD-N01", "PD-N02", "PD-N06", "PD-N07", "PD-L01", "PD-L02", "PD-T02"];

fn healthy(pod: &Pod) {
    let report = pod.report();
    assert!(found(&report).is_empty(), "{report:#}");
    let blind = codes(&report, |row| row["outcome"] == "unknown" && !NOT_HERE.iter().any(|code| row["code"] == *code));
    assert!(blind.is_empty(), "{blind:?}: {report:#}");
    let text = pod.run(&[]);
    assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{}", text.stdout);
    assert!(text.stdout.starts_with("portolan doctor ") && text.stdout.contains("Service kube-system/kube-dns"));
    assert_eq!(pod.run(&["--fix-text", "--only", "PD-S04"]).stdout, "Nothing to fix.\n");
    let only = pod.run(&["--only", "services"]).stdout;
    assert!(only.contains("PD-S01") && !only.contains("PD-C01"), "{only}");
    let sarif: Value = serde_json::from_str(&pod.run(&["--sarif"]).stdout).unwrap();
    assert_eq!((&sarif["version"], &sarif["runs"][0]["results"]), (&json!("2.1.0"), &json!([])));
}

fn objects(pod: &mut Pod) {
    let labels = json!({ "labels": { "k8s-app": "kube-dns" } });
    let second = json!({ "metadata": labels, "spec": { "template": {} } });
    pod.expect(
        "PD-C05",
        "a second Deployment has the label",
        |pod| _ = pod.api.put(fakeapi::object("Deployment", "kube-system", "portolan", second)),
        |pod| pod.api.delete("deployments", "kube-system", "portolan"),
    );
    let slice = pod.api.get("endpointslices", "kube-system", "kube-dns-a").unwrap();
    pod.expect(
        "PD-K03",
        "the Service has no endpoints",
        |pod| pod.api.delete("endpointslices", "kube-system", "kube-dns-a"),
        |pod| _ = pod.api.put(slice),
    );
    let budget = pod.api.get("poddisruptionbudgets", "kube-system", "coredns").unwrap();
    pod.expect(
        "PD-K05",
        "there is no PodDisruptionBudget",
        |pod| pod.api.delete("poddisruptionbudgets", "kube-system", "coredns"),
        |pod| _ = pod.api.put(budget),
    );
    pod.expect(
        "PD-K01",
        "a kubelet has another address",
        |pod| configure_kubelet(&pod.api, "node-b", "10.96.0.99"),
        |pod| configure_kubelet(&pod.api, "node-b", "10.96.0.10"),
    );
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "gone.shop.svc.cluster.local" } });
    pod.expect(
        "PD-S02",
        "an ExternalName leads to nothing",
        |pod| _ = pod.api.put(fakeapi::object("Service", "store-front", "old", external)),
        |pod| pod.api.delete("services", "store-front", "old"),
    );
    let mut before = Value::Null;
    pod.expect(
        "PD-N03",
        "a NetworkPolicy lets only UDP out",
        |pod| {
            before = pod.change("networkpolicies", "store-front", "dns-only", |policy| {
                _ = policy["spec"]["egress"][0]["ports"].as_array_mut().unwrap().pop();
            });
        },
        |_| {},
    );
    pod.api.put(before);
}

fn packets(pod: &mut Pod) {
    pod.expect("PD-N04", "TCP is blocked", |_| drop_packets("ip daddr 10.96.0.10 tcp dport 53"), |_| pass());
    pod.expect("PD-K08", "the cluster IP is silent", |_| drop_packets("ip daddr 10.96.0.10 th dport 53"), |_| pass());
    pod.expect(
        "PD-N05",
        "large packets are lost",
        |_| drop_packets("ip daddr 10.0.0.2 udp dport 53 meta length > 1200"),
        |_| pass(),
    );
    pod.expect(
        "PD-N05",
        "large answers are lost",
        |_| drop_packets("ip saddr 10.0.0.2 udp sport 53 meta length > 600"),
        |_| pass(),
    );
    pod.expect(
        "PD-U02",
        "the upstream is dead",
        |pod| drop(pod.upstream.take()),
        |pod| pod.upstream = Some(start_upstream(&pod.folder, "")),
    );
    pod.expect(
        "PD-U05",
        "a search domain has a wildcard",
        |pod| {
            drop(pod.upstream.take());
            pod.upstream = Some(start_upstream(&pod.folder, WILDCARD));
        },
        |pod| {
            drop(pod.upstream.take());
            pod.upstream = Some(start_upstream(&pod.folder, ""));
        },
    );
}

/// Server block with an expired certificate.
fn expired(folder: &Folder) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["dns.test".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    folder.write("cert.pem", &params.self_signed(&key).unwrap().pem());
    folder.write("key.pem", &key.serialize_pem());
    let tls = format!("root {}\n    tls cert.pem key.pem", folder.path().display());
    format!("tls://test:853 {{\n    bind 10.96.0.10\n    {tls}\n    whoami\n}}\n")
}

fn configurations(pod: &mut Pod) {
    let fine = corefile("/etc/resolv.conf");
    pod.expect(
        "PD-C03",
        "a reload failed",
        |pod| pod.reload(&fine.replace("    ready\n", "    redy\n    ready\n")),
        |pod| pod.reload(&fine.replace("cache 30", "cache 31")),
    );
    pod.expect(
        "PD-C01",
        "the file changed and has an error",
        |pod| _ = pod.folder.write("Corefile", &fine.replace("    ready\n", "    redy\n    ready\n")),
        |pod| pod.reload(&fine),
    );
    let with_tls = format!("{fine}{}", expired(&pod.folder));
    pod.expect("PD-T02", "a certificate has expired", |pod| pod.reload(&with_tls), |pod| pod.reload(&fine));
    pod.expect(
        "PD-U01",
        "the upstream is the Service",
        |pod| pod.reload(&corefile("10.96.0.10")),
        |pod| pod.reload(&fine),
    );
}

/// Makes the cluster one with the full server on every node, of which this is node-a.
fn migrate(pod: &Pod) {
    pod.api.install("HorizontalPodAutoscaler", "autoscaling/v2");
    pod.api.put_document("/version", json!({ "gitVersion": "v1.36.2" }));
    let labels = json!({ "app.kubernetes.io/component": "every-node", "k8s-app": "kube-dns" });
    let ports = json!([{ "containerPort": 53, "protocol": "UDP" }]);
    let probe = json!({ "httpGet": { "path": "/ready", "port": 8181 } });
    let container = json!({ "name": "portolan", "ports": ports, "readinessProbe": probe });
    let server = json!({ "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } } });
    let proxy = json!({ "name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.36.2" });
    let proxy = json!({ "template": { "spec": { "containers": [proxy] } } });
    for (name, spec) in [("portolan-every-node", server), ("kube-proxy", proxy)] {
        pod.api.put(fakeapi::object("DaemonSet", "kube-system", name, json!({ "spec": spec })));
    }
    pod.api.delete("poddisruptionbudgets", "kube-system", "coredns");
    pod.change("endpointslices", "kube-system", "kube-dns-a", |slice| {
        for endpoint in slice["endpoints"].as_array_mut().unwrap() {
            endpoint["hints"] = json!({ "forNodes": [{ "name": endpoint["nodeName"] }] });
        }
    });
    prefer(pod, "PreferSameNode");
}

fn prefer(pod: &Pod, distribution: &str) {
    pod.change("services", "kube-system", "kube-dns", |service| {
        service["spec"]["trafficDistribution"] = distribution.into();
    });
}

fn every_node(pod: &mut Pod) {
    let named =
        |name: &str| corefile("/etc/resolv.conf").replace("    ready\n", &format!("    ready\n    nsid {name}\n"));
    let report = pod.run(&["--json", "--only", "every-node"]).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(found(&report).contains(&"PD-E06"), "before a migration, the budget is in the way: {report:#}");
    migrate(pod);
    pod.reload(&named("coredns-6c9"));
    let report = pod.report();
    assert!(found(&report).is_empty(), "{report:#}");
    assert_eq!(row(&report, "PD-E01")["evidence"], "16 answers of this node", "{report:#}");
    let is_open = |row: &Value| {
        row["area"] == "every-node" && !["fine", "not_applicable"].map(Value::from).contains(&row["outcome"])
    };
    assert!(codes(&report, is_open).is_empty(), "{report:#}");
    pod.expect(
        "PD-E01",
        "the Pod of the other node answers",
        |pod| pod.reload(&named("coredns-x2k")),
        |pod| pod.reload(&named("coredns-6c9")),
    );
    pod.expect("PD-E05", "kubeadm reset the Service", |pod| prefer(pod, ""), |pod| prefer(pod, "PreferSameNode"));
    pod.api.delete("daemonsets", "kube-system", "portolan-every-node");
    prefer(pod, "");
    let budget = json!({ "spec": { "selector": { "matchLabels": { "k8s-app": "kube-dns" } } },
        "status": { "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2 } });
    pod.api.put(fakeapi::object("PodDisruptionBudget", "kube-system", "coredns", budget));
    pod.reload(&corefile("/etc/resolv.conf"));
}

fn permissions(pod: &mut Pod) {
    pod.api.fault("pods", Fault::Status(403, None));
    let report = pod.report();
    assert!(found(&report).is_empty(), "{report:#}");
    let reason = row(&report, "PD-P02")["reason"].as_str().unwrap();
    assert_eq!(reason, "the API server refuses to list pods (403); deploy/doctor.yaml has the role");
    pod.api.heal("pods");
    pod.expect("PD-R01", "a permission is missing", |pod| pod.api.deny("watch", "services"), |_| {});
}

/// Runs the command outside of the cluster, with a kubeconfig.
fn outside(folder: &Folder, url: &str, words: &[&str]) -> Ran {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "x", "cluster": { "server": url } }],
        "users": [{ "name": "x", "user": {} }],
        "contexts": [{ "name": "x", "context": { "cluster": "x", "user": "x" } }],
    });
    let file: PathBuf = folder.write("kubeconfig", &config.to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.args(["doctor", "--socket", "/nonexistent", "--kubeconfig"]).arg(file).args(words);
    command.env_remove("KUBERNETES_SERVICE_HOST").output().unwrap().into()
}

/// Verbs and resources of the roles in `deploy/doctor.yaml`, which must only read.
fn allowed_by_the_manifest() -> BTreeSet<(String, String)> {
    let objects = packages::read(&packages::repository().join("deploy/doctor.yaml"));
    let rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten();
    let mut allowed = BTreeSet::new();
    for rule in rules {
        let words = |name: &str| rule[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
        for (verb, resource) in words("verbs").flat_map(|verb| words("resources").map(move |one| (verb.clone(), one))) {
            assert!(
                ["list", "get"].contains(&verb.as_str()) || resource == "subjectaccessreviews",
                "{verb} {resource}"
            );
            allowed.insert((verb, resource));
        }
    }
    allowed
}

#[test]
fn the_job_runs_without_root_and_with_a_read_only_root_file_system() {
    let objects = packages::read(&packages::repository().join("deploy/doctor.yaml"));
    let job = objects.iter().find(|object| object["kind"] == "Job").unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["doctor", "--in-cluster"]));
    let security = &container["securityContext"];
    assert_eq!((&security["runAsUser"], &security["readOnlyRootFilesystem"]), (&json!(65532), &json!(true)));
    assert_eq!(security["capabilities"], json!({ "drop": ["ALL"] }));
    let accounts = objects.iter().filter(|object| object["kind"] == "ServiceAccount");
    let names: Vec<&Value> = accounts.map(|account| &account["metadata"]["name"]).collect();
    assert_eq!(names, [&pod["serviceAccountName"]]);
}

#[test]
fn reads_a_cluster_from_outside() {
    let (api, folder) = (cluster(FakeApi::start()), Folder::new("doctor-outside"));
    let ran = outside(&folder, api.url(), &["--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(found(&report).is_empty(), "{report:#}");
    assert_unusable_socket(&ran);
    // Corefile from the ConfigMap, rights of the service account, kubelets through the API server.
    for code in ["PD-C01", "PD-R01", "PD-K01", "PD-K02", "PD-K07", "PD-S01"] {
        assert_eq!(row(&report, code)["outcome"], "fine", "{code}: {report:#}");
    }
    for code in ["PD-C02", "PD-K08", "PD-N04", "PD-U02"] {
        let reason = row(&report, code)["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("not in the network of the cluster"), "{code}: {reason}");
    }
    // The name servers of this machine are not those of the server.
    assert_eq!(row(&report, "PD-U01")["reason"], "the addresses of the upstreams are not known here");
    let (seen, allowed) = (api.seen(), allowed_by_the_manifest());
    assert!(seen.iter().any(|request| request.resource == "subjectaccessreviews"));
    for ReceivedRequest { method, resource, name, .. } in seen {
        let verb = match (method.as_str(), name.as_str()) {
            ("GET", "") => "list",
            ("GET", _) => "get",
            _ => "create",
        };
        assert!(allowed.contains(&(verb.to_owned(), resource.clone())), "deploy/doctor.yaml: {verb} {resource}");
    }
    api.deny("list", "endpointslices");
    let text = outside(&folder, api.url(), &["--only", "rights"]);
    assert_unusable_socket(&text);
    let expected = "system:serviceaccount:kube-system:coredns may not list endpointslices";
    assert!(text.stdout.contains(expected), "{}", text.stdout);
}

/// Expects that the command reports the socket that [`outside`] names, and no other option.
fn assert_unusable_socket(ran: &Ran) {
    let expected =
        "--socket: /nonexistent: no such file or directory; without `--socket`, the server that runs here is found\n";
    assert_eq!((ran.code, ran.stderr.to_lowercase().as_str()), (2, expected), "{}", ran.stdout);
}

#[test]
fn an_option_that_cannot_be_used_is_an_error() {
    let folder = Folder::new("doctor-options");
    let corefile = folder.write("Corefile", ".:0 {\n    whoami\n}\n");
    let run = |words: &[&str]| -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(["doctor", "--conf"]).arg(&corefile).args(["--only", "PD-C01"]).args(words);
        command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBECONFIG").output().unwrap().into()
    };
    let fine = run(&[]);
    assert_eq!((fine.code, fine.stderr.as_str()), (0, ""), "{}", fine.stdout);
    for (option, value) in [("--socket", "@nope"), ("--kubeconfig", "/nonexistent")] {
        let ran = run(&[option, value]);
        let (line, rest) = ran.stderr.split_once('\n').unwrap();
        assert!(line.starts_with(option) && line.contains(value) && rest.is_empty(), "{}", ran.stderr);
        assert!(ran.code == 2 && ran.stdout.contains("PD-C01"), "{}: {}", ran.code, ran.stdout);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    let ran: Ran = command.args(["doctor", "--conf", "/nonexistent"]).output().unwrap().into();
    assert!(
        ran.code == 2 && ran.stderr.starts_with("--conf: ") && ran.stderr.contains("/nonexistent"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_silent_api_server_does_not_delay_the_report() {
    let folder = Folder::new("doctor-silent");
    // The kernel accepts connections; nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = Instant::now();
    let ran = outside(&folder, &format!("http://{}", silent.local_addr().unwrap()), &[]);
    assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
    assert!(
        ran.stdout.contains("in time") || ran.stdout.contains("not gathered within"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn says_why_it_could_not_look() {
    let (api, folder) = (cluster(FakeApi::start()), Folder::new("doctor-blind"));
    api.fault("services", Fault::Stall);
    let start = Instant::now();
    let text = outside(&folder, api.url(), &["--only", "services"]);
    assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
    assert_eq!(text.code, 2, "{}", text.stdout);
    assert!(text.stdout.contains("the API server did not list services in time:"), "{}", text.stdout);
    api.down();
    let text = outside(&folder, api.url(), &["--only", "PD-K05"]);
    assert_eq!(text.code, 2, "{}", text.stdout);
    assert!(text.stdout.contains("no connection to the API server"), "{}", text.stdout);
    let text = outside(&folder, api.url(), &["--only", "dns"]);
    assert_eq!(text.code, 2, "{}", text.stderr);
    assert!(text.stderr.contains("`dns` is neither an area nor a code; use one of corefile, "), "{}", text.stderr);
}

/// Time that a relay waits for an answer: longer than any of the command's queries.
const RELAY_TIME: Duration = Duration::from_secs(10);

/// Starts a resolver that forwards all queries over UDP to the server whose address is sent to it.
fn relay() -> (SocketAddr, Sender<SocketAddr>) {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let (sender, target) = channel();
    std::thread::spawn(move || {
        let target: SocketAddr = target.recv().unwrap();
        let mut buffer = [0; 4096];
        while let Ok((length, client)) = front.recv_from(&mut buffer) {
            let (query, front) = (buffer[..length].to_vec(), front.try_clone().unwrap());
            std::thread::spawn(move || relay_one(&query, &front, client, target));
        }
    });
    (address, sender)
}

fn relay_one(query: &[u8], front: &UdpSocket, client: SocketAddr, target: SocketAddr) {
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.set_read_timeout(Some(RELAY_TIME)).unwrap();
    back.send_to(query, target).unwrap();
    let mut answer = [0; 4096];
    if let Ok(length) = back.recv(&mut answer) {
        let _ = front.send_to(&answer[..length], client);
    }
}

/// Starts a server that forwards to an upstream.
fn forwarding(name: &str, more: &str, upstreams: &str) -> (Folder, Server, ControlSocket, SocketAddr) {
    let folder = Folder::new(name);
    let control = folder.path().join("control.sock").display().to_string();
    let text = format!(".:0 {{\n bind 127.0.0.1\n control {control}\n {more}\n forward . {upstreams}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &text));
    let address = server.address_of("dns://127.0.0.1:0");
    let socket = ControlSocket::of(&mut server);
    (folder, server, socket, address)
}

#[test]
fn a_loop_over_two_hops_is_found_by_the_queries_that_come_back() {
    let (relay, target) = relay();
    let (_folder, _server, socket, address) = forwarding("doctor-loop", "", &relay.to_string());
    target.send(address).unwrap();
    let ran = socket.run(&["doctor", "--only", "PD-U01"]);
    let expected = format!("PD-U01  queries to upstream {relay} of zone . come back to this server");
    assert!(ran.code == 1 && ran.stdout.contains(&expected), "{} {}{}", ran.code, ran.stdout, ran.stderr);
}

#[test]
fn a_loop_that_the_server_has_found_is_named_by_every_command() {
    let (relay, target) = relay();
    let folder = Folder::new("doctor-found-loop");
    let control = folder.path().join("control.sock").display().to_string();
    // *loop* asks its own port, so the Corefile has to name one.
    let own = testkit::ports::free_address();
    let port = own.port();
    let text = format!(
        ".:{port} {{\n bind 127.0.0.1\n control {control}\n prometheus 127.0.0.1:0\n loop\n forward . {relay}\n}}\n"
    );
    let mut server = Server::start(&folder.write("Corefile", &text));
    let socket = ControlSocket::of(&mut server);
    target.send(own).unwrap();
    let expected = "forwarding loop in zone . for ";
    wait_until("the status names it", || socket.run(&["status"]).stdout.contains(expected));
    let ran = socket.run(&["doctor", "--only", "PD-U01"]);
    assert!(ran.code == 1 && ran.stdout.contains(expected), "{} {}", ran.code, ran.stdout);
    let ran = socket.run(&["explain", "www.example.org"]);
    assert!(ran.code == 1 && ran.stdout.contains(expected) && ran.stdout.contains("[PE-O01]"), "{}", ran.stdout);
    crate::support::Client::new(own).ask("www.example.org.", wire::Type::A);
    let tail = || socket.run(&["tail", "--last", "100", "--name", "www.example.org"]).stdout;
    wait_until("tail shows the text", || tail().contains("EDE 0 (forwarding loop detected)"));
}

#[test]
fn a_resolver_that_answers_is_no_loop() {
    let upstream = crate::support::upstream::Upstream::start(1);
    let (_folder, _server, socket, _) = forwarding("doctor-no-loop", "", &upstream.address.to_string());
    let ran = socket.run(&["doctor", "--only", "PD-U01"]);
    let expected = "✓ PD-U01  no upstream leads back to this server (1 upstream)";
    assert!(ran.code == 0 && ran.stdout.contains(expected), "{} {}{}", ran.code, ran.stdout, ran.stderr);
}

#[test]
fn one_silent_upstream_of_two_makes_the_report_incomplete() {
    let upstream = crate::support::upstream::Upstream::start(1);
    // The kernel keeps its datagrams; nobody reads them.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (silent, address)).unwrap();
    let upstreams = format!("{} {}", upstream.address, silent.1);
    let (_folder, _server, socket, _) = forwarding("doctor-half", "", &upstreams);
    for code in ["PD-U01", "PD-N05"] {
        let ran = socket.run(&["doctor", "--only", code]);
        assert!(ran.code == 3 && ran.stdout.contains(&format!("{}", silent.1)), "{code} {} {}", ran.code, ran.stdout);
    }
}

#[test]
fn an_api_server_that_never_answers_is_a_finding() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let folder = Folder::new("doctor-unlisted");
    let control = folder.path().join("control.sock").display().to_string();
    let text = format!(
        ".:0 {{\n bind 127.0.0.1\n control {control}\n kubernetes cluster.local {{\n  endpoint {url}\n \
         startup_timeout 1ms\n }}\n}}\n"
    );
    let mut server = Server::start(&folder.write("Corefile", &text));
    let socket = ControlSocket::of(&mut server);
    // Before it is a finding, it is not fine either.
    let first = socket.run(&["doctor", "--only", "PD-R02"]);
    assert!(first.code == 3 && !first.stdout.contains("✓ PD-R02"), "{} {}", first.code, first.stdout);
    let expected = format!("not listed: {url} has accepted the requests and sent nothing for");
    wait_until("the status reports it", || socket.run(&["status"]).stdout.contains(&expected));
    let ran = socket.run(&["doctor", "--only", "PD-R02"]);
    assert!(ran.code == 1 && ran.stdout.contains(&expected), "{} {}", ran.code, ran.stdout);
}
