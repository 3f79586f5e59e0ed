//! The commands of the deployment pages, run by a shell against a real Kubernetes API server.
//!
//! The cluster has no nodes, so the Deployments run with 0 replicas and `rollout status` ends at once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::Folder;
use support::kubernetes::{Kubernetes, are_in_path, is_installed};

const ORIGINAL_IMAGE: &str = "coredns:1.14.1";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A shell in a scratch copy of the `deploy` folder, with kubectl as an administrator.
struct Shell<'a> {
    api: &'a Kubernetes,
    folder: Folder,
}

impl Shell<'_> {
    fn new(api: &Kubernetes) -> Shell<'_> {
        let folder = Folder::new("deploy-pages");
        for file in std::fs::read_dir(repository().join("deploy")).unwrap().flatten() {
            let name = format!("deploy/{}", file.file_name().to_string_lossy());
            folder.write(&name, &std::fs::read_to_string(file.path()).unwrap());
        }
        Shell { api, folder }
    }

    /// Runs shell commands and returns their output.
    fn run(&self, commands: &str) -> String {
        let output = Command::new("sh")
            .args(["-ec", commands])
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.api.admin())
            .output()
            .unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{commands}\n{stdout}{stderr}");
        stdout.into_owned()
    }

    /// Runs all kubectl commands of a section.
    fn run_section(&self, page: &str, heading: &str) {
        let text = std::fs::read_to_string(repository().join("docs").join(page)).unwrap();
        let section = text.split("\n## ").find(|section| section.starts_with(heading));
        let section = section.unwrap_or_else(|| panic!("{page} has no section `{heading}`"));
        let commands: String = fenced(section).filter(|block| block.starts_with("kubectl")).collect();
        assert!(!commands.is_empty(), "{page}: section `{heading}` has no kubectl commands");
        self.run(&commands);
    }

    /// Runs the section that replaces a workload's image and the one that restores it, and checks the image after each.
    fn switch_and_go_back(&self, page: &str, switch: &str, workload: &str) {
        for (section, image) in [(switch, "portolan:latest"), ("Go back", ORIGINAL_IMAGE)] {
            self.run_section(page, section);
            assert_eq!(self.image(workload), image, "{page}: {section}");
        }
    }

    fn image(&self, object: &str) -> String {
        self.run(&format!("kubectl -n kube-system get {object} -o jsonpath='{{..image}}'"))
    }
}

/// The contents of the `sh` blocks of a text, without the indentation of lists.
fn fenced(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("```sh\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        block.lines().map(|line| format!("{}\n", line.trim_start())).collect()
    })
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
    kube_dns(&shell, &api);
    node_cache(&shell, &api);
    istio(&shell, &api);
}

fn coredns(shell: &Shell<'_>) {
    shell.run_section("deploy.md", "A cluster without DNS");
    shell.run("kubectl -n kube-system scale deployment coredns --replicas=0");
    shell.run(&format!("kubectl -n kube-system set image deployment/coredns coredns={ORIGINAL_IMAGE}"));
    let (role, config) =
        ("kubectl get clusterrole system:coredns -o yaml", "kubectl -n kube-system get cm coredns -o yaml");
    let before = (shell.run(role), shell.run(config));
    shell.switch_and_go_back("deploy.md", "Swap the image", "deployment/coredns");
    assert_eq!((shell.run(role), shell.run(config)), before);
}

fn kube_dns(shell: &Shell<'_>, api: &Kubernetes) {
    api.create(&workload("Deployment", "kube-dns", "kubedns"));
    shell.switch_and_go_back("from-kube-dns.md", "Switch", "deployment/kube-dns");
}

fn node_cache(shell: &Shell<'_>, api: &Kubernetes) {
    api.create(&workload("DaemonSet", "node-local-dns", "node-cache"));
    shell.switch_and_go_back("from-nodelocaldns.md", "Switch", "daemonset/node-local-dns");
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
