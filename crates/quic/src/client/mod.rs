//! Client side of DNS over QUIC and HTTP/3: one connection to an upstream, without its socket and clock.
//!
//! The owner passes in datagrams and timeouts, then handles all events, then sends all datagrams and sets its timer.
//! `T` names a query, so that events can refer to it.

mod asking;
mod limits;
mod reason;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use host::invariant::holds;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId,
};

use crate::h3::{self, ConnectionError, Peer, Session, UniStream};
use crate::protocol::{Codes, Protocol};
use asking::{ReplyError, ReplyReader};
use limits::{endpoint_config, transport_config};

pub use asking::{Asking, Rejection};
pub use reason::{CloseReason, Code, NoStreamError, OpenError};

/// Everything that makes a connection.
#[derive(Clone, Debug)]
pub struct Upstream<'a> {
    /// Address of the upstream.
    pub address: SocketAddr,
    /// Name or address that its certificate must have.
    pub server_name: &'a str,
    /// Trusted authorities, and the ALPN identifier of the protocol.
    pub tls: Arc<rustls::ClientConfig>,
    /// Protocol on the streams.
    pub asking: Asking,
    /// Seed of all random numbers outside TLS.
    pub seed: [u8; 32],
}

/// Connection to an upstream.
pub struct Client<T> {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: quinn_proto::Connection,
    address: SocketAddr,
    asking: Asking,
    /// Queries in flight.
    exchanges: Vec<Exchange<T>>,
    /// Unidirectional streams of the upstream, over HTTP/3.
    critical: HashMap<StreamId, UniStream>,
    session: Session,
    events: VecDeque<ClientEvent<T>>,
}

/// Something that has happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent<T> {
    /// The handshake is complete, and the certificate is valid.
    Connected,
    /// The upstream allows more streams than before.
    StreamsAvailable,
    /// A query has a response.
    Reply(T, Vec<u8>),
    /// A query gets no response, for this reason.
    Rejected(T, Rejection),
    /// The upstream will close the connection after the responses to the queries in flight.
    GoingAway,
    /// The connection has ended.
    Closed(CloseReason),
}

