//! TLS, as far as directives speak of it: what they read from files goes to whoever makes connections, and comes back as
//! something that only that one can use.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

/// What a client needs for TLS with an upstream: the contents of files, in PEM.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    /// The name that the upstream's certificate must have; without one it is its address.
    pub server_name: Option<String>,
    /// The authorities that are believed; without them those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The client's own certificates and key, if the upstream wants to know.
    pub identity: Option<Identity>,
    /// Any certificate will do: whoever is between the two can read all.
    pub unverified: bool,
}

/// Certificates, the own one first, and the key to it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificates.
    pub certificates: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

/// What a server needs for TLS with its clients.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// What it shows.
    pub identity: Identity,
    /// Whether clients show certificates.
    pub clients: ClientCertificates,
    /// The authorities that are believed about clients; without them those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// Whether the clients of a server show certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked to.
    Unasked,
    /// Those that do must show good ones.
    Verified,
    /// All must.
    Required,
}

/// Makes TLS; the process offers it as `Arc<dyn TlsMaker>`.
pub trait TlsMaker: Send + Sync {
    /// For an upstream.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    fn client(&self, wanted: &ClientTls) -> Result<TlsClient, String>;

    /// For a listener.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    fn server(&self, wanted: &ServerTls) -> Result<Arc<dyn TlsServer>, String>;
}

/// TLS with an upstream; whoever made it knows what is in it.
#[derive(Clone)]
pub struct TlsClient(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient")
    }
}

/// TLS of a listener.
pub trait TlsServer: Send + Sync + Any {
    /// Uses other certificates for connections from now on.
    ///
    /// # Errors
    /// What is wrong with them, in one line; those before are then used on.
    fn renew(&self, wanted: &ServerTls) -> Result<(), String>;

    /// Itself, for whoever made it.
    fn as_any(&self) -> &dyn Any;
}
