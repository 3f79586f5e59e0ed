//! The other servers: Knot DNS as the upstream, etcd, and a resolver that knows no name.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::Question;
use wire::{Header, Name, Rcode, Type};

use super::case::read_text;
use super::client;
use xtask::Failed;
use xtask::server::free_port;

/// Timeout for the first answer of a program. kube-apiserver takes longest, above all on a busy machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between attempts to reach a program that starts.
pub(crate) const START_PAUSE: Duration = Duration::from_millis(20);

/// Running program that is killed on drop.
pub(crate) struct Program {
    child: Child,
    pub(crate) port: u16,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Program {
    /// Starts a command, which serves this port.
    pub(crate) fn start(command: &mut Command, port: u16) -> Result<Program, Failed> {
        // Debian has knotd in a directory for administrators.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
        let child = command.env("PATH", path).stdin(Stdio::null()).spawn();
        let name = command.get_program().to_string_lossy();
        Ok(Program { child: child.map_err(|error| format!("`{name}` cannot be started: {error}"))?, port })
    }

    /// Kills the program, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program is usable.
    pub(crate) fn wait(mut self, name: &str, mut is_usable: impl FnMut() -> bool) -> Result<Program, Failed> {
        let start = Instant::now();
        while !is_usable() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("`{name}` has ended: {status}"));
            }
            if start.elapsed() > START_TIMEOUT {
                return Err(format!("`{name}` does not answer after {START_TIMEOUT:?}"));
            }
            std::thread::sleep(START_PAUSE);
        }
        Ok(self)
    }
}

/// Starts Knot DNS with the zones of a folder, `NAME.zone` each. `folder` is for its own files.
pub(crate) fn start_knot(zones: &Path, folder: &Path) -> Result<Program, Failed> {
    let zones = std::path::absolute(zones).map_err(|error| error.to_string())?;
    let port = free_port()?;
    let names = zone_names(&zones)?;
    let config = folder.join("knot.conf");
    std::fs::write(&config, knot_config(&zones, &names, folder, port)).map_err(|error| error.to_string())?;
    let knot = Program::start(Command::new("knotd").arg("-c").arg(&config).stdout(Stdio::null()), port)?;
    let name = names.first().and_then(|name| Name::from_text(name).ok()).ok_or("no zone in `upstream/`")?;
    let question = Question::new(name, Type::SOA);
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    knot.wait("knotd", || client::ask(server, &question, false).is_some())
}

fn zone_names(folder: &Path) -> Result<Vec<String>, Failed> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(files.filter_map(|file| Some(file.strip_suffix(".zone")?.to_owned())).collect())
}

fn knot_config(zones: &Path, names: &[String], folder: &Path, port: u16) -> String {
    let (zones, folder) = (zones.display(), folder.display());
    let mut text = format!(
        "server:\n  rundir: \"{folder}\"\n  listen: 127.0.0.1@{port}\ndatabase:\n  storage: \"{folder}\"\nlog:\n  - \
         target: stderr\n    any: error\nzone:\n"
    );
    for name in names {
        text.push_str(&format!(
            "  - domain: {name}\n    storage: \"{zones}\"\n    file: {name}.zone\n    zonefile-sync: -1\n    \
             journal-content: none\n"
        ));
    }
    text
}

/// Starts etcd with the keys of a file: a list of keys and values. `folder` is for its data.
pub(crate) fn start_etcd(keys: &Path, folder: &Path) -> Result<Program, Failed> {
    let etcd = run_etcd([free_port()?, free_port()?], folder)?;
    let keys: Value = serde_json::from_str(&read_text(keys)?).map_err(|error| format!("etcd.json: {error}"))?;
    for pair in keys.as_array().into_iter().flatten() {
        // A value that is a text is not JSON.
        let value = pair[1].as_str().map_or_else(|| pair[1].to_string(), str::to_owned);
        let key = STANDARD.encode(pair[0].as_str().unwrap_or_default());
        let body = json!({ "key": key, "value": STANDARD.encode(value) }).to_string();
        call(etcd.port, "kv/put", &body).ok_or_else(|| format!("etcd does not store {}", pair[0]))?;
    }
    Ok(etcd)
}

