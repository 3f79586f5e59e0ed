//! Conversations over QUIC with quinn-proto: DNS over QUIC (RFC 9250), and DNS over HTTPS with HTTP/3 (RFC 9114).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId,
    TransportConfig,
};
use tokio::net::UdpSocket;

use super::super::super::certificates::SERVER_NAME;
use super::dns;
use super::protocol::Plan;
use super::question;
use super::tally::Tally;
use xtask::Failed;

/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 1500;
/// Wait for a datagram while no timer runs.
const NO_TIMER: Duration = Duration::from_secs(1);

/// Framing of messages on streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A length before each message.
    Doq,
    /// POST requests.
    Http3,
}

/// Frame types of HTTP/3 (RFC 9114 §7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;
/// Unidirectional stream of the type 0x00 with an empty SETTINGS frame.
const CONTROL_STREAM: [u8; 3] = [0, 4, 0];
/// Field section prefix without a dynamic table, and `:status: 200`, entry 25 of the static table (RFC 9204).
const STATUS_200: [u8; 3] = [0, 0, 0xc0 | 25];

impl Framing {
    /// Returns the bytes of a request, which ends its stream.
    fn request(self, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Framing::Doq => dns::frame(message, &mut out),
            Framing::Http3 => {
                put_frame(&mut out, HEADERS, &fields(message.len()));
                put_frame(&mut out, DATA, message);
            }
        }
        out
    }

    /// Returns the message in a complete response.
    fn message(self, response: &[u8]) -> Result<Vec<u8>, Failed> {
        match self {
            Framing::Doq => match dns::split(response) {
                Some((message, [])) => Ok(message.to_vec()),
                _ => Err(format!("the response has {} bytes, which is not one message", response.len())),
            },
            Framing::Http3 => body(response).ok_or_else(|| "the response is not a message with status 200".to_owned()),
        }
    }
}

/// Header fields of a request: those of the static table (RFC 9204 appendix A), and literals with its names.
fn fields(length: usize) -> Vec<u8> {
    let length = length.to_string();
    // No value has more than 127 bytes.
    let literal =
        |index: u8, value: &str| [&[0x50 | index, u8::try_from(value.len()).unwrap_or(0)], value.as_bytes()].concat();
    [
        // The prefix, `:method: POST` and `:scheme: https`.
        vec![0, 0, 0xc0 | 20, 0xc0 | 23],
        literal(0, SERVER_NAME),
        literal(1, "/dns-query"),
        // `accept` and `content-type: application/dns-message`.
        vec![0xc0 | 30, 0xc0 | 44],
        literal(4, &length),
    ]
    .concat()
}

fn put_frame(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    // Types and lengths of requests are below 2^14. Two bytes are allowed for smaller numbers too.
    for number in [kind, payload.len() as u64] {
        match u8::try_from(number) {
            Ok(short @ 0..64) => out.push(short),
            _ => out.extend_from_slice(&(u16::try_from(number).unwrap_or(0) | 0x4000).to_be_bytes()),
        }
    }
    out.extend_from_slice(payload);
}

/// Returns the body of a response with the status 200.
fn body(mut response: &[u8]) -> Option<Vec<u8>> {
    let (mut has_status, mut body) = (false, Vec::new());
    while !response.is_empty() {
        let (kind, rest) = split_varint(response)?;
        let (length, rest) = split_varint(rest)?;
        let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        match kind {
            HEADERS => has_status = payload.starts_with(&STATUS_200),
            DATA => body.extend_from_slice(payload),
            // Other frames are extensions.
            _ => {}
        }
        response = rest;
    }
    has_status.then_some(body)
}

/// Splits off a number of variable length (RFC 9000 §16).
fn split_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(1 << (bytes.first()? >> 6))?;
    let value = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> (64 - (8 * number.len() - 2))), rest))
}

/// Asks queries over a connection of its own according to the plan.
pub(crate) async fn converse(
    port: u16,
    framing: Framing,
    tls: rustls::ClientConfig,
    plan: Plan,
    tally: &Tally,
) -> Result<(), Failed> {
    let mut conversation = Conversation::start(port, framing, tls).await?;
    let (mut asked, mut in_flight) = (0, 0);
    loop {
        in_flight -= conversation.take(tally)?;
        while conversation.is_connected && in_flight < plan.in_flight && asked < plan.queries && conversation.ask()? {
            (asked, in_flight) = (asked + 1, in_flight + 1);
        }
        if asked == plan.queries && in_flight == 0 && !plan.stays {
            return Ok(());
        }
        conversation.exchange().await.map_err(|error| error.to_string())?;
    }
}

/// Connection to a server.
struct Conversation {
    socket: UdpSocket,
    server: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    is_connected: bool,
    framing: Framing,
    request: Vec<u8>,
    /// Responses that are not complete.
    responses: HashMap<StreamId, Vec<u8>>,
}

impl Conversation {
    async fn start(port: u16, framing: Framing, tls: rustls::ClientConfig) -> Result<Conversation, Failed> {
        let server = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let tls = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
        let mut transport = TransportConfig::default();
        // The shorter one of both sides counts, and the default of the client is shorter than some measurements.
        transport.max_idle_timeout(None);
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        let mut endpoint = Endpoint::new(Arc::default(), None, false, None);
        let connected = endpoint.connect(Instant::now(), config, server, SERVER_NAME);
        let (handle, connection) = connected.map_err(|error| error.to_string())?;
        let (request, responses) = (framing.request(&question::query()), HashMap::new());
        let is_connected = false;
        Ok(Conversation { socket, server, endpoint, handle, connection, is_connected, framing, request, responses })
    }

