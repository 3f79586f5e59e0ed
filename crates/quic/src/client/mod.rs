//! Client side of DNS over QUIC: one connection to an upstream, without its socket and clock.
//!
//! The owner passes in datagrams and timeouts, then handles all events, then sends all datagrams and sets its timer.
//! `T` names a query, so that events can refer to it.

mod limits;
mod reason;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId,
};

use crate::doq::{self, ProtocolError, code};
use limits::{endpoint_config, transport_config};

pub use reason::{CloseReason, NoStreamError, OpenError};

/// Everything that makes a connection.
#[derive(Clone, Debug)]
pub struct Upstream<'a> {
    /// Address of the upstream.
    pub address: SocketAddr,
    /// Name or address that its certificate must have.
    pub server_name: &'a str,
    /// Trusted authorities, and the ALPN identifier [`Protocol::Doq`](crate::Protocol::Doq).
    pub tls: Arc<rustls::ClientConfig>,
    /// Seed of all random numbers outside TLS.
    pub seed: [u8; 32],
}

/// Connection to an upstream.
pub struct Client<T> {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: quinn_proto::Connection,
    address: SocketAddr,
    /// Queries in flight.
    exchanges: Vec<Exchange<T>>,
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
    /// The upstream has given up a query with this code.
    Rejected(T, u64),
    /// The connection has ended.
    Closed(CloseReason),
}

impl<T: Clone + PartialEq> Client<T> {
    /// Begins to connect.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn open(now: Instant, upstream: &Upstream<'_>) -> Result<Client<T>, OpenError> {
        let Upstream { address, server_name, tls, seed } = upstream;
        let crypto = QuicClientConfig::try_from(Arc::clone(tls)).map_err(OpenError::CipherSuite)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport_config()));
        let mut endpoint = Endpoint::new(Arc::new(endpoint_config(*seed)), None, false, None);
        let (handle, quic) = endpoint.connect(now, config, *address, server_name).map_err(OpenError::Target)?;
        let (exchanges, events) = (Vec::new(), VecDeque::new());
        Ok(Client { endpoint, handle, quic, address: *address, exchanges, events })
    }

    /// Sends a query on a stream of its own. Its ID must be 0 (RFC 9250 §4.2.1).
    ///
    /// # Errors
    /// The upstream allows no further stream.
    pub fn send(&mut self, query: T, message: &[u8]) -> Result<(), NoStreamError> {
        let stream = self.quic.streams().open(Dir::Bi).ok_or(NoStreamError)?;
        self.exchanges.push(Exchange { stream, query, unsent: doq::frame(message), reply: Vec::new() });
        self.write(stream);
        Ok(())
    }

    /// Gives up a query (RFC 9250 §4.3.1). Returns false if it is not in flight.
    pub fn cancel(&mut self, query: &T) -> bool {
        let Some(at) = self.exchanges.iter().position(|exchange| exchange.query == *query) else { return false };
        let stream = self.exchanges.swap_remove(at).stream;
        self.abandon(stream, code::REQUEST_CANCELLED);
        true
    }

    /// Closes the connection. The next datagram tells the upstream.
    pub fn close(&mut self, now: Instant) {
        self.quic.close(now, code::NO_ERROR.into(), Bytes::new());
    }

    /// Handles a datagram of the upstream.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) {
        // Only a server has datagrams to send that belong to no connection.
        let mut reply = Vec::new();
        let event = self.endpoint.handle(now, self.address, None, None, BytesMut::from(bytes), &mut reply);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
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
                Event::Connected => self.events.push_back(ClientEvent::Connected),
                Event::ConnectionLost { reason } => self.end(CloseReason::new(reason)),
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
            StreamEvent::Readable { id } => self.read(now, id),
            StreamEvent::Writable { id } => self.write(id),
            StreamEvent::Available { .. } => self.events.push_back(ClientEvent::StreamsAvailable),
            // The upstream may have read the query and answer it all the same.
            StreamEvent::Stopped { error_code, .. } if error_code == code::NO_ERROR.into() => {}
            StreamEvent::Stopped { id, error_code } => self.reject(id, error_code.into_inner()),
            StreamEvent::Opened { .. } | StreamEvent::Finished { .. } => {}
        }
    }

    /// Writes as much of a query as the upstream takes.
    fn write(&mut self, id: StreamId) {
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
        match read_reply(&mut self.quic, &mut self.exchanges[at]) {
            Ok(Some(reply)) => {
                let query = self.exchanges.swap_remove(at).query;
                self.events.push_back(ClientEvent::Reply(query, reply));
            }
            Ok(None) => {}
            Err(ReplyError::Reset(code)) => self.reject(id, code),
            Err(ReplyError::Protocol(ProtocolError(rule))) => {
                self.quic.close(now, code::PROTOCOL_ERROR.into(), Bytes::from_static(rule.as_bytes()));
                self.end(CloseReason::Protocol(rule));
            }
        }
    }

    /// Ends a query that the upstream has given up.
    fn reject(&mut self, id: StreamId, code: u64) {
        if let Some(at) = self.exchanges.iter().position(|exchange| exchange.stream == id) {
            let query = self.exchanges.swap_remove(at).query;
            self.abandon(id, code::REQUEST_CANCELLED);
            self.events.push_back(ClientEvent::Rejected(query, code));
        }
    }

    /// Ends both directions of a stream.
    fn abandon(&mut self, id: StreamId, code: u32) {
        let _ = self.quic.recv_stream(id).stop(code.into());
        let _ = self.quic.send_stream(id).reset(code.into());
    }

    fn end(&mut self, reason: CloseReason) {
        self.exchanges.clear();
        self.events.push_back(ClientEvent::Closed(reason));
    }
}

