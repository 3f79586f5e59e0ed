//! Servers and clients in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use quic::{Account, Admission, Config, Endpoint, Event, Keys, Place, Protocol, QueryKey, Route, Settings, TimeSource};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Dir, EndpointConfig, ReadError, StreamEvent, StreamId, VarInt,
};

use crate::network::Network;

/// Query for the root's NS records with ID 0.
pub const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
pub const SERVER: &str = "192.0.2.53:853";

/// Prefixes a message with its length.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&u16::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// Wall clock that the simulation moves.
#[derive(Debug)]
pub struct Wall(std::sync::Mutex<SystemTime>);

impl TimeSource for Wall {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// Limits of the process, as the tests set them.
#[derive(Default)]
pub struct Process {
    pub open_max: Cell<Option<usize>>,
    pub is_busy: Cell<bool>,
    /// Connections that clients may still open, with and without proof of their address.
    pub permits_proven: Cell<Option<usize>>,
    pub permits_unproven: Cell<Option<usize>>,
    pub held_max: Cell<Option<usize>>,
    pub open: Cell<usize>,
    pub held: Cell<usize>,
    pub held_most: Cell<usize>,
    pub evict: Cell<bool>,
    pub clients: RefCell<Vec<IpAddr>>,
}

/// The way of an endpoint to the limits.
struct Door(Rc<Process>);

/// Entry of a connection.
struct Seat {
    process: Rc<Process>,
    held: usize,
}

impl Admission for Door {
    fn permit(&self, _: IpAddr, is_proven: bool) -> bool {
        let permits = if is_proven { &self.0.permits_proven } else { &self.0.permits_unproven };
        permits.get().is_none_or(|left| {
            permits.set(Some(left.saturating_sub(1)));
            left > 0
        })
    }

    fn admit(&self, client: IpAddr) -> Option<Box<dyn Account>> {
        let process = &self.0;
        if process.open_max.get().is_some_and(|most| process.open.get() >= most) {
            return None;
        }
        process.open.set(process.open.get() + 1);
        process.clients.borrow_mut().push(client);
        Some(Box::new(Seat { process: Rc::clone(process), held: 0 }))
    }

    fn is_busy(&self) -> bool {
        self.0.is_busy.get()
    }
}

impl Account for Seat {
    fn touch(&self) {}

    fn hold(&mut self, bytes: usize) -> bool {
        let process = &self.process;
        process.held.set(process.held.get() - self.held + bytes);
        self.held = bytes;
        process.held_most.set(process.held_most.get().max(process.held.get()));
        process.held_max.get().is_none_or(|most| process.held.get() <= most)
    }

    fn is_evicted(&self) -> bool {
        self.process.evict.get()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.process.held.set(self.process.held.get() - self.held);
        self.process.open.set(self.process.open.get() - 1);
    }
}

/// Answers of the DNS server behind the endpoint.
pub enum Reply {
    Now(Vec<u8>),
    Later,
    Never,
    Many(Vec<Vec<u8>>),
}

type Answerer = Box<dyn FnMut(&[u8]) -> Reply>;

/// Server with one endpoint.
pub struct Server {
    pub endpoint: Endpoint,
    pub address: SocketAddr,
    pub process: Rc<Process>,
    pub answerer: Answerer,
    pub waiting: Vec<QueryKey>,
    pub cancelled: Vec<QueryKey>,
    pub responded: Vec<u32>,
    pub limits_reached: usize,
    pub asked: usize,
    /// Addresses from which queries came.
    pub clients: Vec<SocketAddr>,
    more: HashMap<QueryKey, Vec<Vec<u8>>>,
}

/// Client with one socket.
pub struct Client {
    pub quic: quinn_proto::Endpoint,
    pub address: SocketAddr,
    pub connections: HashMap<ConnectionHandle, quinn_proto::Connection>,
    pub connected: usize,
    /// Reasons why connections ended.
    pub lost: Vec<quinn_proto::ConnectionError>,
}

/// Certificate of the server and configuration of its clients.
pub struct Certificates {
    pub server: rustls::ServerConfig,
    pub client: rustls::ClientConfig,
}

impl Certificates {
    pub fn new(alpn: &[u8]) -> Certificates {
        let made = rcgen::generate_simple_self_signed(vec!["dns.example".to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut server = server.with_single_cert(vec![certificate.clone()], key).unwrap();
        server.alpn_protocols = vec![alpn.to_vec()];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider);
        let client = client.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![alpn.to_vec()];
        Certificates { server, client }
    }
}

pub fn settings(protocol: Protocol) -> Settings {
    let [idle, read] = [10, 3].map(Duration::from_secs);
    Settings { protocol, streams_max: 256, idle, read, policy: doh::Policy::default() }
}

pub struct Simulation {
    pub now: Instant,
    pub start: Instant,
    pub network: Network,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    pub certificates: Certificates,
    pub keys: Keys,
    pub wall: Arc<Wall>,
}

impl Simulation {
    pub fn new(protocol: Protocol, seed: u64) -> Simulation {
        Simulation::with(settings(protocol), seed)
    }

