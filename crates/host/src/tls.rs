//! TLS configurations: the part that directives know, without a TLS library.
//!
//! A directive reads certificates and keys from files and passes them to a [`TlsMaker`], which the process offers. It
//! gets back an opaque handle that only the network layer can use.

use core::any::Any;
use core::error::Error;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// TLS configuration for connections to an upstream. The file contents are in PEM format.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    /// Expected name in the certificate of the upstream; `None` expects its IP address.
    pub server_name: Option<String>,
    /// Trusted certificate authorities; `None` trusts those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Client certificate, for an upstream that requests one.
    pub identity: Option<Identity>,
    /// True to accept any certificate. Anyone on the path can then read and change the data.
    pub unverified: bool,
}

/// Certificate chain with the leaf first, and its private key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Certificates.
    pub certificates: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
}

/// TLS configuration of a listener.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// Server certificate.
    pub identity: Identity,
    /// Policy for client certificates.
    pub clients: ClientCertificates,
    /// Certificate authorities trusted for clients; `None` trusts those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Keys of session tickets; `None` for new ones. A ticket skips the verification of a client certificate, so
    /// listeners with different policies must not share them.
    pub sessions: Option<SessionKeys>,
    /// File to which the secrets of all sessions are appended.
    pub key_log: Option<PathBuf>,
}

/// Content of a listener's files, for a comparison. The same certificate in two files is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsMaterial {
    /// Certificate chain of the server, in DER.
    pub certificates: Vec<Vec<u8>>,
    /// Certificate authorities trusted for clients, in DER; `None` for those of the system.
    pub authorities: Option<BTreeSet<Vec<u8>>>,
}

impl TlsMaterial {
    /// Returns the difference to the material of another listener in the words of CoreDNS; `None` if both are equal.
    #[must_use]
    pub fn difference(&self, other: &TlsMaterial) -> Option<&'static str> {
        if self.authorities != other.authorities {
            Some("client CA pools differ")
        } else if self.certificates != other.certificates {
            Some("server certificates differ")
        } else {
            None
        }
    }
}

/// Opaque keys of TLS session tickets. Only the [`TlsMaker`] that made them knows their type.
#[derive(Clone)]
pub struct SessionKeys(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKeys")
    }
}

/// Policy for client certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientCertificates {
    /// Not requested.
    #[default]
    Unasked,
    /// Optional, and not verified.
    Requested,
    /// Required, but not verified: the client only proves that it has the private key.
    Any,
    /// Optional, but verified if present.
    Verified,
    /// Required and verified.
    Required,
}

/// Factory for TLS configurations. The process offers it as `Arc<dyn TlsMaker>`.
pub trait TlsMaker: Send + Sync {
    /// Builds the configuration for an upstream.
    ///
    /// # Errors
    /// `wanted` cannot be used.
    fn client(&self, wanted: &ClientTls) -> Result<TlsClient, TlsError>;

    /// Builds the configuration of a listener.
    ///
    /// # Errors
    /// `wanted` cannot be used.
    fn server(&self, wanted: &ServerTls) -> Result<Arc<dyn TlsServer>, TlsError>;

    /// Returns true if the first of these certificates, in PEM format, is valid for an IP address.
    ///
    /// # Errors
    /// The certificate cannot be parsed.
    fn certifies(&self, certificates: &[u8], address: IpAddr) -> Result<bool, TlsError>;

    /// Returns the validity of the first of these certificates, in PEM format. Clients refuse a connection outside of
    /// it.
    ///
    /// # Errors
    /// The certificate cannot be parsed.
    fn validity(&self, certificates: &[u8]) -> Result<Validity, TlsError>;

    /// Returns the content of the files of a listener.
    ///
    /// # Errors
    /// A certificate cannot be parsed.
    fn material(&self, wanted: &ServerTls) -> Result<TlsMaterial, TlsError>;

    /// Makes keys of session tickets.
    fn session_keys(&self) -> SessionKeys;
}

