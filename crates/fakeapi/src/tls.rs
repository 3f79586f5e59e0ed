//! Certificates generated for a test.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Name of HTTP/2 in the TLS handshake (RFC 9113 §3.1).
pub(crate) const H2: &[u8] = b"h2";

/// PEM files for a client.
#[derive(Clone, Debug)]
pub struct Pems {
    /// CA certificate that signed the server's certificate.
    pub authority: String,
    /// Client certificate that the server trusts.
    pub certificate: String,
    /// Private key of the client certificate.
    pub key: String,
}

/// A CA and the TLS acceptor with its server certificate.
pub(crate) struct Authority {
    pub(crate) pems: Pems,
    pub(crate) acceptor: TlsAcceptor,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        Authority::with(|_, _, issuer| {
            let (certificate, key) = signed("server", issuer);
            (certificate.der().clone(), key.serialize_der())
        })
    }

    /// Creates a CA whose certificate is also that of the server.
    pub(crate) fn self_signed() -> Authority {
        Authority::with(|certificate, key, _| (certificate.der().clone(), key))
    }

    /// Creates a CA. `server` returns the certificate and the key of the server from those of the CA.
    fn with(
        server: impl Fn(&rcgen::Certificate, Vec<u8>, &Issuer<'_, KeyPair>) -> (CertificateDer<'static>, Vec<u8>),
    ) -> Authority {
        let key = KeyPair::generate().unwrap();
        let key_der = key.serialize_der();
        let mut params = params();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "fake authority");
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let (client, client_key) = signed("client", &issuer);
        let pems = Pems { authority: certificate.pem(), certificate: client.pem(), key: client_key.serialize_pem() };
        let acceptor = acceptor(certificate.der().clone(), server(&certificate, key_der, &issuer));
        Authority { pems, acceptor }
    }
}

fn params() -> CertificateParams {
    CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap()
}

fn signed(name: &str, issuer: &Issuer<'_, KeyPair>) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = params();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.signed_by(&key, issuer).unwrap(), key)
}

/// Builds an acceptor for clients with or without a certificate. A certificate of another CA is rejected.
fn acceptor(authority: CertificateDer<'static>, server: (CertificateDer<'static>, Vec<u8>)) -> TlsAcceptor {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.allow_unauthenticated().build().unwrap();
    let (certificate, key) = server;
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.into()))
        .unwrap();
    // Without session tickets, clients verify the certificate for each connection.
    config.send_tls13_tickets = 0;
    config.alpn_protocols = [H2, b"http/1.1"].map(<[u8]>::to_vec).into();
    TlsAcceptor::from(Arc::new(config))
}