    pub fn with(settings: Settings, seed: u64) -> Simulation {
        let now = Instant::now();
        let mut simulation = Simulation {
            now,
            start: now,
            network: Network::new(seed),
            servers: Vec::new(),
            clients: Vec::new(),
            certificates: Certificates::new(settings.protocol.alpn()),
            keys: Keys::derive(b"secret"),
            wall: Arc::new(Wall(std::sync::Mutex::new(UNIX_EPOCH + Duration::from_secs(1_800_000_000)))),
        };
        simulation.add_server(settings, SERVER.parse().unwrap(), Place::ONLY);
        simulation.add_client(1);
        simulation
    }

    pub fn add_server(&mut self, settings: Settings, address: SocketAddr, place: Place) {
        let process = Rc::new(Process::default());
        let endpoint = self.endpoint(settings, place, &process);
        let (waiting, cancelled, responded, clients, more) = Default::default();
        let answerer: Answerer = Box::new(|query| Reply::Now(query.to_vec()));
        self.servers.push(Server {
            endpoint,
            address,
            process,
            answerer,
            waiting,
            cancelled,
            responded,
            limits_reached: 0,
            asked: 0,
            clients,
            more,
        });
    }

    pub fn endpoint(&self, settings: Settings, place: Place, process: &Rc<Process>) -> Endpoint {
        Endpoint::new(Config {
            settings,
            tls: Arc::new(self.certificates.server.clone()),
            keys: self.keys.clone(),
            place,
            seed: [u8::try_from(place.index).unwrap() + 1; 32],
            clock: Arc::clone(&self.wall) as Arc<dyn TimeSource>,
            admission: Box::new(Door(Rc::clone(process))),
        })
        .unwrap()
    }

    /// Replaces the endpoint of a server by a new one, as a restart of the process does.
    pub fn restart(&mut self, settings: Settings) {
        let process = Rc::clone(&self.servers[0].process);
        self.servers[0].endpoint = self.endpoint(settings, Place::ONLY, &process);
    }

    pub fn add_client(&mut self, host: u8) -> usize {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([host; 32]));
        let quic = quinn_proto::Endpoint::new(Arc::new(config), None, false, None);
        let address = SocketAddr::from(([198, 51, 100, host], 40_000));
        let (connections, lost) = Default::default();
        self.clients.push(Client { quic, address, connections, connected: 0, lost });
        self.clients.len() - 1
    }

    pub fn client_config(&self) -> ClientConfig {
        let mut tls = self.certificates.client.clone();
        tls.resumption = rustls::client::Resumption::disabled();
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
    }

    pub fn start_connecting(&mut self, client: usize, config: ClientConfig) -> ConnectionHandle {
        let to = self.servers[0].address;
        let client = &mut self.clients[client];
        let (handle, connection) = client.quic.connect(self.now, config, to, "dns.example").unwrap();
        client.connections.insert(handle, connection);
        handle
    }

