//! A real Kubernetes API server of the test's own, with its etcd and its controllers, on free loopback ports.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::Source;
use hyper::Request;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::store::Store;
use super::{Folder, certify, wait_until};
use testkit::ports::free_port;

/// Programs that must be installed.
const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
/// Token of the administrator.
const ADMIN: &str = "admin";
/// Limit for one request to the API server.
const ANSWER: Duration = Duration::from_secs(10);

/// API path of each kind that tests use, by plural name.
const PLACES: [(&str, &str); 6] = [
    ("namespaces", "/api/v1"),
    ("pods", "/api/v1"),
    ("serviceaccounts", "/api/v1"),
    ("services", "/api/v1"),
    ("endpointslices", "/apis/discovery.k8s.io/v1"),
    ("clusterroles", "/apis/rbac.authorization.k8s.io/v1"),
];

/// Returns true if the programs for a cluster are installed; otherwise says so on standard error.
pub(crate) fn is_installed() -> bool {
    are_in_path(&PROGRAMS)
}

/// Returns true if all `programs` are in the `PATH`; otherwise says on standard error which are missing.
pub(crate) fn are_in_path(programs: &[&str]) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&paths).any(|folder| folder.join(name).is_file());
    let missing: Vec<&str> = programs.iter().copied().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        // Not a macro, because the test harness captures the output of macros.
        super::skip(format_args!("a test needs {missing:?} in the PATH"));
    }
    missing.is_empty()
}

/// Cluster without nodes.
pub(crate) struct Kubernetes {
    api: Option<Child>,
    controllers: Option<Child>,
    /// Folder of the data; dropped after the programs that use it.
    pub(crate) etcd: Store,
    folder: Folder,
    port: u16,
    runtime: Runtime,
}

impl Kubernetes {
    /// Starts an empty cluster and waits until it works.
    pub(crate) fn start() -> Kubernetes {
        let folder = Folder::new("kubernetes");
        certify(&folder, &["127.0.0.1"]);
        let key = KeyPair::generate().expect("a key");
        folder.write("accounts.key", &key.serialize_pem());
        folder.write("accounts.pub", &key.public_key_pem());
        folder.write("tokens", &format!("{ADMIN},{ADMIN},{ADMIN},\"system:masters\"\n"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let etcd = Store::start("kubernetes-etcd");
        let mut cluster = Kubernetes { api: None, controllers: None, etcd, folder, port: free_port(), runtime };
        cluster.kubeconfig(ADMIN, ADMIN);
        cluster.run();
        cluster.run_controllers();
        cluster
    }

    /// Starts the API server and waits until it works.
    pub(crate) fn run(&mut self) {
        let (port, etcd) = (self.port.to_string(), format!("http://127.0.0.1:{}", self.etcd.port));
        let child = self
            .program("kube-apiserver")
            .args(["--bind-address", "127.0.0.1", "--secure-port", &port, "--etcd-servers", &etcd])
            // The address for clients in the cluster, which this cluster does not have.
            .args(["--advertise-address", "192.0.2.1", "--service-cluster-ip-range", "10.96.0.0/16,fd00:10:96::/108"])
            .args(["--tls-cert-file", "cert.pem", "--tls-private-key-file", "key.pem", "--cert-dir", "."])
            .args(["--token-auth-file", "tokens", "--authorization-mode", "RBAC"])
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            .args(["--service-account-key-file", "accounts.pub", "--service-account-signing-key-file", "accounts.key"])
            .spawn();
        self.api = Some(child.expect("kube-apiserver starts"));
        wait_until("kube-apiserver is ready", || self.call("GET", "/readyz", None).is_ok_and(|text| text == "ok"));
    }

    fn run_controllers(&mut self) {
        let port = free_port().to_string();
        let child = self
            .program("kube-controller-manager")
            .args(["--bind-address", "127.0.0.1", "--secure-port", &port, "--kubeconfig", ADMIN])
            .args(["--service-account-private-key-file", "accounts.key", "--root-ca-file", "ca.pem"])
            .args(["--leader-elect=false", "--cert-dir", "."])
            .spawn();
        self.controllers = Some(child.expect("kube-controller-manager starts"));
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Kills the API server, as a power failure would.
    pub(crate) fn kill(&mut self) {
        end(&mut self.api);
    }

    /// Writes a kubeconfig with this token.
    pub(crate) fn kubeconfig(&self, name: &str, token: &str) -> PathBuf {
        let cluster = json!({
            "server": format!("https://127.0.0.1:{}", self.port),
            "certificate-authority": self.folder.path().join("ca.pem"),
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{ "name": "x", "cluster": cluster }],
            "users": [{ "name": "x", "user": { "token": token } }],
            "contexts": [{ "name": "x", "context": { "cluster": "x", "user": "x" } }],
        });
        self.folder.write(name, &config.to_string())
    }

    /// Writes the kubeconfig of the administrator.
    pub(crate) fn admin(&self) -> PathBuf {
        self.folder.path().join(ADMIN)
    }

    /// Creates an object.
    pub(crate) fn create(&self, object: &Value) {
        self.post(object, "fieldValidation=Strict");
    }

    /// Validates an object with a strict dry run.
    pub(crate) fn try_out(&self, object: &Value) {
        self.post(object, "fieldValidation=Strict&dryRun=All");
    }

    fn post(&self, object: &Value, how: &str) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&object["kind"]).to_lowercase();
        let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
        let place = match text(&object["apiVersion"]).as_str() {
            "v1" => "/api/v1".to_owned(),
            version => format!("/apis/{version}"),
        };
        let path = path_in(&place, &plural, &text(&object["metadata"]["namespace"]), "");
        let posted = self.call("POST", &format!("{path}?{how}"), Some(object));
        posted.unwrap_or_else(|problem| panic!("{object}: {problem}"));
    }

