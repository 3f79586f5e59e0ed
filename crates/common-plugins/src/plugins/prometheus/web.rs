//! Web configuration file, in the format that Prometheus and its exporters share.
//!
//! Only the TLS part is supported. Any other setting is an error and metrics are not served, since most of these
//! settings protect something.

use core::error::Error;
use core::fmt;
use std::path::Path;
use std::sync::Arc;

use config::setup::Setup;
use engine::tls::{ClientCertificates, TlsServer};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::shared::open_error::OpenError;
use crate::shared::server_certificates::{CertificateFileError, Certificates};

/// Size limit of the file in bytes. Real files have a few lines.
const FILE_MAX: usize = 64 << 10;

/// Contents of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Web {
    tls_server_config: Option<Tls>,
    http_server_config: Option<IgnoredAny>,
    basic_auth_users: Option<IgnoredAny>,
    rate_limit: Option<IgnoredAny>,
}

/// TLS part of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tls {
    cert_file: Option<String>,
    key_file: Option<String>,
    client_auth_type: String,
    client_ca_file: Option<String>,
    client_allowed_sans: Option<IgnoredAny>,
    min_version: String,
    max_version: String,
    cert: Option<IgnoredAny>,
    key: Option<IgnoredAny>,
    client_ca: Option<IgnoredAny>,
    // The choice does not matter: rustls only has secure cipher suites and curves.
    #[serde(rename = "cipher_suites")]
    _cipher_suites: Option<IgnoredAny>,
    #[serde(rename = "curve_preferences")]
    _curve_preferences: Option<IgnoredAny>,
    #[serde(rename = "prefer_server_cipher_suites")]
    _prefer_server_cipher_suites: Option<IgnoredAny>,
}

/// Returns the TLS server configured in a file; `None` if it configures none.
///
/// # Errors
/// The first error in the file or in those it refers to.
pub(super) fn tls(file: &str, setup: &mut Setup<'_>) -> Result<Option<Arc<dyn TlsServer>>, WebConfigError> {
    let path = setup.path(file);
    let bytes = setup.files.read(&path).map_err(|error| WebConfigError::Open(OpenError::new(file, error)))?;
    let invalid = |problem| WebConfigError::Invalid { file: file.to_owned(), problem };
    let web = Web::read(&bytes).map_err(invalid)?;
    let certificates = web.certificates(path.parent().unwrap_or(Path::new(""))).map_err(invalid)?;
    let server = certificates.map(|certificates| certificates.serve("prometheus", setup));
    server.transpose().map_err(WebConfigError::Certificates)
}

impl Web {
    fn read(bytes: &[u8]) -> Result<Web, WebConfigProblem> {
        if bytes.len() > FILE_MAX {
            return Err(WebConfigProblem::TooLong);
        }
        let not_text = |error| WebConfigProblem::NotText(host::errors::not_text(bytes, error));
        let text = core::str::from_utf8(bytes).map_err(not_text)?;
        if text.trim().is_empty() {
            return Ok(Web::default());
        }
        dynserde::yaml(text).map_err(|error| WebConfigProblem::Syntax(Box::new(error)))
    }

