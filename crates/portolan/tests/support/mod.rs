//! The binary as users run it: on free ports, with queries over real sockets, and controlled by signals.
#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod asker;
pub(crate) mod browser;
pub(crate) mod control;
pub(crate) mod encrypted;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod namespace;
pub(crate) mod packages;
pub(crate) mod pages;
pub(crate) mod prometheus;
pub(crate) mod quic;
pub(crate) mod seccomp;
pub(crate) mod served;
pub(crate) mod store;
pub(crate) mod update;
pub(crate) mod upstream;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use seccomp::Refused;

/// Limit for any operation before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Default time of a [`Client`] to wait for an answer. It ends only for lost queries, also on a busy machine.
const ANSWER: Duration = Duration::from_secs(5);

/// Says that a test, or a part of it, does not run here, and why. The test harness would hide the output of macros.
pub(crate) fn skip(what: impl std::fmt::Display) {
    namespace::say(&format!("SKIPPED: {what}"));
}

/// Temporary folder of a test, which is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        // Tests run on several threads of a process, which may read the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("portolan-{name}-{}-{number}-{:?}", std::process::id(), Instant::now());
        let unique = unique.replace([' ', '{', '}', ':'], "");
        let path = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        // Replaces the file atomically, as Kubernetes does for a ConfigMap.
        let fresh = self.0.join(format!("{name}.fresh"));
        std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, &path)).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Running server.
pub(crate) struct Server {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    refused: Refused,
    pub(crate) started: Instant,
}

impl Server {
    /// Starts the binary with a Corefile.
    pub(crate) fn start(corefile: &Path) -> Server {
        Server::start_with(&["-conf".as_ref(), corefile.as_os_str()])
    }

    /// Starts the binary with these arguments.
    pub(crate) fn start_with(arguments: &[&std::ffi::OsStr]) -> Server {
        Server::start_program(env!("CARGO_BIN_EXE_portolan").as_ref(), arguments)
    }

    /// Starts the binary with another executable name.
    pub(crate) fn start_program(program: &Path, arguments: &[&std::ffi::OsStr]) -> Server {
        let mut command = Command::new(program);
        command.args(arguments);
        Server::start_command(command)
    }

    /// Starts a prepared command, and a program of this build under the seccomp profile of `deploy`.
    pub(crate) fn start_command(mut command: Command) -> Server {
        Server::started_by(seccomp::spawn, &mut command)
    }

    /// Starts a prepared command as another user, without the seccomp profile, which would refuse the change.
    pub(crate) fn start_as(user: u32, mut command: Command) -> Server {
        let start = |command: &mut Command| (command.spawn().expect("the program starts"), Refused::default());
        Server::started_by(start, command.uid(user).gid(user))
    }

    fn started_by(start: impl FnOnce(&mut Command) -> (Child, Refused), command: &mut Command) -> Server {
        let started = Instant::now();
        let (mut child, refused) = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (sender, lines) = channel();
        for output in [
            Box::new(child.stdout.take().expect("its output")) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().expect("its errors")),
        ] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        Server { child, lines, seen: Vec::new(), refused, started }
    }

    /// Waits for a line that contains `part`, and returns it.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.iter().position(|line| line.contains(part)) {
                return self.seen.remove(at);
            }
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("no line contains `{part}`; there were {:#?}", self.seen),
            }
        }
    }

    /// Returns the next line, or `None` when the process has ended.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("{error}: the process runs and writes nothing"),
        }
    }

    /// Returns the bound address of a label, such as `dns://:0` or the address of a page.
    pub(crate) fn address_of(&mut self, name: &str) -> SocketAddr {
        let line = self.wait_for(&format!(" for {name}"));
        let text = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
        let address: SocketAddr = text.parse().expect("an address");
        if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the system calls that the seccomp profile refused.
    pub(crate) const fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Returns true if all threads are stopped, which happens a moment after SIGSTOP.
    pub(crate) fn stands_still(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let is_stopped = |stat: String| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'));
        tasks.flatten().all(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(is_stopped))
    }

    /// Returns the CPU time of the process, with a resolution of 10 ms.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its times");
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
        Duration::from_millis(10) * fields.filter_map(|ticks| ticks.parse::<u32>().ok()).sum()
    }

    /// Waits until the process has ended, and returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status.code();
            }
            std::thread::yield_now();
        }
        panic!("the server does not end");
    }

    /// Returns all lines so far that no `wait_for` has consumed.
    pub(crate) fn lines(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let Some(fault) = self.refused.fault() else { return };
        if std::thread::panicking() {
            return namespace::say(&fault);
        }
        panic!("{fault}");
    }
}

/// UDP client.
pub(crate) struct Client {
    socket: UdpSocket,
    next_id: u16,
}

impl Client {
    pub(crate) fn new(server: SocketAddr) -> Client {
        Client::at(std::net::Ipv4Addr::LOCALHOST.into(), server)
    }

    /// Creates a client with this address of the host.
    pub(crate) fn at(address: std::net::IpAddr, server: SocketAddr) -> Client {
        let socket = UdpSocket::bind((address, 0)).expect("a socket");
        socket.connect(server).expect("the server's address");
        socket.set_read_timeout(Some(ANSWER)).expect("a timeout");
        Client { socket, next_id: 0 }
    }

    /// Sets the time to wait for an answer.
    pub(crate) fn waiting(self, patience: Duration) -> Client {
        self.socket.set_read_timeout(Some(patience)).expect("a timeout");
        self
    }