impl<T: Clone + PartialEq> Client<T> {
    /// Begins to connect.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn open(now: Instant, upstream: &Upstream<'_>) -> Result<Client<T>, OpenError> {
        let Upstream { address, server_name, tls, asking, seed } = upstream;
        let crypto = QuicClientConfig::try_from(Arc::clone(tls)).map_err(OpenError::CipherSuite)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport_config(asking.protocol())));
        let mut endpoint = Endpoint::new(Arc::new(endpoint_config(*seed)), None, false, None);
        let (handle, quic) = endpoint.connect(now, config, *address, server_name).map_err(OpenError::Target)?;
        Ok(Client {
            endpoint,
            handle,
            quic,
            address: *address,
            asking: asking.clone(),
            exchanges: Vec::new(),
            critical: HashMap::new(),
            session: Session::new(Peer::Server),
            events: VecDeque::new(),
        })
    }

    /// Sends a query on a stream of its own. Its ID must be 0 (RFC 9250 §4.2.1, RFC 8484 §4.1).
    ///
    /// # Errors
    /// The upstream allows no further stream.
    pub fn send(&mut self, query: T, message: &[u8]) -> Result<(), NoStreamError> {
        let stream = self.quic.streams().open(Dir::Bi).ok_or(NoStreamError)?;
        let (unsent, reader) = (self.asking.request(message), self.asking.reader());
        holds(message.starts_with(&[0, 0]), "a query over QUIC has the ID 0");
        holds(!unsent.is_empty(), "a query takes bytes");
        debug_assert!(self.exchanges.iter().all(|exchange| exchange.query != query), "each query has its own name");
        debug_assert!(self.exchanges.iter().all(|exchange| exchange.stream != stream), "each query has its own stream");
        self.exchanges.push(Exchange { stream, query, unsent, reader });
        self.write(stream);
        Ok(())
    }

    /// Gives up a query (RFC 9250 §4.3.1, RFC 9114 §4.1.1). Returns false if it is not in flight.
    pub fn cancel(&mut self, query: &T) -> bool {
        let Some(at) = self.exchanges.iter().position(|exchange| exchange.query == *query) else { return false };
        let stream = self.exchanges.swap_remove(at).stream;
        self.abandon(stream);
        true
    }

    /// Returns the bytes that are kept of responses that have not arrived completely.
    #[must_use]
    pub fn incomplete_len(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.reader.kept_len()).sum()
    }

    /// Closes the connection. The next datagram tells the upstream.
    pub fn close(&mut self, now: Instant) {
        self.quic.close(now, self.codes().no_error.into(), Bytes::new());
    }

    /// Handles a datagram of the upstream.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) {
        // Only a server has datagrams to send that belong to no connection.
        let mut reply = Vec::new();
        let event = self.endpoint.handle(now, self.address, None, None, BytesMut::from(bytes), &mut reply);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event {
            holds(handle == self.handle, "the endpoint has one connection");
            self.quic.handle_event(event);
            self.handle_events(now);
        }
    }

    /// Handles the timeouts until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|timeout| timeout <= now) {
            self.quic.handle_timeout(now);
            self.handle_events(now);
        }
    }

    /// Returns the time of the next call of [`Client::handle_timeout`].
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.quic.poll_timeout()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent<T>> {
        self.events.pop_front()
    }

    /// Writes the next datagram to `buffer`. Returns false if nothing is left to send.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        let is_written = self.quic.poll_transmit(now, 1, buffer).is_some();
        self.exchange_endpoint_events();
        is_written
    }

    /// Returns true while the handshake is not complete.
    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.quic.is_handshaking()
    }

    /// Handles everything that quinn-proto reports.
    fn handle_events(&mut self, now: Instant) {
        self.exchange_endpoint_events();
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => self.begin(now),
                Event::ConnectionLost { reason } => self.end(CloseReason::new(self.asking.protocol(), reason)),
                Event::Stream(event) => self.handle_stream_event(now, &event),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// Exchanges messages between the connection and the endpoint of quinn-proto.
    fn exchange_endpoint_events(&mut self) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
    }

    fn handle_stream_event(&mut self, now: Instant, event: &StreamEvent) {
        match *event {
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => self.read_critical(now, id),
            StreamEvent::Readable { id } => self.read(now, id),
            StreamEvent::Writable { id } => self.write(id),
            StreamEvent::Available { .. } => self.events.push_back(ClientEvent::StreamsAvailable),
            // The upstream may have read the query and answer it all the same.
            StreamEvent::Stopped { error_code, .. } if error_code == self.codes().no_error.into() => {}
            StreamEvent::Stopped { id, error_code } => self.reject(id, self.rejection(error_code.into_inner())),
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.quic.streams().accept(dir) {
                    holds(dir == Dir::Uni, "the upstream may open no streams in both directions");
                    let former = self.critical.insert(id, UniStream::default());
                    holds(former.is_none(), "a stream is opened once");
                    holds(
                        self.critical.len() <= self.asking.protocol().uni_streams_max() as usize,
                        "the upstream opens the streams that it may",
                    );
                    self.read_critical(now, id);
                }
            }
            StreamEvent::Finished { .. } => {}
        }
    }

    fn codes(&self) -> Codes {
        self.asking.protocol().codes()
    }

    /// Returns the reason of a stream that the upstream has ended with a code.
    fn rejection(&self, code: u64) -> Rejection {
        let protocol = self.asking.protocol();
        if protocol == Protocol::Http3 && code == u64::from(h3::code::REQUEST_REJECTED) {
            return Rejection::Unprocessed;
        }
        Rejection::Reset(Code { protocol, code })
    }

    /// Uses a connection whose handshake is complete. Over HTTP/3 it begins with the control stream of this side.
    fn begin(&mut self, now: Instant) {
        holds(!self.quic.is_handshaking(), "a connection is used after its handshake");
        if self.asking.protocol() == Protocol::Http3 {
            let opened = self.quic.streams().open(Dir::Uni);
            let written = opened.map(|stream| self.quic.send_stream(stream).write(&h3::control_stream()));
            if !matches!(written, Some(Ok(_))) {
                return self.fail(now, CONTROL_STREAM_REFUSED);
            }
        }
        self.events.push_back(ClientEvent::Connected);
    }

    /// Writes as much of a query as the upstream takes.
    fn write(&mut self, id: StreamId) {
        holds(id.dir() == Dir::Bi && id.initiator() == quinn_proto::Side::Client, "a query has a stream of this side");
        let Some(exchange) = self.exchanges.iter_mut().find(|exchange| exchange.stream == id) else { return };
        let mut sending = self.quic.send_stream(id);
        while !exchange.unsent.is_empty() {
            if sending.write_chunks(core::slice::from_mut(&mut exchange.unsent)).is_err() {
                return;
            }
        }
        let _ = sending.finish();
    }

    /// Reads what has arrived of a response.
    fn read(&mut self, now: Instant, id: StreamId) {
        let Some(at) = self.exchanges.iter().position(|exchange| exchange.stream == id) else { return };
        match self.read_reply(at, id) {
            Ok(Some(reply)) => {
                let query = self.exchanges.swap_remove(at).query;
                self.events.push_back(ClientEvent::Reply(query, reply));
            }
            Ok(None) => {}
            Err(ReplyError::Rejected(rejection)) => self.reject(id, rejection),
            Err(ReplyError::Connection(error)) => self.fail(now, error),
        }
    }

    /// Reads what has arrived on a stream. Returns the response if it is complete.
    fn read_reply(&mut self, at: usize, id: StreamId) -> Result<Option<Vec<u8>>, ReplyError> {
        holds(self.exchanges[at].stream == id, "a response is read from the stream of its query");
        let reader = &mut self.exchanges[at].reader;
        let mut receiving = self.quic.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else { return Ok(None) };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => reader.feed(&chunk.bytes)?,
                Ok(None) => return reader.end().map(Some),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    drop(chunks);
                    return Err(ReplyError::Rejected(self.rejection(code.into_inner())));
                }
            }
        }
        drop(chunks);
        let reply = reader.early()?;
        if reply.is_some() {
            // Some servers end the stream late. Nothing more on it is of interest.
            let _ = receiving.stop(self.asking.protocol().codes().no_error.into());
        }
        Ok(reply)
    }

    /// Reads what has arrived on a unidirectional stream of the upstream.
    fn read_critical(&mut self, now: Instant, id: StreamId) {
        let was_going_away = self.session.is_going_away();
        if let Err(error) = self.feed_critical(id) {
            return self.fail(now, error);
        }
        if self.session.is_going_away() && !was_going_away {
            self.events.push_back(ClientEvent::GoingAway);
        }
    }

    fn feed_critical(&mut self, id: StreamId) -> Result<(), ConnectionError> {
        let Some(stream) = self.critical.get_mut(&id) else { return Ok(()) };
        let mut receiving = self.quic.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else { return Ok(()) };
        let is_needed = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if stream.feed(&mut self.session, &chunk.bytes)? => {}
                Ok(Some(_)) => break false,
                Ok(None) | Err(ReadError::Reset(_)) => {
                    stream.end()?;
                    self.critical.remove(&id);
                    return Ok(());
                }
                Err(ReadError::Blocked) => break true,
            }
        };
        drop(chunks);
        if !is_needed {
            let _ = receiving.stop(h3::code::STREAM_CREATION_ERROR.into());
            self.critical.remove(&id);
        }
        Ok(())
    }

    /// Ends a query that gets no response.
    fn reject(&mut self, id: StreamId, rejection: Rejection) {
        if let Some(at) = self.exchanges.iter().position(|exchange| exchange.stream == id) {
            let query = self.exchanges.swap_remove(at).query;
            self.abandon(id);
            self.events.push_back(ClientEvent::Rejected(query, rejection));
        }
    }

    /// Ends both directions of a stream.
    fn abandon(&mut self, id: StreamId) {
        let code = self.codes().cancelled;
        let _ = self.quic.recv_stream(id).stop(code.into());
        let _ = self.quic.send_stream(id).reset(code.into());
    }

    /// Closes the connection, because the upstream has broken a rule.
    fn fail(&mut self, now: Instant, ConnectionError { code, reason }: ConnectionError) {
        self.quic.close(now, code.into(), Bytes::from_static(reason.as_bytes()));
        self.end(CloseReason::Protocol(reason));
    }

    fn end(&mut self, reason: CloseReason) {
        self.exchanges.clear();
        self.events.push_back(ClientEvent::Closed(reason));
    }
}

/// Error of an upstream that allows no control stream.
const CONTROL_STREAM_REFUSED: ConnectionError =
    ConnectionError { code: h3::code::CLOSED_CRITICAL_STREAM, reason: "the peer allows no control stream" };

/// Query in flight.
struct Exchange<T> {
    stream: StreamId,
    query: T,
    /// Bytes of the query for which the upstream has given no credit yet.
    unsent: Bytes,
    reader: ReplyReader,
}
