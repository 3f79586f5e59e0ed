//! Worker threads that serve a Corefile of test directives on a free port, and clients over real sockets.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use config::setup::{Capabilities, ReloadState};
use config::{BuildContext, DirectiveEntry, Planning};
use corefile::NoFiles;
use engine::Generation;
use metrics::Registry;
use net::{Address, StreamLimits, WorkerLimits, Workers};
use testkit::{Parsed, Question, World};
use wire::{Name, OptionCode, Type};

/// Time limit for each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

static ENTRIES: [DirectiveEntry; 2] = [testkit::toys::RECORDS, testkit::toys::OUTWARD];

/// Running worker threads.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) registry: Arc<Registry>,
    workers: Option<Workers>,
}

impl Running {
    /// Serves a server block for `test.` with these lines, with one worker.
    pub(crate) fn start(lines: &str, streams: StreamLimits) -> Running {
        Running::start_with(lines, WorkerLimits { streams, ..WorkerLimits::default() })
    }

    /// Serves with these limits.
    pub(crate) fn start_with(lines: &str, limits: WorkerLimits) -> Running {
        let registry = Registry::new();
        let (generation, label) = build(&format!("test {{\n{lines}\n}}\n"), &registry);
        let live = Arc::new(ArcSwap::from_pointee(generation));
        let workers = Workers::start(1, &live, &registry, limits).expect("threads");
        let address =
            Address { label, ip: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), port: 0, kind: net::AddressKind::Dns };
        let opened = net::open(&address, workers.count()).expect("a free port");
        let address = opened.bound;
        workers.serve(opened);
        Running { address, registry, workers: Some(workers) }
    }

    /// Answers the queries in flight and ends.
    pub(crate) fn drain(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.drain();
        }
    }

    /// Returns the value of a series, or 0 if it is not exported.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.registry.render();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }

    pub(crate) fn connect(&self) -> Stream {
        Stream::connect(self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain();
    }
}

fn build(text: &str, registry: &Arc<Registry>) -> (Generation, String) {
    let parsed = corefile::parse(Path::new("Corefile"), text.to_owned(), &NoFiles);
    let mut problems = parsed.diagnostics;
    let planning = Planning { entries: &ENTRIES, dns_port: 53, interface: &|_| None, memory: None };
    let plan = config::plan(&parsed.corefile, &planning, &mut problems);
    assert!(problems.is_empty(), "{problems:#?}");
    let plan = plan.expect("a plan");
    let label = plan.listeners()[0].label();
    let (files, process) = (World::default(), Capabilities::default());
    let context = BuildContext { registry, files: &files, process: &process, reload_state: ReloadState::default() };
    (plan.build(context).expect("it can be built").generation, label)
}

/// Client connection over TCP.
pub(crate) struct Stream(pub(crate) TcpStream);

impl Stream {
    pub(crate) fn connect(to: SocketAddr) -> Stream {
        let stream = TcpStream::connect(to).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Stream(stream)
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        self.0.write_all(&framed(message)).expect("a query leaves");
    }

    /// Reads the next answer. Returns `None` if the server has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<Parsed> {
        self.receive_bytes().map(|bytes| Parsed::read(&bytes).expect("a message"))
    }

    pub(crate) fn receive_bytes(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 2];
        read_exact(&mut self.0, &mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        read_exact(&mut self.0, &mut message)?;
        Some(message)
    }

    pub(crate) fn ask(&mut self, question: &Question) -> Option<Parsed> {
        self.send(&question.packet());
        self.receive()
    }

    /// Shuts down the sending side. Answers can still be read.
    pub(crate) fn finish(&self) {
        self.0.shutdown(Shutdown::Write).expect("half of it is closed");
    }

    /// Waits for the server to close the connection. Panics if it sends anything first.
    pub(crate) fn wait_for_end(&mut self) {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(0) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            other => panic!("not the end: {other:?}"),
        }
    }
}

/// Fills the buffer. Returns `None` at the end of the stream.
fn read_exact(stream: &mut TcpStream, buffer: &mut [u8]) -> Option<()> {
    match stream.read_exact(buffer) {
        Ok(()) => Some(()),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset) =>
        {
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("at most 65535 bytes");
    [&length.to_be_bytes()[..], message].concat()
}

/// Creates a question with this ID.
pub(crate) fn question(id: u16, name: &str, qtype: Type) -> Question {
    let mut question = Question::new(Name::from_text(name).expect("a name"), qtype);
    question.header.id = id;
    question
}

/// Returns the data of an EDNS option.
pub(crate) fn option(answer: &Parsed, code: OptionCode) -> Option<&[u8]> {
    answer.options.iter().find(|(known, _)| *known == code).map(|(_, data)| data.as_slice())
}

/// Creates a client socket for UDP.
pub(crate) fn datagrams(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(to).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// Receives and parses the next datagram.
pub(crate) fn receive(socket: &UdpSocket) -> Parsed {
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).expect("a datagram");
    Parsed::read(&buffer[..length]).expect("a message")
}

/// Upstream over UDP whose answers the test sends.
pub(crate) struct Upstream(pub(crate) UdpSocket);

impl Upstream {
    pub(crate) fn new() -> Upstream {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Upstream(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("its address")
    }

    /// Receives the next query and its source address.
    pub(crate) fn query(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 4096];
        let (length, from) = self.0.recv_from(&mut buffer).expect("a query");
        buffer.truncate(length);
        (buffer, from)
    }

    pub(crate) fn answer(&self, (query, from): &(Vec<u8>, SocketAddr)) {
        self.0.send_to(&answer_to(query), from).expect("an answer leaves");
    }
}

/// Returns the query with QR set: an answer without records.
pub(crate) fn answer_to(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not in {PATIENCE:?}");
        std::thread::yield_now();
    }
}
