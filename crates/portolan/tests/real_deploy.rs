//! The commands of the deployment pages, run by a shell against a real Kubernetes API server.
//!
//! The cluster has no nodes, so the Deployments run with 0 replicas and `rollout status` ends at once.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::Folder;
use crate::support::kubernetes::{Kubernetes, are_in_path, is_installed};
use crate::support::packages::repository;
use serde_json::{Value, json};

const ORIGINAL_IMAGE: &str = "coredns:1.14.1";
/// Image in the examples with Helm and Kustomize.
const OWN_IMAGE: &str = "REGISTRY/portolan:latest";

/// First minor version of Kubernetes 1 whose API server takes `trafficDistribution: PreferSameNode`.
const SAME_NODE_MINOR: u32 = 34;

/// A shell in a scratch copy of the `deploy` folder, with kubectl as an administrator.
struct Shell<'a> {
    api: &'a Kubernetes,
    folder: Folder,
}

impl Shell<'_> {
    fn new(api: &Kubernetes) -> Shell<'_> {
        let folder = Folder::new("deploy-pages");
        let status = Command::new("cp").arg("-R").arg(repository().join("deploy")).arg(folder.path()).status();
        assert!(status.unwrap().success());
        Shell { api, folder }
    }

    /// Runs shell commands, which may fail.
    fn attempt(&self, commands: &str) -> Output {
        Command::new("sh")
            .args(["-ec", commands])
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.api.admin())
            // Where Helm keeps its settings and caches.
            .env("HOME", self.folder.path())
            .env("PATH", path_with_portolan())
            .output()
            .unwrap()
    }

    /// Runs shell commands that succeed, and returns their output.
    fn run(&self, commands: &str) -> String {
        let output = self.attempt(commands);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{commands}\n{stdout}{stderr}");
        stdout.into_owned()
    }

    /// Runs all commands of kubectl and Helm of a section.
    fn run_section(&self, page: &str, heading: &str) {
        self.run(&commands_of(page, heading));
    }

    /// Runs the section that replaces a workload's image and the one that restores it, and checks the image after each.
    fn switch_and_go_back(&self, page: &str, switch: &str, workload: &str) {
        for (section, image) in [(switch, "portolan:latest"), ("Go back", ORIGINAL_IMAGE)] {
            self.run_section(page, section);
            assert_eq!(self.image(workload), image, "{page}: {section}");
        }
    }

    /// The pod specification of a workload.
    fn pod(&self, object: &str) -> Value {
        let text = self.run(&format!("kubectl -n kube-system get {object} -o jsonpath='{{.spec.template.spec}}'"));
        serde_json::from_str(&text).unwrap()
    }

    fn image(&self, object: &str) -> String {
        self.run(&format!("kubectl -n kube-system get {object} -o jsonpath='{{..image}}'"))
    }
}

/// The commands of kubectl and Helm of a section.
fn commands_of(page: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(repository().join("docs").join(page)).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("{page} has no section `{heading}`"));
    let commands: String = fenced(section).filter(|block| is_for_cluster(block)).collect();
    assert!(!commands.is_empty(), "{page}: section `{heading}` has no commands for a cluster");
    commands
}

/// The contents of the `sh` blocks of a text, without the indentation of lists.
fn fenced(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("```sh\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        let indentation = &block[..block.len() - block.trim_start().len()];
        block.lines().map(|line| format!("{}\n", line.strip_prefix(indentation).unwrap_or(line))).collect()
    })
}

/// Returns true if a block of commands starts with one that changes or reads a cluster, and needs no running pods.
fn is_for_cluster(block: &str) -> bool {
    let starts = ["kubectl ", "helm ", "sed ", "mkdir -p my-dns", "CLUSTER_IP=", "IMAGE="];
    starts.iter().any(|start| block.starts_with(start)) && !block.contains("POD-IP") && !block.contains(" exec ")
}

/// The `PATH` with the binary.
fn path_with_portolan() -> OsString {
    let folder = Path::new(env!("CARGO_BIN_EXE_portolan")).parent().unwrap();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&paths))).unwrap()
}

/// A workload of kube-system with one container.
fn workload(kind: &str, name: &str, container: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name, "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "k8s-app": name } },
            "template": {
                "metadata": { "labels": { "k8s-app": name } },
                "spec": { "containers": [{ "name": container, "image": ORIGINAL_IMAGE }] },
            },
        },
    });
    if kind == "Deployment" {
        object["spec"]["replicas"] = json!(0);
    }
    object
}

#[test]
fn documented_switches_and_rollbacks_work() {
    if !is_installed() || !are_in_path(&["kubectl"]) {
        return;
    }
    let api = Kubernetes::start();
    let shell = Shell::new(&api);
    coredns(&shell);
    kustomize(&shell);
    kube_dns(&shell);
    node_cache(&shell);
    istio(&shell, &api);
    let knows_preference = api.minor_version() >= SAME_NODE_MINOR;
    if knows_preference {
        every_node(&shell);
    }
    helm(&shell, knows_preference);
}

