//! TLS of the clients, and the certificate of the servers.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::certificates::SERVER_NAME;
use xtask::Failed;

/// Returns the configuration of a client that trusts `ca`, offers this protocol if any, and for the key exchange only
/// this group, or otherwise the defaults of rustls.
pub(crate) fn client(ca: &Path, alpn: Option<&[u8]>, group: Option<&str>) -> Result<ClientConfig, Failed> {
    let mut provider = aws_lc_rs::default_provider();
    if let Some(name) = group {
        provider.kx_groups.retain(|group| format!("{:?}", group.name()) == name);
    }
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(ca).map_err(|error| format!("{}: {error}", ca.display()))?;
    roots.add(authority).map_err(|error| format!("{}: {error}", ca.display()))?;
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| format!("key exchange with {group:?}: {error}"))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.into_iter().map(<[u8]>::to_vec).collect();
    Ok(config)
}

/// Returns the name in the certificate of the servers.
pub(crate) fn server_name() -> Result<ServerName<'static>, Failed> {
    ServerName::try_from(SERVER_NAME).map_err(|error| error.to_string())
}
