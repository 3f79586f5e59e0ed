//! What a case runs in: the API server, the upstream and etcd, and Portolan with the case's configuration.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use fakeapi::{FakeApi, namespace, object};
use serde_json::{Value, json};
use testkit::Parsed;
use wire::Rcode;

use super::answer::Recorded;
use super::case::{Case, read_text};
use super::client;
use super::programs::{Folder, Program, START_PAUSE, START_TIMEOUT, start_empty_resolver, start_etcd, start_knot};
use xtask::Failed;
use xtask::server::free_port;

/// Namespaces of a new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Servers that Portolan uses.
pub(crate) struct Stage {
    api: FakeApi,
    /// The upstream, or the reason why it does not run; the same for `etcd`.
    knot: Result<Program, Failed>,
    etcd: Result<Program, Failed>,
    folder: Folder,
}

impl Stage {
    /// Starts the servers that the cases need.
    pub(crate) fn start(recorded: &Path, cases: &[Case]) -> Result<Stage, Failed> {
        let folder = Folder::new()?;
        let is_needed = |variable: &str| {
            let any = cases.iter().any(|case| case.needs(variable));
            any.then_some(()).ok_or_else(String::new)
        };
        let api = FakeApi::start();
        api.put_all(objects(&read_text(&recorded.join("cluster.json"))?)?);
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig(api.url())).map_err(|error| error.to_string())?;
        let knot = is_needed("UPSTREAM").and_then(|()| start_knot(&recorded.join("upstream"), folder.path()));
        let etcd = is_needed("ETCD_PORT").and_then(|()| start_etcd(&recorded.join("etcd.json"), folder.path()));
        Ok(Stage { api, knot, etcd, folder })
    }

    /// Returns the reason why a case cannot be replayed, if a program is missing.
    pub(crate) fn missing(&self, case: &Case) -> Option<&Failed> {
        let programs = [("UPSTREAM", &self.knot), ("ETCD_PORT", &self.etcd)];
        programs
            .into_iter()
            .filter(|(variable, _)| case.needs(variable))
            .find_map(|(_, started)| started.as_ref().err())
    }

    /// Starts Portolan for a case.
    pub(crate) fn serve(&self, binary: &Path, case: &Case) -> Result<Served, Failed> {
        let port = free_port()?;
        let mut command = Command::new(binary);
        match &case.corefile {
            Some(_) => self.corefile_arguments(&mut command, case, port)?,
            None => self.kube_dns_arguments(&mut command, port)?,
        }
        let log = self.folder.path().join(format!("{}.log", case.name));
        let output = File::create(&log).map_err(|error| error.to_string())?;
        command.stderr(output.try_clone().map_err(|error| error.to_string())?).stdout(output);
        let served = Served { program: Program::start(&mut command, port)?, started: Instant::now() };
        match case.answers.first().and_then(|first| served.ask(first)) {
            Some(_) => Ok(served),
            None => Err(format!("{}: the server does not answer:\n{}", case.name, read_text(&log)?)),
        }
    }

    fn corefile_arguments(&self, command: &mut Command, case: &Case, port: u16) -> Result<(), Failed> {
        command.arg("-conf").arg(case.path.join("Corefile")).env("CASE", &case.path);
        command.env("DNS_PORT", port.to_string()).env("KUBECONFIG_FILE", self.folder.path().join("kubeconfig"));
        command.env("UPSTREAM", address(&self.knot)).env("ETCD_PORT", port_of(&self.etcd).to_string());
        for page in ["HEALTH", "READY", "PROM"] {
            command.env(page, format!("127.0.0.1:{}", free_port()?));
        }
        Ok(())
    }

    /// Adds the flags of the container `kubedns`, whose name the process has. Its upstream is in the ConfigMap.
    fn kube_dns_arguments(&self, command: &mut Command, port: u16) -> Result<(), Failed> {
        let config = self.folder.path().join("kube-dns");
        std::fs::create_dir_all(&config).map_err(|error| error.to_string())?;
        command.arg0("kube-dns").args(["--domain=cluster.local.", &format!("--dns-port={port}")]);
        command.arg(format!("--healthz-port={}", free_port()?)).arg(format!("--kube-master-url={}", self.api.url()));
        let upstream = json!([format!("127.0.0.1:{}", start_empty_resolver()?)]).to_string();
        std::fs::write(config.join("upstreamNameservers"), upstream).map_err(|error| error.to_string())?;
        command.arg(format!("--config-dir={}", config.display()));
        Ok(())
    }
}

fn port_of(program: &Result<Program, Failed>) -> u16 {
    program.as_ref().map_or(0, |program| program.port)
}

fn address(program: &Result<Program, Failed>) -> String {
    format!("127.0.0.1:{}", port_of(program))
}

/// Running Portolan.
pub(crate) struct Served {
    program: Program,
    started: Instant,
}

impl Served {
    /// Asks a question. A server that has just started does not answer, or with SERVFAIL until it knows the cluster:
    /// then this asks again, unless that was recorded.
    pub(crate) fn ask(&self, recorded: &Recorded) -> Option<Parsed> {
        let server = SocketAddr::from(([127, 0, 0, 1], self.program.port));
        loop {
            let response = client::ask(server, &recorded.question, recorded.tcp);
            let failed = response.as_ref().is_none_or(|response| response.rcode() == Rcode::SERVFAIL);
            let expected = recorded.answer.as_ref().is_none_or(|answer| answer.rcode == "SERVFAIL");
            if !failed || expected || self.started.elapsed() > START_TIMEOUT {
                return response;
            }
            std::thread::sleep(START_PAUSE);
        }
    }
}

/// Returns the objects of the cluster: those of `cluster.json`, and what a new cluster has.
fn objects(text: &str) -> Result<Vec<Value>, Failed> {
    let cluster: Value = serde_json::from_str(text).map_err(|error| format!("cluster.json: {error}"))?;
    let list = |name: &str| cluster[name].as_array().cloned().unwrap_or_default();
    let mut objects: Vec<Value> = NAMESPACES.iter().map(|name| namespace(name)).collect();
    let ports = json!([{ "name": "https", "port": 443, "protocol": "TCP" }]);
    let spec = json!({ "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports });
    objects.push(object("Service", "default", "kubernetes", json!({ "spec": spec })));
    objects.extend(list("objects"));
    for (kind, statuses) in [("Service", list("svc_status")), ("Pod", list("pod_status"))] {
        for status in statuses {
            let has = |object: &&mut Value| {
                let metadata = &object["metadata"];
                object["kind"] == kind && metadata["namespace"] == status[0] && metadata["name"] == status[1]
            };
            let object = objects.iter_mut().find(has).ok_or_else(|| format!("cluster.json: no {kind} for {status}"))?;
            object["status"] = status[2].clone();
        }
    }
    Ok(objects)
}

fn kubeconfig(api: &str) -> String {
    let named = |key: &str, value: Value| json!([{ "name": "x", key: value }]);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": named("cluster", json!({ "server": api })),
        "users": named("user", json!({})),
        "contexts": named("context", json!({ "cluster": "x", "user": "x" })),
    });
    config.to_string()
}