fn coredns(shell: &Shell<'_>) {
    shell.run_section("deploy.md", "A cluster without DNS");
    shell.run("kubectl -n kube-system scale deployment coredns --replicas=0");
    shell.run(&format!("kubectl -n kube-system set image deployment/coredns coredns={ORIGINAL_IMAGE}"));
    // Until the controller has seen this image, there is no revision to go back to.
    shell.run("kubectl -n kube-system rollout status deployment/coredns --timeout=30s");
    let (role, config) =
        ("kubectl get clusterrole system:coredns -o yaml", "kubectl -n kube-system get cm coredns -o yaml");
    let before = (shell.run(role), shell.run(config));
    shell.switch_and_go_back("deploy.md", "Swap the image", "deployment/coredns");
    assert_eq!((shell.run(role), shell.run(config)), before);
    for (section, image) in [("Swap", "REGISTRY/coredns:1.14.1"), ("Go back", ORIGINAL_IMAGE)] {
        shell.run_section("install/kubeadm.md", section);
        assert_eq!(shell.image("deployment/coredns"), image, "kubeadm: {section}");
    }
}

/// Ways to install an original manifest. What `kubectl apply` does with it later depends on them.
const HISTORIES: [&str; 3] = ["create", "apply", "apply --server-side"];

fn kube_dns(shell: &Shell<'_>) {
    let page = "from-kube-dns.md";
    shell.run(
        "sed -i 's/__PILLAR__LOCAL__DNS__/169.254.20.10/; s/__PILLAR__DNS__SERVER__/10.96.0.10/' deploy/node*.yaml",
    );
    for history in HISTORIES {
        shell.run(&format!("kubectl {history} -f {}", original("kube-dns")));
        shell.run("kubectl -n kube-system rollout status deployment/kube-dns --timeout=30s");
        let refused = shell.attempt("kubectl apply -f deploy/kube-dns.yaml");
        assert!(!refused.status.success(), "kubectl apply merges lists by name, after {history}");
        let before = shell.pod("deployment/kube-dns");
        shell.run_section(page, "Switch");
        let after = shell.pod("deployment/kube-dns");
        assert_eq!(names(&after["containers"]), ["kubedns"], "after {history}");
        assert_eq!(after["containers"][0]["image"], "portolan:latest", "after {history}");
        assert!(names(&after["volumes"]).is_empty(), "after {history}: {after}");
        shell.run_section(page, "Go back");
        assert_eq!(shell.pod("deployment/kube-dns"), before, "after {history}");
        shell.run("kubectl -n kube-system delete deployment kube-dns");
    }
}

fn node_cache(shell: &Shell<'_>) {
    let page = "from-nodelocaldns.md";
    for history in HISTORIES {
        shell.run(&format!("kubectl {history} -f {}", original("node-local-dns")));
        shell.run("kubectl -n kube-system rollout status daemonset/node-local-dns --timeout=30s");
        let before = shell.pod("daemonset/node-local-dns");
        shell.run("kubectl -n kube-system get configmap node-local-dns -o jsonpath='{.data.Corefile}' > Corefile.base");
        for section in ["Switch", "Lose no query in updates"] {
            shell.run_section(page, section);
            let after = shell.pod("daemonset/node-local-dns");
            assert_eq!(after["containers"][0]["image"], "portolan:latest", "{section}, after {history}");
            let keeps_ports = section == "Switch";
            assert_eq!(after["containers"][0]["ports"].is_array(), keeps_ports, "{section}, after {history}");
            shell.run_section(page, "Go back");
            assert_eq!(shell.pod("daemonset/node-local-dns"), before, "{section}, after {history}");
            let surge = "kubectl -n kube-system get daemonset node-local-dns -o jsonpath='{..rollingUpdate.maxSurge}'";
            assert_eq!(shell.run(surge), "0", "{section}, after {history}");
        }
        shell.run("kubectl -n kube-system delete daemonset,service,configmap,serviceaccount node-local-dns");
        shell.run("kubectl -n kube-system delete service kube-dns-upstream");
    }
}

fn original(name: &str) -> String {
    repository().join(format!("crates/portolan/tests/original/{name}.yaml")).display().to_string()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

fn istio(shell: &Shell<'_>, api: &Kubernetes) {
    api.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "istio-system" } }));
    let mut plugin = workload("Deployment", "istiocoredns", "coredns");
    plugin["metadata"]["namespace"] = json!("istio-system");
    api.create(&plugin);
    let corefile = "kubectl -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}'";
    let before = shell.run(corefile);
    shell.run(&format!("{corefile} > Corefile.before"));
    shell.run("kubectl -n kube-system patch configmap coredns --type merge -p '{\"data\":{\"Corefile\":\"changed\"}}'");
    shell.run_section("from-istio-coredns-plugin.md", "Go back");
    assert_eq!(shell.run(corefile), before);
}

