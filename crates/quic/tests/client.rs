//! The client against the server of quinn-proto, in virtual time over a network that loses, repeats and reorders.
#![allow(clippy::disallowed_methods, reason = "a simulation starts at some instant")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

#[path = "scenarios/network.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod network;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use network::Network;
use quic::{Client, ClientEvent, CloseReason, NoStreamError, Upstream};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ReadError, ServerConfig,
    StreamEvent, StreamId, TransportConfig,
};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
const REPLY: &[u8] = b"\0\0\x81\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
const SECOND: Duration = Duration::from_secs(1);

/// Reaction of the server to a query.
#[derive(Clone)]
enum Reaction {
    /// Sends these bytes and ends the stream.
    Send(Vec<u8>),
    /// Sends these bytes and leaves the stream open.
    Begin(Vec<u8>),
    Reset(u32),
    Close(u32),
    Silence,
}

/// Sessions that the server remembers.
#[derive(Debug)]
struct Sessions {
    kept: Arc<ServerSessionMemoryCache>,
    resumed: AtomicUsize,
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.kept.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let taken = self.kept.take(key);
        self.resumed.fetch_add(usize::from(taken.is_some()), Ordering::Relaxed);
        taken
    }

    fn can_cache(&self) -> bool {
        true
    }
}

struct Pair {
    now: Instant,
    tls: Arc<rustls::ClientConfig>,
    sessions: Arc<Sessions>,
    network: Network,
    client: Client<u32>,
    events: Vec<ClientEvent<u32>>,
    server: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    reaction: Reaction,
    /// Streams whose query is arriving.
    queries: HashMap<StreamId, Vec<u8>>,
    /// Queries that have arrived.
    asked: Vec<Vec<u8>>,
    /// Codes with which the client has ended streams and the connection.
    stopped: Vec<u64>,
    closed: Vec<u64>,
}

fn addresses() -> [SocketAddr; 2] {
    ["198.51.100.1:40000", "192.0.2.53:853"].map(|address| address.parse().unwrap())
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&u16::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// Settings of one test.
struct Settings {
    streams: u32,
    name: &'static str,
    alpn: &'static [u8],
}

const GOOD: Settings = Settings { streams: 100, name: "dns.example", alpn: b"doq" };

impl Pair {
    fn new(seed: u64, settings: &Settings) -> Pair {
        let made = rcgen::generate_simple_self_signed(vec!["dns.example".to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut server = server.with_single_cert(vec![certificate.clone()], key).unwrap();
        server.alpn_protocols = vec![settings.alpn.to_vec()];
        let sessions = Arc::new(Sessions { kept: ServerSessionMemoryCache::new(64), resumed: AtomicUsize::new(0) });
        server.session_storage = Arc::clone(&sessions) as Arc<dyn StoresServerSessions>;
        // Allows early data, which the client must not send.
        server.max_early_data_size = u32::MAX;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let mut tls = tls.with_no_client_auth();
        tls.alpn_protocols = vec![b"doq".to_vec()];
        let tls = Arc::new(tls);

        let now = Instant::now();
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(settings.streams.into()).max_idle_timeout(None);
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap()));
        config.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::default();
        endpoint.rng_seed(Some([1; 32]));
        let upstream =
            Upstream { address: addresses()[1], server_name: settings.name, tls: Arc::clone(&tls), seed: [2; 32] };
        let (events, queries, asked, stopped, closed) = Default::default();
        Pair {
            now,
            tls,
            sessions,
            network: Network::new(seed),
            client: Client::open(now, &upstream).unwrap(),
            events,
            server: Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), false, None),
            connection: None,
            reaction: Reaction::Send(framed(REPLY)),
            queries,
            asked,
            stopped,
            closed,
        }
    }

    fn connected() -> Pair {
        let mut pair = Pair::new(1, &GOOD);
        pair.run();
        assert_eq!(pair.take_events(), [ClientEvent::Connected]);
        pair
    }

    /// Opens another connection.
    fn reconnect(&mut self, seed: u8) {
        let [_, address] = addresses();
        let upstream = Upstream { address, server_name: GOOD.name, tls: Arc::clone(&self.tls), seed: [seed; 32] };
        self.client = Client::open(self.now, &upstream).unwrap();
        self.connection = None;
    }

    /// Returns the only event after a query.
    fn event(&mut self) -> ClientEvent<u32> {
        self.client.send(7, QUERY).unwrap();
        self.run();
        let mut events = self.take_events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn take_events(&mut self) -> Vec<ClientEvent<u32>> {
        core::mem::take(&mut self.events)
    }

    /// Runs for two seconds.
    fn run(&mut self) {
        self.run_for(2 * SECOND);
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.exchange_datagrams();
            let timeouts = [self.network.next_arrival(), self.client.poll_timeout()];
            let servers = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            let next = timeouts.into_iter().chain([servers]).flatten().min();
            self.now = next.unwrap_or(end).clamp(self.now, end);
            self.client.handle_timeout(self.now);
            if let Some((_, connection)) = &mut self.connection {
                connection.handle_timeout(self.now);
            }
            for datagram in self.network.arrived(self.now) {
                match datagram.to == addresses()[0] {
                    true => self.client.handle_datagram(self.now, &datagram.bytes),
                    false => self.receive(&datagram.bytes),
                }
            }
            self.serve();
            self.events.extend(std::iter::from_fn(|| self.client.poll_event()));
        }
    }

    fn exchange_datagrams(&mut self) {
        let [client, server] = addresses();
        let mut buffer = Vec::new();
        while self.client.poll_transmit(self.now, &mut buffer) {
            self.network.send(self.now, client, server, &buffer);
        }
        let Some((handle, connection)) = &mut self.connection else { return };
        buffer.clear();
        while connection.poll_transmit(self.now, 1, &mut buffer).is_some() {
            self.network.send(self.now, server, client, &buffer);
            buffer.clear();
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.server.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let mut reply = Vec::new();
        match self.server.handle(self.now, addresses()[0], None, None, BytesMut::from(bytes), &mut reply) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.server.accept(incoming, self.now, &mut reply, None);
                if accepted.is_err() {
                    self.network.send(self.now, addresses()[1], addresses()[0], &reply);
                }
                self.connection = accepted.ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) => {
                self.network.send(self.now, addresses()[1], addresses()[0], &reply);
            }
            None => {}
        }
    }

    /// Plays the server.
    fn serve(&mut self) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.read(&mut connection, id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(&mut connection, id),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    let _ = connection.send_stream(id).reset(error_code);
                    self.stopped.push(error_code.into_inner());
                }
                Event::ConnectionLost { reason: quinn_proto::ConnectionError::ApplicationClosed(close) } => {
                    self.closed.push(close.error_code.into_inner());
                }
                _ => {}
            }
        }
        self.connection = Some((handle, connection));
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let query = self.queries.entry(id).or_default();
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => query.extend_from_slice(&chunk.bytes),
                Ok(None) => break true,
                Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
            }
        };
        drop(chunks);
        if ended {
            self.asked.push(self.queries.remove(&id).unwrap());
            react(connection, id, &self.reaction, self.now);
        }
    }
}

