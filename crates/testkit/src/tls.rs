//! Fake TLS that checks the files of a configuration but performs no handshake.

use core::any::Any;
use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

use engine::tls::{
    CertificateTime, ClientTls, Identity, ServerTls, SessionKeys, TlsClient, TlsError, TlsMaker, TlsMaterial,
    TlsServer, Validity,
};

/// Accepts any file that starts like PEM.
pub struct PretendedTls;

impl TlsMaker for PretendedTls {
    fn client(&self, wanted: &ClientTls) -> Result<TlsClient, TlsError> {
        wanted.authorities.as_deref().map_or(Ok(()), check)?;
        wanted.identity.as_ref().map_or(Ok(()), check_identity)?;
        Ok(TlsClient(Arc::new(())))
    }

    fn server(&self, wanted: &ServerTls) -> Result<Arc<dyn TlsServer>, TlsError> {
        PretendedTls.renew(wanted)?;
        Ok(Arc::new(PretendedTls))
    }

    /// Pretends that certificates are valid for the addresses of private networks only.
    fn certifies(&self, certificates: &[u8], address: IpAddr) -> Result<bool, TlsError> {
        check(certificates).map(|()| matches!(address, IpAddr::V4(v4) if v4.is_private()))
    }

    /// Reads lines such as `notAfter 86400 1970-01-02`, with seconds since 1970. Without them, it is always valid.
    fn validity(&self, certificates: &[u8]) -> Result<Validity, TlsError> {
        check(certificates)?;
        let text = String::from_utf8_lossy(certificates);
        let time = |name: &str, default: Duration| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim().split_once(' '));
            let (seconds, date) = line.unwrap_or_default();
            let since_1970 = seconds.parse().map_or(default, Duration::from_secs);
            CertificateTime { since_1970, date: date.to_owned() }
        };
        Ok(Validity { not_before: time("notBefore", Duration::ZERO), not_after: time("notAfter", Duration::MAX) })
    }

    /// Takes the text of each file for one certificate.
    fn material(&self, wanted: &ServerTls) -> Result<TlsMaterial, TlsError> {
        let certificates = vec![wanted.identity.certificates.clone()];
        Ok(TlsMaterial { certificates, authorities: wanted.authorities.clone().map(|text| [text].into()) })
    }

    fn session_keys(&self) -> SessionKeys {
        SessionKeys(Arc::new(()))
    }
}

impl TlsServer for PretendedTls {
    fn renew(&self, wanted: &ServerTls) -> Result<(), TlsError> {
        check_identity(&wanted.identity)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn check_identity(identity: &Identity) -> Result<(), TlsError> {
    check(&identity.certificates).and_then(|()| check(&identity.key))?;
    let is_stranger = identity.key.windows(STRANGER.len()).any(|part| part == STRANGER);
    if is_stranger { Err(TlsError::KeyMismatch) } else { Ok(()) }
}

/// Mark of a key that belongs to no certificate.
const STRANGER: &[u8] = b"of another certificate";

fn check(pem: &[u8]) -> Result<(), TlsError> {
    if pem.starts_with(b"-----BEGIN ") { Ok(()) } else { Err(TlsError::Config("not in PEM".into())) }
}