fn kustomize(shell: &Shell<'_>) {
    let page = "kustomize.md";
    let rest =
        "kubectl -n kube-system get deployment coredns -o jsonpath='{.metadata.uid} {.spec.selector} {..volumes}'";
    let before = shell.run(rest);
    shell.run_section(page, "Swap the image");
    assert_eq!((shell.image("deployment/coredns").as_str(), shell.run(rest)), (OWN_IMAGE, before));
    shell.run_section(page, "Go back");
    assert_eq!(shell.image("deployment/coredns"), ORIGINAL_IMAGE);
    shell.run_section(page, "Run a separate Deployment");
    assert_eq!(shell.image("deployment/portolan"), OWN_IMAGE);
    shell.run_section("rollout.md", "Canary");
    let label = "kubectl -n kube-system get deployment portolan -o jsonpath='{.spec.template.metadata.labels.k8s-app}";
    assert_eq!(shell.run(&format!("{label} {{.spec.replicas}}'")), "kube-dns 0");
    assert_eq!(
        shell.run("kubectl -n kube-system get deployment -l k8s-app=kube-dns -o name"),
        "deployment.apps/coredns\n"
    );
    shell.run_section(page, "Run caches on the nodes");
    assert_eq!(shell.image("daemonset/portolan-node"), OWN_IMAGE);
    let flags = shell.run("kubectl -n kube-system get daemonset/portolan-node -o jsonpath='{..args[*]}'");
    assert_eq!(flags, "node -domain=cluster.local -localip=169.254.20.10 -upstreamsvc=kube-dns");
}

const PREFERENCE: &str = "kubectl -n kube-system get service kube-dns -o jsonpath='{.spec.trafficDistribution}'";

fn every_node(shell: &Shell<'_>) {
    if !are_in_path(&["helm"]) {
        return;
    }
    let page = "every-node.md";
    let parts = "{.metadata.uid} {.spec.clusterIP} {.spec.selector} {.spec.ports}";
    let identity = format!("kubectl -n kube-system get service kube-dns -o jsonpath='{parts}'");
    let before = shell.run(&identity);
    // A command that claims more fields of the Service than one works once.
    for _ in 0..2 {
        shell.run_section(page, "Migrate a cluster of kubeadm");
        for daemon_set in ["portolan-every-node", "portolan-coredns-every-node"] {
            assert_eq!(shell.image(&format!("daemonset/{daemon_set}")), OWN_IMAGE);
        }
        assert_eq!((shell.run(PREFERENCE).as_str(), shell.run(&identity)), ("PreferSameNode", before.clone()));
        let dns = shell.run("kubectl -n kube-system get deployment -l k8s-app=kube-dns -o name");
        assert_eq!(dns, "deployment.apps/coredns\n", "kubeadm accepts one Deployment with the label");
        // Without nodes, no replica would ever be ready.
        shell.run(&commands_of(page, "Go back").replace("--replicas=2", "--replicas=0"));
        assert_eq!((shell.run(PREFERENCE), shell.run(&identity)), (String::new(), before.clone()));
        let left = shell.run("kubectl -n kube-system get daemonset,configmap portolan-every-node --ignore-not-found");
        assert_eq!(left, "");
        shell.run("helm -n kube-system uninstall portolan");
    }
}

fn helm(shell: &Shell<'_>, knows_preference: bool) {
    if !are_in_path(&["helm"]) {
        return;
    }
    let page = "helm.md";
    shell.run("kubectl -n kube-system delete deployment,configmap,serviceaccount coredns");
    let values =
        "image.repository=registry.example/coredns,image.tag=1.14.1,replicaCount=0,service.clusterIP=10.96.0.77";
    shell.run(&format!("helm -n kube-system install coredns deploy/helm/portolan --set {values}"));
    let parts = "{.metadata.uid} {.spec.selector} {.spec.replicas} {.spec.clusterIP} {.spec.ports}";
    let identity = ["deployment", "service"]
        .map(|kind| format!("kubectl -n kube-system get {kind} coredns -o jsonpath='{parts}'\n"))
        .concat();
    let before = shell.run(&identity);
    for (section, image) in [("Replace a release", OWN_IMAGE), ("Go back", "registry.example/coredns:1.14.1")] {
        shell.run_section(page, section);
        assert_eq!((shell.image("deployment/coredns").as_str(), shell.run(&identity)), (image, before.clone()));
    }
    if knows_preference {
        let preference = PREFERENCE.replace("kube-dns", "coredns");
        let service = identity.lines().nth(1).unwrap();
        let before = shell.run(service);
        shell.run_section("every-node.md", "Migrate a release of this chart");
        assert_eq!(shell.run(service), before, "the Service has another identity");
        assert_eq!(shell.run(&preference), "", "the section ends in mode central");
        shell.run("kubectl -n kube-system get deployment coredns");
        assert!(!shell.attempt("kubectl -n kube-system get daemonset coredns-every-node").status.success());
    }
    let uninstall = "helm -n kube-system uninstall portolan";
    shell.run_section(page, "Install the DNS of a cluster");
    assert_eq!(shell.image("deployment/portolan-coredns"), OWN_IMAGE);
    shell.run(uninstall);
    shell.run_section(page, "Cache on the nodes");
    assert_eq!(shell.image("daemonset/portolan-coredns-node"), OWN_IMAGE);
    shell.run(uninstall);
    shell.run_section(page, "Put caches in front of a managed DNS");
}
