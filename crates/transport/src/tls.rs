//! TLS 1.2 and 1.3 with rustls and aws-lc.

use std::any::Any;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use host::tls::{
    ClientCertificates, ClientTls, Identity, ServerTls, SessionKeys, TlsClient, TlsError, TlsMaker, TlsMaterial,
    TlsServer, Validity,
};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::key_log::KeyLogFile;
use crate::server_stream::{Acceptor, ServerStream};
use crate::tickets::TicketKeys;
use crate::validity::validity;
use crate::verifier::{AnyCertificate, AnyClient, GivenCertificates};

/// TLS factory for directives.
pub struct Rustls;

impl TlsMaker for Rustls {
    fn client(&self, wanted: &ClientTls) -> Result<TlsClient, TlsError> {
        Client::new(wanted).map(|client| TlsClient(Arc::new(client)))
    }

    fn server(&self, wanted: &ServerTls) -> Result<Arc<dyn TlsServer>, TlsError> {
        Ok(Arc::new(Server { configs: ArcSwap::from_pointee(Configs::new(wanted)?) }))
    }

    fn certifies(&self, pem: &[u8], address: IpAddr) -> Result<bool, TlsError> {
        let certificates = certificates(pem)?;
        let Some(first) = certificates.first() else { return Err(TlsError::NoCertificate) };
        let parsed = ParsedCertificate::try_from(first).map_err(|error| TlsError::Certificate(error.into()))?;
        Ok(verify_server_name(&parsed, &ServerName::from(address)).is_ok())
    }

    fn validity(&self, pem: &[u8]) -> Result<Validity, TlsError> {
        let certificates = certificates(pem)?;
        let Some(first) = certificates.first() else { return Err(TlsError::NoCertificate) };
        validity(first).ok_or_else(|| TlsError::Certificate("it is not X.509".into()))
    }

    fn material(&self, wanted: &ServerTls) -> Result<TlsMaterial, TlsError> {
        let bytes = |pem: &Vec<u8>| Ok(certificates(pem)?.into_iter().map(|certificate| certificate.to_vec()));
        let authorities = wanted.authorities.as_ref().map(bytes).transpose()?;
        Ok(TlsMaterial {
            certificates: bytes(&wanted.identity.certificates)?.collect(),
            authorities: authorities.map(Iterator::collect),
        })
    }

    fn session_keys(&self) -> SessionKeys {
        SessionKeys(TicketKeys::new())
    }
}

