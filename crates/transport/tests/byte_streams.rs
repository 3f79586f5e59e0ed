//! Byte streams from end to end: over Unix sockets, TCP and TLS.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use host::Clock;
use host::streams::{ByteListener, ByteStream, Dial, Listen, StreamAddress};
use host::tls::{ClientCertificates, ClientTls, Identity, ServerTls, TlsClient, TlsMaker, TlsServer};
use tokio::task::LocalSet;
use transport::MonotonicClock;
use transport::byte_streams::{connect, listen};
use transport::tls::Rustls;

/// Time limit for each test.
const PATIENCE: Duration = Duration::from_secs(60);

fn on_tokio(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let in_time = async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") };
    LocalSet::new().block_on(&runtime, in_time);
}

/// Opens a stream, sends one message in each direction and closes it.
async fn meet(listener: &dyn ByteListener, to: &StreamAddress, tls: Option<&TlsClient>) -> io::Result<()> {
    let dial = Dial { to, tls, send_buffer: Some(1 << 20), until: MonotonicClock.now() + PATIENCE };
    let (come, gone) = tokio::join!(listener.accept(), connect(dial));
    let (mut come, mut gone): (Box<dyn ByteStream>, _) = (come?, gone?);
    let (said, heard) = tokio::join!(
        async {
            gone.write_all(b"to you").await?;
            let mut buffer = [0; 10];
            let length = gone.read(&mut buffer).await?;
            io::Result::Ok(buffer[..length].to_vec())
        },
        async {
            let mut buffer = [0; 10];
            let length = come.read(&mut buffer).await?;
            come.write_all(b"to me").await?;
            io::Result::Ok(buffer[..length].to_vec())
        }
    );
    assert_eq!((said?, heard?), (b"to me".to_vec(), b"to you".to_vec()));
    drop(gone);
    assert_eq!(come.read(&mut [0; 10]).await.unwrap_or(0), 0);
    Ok(())
}

#[test]
fn exchanges_bytes_over_a_unix_socket() {
    on_tokio(async {
        let path = std::env::temp_dir().join(format!("portolan-bytes-{}.sock", std::process::id()));
        let place = StreamAddress::Unix(path.clone());
        let on_path = Listen { at: &place, tls: None, send_buffer: None };
        // A stale socket file, as left by a killed process.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listener = listen(on_path).unwrap();
        meet(&*listener, &place, None).await.unwrap();
        assert!(listen(on_path).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse));
        drop(listener);
        assert!(!path.exists());
        let dial = Dial { to: &place, tls: None, send_buffer: None, until: MonotonicClock.now() + PATIENCE };
        assert!(connect(dial).await.is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    });
}

/// Creates a TLS server with a certificate for this name, a client that trusts it, and a client that trusts any.
fn tls(name: &str) -> (Arc<dyn TlsServer>, TlsClient, TlsClient) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let identity = Identity { certificates: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() };
    let wanted = ClientTls {
        server_name: Some("collector.test".to_owned()),
        authorities: Some(identity.certificates.clone()),
        ..ClientTls::default()
    };
    let clients = ClientCertificates::Unasked;
    let server = ServerTls { identity, clients, authorities: None, sessions: None, key_log: None };
    let lax = ClientTls { unverified: true, ..ClientTls::default() };
    (Rustls.server(&server).unwrap(), Rustls.client(&wanted).unwrap(), Rustls.client(&lax).unwrap())
}

#[test]
fn exchanges_bytes_over_tcp_and_tls() {
    on_tokio(async {
        for name in ["collector.test", "another.test"] {
            let (server, strict, lax) = tls(name);
            for (tls, client, comes_through) in [
                (None, None, true),
                (Some(&server), Some(&strict), name == "collector.test"),
                (Some(&server), Some(&lax), true),
            ] {
                let place = StreamAddress::Tcp(testkit::ports::free_address().to_string());
                let listener = listen(Listen { at: &place, tls, send_buffer: None }).unwrap();
                assert_eq!(meet(&*listener, &place, client).await.is_ok(), comes_through, "{name}");
            }
        }
    });
}