    /// Returns another handle of the same socket, for a thread that only sends.
    pub(crate) fn twin(&self) -> Client {
        Client { socket: self.socket.try_clone().expect("a descriptor"), next_id: self.next_id }
    }

    /// Sends a query and returns the answer; `None` if none arrives in time, by default five seconds.
    pub(crate) fn ask(&mut self, name: &str, qtype: wire::Type) -> Option<Answer> {
        let id = self.send(name, qtype);
        self.receive(id)
    }

    pub(crate) fn send(&mut self, name: &str, qtype: wire::Type) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.socket.send(&query(self.next_id, name, qtype)).expect("a query leaves");
        self.next_id
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        self.socket.send(bytes).expect("a datagram leaves");
    }

    fn receive(&self, id: u16) -> Option<Answer> {
        loop {
            let answer = self.receive_any()?;
            if answer.header().id == id {
                return Some(answer);
            }
        }
    }

    pub(crate) fn receive_any(&self) -> Option<Answer> {
        let mut buffer = vec![0; 65_535];
        // SIGCHLD interrupts a receive with a timeout.
        let length = loop {
            match self.socket.recv(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                outcome => break outcome.ok()?,
            }
        };
        buffer.truncate(length);
        Some(Answer(buffer))
    }
}

/// Sends a message with its length in front over a stream (RFC 1035 §4.2.2), and returns the response.
pub(crate) fn exchange_framed(stream: &mut (impl Read + Write), message: &[u8]) -> Answer {
    let length = u16::try_from(message.len()).expect("a short message");
    stream.write_all(&[&length.to_be_bytes()[..], message].concat()).expect("a message leaves");
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a length");
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).expect("an answer");
    Answer(answer)
}

/// Received response.
pub(crate) struct Answer(pub(crate) Vec<u8>);

impl Answer {
    pub(crate) fn header(&self) -> wire::Header {
        wire::Header::read(&self.0).expect("a header")
    }

    pub(crate) fn rcode(&self) -> wire::Rcode {
        self.header().flags.rcode()
    }

    /// Returns the addresses in the answer section, in order.
    pub(crate) fn addresses(&self) -> Vec<std::net::IpAddr> {
        let message = wire::Message::parse(&self.0).expect("a message");
        message
            .records()
            .filter_map(|record| match record.rtype() {
                wire::Type::A => record.rdata().first_chunk::<4>().map(|bytes| (*bytes).into()),
                wire::Type::AAAA => record.rdata().first_chunk::<16>().map(|bytes| (*bytes).into()),
                _ => None,
            })
            .collect()
    }

    /// Returns the code of its Extended DNS Error.
    pub(crate) fn ede(&self) -> Option<u16> {
        let message = wire::Message::parse(&self.0).expect("a message");
        let opt = message.records().find(|record| record.rtype() == wire::Type::OPT)?;
        let mut rest = opt.rdata();
        while let [code_high, code_low, high, low, data @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if [*code_high, *code_low] == [0, 15] {
                return data.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
            }
            rest = &data[length..];
        }
        None
    }
}

/// Returns a query with EDNS.
pub(crate) fn query(id: u16, name: &str, qtype: wire::Type) -> Vec<u8> {
    let header = wire::Header { id, flags: wire::Flags::default().with_recursion_desired(true), ..Default::default() };
    let mut message = wire::MessageBuf::new();
    let name = wire::Name::from_text(name).expect("a name");
    message.start(header, Some((name.as_ref(), qtype, wire::Class::IN)));
    let opt = wire::Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    message.finish(Some(opt), std::iter::empty()).to_vec()
}

/// Requests a page. Returns its status and body.
pub(crate) fn page(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    use std::io::Write;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not in {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Number of measurements of [`soon`].
const MEASUREMENTS: usize = 10;

/// Measures until a time is below the limit. A busy machine delays some measurements, and a fault delays all of them.
pub(crate) fn soon(what: &str, limit: Duration, mut measure: impl FnMut(usize) -> Duration) {
    let mut times = Vec::new();
    while times.last().is_none_or(|time| *time >= limit) {
        assert!(times.len() < MEASUREMENTS, "{what}: not below {limit:?}, but {times:?}");
        times.push(measure(times.len()));
    }
}

/// Writes an authority's certificate and a server's with its key: `ca.pem`, `cert.pem`, `key.pem`.
pub(crate) fn certify(folder: &Folder, names: &[&str]) {
    certify_all(folder, "ca", &[("cert", "key", names)]);
}

/// Part of the name of a certificate that has expired.
const EXPIRED: &str = "expired";

/// Writes an authority's certificate, and those of others with their keys, for these names: each `NAME.pem`.
pub(crate) fn certify_all(folder: &Folder, authority: &str, others: &[(&str, &str, &[&str])]) {
    let write = |name: &str, text: &str| drop(folder.write(&format!("{name}.pem"), text));
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // OpenSSL takes a certificate whose issuer has the same name for a self-signed one.
    params.distinguished_name.push(DnType::CommonName, authority);
    write(authority, &params.self_signed(&key).expect("an authority").pem());
    let issuer = Issuer::new(params, key);
    for (certificate, key_name, names) in others {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        if certificate.contains(EXPIRED) {
            params.not_after = rcgen::date_time_ymd(2020, 1, 2);
        }
        write(certificate, &params.signed_by(&key, &issuer).expect("a certificate").pem());
        write(key_name, &key.serialize_pem());
    }
}