/// Period in which a certificate is valid (RFC 5280 §4.1.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First second.
    pub not_before: CertificateTime,
    /// Last second.
    pub not_after: CertificateTime,
}

/// Time in a certificate, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateTime {
    /// Wall-clock time since the Unix epoch.
    pub since_1970: Duration,
    /// Date such as `2026-11-24`.
    pub date: String,
}

impl Validity {
    /// Returns the reason why the certificate is not valid at this time after 1970; `None` if it is valid.
    #[must_use]
    pub fn problem(&self, since_1970: Duration) -> Option<ValidityProblem> {
        let is_early = since_1970 < self.not_before.since_1970;
        let is_late = since_1970 > self.not_after.since_1970;
        match (is_early, is_late) {
            (_, true) => Some(ValidityProblem::Expired(self.not_after.date.clone())),
            (true, false) => Some(ValidityProblem::NotYet(self.not_before.date.clone())),
            (false, false) => None,
        }
    }
}

/// Reason why a certificate is not valid now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidityProblem {
    /// Expired on this date.
    Expired(String),
    /// First valid on this date.
    NotYet(String),
}

impl fmt::Display for ValidityProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValidityProblem::Expired(date) => write!(f, "expired on {date}"),
            ValidityProblem::NotYet(date) => write!(f, "is not valid before {date}"),
        }
    }
}

/// Opaque TLS configuration for an upstream. Only the [`TlsMaker`] that built it knows its type.
#[derive(Clone)]
pub struct TlsClient(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient")
    }
}

/// TLS configuration of a listener.
pub trait TlsServer: Send + Sync + Any {
    /// Replaces the certificates for new connections.
    ///
    /// # Errors
    /// `wanted` cannot be used. The previous certificates then stay in use.
    fn renew(&self, wanted: &ServerTls) -> Result<(), TlsError>;

    /// Returns `self` for a downcast by its maker.
    fn as_any(&self) -> &dyn Any;
}

/// Reason why a TLS configuration cannot be used. The operator must change its files or options. A retry helps only
/// after that.
///
/// The TLS library's own errors are boxed, so that this crate needs no TLS library.
#[derive(Debug)]
pub enum TlsError {
    /// The server name is neither a host name nor an IP address.
    ServerName(LibraryError),
    /// A certificate is not valid PEM.
    Certificate(LibraryError),
    /// A file of certificates has none.
    NoCertificate,
    /// A private key is not valid PEM.
    PrivateKey(LibraryError),
    /// A certificate cannot be used as a certificate authority.
    Authority(LibraryError),
    /// The system trusts no certificate authority, and the configuration names none.
    NoSystemAuthorities,
    /// The file for the secrets of sessions cannot be opened.
    KeyLog(LibraryError),
    /// The private key does not belong to the certificate.
    KeyMismatch,
    /// The library rejects the combination.
    Config(LibraryError),
}

/// Error of a TLS library.
pub type LibraryError = Box<dyn Error + Send + Sync>;

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::ServerName(_) => f.write_str("the server name is neither a host name nor an IP address"),
            TlsError::Certificate(error) => write!(f, "invalid certificate: {error}"),
            TlsError::NoCertificate => f.write_str("the file contains no certificate"),
            TlsError::PrivateKey(error) => write!(f, "invalid private key: {error}"),
            TlsError::Authority(error) => write!(f, "cannot use a certificate authority: {error}"),
            TlsError::NoSystemAuthorities => {
                f.write_str("this system has no certificate authorities: configure a file with them")
            }
            TlsError::KeyLog(error) => write!(f, "cannot open the key log: {error}"),
            TlsError::KeyMismatch => f.write_str("the private key does not belong to the certificate"),
            TlsError::Config(error) => error.fmt(f),
        }
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TlsError::ServerName(error)
            | TlsError::Certificate(error)
            | TlsError::PrivateKey(error)
            | TlsError::Authority(error)
            | TlsError::KeyLog(error)
            | TlsError::Config(error) => Some(&**error),
            TlsError::NoCertificate | TlsError::NoSystemAuthorities | TlsError::KeyMismatch => None,
        }
    }
}
