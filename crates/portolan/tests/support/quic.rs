//! Client for DNS over QUIC and HTTP/3 over a real socket, with quinn-proto.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError,
    StreamId, TransportConfig,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Time limit for each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connection to a server.
pub(crate) struct QuicClient {
    socket: UdpSocket,
    server: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    is_connected: bool,
    /// Bytes in front of each datagram, such as the header of a proxy.
    prefix: Vec<u8>,
    /// Reason why the connection ended.
    pub(crate) lost: Option<ConnectionError>,
}

impl QuicClient {
    /// Connects to a server whose certificate `ca` has signed.
    pub(crate) fn connect(server: SocketAddr, alpn: &[u8], ca: &Path) -> QuicClient {
        QuicClient::connect_behind(&[], server, alpn, ca)
    }

    /// Connects with these bytes in front of each datagram.
    pub(crate) fn connect_behind(prefix: &[u8], server: SocketAddr, alpn: &[u8], ca: &Path) -> QuicClient {
        QuicClient::start(server, Arc::new(tls_config(alpn, ca))).connected_behind(prefix)
    }

    /// Connects with a TLS configuration that other connections use too.
    pub(crate) fn connect_with(server: SocketAddr, tls: &Arc<rustls::ClientConfig>) -> QuicClient {
        QuicClient::start(server, Arc::clone(tls)).connected_behind(&[])
    }

    fn connected_behind(mut self, prefix: &[u8]) -> QuicClient {
        self.prefix = prefix.to_vec();
        assert!(self.run_until(|client| client.is_connected), "{:?}", self.lost);
        self
    }

    /// Begins to connect.
    fn start(server: SocketAddr, tls: Arc<rustls::ClientConfig>) -> QuicClient {
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("a cipher suite")));
        // The shorter timeout of both sides counts. Only that of the server is under test.
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None);
        config.transport_config(Arc::new(transport));
        let mut endpoint = Endpoint::new(Arc::default(), None, false, None);
        let name = "dns.example.org";
        let (handle, connection) = endpoint.connect(Instant::now(), config, server, name).expect("a connection");
        QuicClient {
            socket: socket(),
            server,
            endpoint,
            handle,
            connection,
            is_connected: false,
            prefix: Vec::new(),
            lost: None,
        }
    }

    /// Waits for the session tickets, which the server sends before its token. Returns true if the client could send
    /// early data.
    pub(crate) fn has_early_data(&mut self) -> bool {
        assert!(self.run_until(|client| client.connection.stats().frame_rx.new_token > 0), "{:?}", self.lost);
        self.connection.has_0rtt()
    }

    /// Continues with another port, as behind a NAT that has forgotten the old one.
    pub(crate) fn change_port(&mut self) {
        self.socket = socket();
    }

    /// Opens a stream as soon as the server allows one, writes to it and ends it.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> StreamId {
        let mut opened = None;
        self.run_until(|client| {
            opened = client.connection.streams().open(Dir::Bi);
            opened.is_some()
        });
        let id = opened.expect("the server gives credit for a stream");
        assert_eq!(self.connection.send_stream(id).write(bytes), Ok(bytes.len()));
        self.connection.send_stream(id).finish().expect("an open stream");
        self.flush();
        id
    }

    /// Opens all streams that the server allows, and writes one byte to each.
    pub(crate) fn occupy_all_streams(&mut self) -> usize {
        let mut opened = 0;
        // The server allows more streams to a client that uses many.
        let is_all = |client: &mut QuicClient| {
            while let Some(id) = client.connection.streams().open(Dir::Bi) {
                assert_eq!(client.connection.send_stream(id).write(&[0]), Ok(1));
                opened += 1;
            }
            opened >= 256
        };
        self.run_until(is_all);
        self.flush();
        opened
    }

    /// Sends a query over DNS over QUIC, and returns the messages of the answer.
    pub(crate) fn ask(&mut self, message: &[u8]) -> Option<Vec<Vec<u8>>> {
        let length = u16::try_from(message.len()).expect("a message");
        let stream = self.send(&[&length.to_be_bytes(), message].concat());
        let answer = self.read(stream)?;
        let mut rest = answer.as_slice();
        let mut messages = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let (message, after) = after.split_at(usize::from(u16::from_be_bytes(*length)));
            messages.push(message.to_vec());
            rest = after;
        }
        Some(messages)
    }

    /// Reads a stream to its end. Returns `None` if the server resets it or the connection ends.
    pub(crate) fn read(&mut self, id: StreamId) -> Option<Vec<u8>> {
        let (mut collected, mut outcome) = (Vec::new(), None);
        let ended = self.run_until(|client| {
            outcome = client.read_some(id, &mut collected);
            outcome.is_some() || client.lost.is_some()
        });
        assert!(ended, "the stream ends");
        outcome.filter(|is_complete| *is_complete).map(|_| collected)
    }

    /// Reads what has arrived. Returns true at the end of the stream, and false if it was reset.
    fn read_some(&mut self, id: StreamId, into: &mut Vec<u8>) -> Option<bool> {
        let mut stream = self.connection.recv_stream(id);
        let mut chunks = stream.read(true).ok()?;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => into.extend_from_slice(&chunk.bytes),
                Ok(None) => return Some(true),
                Err(ReadError::Blocked) => return None,
                Err(ReadError::Reset(_)) => return Some(false),
            }
        }
    }

    /// Returns the code with which the server closes the connection.
    pub(crate) fn wait_for_close(&mut self) -> u64 {
        assert!(self.run_until(|client| client.lost.is_some()), "the connection ends");
        match &self.lost {
            Some(ConnectionError::ApplicationClosed(close)) => close.error_code.into_inner(),
            other => panic!("not closed by the application: {other:?}"),
        }
    }

    /// Exchanges datagrams until the condition holds. Returns false if the connection ends before, or after a while.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut QuicClient) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            self.flush();
            while let Some(event) = self.connection.poll() {
                match event {
                    Event::Connected => self.is_connected = true,
                    Event::ConnectionLost { reason } => self.lost = Some(reason),
                    _ => {}
                }
            }
            if done(self) {
                return true;
            }
            if self.lost.is_some() {
                return false;
            }
            self.receive();
            self.connection.handle_timeout(Instant::now());
        }
        false
    }

    /// Sends what is ready.
    fn flush(&mut self) {
        let mut buffer = Vec::new();
        while self.connection.poll_transmit(Instant::now(), 1, &mut buffer).is_some() {
            // A lost datagram is sent again.
            let _ = self.socket.send_to(&[&self.prefix, buffer.as_slice()].concat(), self.server);
            buffer.clear();
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }

    /// Waits for a datagram until the next timeout.
    fn receive(&mut self) {
        let timeout = self.connection.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
        let wait = timeout.unwrap_or(PATIENCE).clamp(Duration::from_millis(1), Duration::from_millis(50));
        self.socket.set_read_timeout(Some(wait)).expect("a timeout");
        let mut bytes = [0; 2048];
        let Ok((length, from)) = self.socket.recv_from(&mut bytes) else { return };
        let (now, mut reply) = (Instant::now(), Vec::new());
        let datagram = BytesMut::from(&bytes[..length]);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) =
            self.endpoint.handle(now, from, None, None, datagram, &mut reply)
        {
            self.connection.handle_event(event);
        }
    }
}

/// Returns a TLS configuration that trusts `ca` and offers this protocol.
pub(crate) fn tls_config(alpn: &[u8], ca: &Path) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).expect("TLS 1.3");
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls
}

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a socket")
}
