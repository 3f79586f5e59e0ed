//! Web configuration file, in the format that Prometheus and its exporters share.
//!
//! Only the TLS part is supported. Any other setting is an error and metrics are not served, since most of these
//! settings protect something.

use std::path::Path;
use std::sync::Arc;

use config::setup::Setup;
use engine::tls::{ClientCertificates, TlsServer};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::shared::server_certificates::Certificates;

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
/// The first error in the file or in those it refers to, in one line.
pub(super) fn tls(file: &str, setup: &mut Setup<'_>) -> Result<Option<Arc<dyn TlsServer>>, String> {
    let path = setup.path(file);
    let bytes = setup.files.read(&path).map_err(|error| io_text::cannot_open(file, &error))?;
    let text = core::str::from_utf8(&bytes).ok().filter(|text| text.len() <= FILE_MAX);
    let text = text.ok_or_else(|| format!("{file}: not a UTF-8 text of at most {FILE_MAX} bytes"))?;
    let web = if text.trim().is_empty() { Ok(Web::default()) } else { serde_saphyr::from_str(text) };
    let web: Web = web.map_err(|error| format!("{file}: {}", first_line(&error.to_string())))?;
    let certificates = web.certificates(path.parent().unwrap_or(Path::new("")));
    let certificates = certificates.map_err(|error| format!("{file}: {error}"))?;
    certificates.map(|certificates| certificates.serve("prometheus", setup)).transpose()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl Web {
    /// Certificate files, relative to `folder`.
    fn certificates(self, folder: &Path) -> Result<Option<Certificates>, String> {
        let beyond = [
            ("http_server_config", self.http_server_config.is_some()),
            ("basic_auth_users", self.basic_auth_users.is_some()),
            ("rate_limit", self.rate_limit.is_some()),
        ];
        refuse(&beyond)?;
        let Some(tls) = self.tls_server_config else { return Ok(None) };
        let beyond = [
            ("cert", tls.cert.is_some()),
            ("key", tls.key.is_some()),
            ("client_ca", tls.client_ca.is_some()),
            ("client_allowed_sans", tls.client_allowed_sans.is_some()),
            ("min_version TLS13", tls.min_version == "TLS13"),
            ("max_version", !matches!(tls.max_version.as_str(), "" | "TLS13")),
        ];
        refuse(&beyond)?;
        let clients = match (tls.client_auth_type.as_str(), tls.client_ca_file.is_some()) {
            ("" | "NoClientCert", false) => ClientCertificates::Unasked,
            ("RequestClientCert", false) => ClientCertificates::Requested,
            ("RequireAnyClientCert", false) => ClientCertificates::Any,
            ("VerifyClientCertIfGiven", true) => ClientCertificates::Verified,
            ("RequireAndVerifyClientCert", true) => ClientCertificates::Required,
            ("VerifyClientCertIfGiven" | "RequireAndVerifyClientCert", false) => {
                return Err("client_auth_type requires a client_ca_file".to_owned());
            }
            (kind, _) => {
                return Err(format!("client_auth_type `{kind}` is not supported with this client_ca_file"));
            }
        };
        let named = |name: Option<String>, what| name.map(|name| folder.join(name)).ok_or(what);
        Ok(Some(Certificates {
            certificate: named(tls.cert_file, "cert_file is missing")?,
            key: named(tls.key_file, "key_file is missing")?,
            authorities: tls.client_ca_file.map(|name| folder.join(name)),
            clients,
        }))
    }
}

/// Returns an error for the first of these settings that is present.
fn refuse(beyond: &[(&str, bool)]) -> Result<(), String> {
    match beyond.iter().find(|(_, is_there)| *is_there) {
        Some((name, _)) => Err(format!("{name} is not supported")),
        None => Ok(()),
    }
}
