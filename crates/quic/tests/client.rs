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
use quic::{Asking, Client, ClientEvent, CloseReason, Code, NoStreamError, Protocol, Rejection, Upstream};
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
    opened: &'static [&'static [u8]],
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

fn doq_code(code: u64) -> Code {
    Code { protocol: Protocol::Doq, code }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&u16::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// Settings of one test.
struct Settings {
    streams: u32,
    name: &'static str,
    /// Protocol of the server.
    alpn: &'static [u8],
    asking: Asking,
    /// Unidirectional streams that the server opens, with their first bytes.
    opened: &'static [&'static [u8]],
}

const GOOD: Settings = Settings { streams: 100, name: "dns.example", alpn: b"doq", asking: Asking::Doq, opened: &[] };

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
        tls.alpn_protocols = vec![settings.asking.protocol().alpn().to_vec()];
        let tls = Arc::new(tls);

        let now = Instant::now();
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(settings.streams.into()).max_idle_timeout(None);
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap()));
        config.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::default();
        endpoint.rng_seed(Some([1; 32]));
        let upstream = Upstream {
            address: addresses()[1],
            server_name: settings.name,
            tls: Arc::clone(&tls),
            asking: settings.asking.clone(),
            seed: [2; 32],
        };
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
            opened: settings.opened,
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
        let (tls, asking) = (Arc::clone(&self.tls), GOOD.asking);
        let upstream = Upstream { address, server_name: GOOD.name, tls, asking, seed: [seed; 32] };
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
                Event::Connected => {
                    for bytes in self.opened {
                        let id = connection.streams().open(Dir::Uni).expect("the client allows the stream");
                        assert_eq!(connection.send_stream(id).write(bytes), Ok(bytes.len()));
                    }
                }
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
    assert_eq!(pair.event(), ClientEvent::Rejected(7, Rejection::Reset(doq_code(1))));
    pair.reaction = Reaction::Send(framed(REPLY));
    assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
    pair.reaction = Reaction::Close(4);
    let event = pair.event();
    assert_eq!(event, ClientEvent::Closed(CloseReason::ByUpstream(doq_code(4))));
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

/// Control stream of a server: its type and empty settings.
const CONTROL: &[u8] = &[0, 4, 0];

/// Returns the settings of a server over HTTP/3 that opens these streams.
fn http3(opened: &'static [&'static [u8]]) -> Settings {
    let asking = Asking::Http3 { authority: "dns.example".to_owned(), is_get: false };
    Settings { alpn: b"h3", asking, opened, ..GOOD }
}

/// Returns a response with a status of the static table of QPACK, the content type of DNS, and this body.
fn response(status: u8, body: &[u8]) -> Vec<u8> {
    let (section, length) = ([0, 0, 0xc0 | status, 0xc0 | 44], u8::try_from(body.len()).unwrap());
    [&[1, 4][..], &section, &[0, length], body].concat()
}

const STATUS_200: u8 = 25;
const STATUS_404: u8 = 27;

fn connected_over_http3(opened: &'static [&'static [u8]]) -> Pair {
    let mut pair = Pair::new(1, &http3(opened));
    pair.run();
    assert_eq!(pair.take_events(), [ClientEvent::Connected]);
    pair.reaction = Reaction::Send(response(STATUS_200, REPLY));
    pair
}

#[test]
fn over_http3_each_query_is_a_request_on_any_network() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, &http3(&[CONTROL, &[2], &[3]]));
        (pair.network.lost, pair.network.repeated, pair.network.reordered) = (0.2, 0.1, 0.3);
        pair.run_for(10 * SECOND);
        assert_eq!(pair.take_events(), [ClientEvent::Connected], "seed {seed}");
        pair.reaction = Reaction::Send(response(STATUS_200, REPLY));
        (0..50).for_each(|query| pair.client.send(query, QUERY).unwrap());
        pair.run_for(10 * SECOND);
        assert!(pair.asked.len() == 50 && pair.asked.iter().all(|asked| asked.ends_with(QUERY)), "seed {seed}");
        let control = StreamId::new(quinn_proto::Side::Client, Dir::Uni, 0);
        assert!(pair.queries[&control].starts_with(&[0, 4]), "type and settings of the client's control stream");
        let replies = pair
            .take_events()
            .into_iter()
            .filter(|event| matches!(event, ClientEvent::Reply(_, reply) if reply == REPLY));
        assert_eq!(replies.count(), 50, "seed {seed}");
    }
}

#[test]
fn over_http3_a_failed_request_ends_alone() {
    let mut pair = connected_over_http3(&[CONTROL]);
    let reset = |code| Rejection::Reset(Code { protocol: Protocol::Http3, code });
    for (reaction, rejection, text) in [
        (
            Reaction::Send(response(STATUS_404, b"")),
            Rejection::Refused(doh::ResponseError::Status(404)),
            "HTTP status 404",
        ),
        (Reaction::Send(Vec::new()), Rejection::Malformed, "malformed HTTP response"),
        (Reaction::Reset(0x10b), Rejection::Unprocessed, "the peer has not processed the request"),
        (Reaction::Reset(0x102), reset(0x102), "stream reset by the peer with H3_INTERNAL_ERROR"),
    ] {
        pair.reaction = reaction;
        assert_eq!(pair.event(), ClientEvent::Rejected(7, rejection.clone()));
        assert_eq!(rejection.to_string(), text);
    }
    pair.reaction = Reaction::Send(response(STATUS_200, REPLY));
    assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
    pair.reaction = Reaction::Silence;
    pair.client.send(7, QUERY).unwrap();
    pair.run();
    pair.stopped.clear();
    assert!(pair.client.cancel(&7));
    pair.run();
    assert_eq!(pair.stopped, [0x10c]);
}

#[test]
fn over_http3_a_broken_rule_closes_the_connection() {
    let mut pair = connected_over_http3(&[CONTROL]);
    pair.reaction = Reaction::Send(vec![0, 1, 0]);
    assert!(matches!(pair.event(), ClientEvent::Closed(CloseReason::Protocol(_))));
    assert_eq!(pair.closed, [0x105]);
    let rows: [(&'static [&'static [u8]], u64); 5] = [
        (&[CONTROL, CONTROL], 0x103),
        (&[&[0, 0x21, 0]], 0x10a),
        (&[&[0, 4, 0, 0xd, 1, 0]], 0x105),
        (&[&[1, 0]], 0x108),
        (&[&[2, 0x3f, 0xe1, 0x1f]], 0x201),
    ];
    for (opened, code) in rows {
        let mut pair = Pair::new(1, &http3(opened));
        pair.run();
        let events = pair.take_events();
        assert!(matches!(events.as_slice(), [.., ClientEvent::Closed(CloseReason::Protocol(_))]), "{events:?}");
        assert_eq!(pair.closed, [code], "{opened:?}");
    }
}

#[test]
fn over_http3_the_server_may_announce_the_end_and_open_unknown_streams() {
    let mut pair = Pair::new(1, &http3(&[&[0, 4, 0, 7, 1, 8], &[0x21, 9, 9]]));
    pair.run();
    assert_eq!(pair.take_events(), [ClientEvent::Connected, ClientEvent::GoingAway]);
    assert_eq!(pair.stopped, [0x103]);
    pair.reaction = Reaction::Send(response(STATUS_200, REPLY));
    assert_eq!(pair.event(), ClientEvent::Reply(7, REPLY.to_vec()));
}
