//! What the system and TLS say of a connection that fails, in words by which people can search.

use std::io;

use engine::ExchangeError;
use rustls::{CertificateError, Error};

/// What went wrong on the way to an upstream.
pub(crate) fn network(during: &'static str, error: &io::Error) -> ExchangeError {
    ExchangeError::Network { during, error: in_words(error) }
}

/// An error in the words of logs: `connection refused`, `tls: failed to verify certificate: …`.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(reason)) => {
            format!("tls: failed to verify certificate: {}", certificate_in_words(reason))
        }
        Some(error) => format!("tls: {error}"),
        None => {
            let text = error.to_string();
            text.split(" (os error ").next().unwrap_or_default().to_ascii_lowercase()
        }
    }
}

fn certificate_in_words(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "signed by an unknown authority".to_owned(),
        CertificateError::BadSignature => "it is not signed with the authority's key".to_owned(),
        CertificateError::Expired => "it has expired".to_owned(),
        CertificateError::NotValidYet => "it is not valid yet".to_owned(),
        CertificateError::NotValidForName => "it is not for this name".to_owned(),
        reason if is_authority(reason) => "it is an authority's own (CA:TRUE) and not a server's".to_owned(),
        reason => reason.to_string(),
    }
}

/// Whether a certificate is refused because it is that of an authority: rustls has no name of its own for this.
pub(crate) fn is_authority(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    #[test]
    fn the_system_in_words() {
        assert_eq!(in_words(&io::Error::from_raw_os_error(111)), "connection refused");
        assert_eq!(in_words(&io::Error::other(Error::HandshakeNotComplete)), "tls: handshake not complete");
    }

    /// What is said of a certificate for `name.test` that is believed as it is, and shown by `host`.
    fn said(params: &rcgen::CertificateParams, is_known: bool, host: &str) -> String {
        let [key, other] = [(); 2].map(|()| rcgen::KeyPair::generate().unwrap());
        let shown = params.self_signed(&key).unwrap();
        let mut of_stranger = params.clone();
        of_stranger.distinguished_name.push(rcgen::DnType::CommonName, "stranger");
        let stranger = of_stranger.self_signed(&other).unwrap();
        let known = if is_known { &shown } else { &stranger };
        let mut roots = RootCertStore::empty();
        roots.add(known.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
        let (der, name): (&CertificateDer<'_>, _) = (shown.der(), ServerName::try_from(host.to_owned()).unwrap());
        let error =
            rustls::client::danger::ServerCertVerifier::verify_server_cert(&*verifier, der, &[], &name, &[], now);
        in_words(&io::Error::other(error.unwrap_err()))
    }

    #[test]
    fn certificates_in_words() {
        let named = || rcgen::CertificateParams::new(["name.test".to_owned()]).unwrap();
        let changed = |change: fn(&mut rcgen::CertificateParams)| {
            let mut params = named();
            change(&mut params);
            params
        };
        let authority = changed(|params| params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
        let old = changed(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        let cases = [
            (named(), false, "name.test", "signed by an unknown authority"),
            (named(), true, "other.test", "not valid for name \"other.test\""),
            (authority, true, "name.test", "an authority's own"),
            (old, true, "name.test", "expired"),
        ];
        for (params, is_known, host, part) in cases {
            let said = said(&params, is_known, host);
            assert!(said.starts_with("tls: failed to verify certificate: ") && said.contains(part), "{said}");
        }
    }
}