/// Starts etcd with the data of a folder, and waits until it works. The ports are for clients and for other members.
pub(crate) fn run_etcd(ports: [u16; 2], folder: &Path) -> Result<Program, Failed> {
    let [clients, peers] = ports.map(|port| format!("http://127.0.0.1:{port}"));
    let [port, _] = ports;
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}"), "--unsafe-no-fsync", "--log-level", "warn"])
        .stdout(Stdio::null())
        .stderr(log_file(folder, "etcd")?);
    Program::start(&mut command, port)?.wait("etcd", || call(port, "maintenance/status", "{}").is_some())
}

/// Opens the log of a program, `NAME.log`, to append to it.
pub(crate) fn log_file(folder: &Path, name: &str) -> Result<File, Failed> {
    let path = folder.join(format!("{name}.log"));
    File::options().create(true).append(true).open(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Deletes the history of etcd.
pub(crate) fn compact_etcd(port: u16) -> Result<(), Failed> {
    let fail = |error: std::io::Error| format!("etcd does not compact: {error}");
    let status = exchange_with_etcd(port, "maintenance/status", "{}").map_err(fail)?.1;
    let status: Value = serde_json::from_str(&status).unwrap_or_default();
    // Numbers of 64 bits are texts in the JSON of protocol buffers.
    let body = json!({ "revision": status["header"]["revision"] }).to_string();
    match exchange_with_etcd(port, "kv/compaction", &body).map_err(fail)? {
        (200, _) => Ok(()),
        // Nothing was written since the last time.
        (_, text) if text.contains("has been compacted") => Ok(()),
        (status, text) => Err(format!("etcd does not compact: {status} {text}")),
    }
}

/// Calls a method of etcd's JSON gateway. Returns `None` if it fails.
fn call(port: u16, method: &str, body: &str) -> Option<()> {
    exchange_with_etcd(port, method, body).is_ok_and(|(status, _)| status == 200).then_some(())
}

/// Returns the status and the body of a response of etcd's JSON gateway.
fn exchange_with_etcd(port: u16, method: &str, body: &str) -> std::io::Result<(u16, String)> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    let length = body.len();
    let request = format!("POST /v3/{method} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}");
    exchange(stream, &request)
}

/// Sends a request of HTTP/1.0. Returns the status and the body of the response, which ends with the connection.
pub(crate) fn exchange(mut stream: impl Read + Write, request: &str) -> std::io::Result<(u16, String)> {
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    match stream.read_to_end(&mut response) {
        // A server that ends the connection without the end of TLS has sent its response.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let response = String::from_utf8_lossy(&response);
    let no_response = || std::io::Error::new(ErrorKind::InvalidData, "no response of HTTP");
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(no_response)?;
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    if length.is_some_and(|length: usize| length != body.len()) {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(no_response)?;
    Ok((status, body.to_owned()))
}

/// Starts a resolver that knows no name, and returns its port. The answers of kube-dns were recorded with one.
pub(crate) fn start_empty_resolver() -> Result<u16, Failed> {
    let open = || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let port = socket.local_addr()?.port();
        std::thread::spawn(move || deny_all(&socket));
        Ok(port)
    };
    open().map_err(|error: std::io::Error| error.to_string())
}

/// Answers every query with NXDOMAIN until the program ends. Only the header differs from the query.
fn deny_all(socket: &UdpSocket) {
    let mut packet = [0; 4096];
    while let Ok((length, client)) = socket.recv_from(&mut packet) {
        if let Some(header) = Header::read(&packet[..length]) {
            let flags = header.flags.with_response(true).with_recursion_available(true).with_rcode(Rcode::NXDOMAIN);
            packet[2..4].copy_from_slice(&flags.0.to_be_bytes());
            let _ = socket.send_to(&packet[..length], client);
        }
    }
}

/// Temporary folder that is deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Folder, Failed> {
        let path = std::env::temp_dir().join(format!("portolan-replay-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peer that takes a request, and sends a response.
    struct Peer(&'static [u8]);

    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_response_has_a_status_and_a_body() {
        let response = b"HTTP/1.0 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
        assert_eq!(exchange(Peer(response), "GET / HTTP/1.0\r\n\r\n").unwrap(), (404, "gone".to_owned()));
        let cut = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ngo";
        for broken in [&b""[..], b"HTTP/1.0 404 Not Found\r\n", b"HTTP/1.0\r\n\r\n", cut] {
            assert!(exchange(Peer(broken), "").is_err(), "{broken:?}");
        }
    }
}