fn react(connection: &mut Connection, id: StreamId, reaction: &Reaction, now: Instant) {
    let mut stream = connection.send_stream(id);
    match reaction {
        Reaction::Send(bytes) => {
            assert_eq!(stream.write(bytes), Ok(bytes.len()));
            stream.finish().unwrap();
        }
        Reaction::Begin(bytes) => assert_eq!(stream.write(bytes), Ok(bytes.len())),
        Reaction::Reset(code) => stream.reset((*code).into()).unwrap(),
        Reaction::Close(code) => connection.close(now, (*code).into(), Bytes::new()),
        Reaction::Silence => {}
    }
}

#[test]
fn each_query_has_a_stream_of_its_own_on_any_network() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, &GOOD);
        (pair.network.lost, pair.network.repeated, pair.network.reordered) = (0.2, 0.1, 0.3);
        pair.run_for(10 * SECOND);
        assert_eq!(pair.take_events(), [ClientEvent::Connected], "seed {seed}");
        (0..50).for_each(|query| pair.client.send(query, QUERY).unwrap());
        pair.run_for(10 * SECOND);
        assert!(pair.asked.len() == 50 && pair.asked.iter().all(|asked| *asked == framed(QUERY)), "seed {seed}");
        let mut events = pair.take_events();
        events.retain(|event| *event != ClientEvent::StreamsAvailable);
        events.sort_by_key(|event| if let ClientEvent::Reply(query, _) = event { *query } else { u32::MAX });
        let replies: Vec<_> = (0..50).map(|query| ClientEvent::Reply(query, REPLY.to_vec())).collect();
        assert_eq!(events, replies, "seed {seed}");
    }
}

#[test]
fn reads_replies_of_any_length() {
    let mut pair = Pair::connected();
    let long = [REPLY, &[0; 65_535 - 17]].concat();
    pair.reaction = Reaction::Send(framed(&long));
    assert_eq!(pair.event(), ClientEvent::Reply(7, long));
}

#[test]
fn a_reply_is_complete_before_the_end_of_its_stream() {
    let mut pair = Pair::connected();
    pair.reaction = Reaction::Begin(framed(REPLY));
    assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
    assert_eq!(pair.stopped, [0]);
}

