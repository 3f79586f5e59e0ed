//! kube-apiserver with etcd as the API server.
//!
//! No controller runs: objects are those that the schedule writes, and a namespace ends when this program removes its
//! finalizer.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use super::cluster::Key;
use super::schedule::Action;
use super::server::{lock, signal};
use crate::replay::programs::{Program, compact_etcd, exchange, log_file, run_etcd};
use xtask::Failed;
use xtask::server::free_port;

/// Ranges of the cluster IPs, with all of [`super::cluster`].
const CLUSTER_IPS: &str = "10.96.0.0/16,fd00:96::/108";
/// Time until an object is written: a fault may last, and the API server starts after it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time without a byte of the answer to a request. It is longer than any fault: the API server could still do what was
/// given up, after it has done what came next.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// A slow API server runs for the first of these times, and stands still for the second.
const SLOW: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(180)];
/// Files of a client: certificate, private key, and the certificate of the authority.
pub(crate) const CLIENT_FILES: [&str; 3] = ["client.pem", "client.key", "ca.pem"];
/// Files of the API server.
const SERVER_FILES: [&str; 4] = ["api.pem", "api.key", "accounts.pub", "accounts.key"];

/// API server and its storage.
pub(crate) struct Kubernetes {
    /// Dropped before what it uses.
    api: Mutex<Program>,
    etcd: Mutex<Program>,
    folder: PathBuf,
    port: u16,
    /// Ports of etcd for clients and for other members.
    etcd_ports: [u16; 2],
    tls: Arc<ClientConfig>,
}

