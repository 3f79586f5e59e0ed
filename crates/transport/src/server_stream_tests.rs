use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;
use std::task::Waker;

use rustls::ClientConnection;
use rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::verifier::{AnyCertificate, AnyClient};

/// Both directions of a connection, without a network.
#[derive(Default)]
struct Pipe {
    to_server: VecDeque<u8>,
    from_server: Vec<u8>,
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length = self.to_server.len().min(buffer.remaining());
        self.to_server.drain(..length).for_each(|byte| buffer.put_slice(&[byte]));
        if length > 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.from_server.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Configurations of a server and a client that both have a certificate.
fn configs() -> (Arc<ServerConfig>, Arc<rustls::ClientConfig>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["test".to_owned()]).unwrap().self_signed(&key).unwrap();
    let identity = || {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (vec![certificate.der().clone(); 20], key)
    };
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let server = server.unwrap().with_client_cert_verifier(Arc::new(AnyClient::new(Arc::clone(&provider), true)));
    let (certificates, private) = identity();
    let server = server.with_single_cert(certificates, private).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_safe_default_protocol_versions().unwrap().dangerous();
    let client = client.with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)));
    let (certificates, private) = identity();
    (Arc::new(server), Arc::new(client.with_client_auth_cert(certificates, private).unwrap()))
}

/// Connection of a client to a server. The client sends `x` a thousand times, and the server sends back what it reads.
struct Exchange {
    client: ClientConnection,
    server: ServerStream<Pipe>,
    echoed: usize,
}

impl Exchange {
    fn new((server, client): &(Arc<ServerConfig>, Arc<rustls::ClientConfig>)) -> Exchange {
        let mut client = ClientConnection::new(Arc::clone(client), "test".try_into().unwrap()).unwrap();
        client.writer().write_all(&[b'x'; 1000]).unwrap();
        let server = ServerStream::new(Arc::clone(server), Pipe::default()).unwrap();
        Exchange { client, server, echoed: 0 }
    }

    /// Returns what the client sends next.
    fn flight(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Passes bytes to the server in pieces, and its answers to the client. Returns an error if either side fails.
    fn deliver(&mut self, bytes: &[u8], piece: usize) -> io::Result<()> {
        let mut outcome = Ok(());
        for piece in bytes.chunks(piece) {
            self.server.io.to_server.extend(piece);
            outcome = outcome.and(self.run());
        }
        let answer = std::mem::take(&mut self.server.io.from_server);
        let mut rest = answer.as_slice();
        while !rest.is_empty() {
            self.client.read_tls(&mut rest)?;
            self.client.process_new_packets().map_err(io::Error::other)?;
        }
        let mut echoed = Vec::new();
        let _ = self.client.reader().read_to_end(&mut echoed);
        self.echoed += echoed.len();
        outcome
    }

    /// Runs the server until it waits.
    fn run(&mut self) -> io::Result<()> {
        let mut context = Context::from_waker(Waker::noop());
        if self.server.stage == Stage::Handshake
            && let Poll::Ready(outcome) = self.server.poll_handshake(&mut context)
        {
            outcome?;
        }
        let mut space = [0; 300];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            let server = Pin::new(&mut self.server);
            match server.poll_read(&mut context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let half = buffer.filled().len() / 2;
                    let slices = [&buffer.filled()[..half], &buffer.filled()[half..]].map(io::IoSlice::new);
                    let written = Pin::new(&mut self.server).poll_write_vectored(&mut context, &slices);
                    if self.server.stage == Stage::Failed {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    assert!(matches!(written, Poll::Ready(Ok(length)) if length == buffer.filled().len()));
                }
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Ends both directions, which must be possible at any time.
    fn end(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(Pin::new(&mut self.server).poll_shutdown(&mut context), Poll::Ready(Ok(()))));
        let _ = Pin::new(&mut self.server).poll_read(&mut context, &mut ReadBuf::new(&mut [0]));
    }
}

#[test]
fn echoes_bytes_that_arrive_in_pieces_of_any_size() {
    let configs = configs();
    for piece in [1, 2, 7, 100, 5000, 100_000] {
        let mut exchange = Exchange::new(&configs);
        for _ in 0..4 {
            let flight = exchange.flight();
            exchange.deliver(&flight, piece).unwrap();
        }
        assert_eq!(exchange.echoed, 1000, "pieces of {piece} bytes");
        let held = [&exchange.server.incoming, &exchange.server.plain, &exchange.server.outgoing].map(Vec::capacity);
        assert!(held.iter().all(|capacity| *capacity <= KEPT), "an idle stream keeps {held:?} bytes");
        exchange.client.send_close_notify();
        let flight = exchange.flight();
        exchange.deliver(&flight, piece).unwrap();
        assert_eq!(exchange.server.stage, Stage::Ended);
        exchange.end();
    }
}

/// Changes, removes and repeats bytes of a client at any place. The server may refuse them, but must not panic.
#[test]
fn survives_any_change_of_what_a_client_sends() {
    let configs = configs();
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    let mut failed = 0;
    for _ in 0..400 {
        let mut exchange = Exchange::new(&configs);
        let changed = random(3);
        let mut outcome = Ok(());
        for number in 0..4 {
            let mut flight = exchange.flight();
            if number == changed && !flight.is_empty() {
                let among = [10, 300, 20_000][random(3)];
                let at = random(flight.len().min(among));
                match random(3) {
                    0 => flight[at] ^= 1 << random(8),
                    1 => drop(flight.drain(at..(at + random(50)).min(flight.len()))),
                    _ => flight.extend_from_within(at..),
                }
            }
            let piece = [1, 50, 1000, 100_000][random(4)];
            outcome = outcome.and(exchange.deliver(&flight, piece));
        }
        failed += usize::from(outcome.is_err());
        exchange.end();
    }
    assert!(failed > 100, "{failed}");
}
