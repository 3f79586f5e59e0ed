//! HTTP requests of plugins, over TCP and TLS.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

use std::sync::Arc;
use std::time::Duration;

use engine::streams::{Listen, StreamAddress};
use engine::tls::{ClientCertificates, ClientTls, Identity, ServerTls, TlsClient, TlsMaker, TlsServer};
use engine::{Fetch, Io};
use metrics::Registry;
use net::TokioIo;
use tokio::task::LocalSet;
use transport::tls::Rustls;

/// Time limit for each test.
const PATIENCE: Duration = Duration::from_secs(60);

fn on_tokio(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let in_time = async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") };
    LocalSet::new().block_on(&runtime, in_time);
}

/// Creates a TLS server with a certificate for `collector.test`, and a client that trusts it.
fn tls() -> (Arc<dyn TlsServer>, TlsClient) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["collector.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    let identity = Identity { certificates: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() };
    let wanted = ClientTls {
        server_name: Some("collector.test".to_owned()),
        authorities: Some(identity.certificates.clone()),
        ..ClientTls::default()
    };
    let clients = ClientCertificates::Unasked;
    let server = ServerTls { identity, clients, authorities: None, sessions: None, key_log: None };
    (Rustls.server(&server).unwrap(), Rustls.client(&wanted).unwrap())
}

#[test]
fn posts_to_http_servers() {
    on_tokio(async {
        let io = TokioIo::new(&Registry::new());
        let (server, client) = tls();
        for (tls, client) in [(None, None), (Some(&server), Some(&client))] {
            let address = testkit::ports::free_address().to_string();
            let listener =
                io.listen(Listen { at: &StreamAddress::Tcp(address.clone()), tls, send_buffer: None }).unwrap();
            let post = Some(("text/plain", &b"what is sent"[..]));
            let until = io.now() + PATIENCE;
            let fetch = Fetch { address: &address, tls: client, path: "/a?b", post, until };
            let serve = async {
                let mut stream = listener.accept().await.unwrap();
                let mut said = Vec::new();
                while !said.ends_with(b"what is sent") {
                    let mut buffer = [0; 1000];
                    let length = stream.read(&mut buffer).await.unwrap();
                    said.extend_from_slice(&buffer[..length]);
                }
                stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                String::from_utf8(said).unwrap()
            };
            let (status, said) = tokio::join!(io.fetch(fetch), serve);
            assert_eq!(status, Ok(202));
            let lines: Vec<&str> = said.lines().collect();
            assert_eq!(lines[0], "POST /a?b HTTP/1.1");
            assert!(lines.contains(&"content-type: text/plain") && lines.contains(&"content-length: 12"), "{said}");
        }
    });
}
