//! Real etcd for one test, on free loopback ports, controlled through its JSON gateway.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{Folder, PATIENCE, wait_until};
use testkit::ports::free_port;

/// Maximum number of operations in an etcd transaction.
const BATCH: usize = 128;

/// Running or stopped etcd.
pub(crate) struct Store {
    folder: Folder,
    child: Option<Child>,
    /// Port for clients without TLS.
    pub(crate) port: u16,
    peers: u16,
    arguments: Vec<String>,
    /// Authentication token for the requests of the test.
    token: Option<String>,
}

/// Returns true if etcd is installed; prints a message otherwise.
pub(crate) fn is_installed() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|folder| folder.join("etcd").is_file());
    if !found {
        // Not a macro, because the test harness captures the output of macros.
        super::skip("`etcd` is not installed: the plugin etcd is not tried with it");
    }
    found
}

impl Store {
    /// Starts an empty etcd.
    pub(crate) fn start(name: &str) -> Store {
        Store::start_with(name, &[])
    }

    /// Starts an empty etcd with additional arguments. It also listens on an `https://ADDRESS` among them.
    pub(crate) fn start_with(name: &str, arguments: &[String]) -> Store {
        let mut store = Store::new(name, arguments);
        store.run();
        store
    }

    /// Creates an etcd that does not run yet.
    pub(crate) fn new(name: &str, arguments: &[String]) -> Store {
        let (port, peers) = (free_port(), free_port());
        Store { folder: Folder::new(name), child: None, port, peers, arguments: arguments.to_vec(), token: None }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts etcd with its existing data, and waits until it answers.
    pub(crate) fn run(&mut self) {
        let (secure, other): (Vec<_>, Vec<_>) =
            self.arguments.iter().partition(|argument| argument.starts_with("https://"));
        let plain = format!("http://127.0.0.1:{}", self.port);
        let clients = [plain.clone()].into_iter().chain(secure.into_iter().cloned()).collect::<Vec<_>>().join(",");
        let peers = format!("http://127.0.0.1:{}", self.peers);
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("default={peers}"), "--unsafe-no-fsync"])
            .args(other)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("etcd starts"));
        wait_until("etcd answers", || self.try_call("maintenance/status", "{}").is_some());
    }

    /// Kills etcd, as a power failure would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Deletes its data while it is stopped.
    pub(crate) fn forget(&self) {
        std::fs::remove_dir_all(self.data()).expect("the data directory can be removed");
    }

    pub(crate) fn put(&self, key: &str, value: &str) {
        self.call("kv/put", &format!("{{{}}}", pair(key, value)));
    }

    pub(crate) fn put_with_lease(&self, key: &str, value: &str, lease: &str) {
        self.call("kv/put", &format!("{{{},\"lease\":\"{lease}\"}}", pair(key, value)));
    }

    pub(crate) fn put_all(&self, pairs: &[(String, String)]) {
        for batch in pairs.chunks(BATCH) {
            let operations: Vec<String> =
                batch.iter().map(|(key, value)| format!("{{\"requestPut\":{{{}}}}}", pair(key, value))).collect();
            self.call("kv/txn", &format!("{{\"success\":[{}]}}", operations.join(",")));
        }
    }

    pub(crate) fn delete(&self, key: &str) {
        self.call("kv/deleterange", &format!("{{\"key\":\"{}\"}}", base64(key)));
    }

    /// Grants a lease and returns its ID.
    pub(crate) fn grant(&self, seconds: u32) -> String {
        field(&self.call("lease/grant", &format!("{{\"TTL\":\"{seconds}\"}}")), "ID")
    }

    pub(crate) fn revoke(&self, lease: &str) {
        self.call("lease/revoke", &format!("{{\"ID\":\"{lease}\"}}"));
    }

    /// Compacts the history up to the current revision.
    pub(crate) fn compact(&self) {
        let revision = field(&self.call("kv/range", "{\"key\":\"AA==\"}"), "revision");
        self.call("kv/compaction", &format!("{{\"revision\":\"{revision}\",\"physical\":true}}"));
    }

    /// Enables authentication, with `root` and a user who may read the keys with a prefix.
    pub(crate) fn close(&mut self, user: &str, password: &str, prefix: &str) {
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let grant = format!("\"perm\":{{\"key\":\"{}\",\"rangeEnd\":\"{}\"}}", base64(prefix), base64(&end));
        for (method, body) in [
            ("user/add", "{\"name\":\"root\",\"password\":\"secret\"}".to_owned()),
            ("role/add", "{\"name\":\"root\"}".to_owned()),
            ("user/grant", "{\"user\":\"root\",\"role\":\"root\"}".to_owned()),
            ("user/add", format!("{{\"name\":\"{user}\",\"password\":\"{password}\"}}")),
            ("role/add", "{\"name\":\"reader\"}".to_owned()),
            ("role/grant", format!("{{\"name\":\"reader\",{grant}}}")),
            ("user/grant", format!("{{\"user\":\"{user}\",\"role\":\"reader\"}}")),
            ("enable", "{}".to_owned()),
        ] {
            self.call(&format!("auth/{method}"), &body);
        }
        let entered = self.call("auth/authenticate", "{\"name\":\"root\",\"password\":\"secret\"}");
        self.token = Some(field(&entered, "token"));
    }

    fn call(&self, method: &str, body: &str) -> String {
        self.try_call(method, body).unwrap_or_else(|| panic!("etcd does not do {method} {body}"))
    }

    fn try_call(&self, method: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port))).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let token = self.token.as_ref().map_or(String::new(), |token| format!("Authorization: {token}\r\n"));
        let length = body.len();
        let head = format!("POST /v3/{method} HTTP/1.0\r\nHost: etcd\r\n{token}Content-Length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (status, _) = answer.split_once("\r\n")?;
        status.contains(" 200 ").then_some(answer)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.kill();
    }
}

fn pair(key: &str, value: &str) -> String {
    format!("\"key\":\"{}\",\"value\":\"{}\"", base64(key), base64(value))
}

/// Returns the text of a field of a response.
fn field(answer: &str, name: &str) -> String {
    let rest = answer.split_once(&format!("\"{name}\":\"")).expect("the field").1;
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// Encodes text as Base64 (RFC 4648 §4).
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.as_bytes().chunks(3).flat_map(|chunk| {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        (0..4).map(move |at| if at <= chunk.len() { DIGITS[word >> (18 - 6 * at) & 63] } else { b'=' })
    });
    digits.map(char::from).collect()
}