    /// Certificate files, relative to `folder`.
    fn certificates(self, folder: &Path) -> Result<Option<Certificates>, WebConfigProblem> {
        refuse_unsupported(&[
            ("http_server_config", self.http_server_config.is_some()),
            ("basic_auth_users", self.basic_auth_users.is_some()),
            ("rate_limit", self.rate_limit.is_some()),
        ])?;
        let Some(tls) = self.tls_server_config else { return Ok(None) };
        refuse_unsupported(&[
            ("cert", tls.cert.is_some()),
            ("key", tls.key.is_some()),
            ("client_ca", tls.client_ca.is_some()),
            ("client_allowed_sans", tls.client_allowed_sans.is_some()),
            ("min_version TLS13", tls.min_version == "TLS13"),
            ("max_version", !matches!(tls.max_version.as_str(), "" | "TLS13")),
        ])?;
        let clients = match (tls.client_auth_type.as_str(), tls.client_ca_file.is_some()) {
            ("" | "NoClientCert", false) => ClientCertificates::Unasked,
            ("RequestClientCert", false) => ClientCertificates::Requested,
            ("RequireAnyClientCert", false) => ClientCertificates::Any,
            ("VerifyClientCertIfGiven", true) => ClientCertificates::Verified,
            ("RequireAndVerifyClientCert", true) => ClientCertificates::Required,
            ("VerifyClientCertIfGiven" | "RequireAndVerifyClientCert", false) => {
                return Err(WebConfigProblem::NoAuthorities);
            }
            (policy, _) => return Err(WebConfigProblem::ClientPolicy(policy.to_owned())),
        };
        let named = |name: Option<String>, setting| {
            name.map(|name| folder.join(name)).ok_or(WebConfigProblem::Missing(setting))
        };
        Ok(Some(Certificates {
            certificate: named(tls.cert_file, "cert_file")?,
            key: named(tls.key_file, "key_file")?,
            authorities: tls.client_ca_file.map(|name| folder.join(name)),
            clients,
            key_log: None,
        }))
    }
}

/// Returns an error for the first of these settings that is present.
fn refuse_unsupported(settings: &[(&'static str, bool)]) -> Result<(), WebConfigProblem> {
    match settings.iter().find(|(_, is_present)| *is_present) {
        Some((name, _)) => Err(WebConfigProblem::Unsupported(name)),
        None => Ok(()),
    }
}

/// Reason why a web configuration file cannot be used.
#[derive(Debug)]
pub(super) enum WebConfigError {
    /// The file cannot be read.
    Open(OpenError),
    /// The file has an invalid or unsupported setting.
    Invalid {
        /// File name as in the Corefile.
        file: String,
        /// Problem with it.
        problem: WebConfigProblem,
    },
    /// The certificate files that it names cannot be used.
    Certificates(CertificateFileError),
}

/// Problem with the contents of a web configuration file.
#[derive(Debug)]
pub(super) enum WebConfigProblem {
    /// The text is longer than [`FILE_MAX`].
    TooLong,
    /// The text is not UTF-8; the message with the place.
    NotText(String),
    /// It is not valid YAML, or has an unknown setting.
    Syntax(Box<dynserde::YamlError>),
    /// This setting is not supported.
    Unsupported(&'static str),
    /// This setting is missing.
    Missing(&'static str),
    /// Client certificates are verified, but no file of certificate authorities is named.
    NoAuthorities,
    /// This policy for client certificates is unknown, or does not fit the file of certificate authorities.
    ClientPolicy(String),
}

impl fmt::Display for WebConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebConfigError::Open(error) => error.fmt(f),
            WebConfigError::Invalid { file, problem } => write!(f, "{file}: {problem}"),
            WebConfigError::Certificates(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for WebConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebConfigProblem::TooLong => write!(f, "it is longer than {FILE_MAX} bytes"),
            WebConfigProblem::NotText(message) => f.write_str(message),
            WebConfigProblem::Syntax(error) => f.write_str(first_line(&error.to_string())),
            WebConfigProblem::Unsupported(setting) => write!(f, "{setting} is not supported"),
            WebConfigProblem::Missing(setting) => write!(f, "{setting} is missing"),
            WebConfigProblem::NoAuthorities => f.write_str("client_auth_type requires a client_ca_file"),
            WebConfigProblem::ClientPolicy(policy) => {
                write!(f, "client_auth_type `{policy}` is not supported with this client_ca_file")
            }
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl Error for WebConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            WebConfigError::Open(error) => Some(error),
            WebConfigError::Invalid { problem: WebConfigProblem::Syntax(error), .. } => Some(error),
            WebConfigError::Invalid { .. } => None,
            WebConfigError::Certificates(error) => Some(error),
        }
    }
}