/// Client configurations for one upstream.
pub struct Client {
    plain: TlsConnector,
    http2: TlsConnector,
    https: TlsConnector,
    /// Configurations for protocols over QUIC, by ALPN identifier.
    quic: [(&'static [u8], Arc<ClientConfig>); 2],
    name: Option<ServerName<'static>>,
}

impl Client {
    /// Creates the configurations.
    ///
    /// # Errors
    /// The server name, a certificate or a key cannot be used.
    pub fn new(wanted: &ClientTls) -> Result<Client, TlsError> {
        let name = wanted.server_name.clone().map(ServerName::try_from).transpose();
        let name = name.map_err(|error| TlsError::ServerName(error.into()))?;
        let plain = client_config(wanted)?;
        let with_alpn = |protocols: &[&[u8]]| {
            let mut config = plain.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Arc::new(config)
        };
        let (http2, https) = (with_alpn(&[HTTP2]), with_alpn(&[HTTP2, HTTP1]));
        let quic = OVER_QUIC.map(|alpn| (alpn, with_alpn(&[alpn])));
        let [plain, http2, https] = [Arc::new(plain), http2, https].map(TlsConnector::from);
        Ok(Client { plain, http2, https, quic, name })
    }

    /// Downcasts the configuration that a directive got from [`Rustls`].
    ///
    /// # Errors
    /// Fails if another implementation made the configuration.
    pub fn of(client: &TlsClient) -> io::Result<Arc<Client>> {
        Arc::clone(&client.0).downcast().map_err(|_| io::Error::other("unknown TLS implementation"))
    }

    /// Performs the handshake with an upstream.
    ///
    /// # Errors
    /// Fails if the handshake fails.
    pub async fn connect(&self, stream: TcpStream, address: IpAddr) -> io::Result<TlsStream<TcpStream>> {
        self.plain.connect(self.name_of(address), stream).await
    }

    /// Performs the handshake with an upstream over HTTP/2.
    ///
    /// # Errors
    /// Fails if the handshake fails.
    pub async fn connect_http2<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        address: IpAddr,
    ) -> io::Result<TlsStream<S>> {
        self.http2.connect(self.name_of(address), stream).await
    }

    /// Performs the handshake with an upstream over HTTPS. Returns true if the upstream has chosen HTTP/2, and false
    /// for HTTP/1.1.
    ///
    /// # Errors
    /// Fails if the handshake fails.
    pub async fn connect_https(&self, stream: TcpStream, address: IpAddr) -> io::Result<(TlsStream<TcpStream>, bool)> {
        let stream = self.https.connect(self.name_of(address), stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        Ok((stream, is_http2))
    }

    /// Returns the configuration for an upstream over QUIC, and the name or address that its certificate must have.
    /// `None` if the ALPN identifier is of another protocol.
    #[must_use]
    pub fn quic(&self, address: IpAddr, alpn: &[u8]) -> Option<(Arc<ClientConfig>, String)> {
        let (_, config) = self.quic.iter().find(|(known, _)| *known == alpn)?;
        Some((Arc::clone(config), self.name_of(address).to_str().into_owned()))
    }

    /// Returns the host and port in URLs of an upstream: the name in its certificate, or else its address.
    #[must_use]
    pub fn authority(&self, to: SocketAddr) -> String {
        match (self.name_of(to.ip()), to.port()) {
            (ServerName::DnsName(name), HTTPS_PORT) => name.as_ref().to_owned(),
            (ServerName::DnsName(name), port) => format!("{}:{port}", name.as_ref()),
            (ServerName::IpAddress(ip), port) => {
                let address = SocketAddr::new(ip.into(), port).to_string();
                address.strip_suffix(":443").map_or_else(|| address.clone(), str::to_owned)
            }
            (_, _) => to.to_string(),
        }
    }

    fn name_of(&self, address: IpAddr) -> ServerName<'static> {
        self.name.clone().unwrap_or_else(|| ServerName::from(address.to_canonical()))
    }
}

/// Server configurations of one listener.
struct Server {
    configs: ArcSwap<Configs>,
}

/// Configurations with the same certificates but different ALPN protocols (RFC 7301).
struct Configs {
    plain: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    https: Arc<ServerConfig>,
    /// Configurations for protocols over QUIC, by ALPN identifier.
    quic: Vec<(&'static [u8], Arc<ServerConfig>)>,
    /// Private key of the certificate, as its file contains it.
    key: Arc<[u8]>,
}

impl Configs {
    fn new(wanted: &ServerTls) -> Result<Configs, TlsError> {
        let plain = server_config(wanted)?;
        let with_alpn = |protocols: &[&[u8]]| {
            let mut config = plain.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Arc::new(config)
        };
        let (http2, https) = (with_alpn(&[HTTP2]), with_alpn(&[HTTP2, HTTP1]));
        let quic = OVER_QUIC.into_iter().map(|alpn| (alpn, with_alpn(&[alpn]))).collect();
        let key = wanted.identity.key.as_slice().into();
        Ok(Configs { plain: Arc::new(plain), http2, https, quic, key })
    }
}

/// ALPN identifiers of DNS over QUIC (RFC 9250) and HTTP/3 (RFC 9114).
const OVER_QUIC: [&[u8]; 2] = [DOQ, b"h3"];
/// ALPN identifier of DNS over QUIC.
const DOQ: &[u8] = b"doq";
/// ALPN identifier of HTTP/2.
pub const HTTP2: &[u8] = b"h2";
/// ALPN identifier of HTTP/1.1.
const HTTP1: &[u8] = b"http/1.1";
/// Port that URLs with the scheme `https` omit.
const HTTPS_PORT: u16 = 443;

/// Protocol inside TLS, which decides about the offered ALPN identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProtocol {
    /// DNS over TLS and protocols that do not use ALPN. Identifiers from the client are ignored.
    Plain,
    /// HTTP/2 only, for gRPC.
    Http2,
    /// HTTP/2 and HTTP/1.1.
    Https,
}

impl TlsServer for Server {
    fn renew(&self, wanted: &ServerTls) -> Result<(), TlsError> {
        self.configs.store(Arc::new(Configs::new(wanted)?));
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns an acceptor with the current certificates of a listener. Returns `None` if another implementation than
/// [`Rustls`] made the listener's configuration.
#[must_use]
pub fn acceptor(server: &dyn TlsServer, protocol: StreamProtocol) -> Option<Acceptor> {
    let server: &Server = server.as_any().downcast_ref()?;
    let configs = server.configs.load();
    let config = match protocol {
        StreamProtocol::Plain => &configs.plain,
        StreamProtocol::Http2 => &configs.http2,
        StreamProtocol::Https => &configs.https,
    };
    Some(Acceptor::new(Arc::clone(config)))
}

/// Returns the configuration with the current certificates of a listener for a protocol over QUIC. Returns `None` for
/// other protocols, or if another implementation than [`Rustls`] made the listener's configuration.
#[must_use]
pub fn quic_config(server: &dyn TlsServer, alpn: &[u8]) -> Option<Arc<ServerConfig>> {
    let server: &Server = server.as_any().downcast_ref()?;
    let configs = server.configs.load();
    configs.quic.iter().find(|(known, _)| *known == alpn).map(|(_, config)| Arc::clone(config))
}

/// Returns the current private key of a listener, from which other secrets are derived. Returns `None` if another
/// implementation than [`Rustls`] made the listener's configuration.
#[must_use]
pub fn private_key(server: &dyn TlsServer) -> Option<Arc<[u8]>> {
    let server: &Server = server.as_any().downcast_ref()?;
    Some(Arc::clone(&server.configs.load().key))
}

/// Performs the handshake with a client that does not use DNS.
///
/// # Errors
/// Fails if the handshake fails.
pub async fn accept_tls(server: &dyn TlsServer, stream: TcpStream) -> io::Result<ServerStream<TcpStream>> {
    let acceptor =
        acceptor(server, StreamProtocol::Plain).ok_or_else(|| io::Error::other("unknown TLS implementation"))?;
    acceptor.accept(stream).await
}

/// Error of rustls that its own text describes best.
fn config_error(error: impl Error + Send + Sync + 'static) -> TlsError {
    TlsError::Config(Box::new(error))
}

/// Error of a certificate with its key.
fn pair_error(error: rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::KeyMismatch,
        error => config_error(error),
    }
}

fn key_log_error(error: &io::Error) -> TlsError {
    TlsError::KeyLog(host::errors::describe(error).to_string().into())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Builds a TLS client configuration, also for protocols other than DNS.
///
/// # Errors
/// Fails if a certificate or key cannot be used.
pub fn client_config(wanted: &ClientTls) -> Result<ClientConfig, TlsError> {
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(config_error)?;
    let config = if wanted.unverified {
        config.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider())))
    } else {
        match &wanted.authorities {
            Some(given) => config.dangerous().with_custom_certificate_verifier(server_verifier(certificates(given)?)?),
            None => config.with_webpki_verifier(webpki_verifier(system_roots()?)?),
        }
    };
    let Some(identity) = &wanted.identity else { return Ok(config.with_no_client_auth()) };
    let (certificates, key) = read(identity)?;
    config.with_client_auth_cert(certificates, key).map_err(pair_error)
}