    /// Handles all events. Returns the number of complete responses.
    fn take(&mut self, tally: &Tally) -> Result<usize, Failed> {
        let mut answers = 0;
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.begin()?,
                Event::ConnectionLost { reason } => return Err(format!("the connection is lost: {reason}")),
                // Streams of the server have no responses.
                Event::Stream(StreamEvent::Readable { id }) if self.responses.contains_key(&id) && self.read(id)? => {
                    let response = self.responses.remove(&id).unwrap_or_default();
                    tally.count(&self.framing.message(&response)?)?;
                    answers += 1;
                }
                Event::Stream(StreamEvent::Stopped { error_code, .. }) => {
                    return Err(format!("the server stopped a stream with the code {error_code}"));
                }
                _ => {}
            }
        }
        Ok(answers)
    }

    fn begin(&mut self) -> Result<(), Failed> {
        self.is_connected = true;
        if self.framing == Framing::Http3 {
            let control = self.connection.streams().open(Dir::Uni).ok_or("the server allows no control stream")?;
            let written = self.connection.send_stream(control).write(&CONTROL_STREAM);
            written.map_err(|error| format!("the control stream: {error}"))?;
        }
        Ok(())
    }

    /// Sends a query on a stream of its own. Returns false if the server allows no more streams now.
    fn ask(&mut self) -> Result<bool, Failed> {
        let Some(id) = self.connection.streams().open(Dir::Bi) else { return Ok(false) };
        let mut stream = self.connection.send_stream(id);
        let written = stream.write(&self.request).map_err(|error| error.to_string())?;
        if written < self.request.len() {
            return Err("the server's flow control does not allow a whole query".to_owned());
        }
        stream.finish().map_err(|error| error.to_string())?;
        self.responses.insert(id, Vec::new());
        Ok(true)
    }

    /// Reads what has arrived on a stream. Returns true at its end.
    fn read(&mut self, id: StreamId) -> Result<bool, Failed> {
        let mut stream = self.connection.recv_stream(id);
        let mut chunks = stream.read(true).map_err(|error| error.to_string())?;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.responses.entry(id).or_default().extend_from_slice(&chunk.bytes),
                Ok(None) => return Ok(true),
                Err(ReadError::Blocked) => return Ok(false),
                Err(error @ ReadError::Reset(_)) => return Err(format!("a stream: {error}")),
            }
        }
    }

    /// Sends what is ready, and waits for datagrams or the next timeout.
    async fn exchange(&mut self) -> io::Result<()> {
        self.send().await?;
        let timeout = self.connection.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
        match tokio::time::timeout(timeout.unwrap_or(NO_TIMER), self.socket.readable()).await {
            Ok(readable) => {
                readable?;
                self.receive();
            }
            Err(_) => self.connection.handle_timeout(Instant::now()),
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        Ok(())
    }

    async fn send(&mut self) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(DATAGRAM_MAX);
        while self.connection.poll_transmit(Instant::now(), 1, &mut buffer).is_some() {
            self.socket.send_to(&buffer, self.server).await?;
            buffer.clear();
        }
        Ok(())
    }

    /// Receives all datagrams that have arrived.
    fn receive(&mut self) {
        let (now, mut bytes, mut reply) = (Instant::now(), [0; DATAGRAM_MAX], Vec::new());
        while let Ok((length, from)) = self.socket.try_recv_from(&mut bytes) {
            let datagram = BytesMut::from(&bytes[..length]);
            let handled = self.endpoint.handle(now, from, None, None, datagram, &mut reply);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = handled {
                self.connection.handle_event(event);
            }
        }
        // A timer may be due too.
        self.connection.handle_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_over_quic_is_one_message() {
        let mut response = Vec::new();
        dns::frame(&question::answer(), &mut response);
        assert_eq!(Framing::Doq.message(&response), Ok(question::answer()));
        assert!(Framing::Doq.message(&response[..response.len() - 1]).is_err());
        response.push(0);
        assert!(Framing::Doq.message(&response).is_err());
    }

    #[test]
    fn a_response_over_http3_has_the_status_200_and_a_body() {
        let response = |fields: &[u8]| {
            let mut out = Vec::new();
            put_frame(&mut out, HEADERS, fields);
            // A frame of an unknown type, with a long length.
            put_frame(&mut out, 0x21, &[0; 100]);
            put_frame(&mut out, DATA, &question::answer());
            out
        };
        assert_eq!(Framing::Http3.message(&response(&STATUS_200)), Ok(question::answer()));
        // `:status: 404` is entry 27.
        assert!(Framing::Http3.message(&response(&[0, 0, 0xc0 | 27])).is_err());
        assert!(Framing::Http3.message(&response(&STATUS_200)[..9]).is_err());
        assert!(Framing::Http3.message(&[]).is_err());
    }

    #[test]
    fn reads_numbers_of_all_lengths() {
        // The examples of RFC 9000 appendix A.1.
        let long = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(split_varint(&long), Some((151_288_809_941_952_652, &[][..])));
        assert_eq!(split_varint(&[0x9d, 0x7f, 0x3e, 0x7d]), Some((494_878_333, &[][..])));
        assert_eq!(split_varint(&[0x7b, 0xbd, 1]), Some((15_293, &[1][..])));
        assert_eq!(split_varint(&[0x25]), Some((37, &[][..])));
        assert_eq!(split_varint(&[0x7b]), None);
    }
}
