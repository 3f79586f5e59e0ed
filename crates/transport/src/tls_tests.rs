use std::sync::Arc;

use host::tls::{ClientCertificates, ClientTls, Identity, ServerTls, TlsError, TlsMaker, TlsServer};
use tokio::net::{TcpListener, TcpStream};

use super::{Client, Rustls, StreamProtocol, acceptor};

/// Creates a self-signed certificate.
fn identity() -> Identity {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificates = params.self_signed(&key).unwrap().pem().into_bytes();
    Identity { certificates, key: key.serialize_pem().into_bytes() }
}

fn server_of(identity: &Identity, trusted: Option<&Identity>) -> ServerTls {
    ServerTls {
        identity: identity.clone(),
        clients: if trusted.is_some() { ClientCertificates::Required } else { ClientCertificates::Unasked },
        authorities: trusted.map(|trusted| trusted.certificates.clone()),
        sessions: None,
        key_log: None,
    }
}

/// Returns true if a client that trusts `authority` and presents `own` completes the handshake and reads a byte.
async fn greets(server: &Arc<dyn TlsServer>, authority: &Identity, own: Option<&Identity>) -> bool {
    let authorities = Some(authority.certificates.clone());
    let wanted = ClientTls { authorities, identity: own.cloned(), ..ClientTls::default() };
    let client = Client::of(&Rustls.client(&wanted).unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor(&**server, StreamProtocol::Plain).unwrap();
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"x").await?;
        tokio::io::AsyncWriteExt::shutdown(&mut stream).await
    };
    let ask = async {
        let stream = TcpStream::connect(address).await?;
        let mut stream = client.connect(stream, address.ip()).await?;
        tokio::io::AsyncReadExt::read_u8(&mut stream).await
    };
    let (served, asked) = tokio::join!(serve, ask);
    served.is_ok() && asked.is_ok()
}

#[tokio::test]
async fn renewed_certificates_replace_the_old_ones() {
    let (old, new) = (identity(), identity());
    let server = Rustls.server(&server_of(&old, None)).unwrap();
    assert!(greets(&server, &old, None).await);
    assert!(!greets(&server, &new, None).await);
    let broken = Identity { key: b"nothing".to_vec(), ..new.clone() };
    assert!(server.renew(&server_of(&broken, None)).is_err());
    let mixed = Identity { key: old.key.clone(), ..new.clone() };
    assert!(matches!(server.renew(&server_of(&mixed, None)), Err(TlsError::KeyMismatch)));
    let client = ClientTls { identity: Some(mixed), ..ClientTls::default() };
    assert!(matches!(Rustls.client(&ClientTls { unverified: true, ..client }), Err(TlsError::KeyMismatch)));
    assert!(greets(&server, &old, None).await);
    server.renew(&server_of(&new, None)).unwrap();
    assert!(greets(&server, &new, None).await);
    assert!(!greets(&server, &old, None).await);
}

#[tokio::test]
async fn rejects_clients_without_a_trusted_certificate() {
    let (own, client, stranger) = (identity(), identity(), identity());
    let server = Rustls.server(&server_of(&own, Some(&client))).unwrap();
    assert!(greets(&server, &own, Some(&client)).await);
    assert!(!greets(&server, &own, Some(&stranger)).await);
    assert!(!greets(&server, &own, None).await);
}

#[tokio::test]
async fn unverified_client_certificates_are_optional_or_required() {
    let (own, stranger) = (identity(), identity());
    for (clients, without_certificate) in [(ClientCertificates::Requested, true), (ClientCertificates::Any, false)] {
        let server = Rustls.server(&ServerTls { clients, ..server_of(&own, None) }).unwrap();
        assert!(greets(&server, &own, Some(&stranger)).await, "{clients:?}");
        assert_eq!(greets(&server, &own, None).await, without_certificate, "{clients:?}");
    }
}

#[test]
fn a_certificate_is_valid_for_the_addresses_in_it() {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = ["dns.example.org", "192.0.2.53", "2001:db8::53"].map(str::to_owned);
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem().into_bytes();
    let certifies = |address: &str| Rustls.certifies(&certificate, address.parse().unwrap()).unwrap();
    assert!(certifies("192.0.2.53") && certifies("2001:db8::53"));
    assert!(!certifies("192.0.2.54") && !certifies("2001:db8::54"));
    assert!(Rustls.certifies(b"nothing", [192, 0, 2, 53].into()).is_err());
}