/// Builds a verifier for servers whose certificates are signed by one of `authorities`, or are one of them.
///
/// # Errors
/// Fails if a certificate cannot be used.
pub fn server_verifier(authorities: Vec<CertificateDer<'static>>) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let verifier = webpki_verifier(roots(authorities.clone())?)?;
    Ok(Arc::new(GivenCertificates::new(verifier, authorities)))
}

fn webpki_verifier(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    verifier.map_err(config_error)
}

fn server_config(wanted: &ServerTls) -> Result<ServerConfig, TlsError> {
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(config_error)?;
    let config = match wanted.clients {
        ClientCertificates::Unasked => config.with_no_client_auth(),
        asked @ (ClientCertificates::Requested | ClientCertificates::Any) => {
            let verifier = AnyClient::new(provider(), asked == ClientCertificates::Any);
            config.with_client_cert_verifier(Arc::new(verifier))
        }
        asked @ (ClientCertificates::Verified | ClientCertificates::Required) => {
            let roots = match &wanted.authorities {
                Some(given) => roots(certificates(given)?)?,
                None => system_roots()?,
            };
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier =
                if asked == ClientCertificates::Verified { verifier.allow_unauthenticated() } else { verifier };
            config.with_client_cert_verifier(verifier.build().map_err(config_error)?)
        }
    };
    let (certificates, key) = read(&wanted.identity)?;
    let mut config = config.with_single_cert(certificates, key).map_err(pair_error)?;
    // Stateless tickets: sessions need no memory in the server. Workers share only the keys.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    let sessions = wanted.sessions.as_ref().and_then(|SessionKeys(keys)| Arc::clone(keys).downcast().ok());
    config.ticketer = sessions.unwrap_or_else(TicketKeys::new);
    // Early data can be replayed, and no standard allows it for DNS over TLS (RFC 8446 §8, appendix E.5).
    config.max_early_data_size = 0;
    if let Some(path) = &wanted.key_log {
        config.key_log = Arc::new(KeyLogFile::open(path).map_err(|error| key_log_error(&error))?);
    }
    Ok(config)
}

fn read(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certificates = certificates(&identity.certificates)?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key).map_err(|error| TlsError::PrivateKey(error.into()))?;
    Ok((certificates, key))
}

/// Parses the certificates of a PEM file.
///
/// # Errors
/// Fails if a certificate is invalid, or if the file contains no certificate.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| TlsError::Certificate(error.into()))?;
    if certificates.is_empty() { Err(TlsError::NoCertificate) } else { Ok(certificates) }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        roots.add(certificate).map_err(|error| TlsError::Authority(error.into()))?;
    }
    Ok(roots)
}

/// Returns the certificate authorities that the system trusts.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(TlsError::NoSystemAuthorities);
    }
    Ok(roots)
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
