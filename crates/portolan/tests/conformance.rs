//! `portolan conformance` as users run it: against a server with manifests, one with an API server, and one with wrong
//! answers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::{Folder, Server};
use fakeapi::{FakeApi, Fault, ReceivedRequest, namespace, service};

/// Output and exit code of a run.
struct Run {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), out: text(output.stdout), errors: text(output.stderr) }
    }
}

impl Run {
    /// Returns the names of the checks with this outcome: `pass`, `FAIL` or `n/a`.
    fn with(&self, outcome: &str) -> Vec<&str> {
        let lines = self.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.filter(|words| words.first() == Some(&outcome)).map(|words| words[1]).collect()
    }

    fn assert_all_hold(&self) {
        assert_eq!((self.code, self.with("FAIL").len()), (Some(0), 0), "{}\n{}", self.out, self.errors);
        assert!(self.with("pass").len() > 40, "{}", self.out);
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.arg("conformance").args(arguments).env_remove("KUBERNETES_SERVICE_HOST");
    command
}

fn run(arguments: &[&str]) -> Run {
    command(arguments).output().unwrap().into()
}

/// Starts a server for a cluster's zones, with `more` in its Corefile.
fn served(folder: &Folder, source: &str, more: &str) -> (Server, String) {
    let zones = "cluster.local in-addr.arpa ip6.arpa";
    let corefile = format!(".:0 {{\n    {more}\n    kubernetes {zones} {{\n        {source}\n    }}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address: SocketAddr = server.address_of("dns://:0");
    (server, address.to_string())
}

/// Creates a folder with the objects in a file, and starts a server that reads it.
fn served_manifests(more: &str) -> (Folder, Server, String) {
    let folder = Folder::new("conformance");
    let printed = run(&["--print-manifests"]);
    assert_eq!(printed.code, Some(0), "{}", printed.errors);
    let file = folder.write("objects.yaml", &printed.out);
    let (server, address) = served(&folder, &format!("manifests {}", file.display()), more);
    (folder, server, address)
}

fn kubeconfig(folder: &Folder, api: &FakeApi) -> PathBuf {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: x, cluster: {{server: \"{}\"}}}}]\n\
         users: [{{name: x, user: {{}}}}]\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n",
        api.url()
    );
    folder.write("kubeconfig", &text)
}

fn cluster() -> FakeApi {
    let api = FakeApi::start();
    api.put_all([namespace("default"), service("default", "kubernetes", "10.96.0.1")]);
    api
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the temporary namespaces that were created or deleted.
fn scratch(seen: &[ReceivedRequest], method: &str) -> Vec<String> {
    let namespaces = seen.iter().filter(|seen| seen.method == method && seen.resource == "namespaces");
    namespaces.map(|seen| seen.name.clone()).collect()
}

#[test]
fn all_checks_pass_on_manifests_without_changes() {
    let (_folder, _server, address) = served_manifests("");
    let run = run(&["--server", &address]);
    run.assert_all_hold();
    assert!(run.with("n/a").contains(&"live/created"), "{}", run.out);
    let (waits, checks) =
        run.out.split_once("waiting up to 60 s until the server has the objects\n").expect("its line");
    assert!(!waits.contains("pass ") && checks.contains("pass "), "said before it waits: {}", run.out);
    assert!(!run.out.contains('$'), "{}", run.out);
    assert!(run.out.ends_with("not applicable\n"), "{}", run.out);
}

#[test]
fn changes_and_restores_the_manifest_file() {
    let folder = Folder::new("conformance");
    let file = folder.write("objects.yaml", "# mine\n");
    let (_server, address) = served(&folder, &format!("manifests {}", file.display()), "");
    let run = run(&["--server", &address, "--manifests", text(&file)]);
    run.assert_all_hold();
    assert!(run.with("pass").contains(&"live/headless-emptied"), "{}", run.out);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
}

#[test]
fn all_checks_pass_in_a_cluster_and_the_namespace_is_deleted() {
    let api = cluster();
    let folder = Folder::new("conformance");
    let (_server, address) = served(&folder, &format!("endpoint {}", api.url()), "");
    let kubeconfig = kubeconfig(&folder, &api);
    let run = run(&["--server", &address, "--kubeconfig", text(&kubeconfig), "--namespace", "scratch"]);
    run.assert_all_hold();
    for name in ["kubernetes", "service/dual-stack", "live/created", "live/cluster-ip-to-external"] {
        assert!(run.with("pass").contains(&name), "{name}: {}", run.out);
    }
    let deleted = scratch(&api.seen(), "DELETE");
    assert!(deleted.len() == 1 && deleted[0].starts_with("scratch-"), "{deleted:?}");
    assert!(api.get("namespaces", "", &deleted[0]).is_none());
}

#[test]
fn skips_the_address_family_that_a_cluster_lacks() {
    let api = cluster();
    api.single_stack();
    let folder = Folder::new("conformance");
    let (_server, address) = served(&folder, &format!("endpoint {}", api.url()), "");
    let kubeconfig = kubeconfig(&folder, &api);
    let run = run(&["--server", &address, "--kubeconfig", text(&kubeconfig), "--filter", "service/"]);
    assert_eq!(run.code, Some(0), "{}", run.out);
    assert!(run.with("n/a").contains(&"service/dual-stack"), "{}", run.out);
    assert!(run.out.contains(" Service `dual` has no IPv6 cluster IP\n"), "{}", run.out);
    assert!(run.with("pass").contains(&"service/a"), "{}", run.out);
}

#[test]
fn creates_endpoints_for_servers_that_read_them() {
    let api = cluster();
    let folder = Folder::new("conformance");
    let (_server, address) = served(&folder, &format!("endpoint {}", api.url()), "");
    let kubeconfig = kubeconfig(&folder, &api);
    let run = run(&["--server", &address, "--kubeconfig", text(&kubeconfig), "--filter", "live/"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.errors);
    let of_endpoints = |method: &str| {
        let seen = api.seen().into_iter().filter(|seen| seen.resource == "endpoints" && seen.method == method);
        seen.map(|seen| seen.name).collect::<Vec<_>>()
    };
    let created = of_endpoints("POST").len();
    assert!(created >= 8, "one for each Service with slices: {created}");
    assert!(of_endpoints("PUT").iter().filter(|name| *name == "herd").count() >= 2, "{:?}", of_endpoints("PUT"));
}

/// Simulates kube-dns without permission for Endpoints by a server without EndpointSlices. Other checks still run.
#[test]
fn checks_that_need_endpoints_are_not_applicable_without_them() {
    let api = cluster();
    api.fault("endpoints", Fault::Status(403, None));
    let folder = Folder::new("conformance");
    let (_server, address) = served(&folder, &format!("endpoint {}\n noendpoints", api.url()), "");
    let kubeconfig = kubeconfig(&folder, &api);
    let run = run(&["--server", &address, "--kubeconfig", text(&kubeconfig)]);
    assert_eq!((run.code, run.with("FAIL").len()), (Some(0), 0), "{}\n{}", run.out, run.errors);
    assert!(run.errors.contains("Endpoints objects, which kube-dns needs, are missing: cannot create Endpoints web"));
    for name in ["headless/a", "live/headless", "names/search"] {
        let not_applicable = run.with("n/a");
        assert!(not_applicable.iter().any(|check| check.starts_with(name)), "{name}: {}", run.out);
    }
    assert!(run.with("pass").contains(&"live/cluster-ip-to-external"), "{}", run.out);
    assert!(
        run.out.contains(
            "the server does not read EndpointSlices, and Endpoints are missing: cannot create Endpoints web"
        )
    );
}

/// Starts a run against a server that never learns the objects, and waits until all objects exist.
fn waiting(api: &FakeApi, folder: &Folder, server: &str) -> Child {
    let kubeconfig = kubeconfig(folder, api);
    let mut command = command(&["--server", server, "--kubeconfig", text(&kubeconfig)]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_last =
        |seen: &ReceivedRequest| seen.resource == "services" && seen.method == "GET" && seen.name == "kubernetes";
    api.wait_seen("all objects", |seen| seen.iter().any(is_last));
    child
}

#[test]
fn deletes_its_objects_when_interrupted() {
    let (_folder, _server, address) = served_manifests("");
    for signal in ["INT", "TERM"] {
        let api = cluster();
        let folder = Folder::new("conformance");
        // A server that has the objects of another namespace.
        let child = waiting(&api, &folder, &address);
        let status = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let run: Run = child.wait_with_output().unwrap().into();
        assert_eq!((run.code, run.errors.as_str()), (Some(2), "interrupted\n"), "{signal}");
        let deleted = scratch(&api.seen(), "DELETE");
        assert_eq!(deleted.len(), 1, "{signal}");
        assert!(api.get("namespaces", "", &deleted[0]).is_none(), "{signal}");
    }
}

#[test]
fn reports_a_failed_creation_and_deletes_the_rest() {
    let api = cluster();
    let folder = Folder::new("conformance");
    let kubeconfig = kubeconfig(&folder, &api);
    api.fault("endpointslices", Fault::Status(403, None));
    let run = run(&["--server", "127.0.0.1:9", "--kubeconfig", text(&kubeconfig)]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(run.errors.contains("cannot create EndpointSlice web-v4: the API server answered 403"), "{}", run.errors);
    assert!(api.get("namespaces", "", &scratch(&api.seen(), "DELETE")[0]).is_none());
}

#[test]
fn reports_a_failed_deletion() {
    let (_folder, _server, address) = served_manifests("");
    let api = cluster();
    let folder = Folder::new("conformance");
    let child = waiting(&api, &folder, &address);
    api.fault("namespaces", Fault::Status(403, None));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, Some(2));
    assert!(run.errors.contains("was not deleted: cannot delete Namespace"), "{}", run.errors);
}

#[test]
fn detects_wrong_answers() {
    let lies = "hosts {
        192.0.2.66 web.dns-conformance.svc.cluster.local
        192.0.2.67 nosuch.dns-conformance.svc.cluster.local
        192.0.2.24 sick.pets.dns-conformance.svc.cluster.local
        fallthrough
    }";
    let (_folder, _server, address) = served_manifests(lies);
    let run = run(&["--server", &address]);
    assert_eq!(run.code, Some(1), "{}", run.errors);
    let failed = run.with("FAIL");
    for name in ["service/a", "service/srv-target", "missing/service", "headless/not-ready", "names/search"] {
        assert!(failed.contains(&name), "{name}: {}", run.out);
    }
    assert!(run.out.contains("expected 10.96.61.1; got NOERROR: A 192.0.2.66"), "{}", run.out);
    assert!(run.with("pass").contains(&"headless/srv"), "{}", run.out);
    let json = command(&["--server", &address, "--json", "--filter", "service/a"]).output().unwrap();
    let report = String::from_utf8(json.stdout).unwrap();
    assert!(report.contains("\"outcome\": \"fail\"") && report.contains("\"source\": \"spec 2.3.1\""), "{report}");
}

#[test]
fn fails_if_the_server_is_unreachable() {
    let folder = Folder::new("conformance");
    let file = folder.write("none.yaml", "");
    let (mut server, address) = served(&folder, &format!("manifests {}", file.display()), "");
    server.signal("TERM");
    server.wait();
    let run = run(&["--server", &address]);
    assert_eq!(run.code, Some(2));
    assert!(run.errors.contains("cannot query server"), "{}", run.errors);
}