/// Query in flight.
struct Exchange<T> {
    stream: StreamId,
    query: T,
    /// Bytes of the query for which the upstream has given no credit yet.
    unsent: Bytes,
    /// Bytes of the response that have arrived, with the length prefix.
    reply: Vec<u8>,
}

/// Reason why no response follows on a stream.
#[derive(Debug)]
enum ReplyError {
    /// The upstream has reset the stream with this code.
    Reset(u64),
    /// The response breaks a rule. The connection must be closed.
    Protocol(ProtocolError),
}

impl core::fmt::Display for ReplyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReplyError::Reset(code) => write!(f, "stream reset with {}", code::Name(*code)),
            ReplyError::Protocol(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReplyError {}

impl From<ProtocolError> for ReplyError {
    fn from(error: ProtocolError) -> Self {
        ReplyError::Protocol(error)
    }
}

/// Reads what has arrived on a stream. Returns the response if it is complete.
fn read_reply<T>(
    quic: &mut quinn_proto::Connection,
    exchange: &mut Exchange<T>,
) -> Result<Option<Vec<u8>>, ReplyError> {
    let mut receiving = quic.recv_stream(exchange.stream);
    let Ok(mut chunks) = receiving.read(true) else { return Ok(None) };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) if exchange.reply.len() + chunk.bytes.len() > doq::STREAM_MAX => {
                return Err(doq::TRAILING_BYTES.into());
            }
            Ok(Some(chunk)) => exchange.reply.extend_from_slice(&chunk.bytes),
            Ok(None) => return complete(&exchange.reply)?.map(Some).ok_or(doq::INCOMPLETE.into()),
            Err(ReadError::Blocked) => break,
            Err(ReadError::Reset(code)) => return Err(ReplyError::Reset(code.into_inner())),
        }
    }
    drop(chunks);
    let reply = complete(&exchange.reply)?;
    if reply.is_some() {
        // Some servers end the stream late. Nothing more on it is of interest.
        let _ = receiving.stop(code::NO_ERROR.into());
    }
    Ok(reply)
}

/// Returns the message at the beginning of a stream, if it is complete.
fn complete(stream: &[u8]) -> Result<Option<Vec<u8>>, ProtocolError> {
    let Some(message) = doq::message(stream)? else { return Ok(None) };
    doq::check_reply(message)?;
    Ok(Some(message.to_vec()))
}