#[test]
fn closes_the_connection_if_a_reply_breaks_the_protocol() {
    let mut with_id = REPLY.to_vec();
    with_id[1] = 1;
    let mut with_keepalive = REPLY.to_vec();
    with_keepalive[11] = 1;
    with_keepalive.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\x06\0\x0b\0\x02\0\x01");
    for (bytes, rule) in [
        (framed(&with_id), "the message ID is not 0"),
        (framed(&with_keepalive), "the option edns-tcp-keepalive is not allowed"),
        (framed(REPLY)[..9].to_vec(), "the stream ends before the message"),
        (Vec::new(), "the stream ends before the message"),
        (framed(b""), "the message is empty"),
        ([framed(REPLY), framed(REPLY)].concat(), "bytes follow the message"),
    ] {
        let mut pair = Pair::connected();
        pair.reaction = Reaction::Send(bytes);
        assert_eq!(pair.event(), ClientEvent::Closed(CloseReason::Protocol(rule)));
        assert_eq!(pair.closed, [2], "{rule}");
    }
}

#[test]
fn reports_streams_and_connections_that_the_server_ends() {
    let mut pair = Pair::connected();
    pair.reaction = Reaction::Reset(1);
    assert_eq!(pair.event(), ClientEvent::Rejected(7, 1));
    pair.reaction = Reaction::Send(framed(REPLY));
    assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
    pair.reaction = Reaction::Close(4);
    let event = pair.event();
    assert_eq!(event, ClientEvent::Closed(CloseReason::ByUpstream(4)));
    let ClientEvent::Closed(reason) = event else { return };
    assert_eq!(reason.to_string(), "connection closed by the peer with DOQ_EXCESSIVE_LOAD");
}

#[test]
fn cancels_a_query_that_nobody_waits_for() {
    let mut pair = Pair::connected();
    pair.reaction = Reaction::Silence;
    pair.client.send(7, QUERY).unwrap();
    pair.run();
    assert!(pair.client.cancel(&7) && !pair.client.cancel(&7));
    pair.run();
    assert_eq!((pair.take_events(), pair.stopped), (Vec::new(), vec![3]));
}

#[test]
fn uses_only_the_streams_that_the_server_allows() {
    let mut pair = Pair::new(1, &Settings { streams: 2, ..GOOD });
    pair.run();
    pair.reaction = Reaction::Begin(Vec::new());
    let sent: Vec<_> = (0..3).map(|query| pair.client.send(query, QUERY)).collect();
    assert_eq!(sent, [Ok(()), Ok(()), Err(NoStreamError)]);
    pair.run();
    assert_eq!(pair.take_events(), [ClientEvent::Connected]);
    pair.client.cancel(&0);
    pair.reaction = Reaction::Send(framed(REPLY));
    let (_, connection) = pair.connection.as_mut().unwrap();
    connection.send_stream(StreamId::new(quinn_proto::Side::Client, Dir::Bi, 1)).write(&framed(REPLY)).unwrap();
    pair.run();
    let events = pair.take_events();
    assert!(events.contains(&ClientEvent::StreamsAvailable) && events.contains(&ClientEvent::Reply(1, REPLY.to_vec())));
    assert_eq!(pair.client.send(2, QUERY), Ok(()));
}

#[test]
fn refuses_other_names_and_other_protocols() {
    for (settings, part) in [
        (Settings { name: "dns.other", ..GOOD }, "tls: failed to verify certificate: certificate not valid for name"),
        (Settings { alpn: b"h3", ..GOOD }, "the cryptographic handshake failed: error 120"),
    ] {
        let mut pair = Pair::new(1, &settings);
        pair.run();
        match pair.take_events().as_slice() {
            [ClientEvent::Closed(reason)] => assert!(reason.to_string().contains(part), "{reason}"),
            events => panic!("{events:?}"),
        }
    }
}

#[test]
fn later_connections_resume_the_session_without_early_data() {
    let mut pair = Pair::connected();
    for resumed in 1..=5 {
        pair.reconnect(2 + u8::try_from(resumed).unwrap());
        assert_eq!(pair.client.send(7, QUERY), Err(NoStreamError), "queries wait for the handshake");
        pair.run();
        assert_eq!(pair.take_events(), [ClientEvent::Connected]);
        assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
        assert_eq!(pair.sessions.resumed.load(Ordering::Relaxed), resumed);
    }
}

#[test]
fn gives_up_a_server_that_is_silent() {
    let mut pair = Pair::new(1, &GOOD);
    pair.network.lost = 1.0;
    pair.run_for(60 * SECOND);
    assert_eq!(pair.take_events(), [ClientEvent::Closed(CloseReason::TimedOut)]);
}
