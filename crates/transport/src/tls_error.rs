//! Reasons why a TLS configuration cannot be used.

use core::error::Error;
use core::fmt;

use rustls::pki_types::{InvalidDnsNameError, pem};
use rustls::server::VerifierBuilderError;

/// Reason why a TLS configuration cannot be used. The operator must change its files or options. A retry helps only
/// after that.
#[derive(Debug)]
pub enum TlsError {
    /// The server name is neither a host name nor an IP address.
    ServerName(InvalidDnsNameError),
    /// A certificate is not valid PEM.
    Certificate(pem::Error),
    /// A file of certificates has none.
    NoCertificate,
    /// A private key is not valid PEM.
    PrivateKey(pem::Error),
    /// A certificate cannot be used as a certificate authority.
    Authority(rustls::Error),
    /// The system trusts no certificate authority, and the configuration names none.
    NoSystemAuthorities,
    /// The certificate authorities cannot verify certificates.
    Verifier(VerifierBuilderError),
    /// rustls rejects the combination, for example a key that does not belong to its certificate.
    Config(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::ServerName(_) => out.write_str("the server name is neither a host name nor an IP address"),
            TlsError::Certificate(error) => write!(out, "invalid certificate: {error}"),
            TlsError::NoCertificate => out.write_str("the file contains no certificate"),
            TlsError::PrivateKey(error) => write!(out, "invalid private key: {error}"),
            TlsError::Authority(error) => write!(out, "cannot use a certificate authority: {error}"),
            TlsError::NoSystemAuthorities => {
                out.write_str("this system has no certificate authorities: configure a file with them")
            }
            TlsError::Verifier(error) => error.fmt(out),
            TlsError::Config(error) => error.fmt(out),
        }
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TlsError::ServerName(error) => Some(error),
            TlsError::Certificate(error) | TlsError::PrivateKey(error) => Some(error),
            TlsError::Authority(error) | TlsError::Config(error) => Some(error),
            TlsError::Verifier(error) => Some(error),
            TlsError::NoCertificate | TlsError::NoSystemAuthorities => None,
        }
    }
}