    /// Changes an object, or its status with `NAME/status`, with a merge patch.
    pub(crate) fn patch(&self, resource: &str, namespace: &str, name: &str, change: &Value) {
        let patched = self.call("PATCH", &path(resource, namespace, name), Some(change));
        patched.unwrap_or_else(|problem| panic!("{resource} {name}: {problem}"));
    }

    pub(crate) fn delete(&self, resource: &str, namespace: &str, name: &str) {
        let deleted = self.call("DELETE", &path(resource, namespace, name), None);
        deleted.unwrap_or_else(|problem| panic!("{resource} {name}: {problem}"));
    }

    /// Returns the minor version of the API server.
    pub(crate) fn minor_version(&self) -> u32 {
        let answer = self.call("GET", "/version", None).expect("a version");
        let version: Value = serde_json::from_str(&answer).expect("a version");
        let minor = version["gitVersion"].as_str().and_then(|text| text.split('.').nth(1));
        minor.and_then(|minor| minor.parse().ok()).expect("a number")
    }

    /// Returns true if an object exists.
    pub(crate) fn has(&self, resource: &str, namespace: &str, name: &str) -> bool {
        self.call("GET", &path(resource, namespace, name), None).is_ok()
    }

    /// Creates a service account in `default` and writes its kubeconfig.
    pub(crate) fn account(&self, name: &str) -> PathBuf {
        let metadata = json!({ "name": name, "namespace": "default" });
        self.create(&json!({ "kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata }));
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let path = path("serviceaccounts", "default", &format!("{name}/token"));
        let answer = self.call("POST", &path, Some(&request)).expect("a token");
        let answer: Value = serde_json::from_str(&answer).expect("a token");
        self.kubeconfig(name, answer["status"]["token"].as_str().expect("a token"))
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String, String> {
        let source = Source::Kubeconfig { file: self.admin(), context: None };
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let request = request.body(body.map_or(Vec::new(), |body| body.to_string().into_bytes()));
        self.runtime.block_on(async {
            let client = kubeapi::connect(&source).map_err(|problem| problem.to_string())?;
            let answer = tokio::time::timeout(ANSWER, client.request_text(request.expect("a request"))).await;
            answer.map_err(|error| error.to_string())?.map_err(|error| kubeapi::causes(&error))
        })
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        end(&mut self.controllers);
        end(&mut self.api);
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn path(plural: &str, namespace: &str, name: &str) -> String {
    let (_, place) = PLACES.iter().find(|(known, _)| *known == plural).expect("a known kind");
    path_in(place, plural, namespace, name)
}

fn path_in(place: &str, plural: &str, namespace: &str, name: &str) -> String {
    let namespace = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    format!("{place}{namespace}/{plural}/{name}").trim_end_matches('/').to_owned()
}
