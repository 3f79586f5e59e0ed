//! One message over each encrypted transport, for tests that compare the transports.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConnection, StreamOwned};

use super::http::{Http, HttpClient, call, post, server_name, tls_client};
use super::quic::QuicClient;
use super::{Answer, PATIENCE, exchange_framed};

/// Sends a message over DNS over TLS, with these bytes before the handshake, such as the header of a proxy.
pub(crate) fn over_tls(prefix: &[u8], server: SocketAddr, ca: &Path, message: &[u8]) -> Answer {
    let mut tcp = TcpStream::connect(server).expect("a connection");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tcp.write_all(prefix).expect("a header leaves");
    let tls = ClientConnection::new(Arc::new(tls_client(ca, &["dot"])), server_name()).expect("TLS");
    exchange_framed(&mut StreamOwned::new(tls, tcp), message)
}

/// Sends a message over DNS over HTTPS with HTTP/2.
pub(crate) fn over_https(prefix: &[u8], server: SocketAddr, ca: &Path, message: &[u8]) -> Answer {
    let mut client = HttpClient::connect_behind(prefix, server, Http::Two, ca);
    Answer(client.send(post(message.to_vec())).expect("a response").into_body().to_vec())
}

/// Sends a message in a call of gRPC.
pub(crate) fn over_grpc(prefix: &[u8], server: SocketAddr, ca: &Path, message: &[u8]) -> Answer {
    let mut client = HttpClient::connect_behind(prefix, server, Http::Two, ca);
    let body = client.send(call(message)).expect("a response").into_body();
    // The frame has five bytes before the message `DnsPacket`, whose field 1 has a length below 128 here.
    assert!(body.len() > 7 && body[5] == 0x0a && usize::from(body[6]) == body.len() - 7, "{body:?}");
    Answer(body[7..].to_vec())
}

/// Sends a message with ID 0 over DNS over QUIC.
pub(crate) fn over_quic(server: SocketAddr, ca: &Path, message: &[u8]) -> Answer {
    let mut client = QuicClient::connect(server, b"doq", ca);
    let messages = client.ask(message).unwrap_or_else(|| panic!("an answer: {:?}", client.lost));
    Answer(messages.concat())
}

/// Sends a message of less than 64 bytes over HTTP/3.
pub(crate) fn over_http3(server: SocketAddr, ca: &Path, message: &[u8]) -> Answer {
    let mut client = QuicClient::connect(server, b"h3", ca);
    // HEADERS: POST (index 20), https (23), the authority and the path as literals. DATA: the message.
    let section = [&[0, 0, 0xd4, 0xd7, 0x50, 3][..], b"dns\x51\x0a/dns-query"].concat();
    let lengths = [section.len(), message.len()].map(|length| u8::try_from(length).expect("a short part"));
    let request = [&[1, lengths[0]][..], &section, &[0, lengths[1]], message].concat();
    let stream = client.send(&request);
    let response = client.read(stream).expect("a response");
    Answer(response[usize::from(response[1]) + 4..].to_vec())
}