    /// Connects the first client.
    pub fn connect(&mut self) -> ConnectionHandle {
        let config = self.client_config();
        self.connect_as(0, config)
    }

    pub fn connect_as(&mut self, client: usize, config: ClientConfig) -> ConnectionHandle {
        let handle = self.start_connecting(client, config);
        let done = |simulation: &mut Simulation| {
            let client = &simulation.clients[client];
            client.connections.get(&handle).is_none_or(|connection| !connection.is_handshaking())
                || !client.lost.is_empty()
        };
        assert!(self.run_until(done), "the handshake ends");
        handle
    }

    pub fn connection(&mut self, handle: ConnectionHandle) -> &mut quinn_proto::Connection {
        self.clients[0].connections.get_mut(&handle).unwrap()
    }

    /// Opens a stream of the first client and writes to it.
    pub fn write(&mut self, handle: ConnectionHandle, bytes: &[u8], ends: bool) -> StreamId {
        let connection = self.connection(handle);
        let id = connection.streams().open(Dir::Bi).expect("the server gives credit for a stream");
        assert_eq!(connection.send_stream(id).write(bytes), Ok(bytes.len()));
        if ends {
            connection.send_stream(id).finish().unwrap();
        }
        id
    }

    /// Sends a query over DNS over QUIC, and returns what the server sends on its stream.
    pub fn ask(&mut self, handle: ConnectionHandle, message: &[u8]) -> Result<Vec<u8>, ReadError> {
        let id = self.write(handle, &framed(message), true);
        self.read_to_end(handle, id)
    }

    pub fn read_to_end(&mut self, handle: ConnectionHandle, id: StreamId) -> Result<Vec<u8>, ReadError> {
        let mut collected = Vec::new();
        let mut outcome = Err(ReadError::Blocked);
        let ended = self.run_until(|simulation| {
            outcome = simulation.read(handle, id, &mut collected);
            outcome != Err(ReadError::Blocked)
        });
        assert!(ended, "the stream ends; {} bytes have arrived; lost: {:?}", collected.len(), self.clients[0].lost);
        outcome.map(|()| collected)
    }

    /// Reads what has arrived on a stream. `Ok` means its end.
    pub fn read(&mut self, handle: ConnectionHandle, id: StreamId, into: &mut Vec<u8>) -> Result<(), ReadError> {
        let Some(connection) = self.clients[0].connections.get_mut(&handle) else { return Err(ReadError::Blocked) };
        let mut stream = connection.recv_stream(id);
        let mut chunks = stream.read(true).expect("an open stream");
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => into.extend_from_slice(&chunk.bytes),
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs until the condition holds. Returns false if nothing more happens, or after a minute.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Simulation) -> bool) -> bool {
        let end = self.now + Duration::from_secs(60);
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let Some(next) = self.next_time().filter(|next| *next < end) else { return false };
            self.advance_to(next);
        }
    }

    /// Runs for this time.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.step();
            match self.next_time().filter(|next| *next < end) {
                Some(next) => self.advance_to(next),
                None => break,
            }
        }
        self.advance_to(end);
        self.step();
    }

    fn advance_to(&mut self, time: Instant) {
        *self.wall.0.lock().unwrap() += time.saturating_duration_since(self.now);
        self.now = self.now.max(time);
    }

    fn next_time(&mut self) -> Option<Instant> {
        let servers = self.servers.iter().filter_map(|server| server.endpoint.poll_timeout());
        let clients = self.clients.iter_mut().flat_map(|client| client.connections.values_mut());
        let clients = clients.filter_map(quinn_proto::Connection::poll_timeout);
        servers.chain(clients).chain(self.network.next_arrival()).min()
    }

    /// Delivers what has arrived and lets everybody act.
    fn step(&mut self) {
        let now = self.now;
        for datagram in self.network.arrived(now) {
            if let Some(server) = self.servers.iter_mut().find(|server| server.address == datagram.to) {
                let route = Route { peer: datagram.from, local: Some(server.address.ip()) };
                server.endpoint.handle_datagram(now, route, None, &datagram.bytes);
            } else if let Some(client) = self.clients.iter_mut().find(|client| client.address == datagram.to) {
                client.receive(now, datagram.from, &datagram.bytes);
            }
        }
        self.servers.iter_mut().for_each(|server| server.act(now, &mut self.network));
        self.clients.iter_mut().for_each(|client| client.act(now, &mut self.network));
    }
}