impl Kubernetes {
    /// Starts both with an empty storage, and waits until they work.
    pub(crate) fn start(folder: &Path) -> Result<Kubernetes, Failed> {
        for (name, text) in certificates().map_err(|error| format!("certificates: {error}"))? {
            std::fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let tls = Arc::new(tls(folder).map_err(|error| format!("certificates: {error}"))?);
        let (port, etcd_ports) = (free_port()?, [free_port()?, free_port()?]);
        let etcd = run_etcd(etcd_ports, folder)?;
        let api = run(folder, port, etcd_ports[0], &tls)?;
        let [api, etcd] = [api, etcd].map(Mutex::new);
        Ok(Kubernetes { api, etcd, folder: folder.to_owned(), port, etcd_ports, tls })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns its port and those of etcd.
    pub(crate) const fn ports(&self) -> [u16; 3] {
        let [clients, peers] = self.etcd_ports;
        [self.port, clients, peers]
    }

    /// Creates, replaces or, without JSON, deletes an object. Tries again until it is done.
    pub(crate) fn write(&self, key: Key, json: Option<&str>) -> Result<(), Failed> {
        let begin = Instant::now();
        loop {
            let (status, text) = json.map_or_else(|| self.delete(key), |json| self.put(key, json));
            match status {
                200 | 201 if json.is_some() => return Ok(()),
                404 if json.is_none() => return Ok(()),
                422 => return Err(format!("kube-apiserver refuses {key:?}: {text}")),
                _ if begin.elapsed() > WRITE_TIMEOUT => {
                    return Err(format!(
                        "kube-apiserver does not write {key:?} for {WRITE_TIMEOUT:?}: {status} {text}"
                    ));
                }
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Returns the status of an attempt to create or replace an object.
    fn put(&self, key: Key, json: &str) -> (u16, String) {
        let (all, one) = paths(key);
        let mut answer = self.call("PUT", &one, json);
        if answer.0 == 404 {
            answer = self.call("POST", &all, json);
        }
        if answer.0 == 422 && self.makes_room(&one, json, &answer.1) {
            answer.0 = 409;
        }
        answer
    }

    /// Deletes what refuses a new Service, and returns true if there was something: a former one whose deletion was
    /// withheld, or the holders of its cluster IPs if the API server was killed while it deleted the former one. It
    /// would do so itself, some minutes later.
    fn makes_room(&self, one: &str, json: &str, refusal: &str) -> bool {
        if self.call("GET", one, "").0 == 200 {
            self.call("DELETE", one, "");
            return true;
        }
        if !refusal.contains("already allocated") {
            return false;
        }
        let object: Value = serde_json::from_str(json).unwrap_or_default();
        for address in object["spec"]["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.call("DELETE", &format!("/apis/networking.k8s.io/v1/ipaddresses/{address}"), "");
        }
        true
    }

    /// Returns the status of an attempt to delete an object: 404 if it is gone.
    fn delete(&self, key: Key) -> (u16, String) {
        let (_, one) = paths(key);
        let answer = self.call("DELETE", &one, "");
        if matches!(key, Key::Namespace(_)) && matches!(answer.0, 200 | 202 | 409) {
            let mut namespace: Value = serde_json::from_str(&self.call("GET", &one, "").1).unwrap_or_default();
            namespace["spec"] = json!({ "finalizers": [] });
            self.call("PUT", &format!("{one}/finalize"), &namespace.to_string());
        }
        answer
    }

    /// Returns the status and the body, or 0 and the reason if there is no answer.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        call(&self.tls, self.port, method, path, body)
    }

    /// Fails for a while, and waits until objects can be written again.
    pub(crate) fn fail(&self, action: Action, lasts: Duration) -> Result<(), Failed> {
        match action {
            // A new process has no history: it answers 410 to what continues an older one.
            Action::ApiDown | Action::ApiCompacted => {
                let mut api = lock(&self.api);
                api.kill();
                if action == Action::ApiCompacted {
                    compact_etcd(self.etcd_ports[0])?;
                }
                thread::sleep(lasts);
                *api = run(&self.folder, self.port, self.etcd_ports[0], &self.tls)?;
            }
            Action::ApiStalled => pause(lock(&self.api).id(), lasts),
            Action::ApiSilent => pause(lock(&self.etcd).id(), lasts),
            Action::ApiSlow => {
                let (begin, api) = (Instant::now(), lock(&self.api).id());
                while begin.elapsed() < lasts {
                    pause(api, SLOW[1]);
                    thread::sleep(SLOW[0]);
                }
            }
            // Without its storage, it answers 500 and 503.
            Action::ApiStatus => {
                let mut etcd = lock(&self.etcd);
                etcd.kill();
                thread::sleep(lasts);
                *etcd = run_etcd(self.etcd_ports, &self.folder)?;
            }
            other => return Err(format!("not a fault of an API server: {other:?}")),
        }
        self.wait()
    }

    /// Waits until objects can be written.
    fn wait(&self) -> Result<(), Failed> {
        let begin = Instant::now();
        while !is_ready(&self.tls, self.port) {
            if begin.elapsed() > WRITE_TIMEOUT {
                return Err(format!("kube-apiserver is not ready for {WRITE_TIMEOUT:?}"));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// Returns the paths of all objects of a kind in a namespace, and of one of them.
fn paths(key: Key) -> (String, String) {
    let (resource, namespace, name) = key.path();
    let group = if matches!(key, Key::Slice(..)) { "/apis/discovery.k8s.io/v1" } else { "/api/v1" };
    let namespace = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let all = format!("{group}{namespace}/{resource}");
    let one = format!("{all}/{name}");
    (all, one)
}

/// Stops a process for a while.
fn pause(process: u32, lasts: Duration) {
    signal("STOP", process);
    thread::sleep(lasts);
    signal("CONT", process);
}

/// Starts kube-apiserver, and waits until it works.
fn run(folder: &Path, port: u16, etcd: u16, tls: &Arc<ClientConfig>) -> Result<Program, Failed> {
    let [certificate, key, accounts_public, accounts] = SERVER_FILES;
    let mut command = Command::new("kube-apiserver");
    command
        .current_dir(folder)
        .args(["--bind-address", "127.0.0.1", "--secure-port", &port.to_string()])
        // The address for clients in the cluster, which this cluster does not have.
        .args(["--advertise-address", "192.0.2.1", "--service-cluster-ip-range", CLUSTER_IPS])
        .args(["--etcd-servers", &format!("http://127.0.0.1:{etcd}"), "--authorization-mode", "RBAC"])
        .args(["--tls-cert-file", certificate, "--tls-private-key-file", key, "--cert-dir", "."])
        .args(["--client-ca-file", CLIENT_FILES[2], "--service-account-issuer", "https://kubernetes.default.svc"])
        .args(["--service-account-key-file", accounts_public, "--service-account-signing-key-file", accounts])
        .stdout(Stdio::null())
        .stderr(log_file(folder, "kube-apiserver")?);
    let api = Program::start(&mut command, port);
    let api = api.map_err(|error| format!("{error}; docs/real-cluster.md says how to get kube-apiserver and etcd"))?;
    api.wait("kube-apiserver", || is_ready(tls, port))
}

fn is_ready(tls: &Arc<ClientConfig>, port: u16) -> bool {
    call(tls, port, "GET", "/readyz", "").0 == 200
}

fn call(tls: &Arc<ClientConfig>, port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n\
         {body}",
        body.len()
    );
    connect(tls, port).and_then(|stream| exchange(stream, &request)).unwrap_or_else(|error| (0, error.to_string()))
}

fn connect(tls: &Arc<ClientConfig>, port: u16) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    let connection = ClientConnection::new(Arc::clone(tls), name).map_err(std::io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Returns what a client of the API server needs from its files.
fn tls(folder: &Path) -> Result<ClientConfig, Box<dyn std::error::Error>> {
    let [certificate, key, authority] = CLIENT_FILES.map(|name| folder.join(name));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots);
    let key = PrivateKeyDer::from_pem_file(key)?;
    Ok(config.with_client_auth_cert(vec![CertificateDer::from_pem_file(certificate)?], key)?)
}

/// Returns all files with certificates and keys. The client is an administrator.
fn certificates() -> Result<[(&'static str, String); 7], rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let signed = |name: &str, group: &str| {
        let mut params = CertificateParams::new(["127.0.0.1", "localhost"].map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let key = KeyPair::generate()?;
        Ok::<_, rcgen::Error>((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    };
    let (client, client_key) = signed("portolan", "system:masters")?;
    let (server, server_key) = signed("kube-apiserver", "")?;
    let accounts = KeyPair::generate()?;
    let [api, api_key, accounts_public, accounts_key] = SERVER_FILES;
    let [client_file, client_key_file, authority_file] = CLIENT_FILES;
    Ok([
        (client_file, client),
        (client_key_file, client_key),
        (authority_file, authority),
        (api, server),
        (api_key, server_key),
        (accounts_public, accounts.public_key_pem()),
        (accounts_key, accounts.serialize_pem()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::cluster::Place;
    use super::*;

    #[test]
    fn each_kind_has_its_path() {
        let place = Place(1);
        for (key, all, name) in [
            (Key::Namespace(0), "/api/v1/namespaces", "alpha"),
            (Key::Service(place), "/api/v1/namespaces/alpha/services", "db"),
            (Key::Slice(place, false), "/apis/discovery.k8s.io/v1/namespaces/alpha/endpointslices", "db-v6"),
        ] {
            assert_eq!(paths(key), (all.to_owned(), format!("{all}/{name}")));
        }
    }

    #[test]
    fn the_client_reads_its_files() {
        let folder = std::env::temp_dir().join(format!("portolan-torture-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in certificates().unwrap() {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let config = tls(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(config.unwrap().client_auth_cert_resolver.has_certs());
    }
}