impl Server {
    fn act(&mut self, now: Instant, network: &mut Network) {
        self.endpoint.handle_timeout(now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Query { key, message, client, .. } => self.answer(now, key, &message, client),
                Event::Cancelled(key) => self.cancelled.push(key),
                Event::Ready(key) => self.send_next(now, key),
                Event::Responded(status) => self.responded.push(status),
                Event::LimitReached(_) => self.limits_reached += 1,
            }
        }
        let mut buffer = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(now, &mut buffer) {
            assert!(buffer.len() <= 1200 && !buffer.is_empty());
            network.send(now, self.address, route.peer, &buffer);
        }
    }

    fn answer(&mut self, now: Instant, key: QueryKey, message: &[u8], client: SocketAddr) {
        self.asked += 1;
        self.clients.push(client);
        match (self.answerer)(message) {
            Reply::Now(answer) => self.endpoint.respond(now, key, &answer, true),
            Reply::Later => self.waiting.push(key),
            Reply::Never => self.endpoint.abandon(now, key),
            Reply::Many(mut answers) => {
                answers.reverse();
                self.more.insert(key, answers);
                self.send_next(now, key);
            }
        }
    }

    fn send_next(&mut self, now: Instant, key: QueryKey) {
        match self.more.get_mut(&key).and_then(Vec::pop) {
            Some(answer) => self.endpoint.respond(now, key, &answer, false),
            None => self.endpoint.end_answer(now, key),
        }
    }

    /// Answers the queries that wait.
    pub fn answer_waiting(&mut self, now: Instant, answer: &[u8]) {
        for key in std::mem::take(&mut self.waiting) {
            self.endpoint.respond(now, key, answer, true);
        }
    }
}

impl Client {
    fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let mut reply = Vec::new();
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) =
            self.quic.handle(now, from, None, None, BytesMut::from(bytes), &mut reply)
            && let Some(connection) = self.connections.get_mut(&handle)
        {
            connection.handle_event(event);
        }
    }

    fn act(&mut self, now: Instant, network: &mut Network) {
        let mut ended = Vec::new();
        for (handle, connection) in &mut self.connections {
            connection.handle_timeout(now);
            while let Some(event) = connection.poll() {
                match event {
                    quinn_proto::Event::Connected => self.connected += 1,
                    quinn_proto::Event::ConnectionLost { reason } => self.lost.push(reason),
                    // A client must reset a stream that the server stops (RFC 9000 §3.5).
                    quinn_proto::Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                        let _ = connection.send_stream(id).reset(error_code);
                    }
                    _ => {}
                }
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                network.send(now, self.address, transmit.destination, &std::mem::take(&mut buffer));
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if event.is_drained() {
                    ended.push(*handle);
                }
                if let Some(event) = self.quic.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
        }
        ended.iter().for_each(|handle| drop(self.connections.remove(handle)));
    }

    /// Returns the code and reason with which the server closed the only lost connection.
    pub fn closed_with(&self) -> (u64, String) {
        match self.lost.as_slice() {
            [quinn_proto::ConnectionError::ApplicationClosed(close)] => {
                (close.error_code.into_inner(), String::from_utf8_lossy(&close.reason).into_owned())
            }
            other => panic!("not closed by the application: {other:?}"),
        }
    }
}

/// Code of a stream error.
pub fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}
