//! Error texts of the system and of TLS, in the wording that other programs use, so that people can search for them.

use std::io;

use rustls::{CertificateError, Error};

/// Formats an error as in logs: `connection refused`, `tls: failed to verify certificate: …`.
#[must_use]
pub fn error_text(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(reason)) => {
            format!("tls: failed to verify certificate: {}", certificate_error_text(reason))
        }
        Some(error) => format!("tls: {error}"),
        None => host::errors::describe(error),
    }
}

/// Formats an error of rustls of which only the text is left, like [`error_text`]. QUIC passes on no more.
#[must_use]
pub fn tls_error_text(text: &str) -> String {
    let Some(reason) = text.strip_prefix("invalid peer certificate: ") else { return format!("tls: {text}") };
    let known = TERSE.iter().find(|known| known.to_string() == reason).map(certificate_error_text);
    let known =
        known.or_else(|| dated(reason)).or_else(|| reason.contains(AUTHORITY).then(|| AUTHORITY_TEXT.to_owned()));
    format!("tls: failed to verify certificate: {}", known.as_deref().unwrap_or(reason))
}

/// Errors whose text in rustls is only their name.
const TERSE: [CertificateError; 5] = [
    CertificateError::UnknownIssuer,
    CertificateError::BadSignature,
    CertificateError::Expired,
    CertificateError::NotValidYet,
    CertificateError::NotValidForName,
];
/// Name of the error of webpki for a CA certificate.
const AUTHORITY: &str = "CaUsedAsEndEntity";
const AUTHORITY_TEXT: &str = "it is a CA certificate (CA:TRUE), not a server certificate";

/// Returns the text of the root cause of an error. The outer errors of the chain only say that something failed.
#[must_use]
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Returns the text about a certificate outside of its time with dates. rustls writes seconds since 1970: first the
/// time of the check, then the limit.
fn dated(reason: &str) -> Option<String> {
    let what = if reason.starts_with("certificate expired:") {
        "expired"
    } else if reason.starts_with("certificate not valid yet:") {
        "will be valid"
    } else {
        return None;
    };
    let mut numbers = reason.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    let (now, limit) = (numbers.next()?, numbers.next()?);
    let (year, month, day) = host::time::date(limit / DAY);
    let days = now.abs_diff(limit) / DAY;
    let distance = match days {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    let relation = if now > limit { format!("{distance} ago") } else { format!("in {distance}") };
    Some(format!("it {what} on {year:04}-{month:02}-{day:02}, {relation}"))
}

fn certificate_error_text(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "signed by an unknown authority".to_owned(),
        CertificateError::BadSignature => "it is not signed with the authority's key".to_owned(),
        CertificateError::Expired => "it has expired".to_owned(),
        CertificateError::NotValidYet => "it is not valid yet".to_owned(),
        CertificateError::NotValidForName => "it is not for this name".to_owned(),
        reason if is_authority(reason) => AUTHORITY_TEXT.to_owned(),
        reason => dated(&reason.to_string()).unwrap_or_else(|| reason.to_string()),
    }
}

/// Returns true if a certificate is rejected because it is a CA certificate. rustls has no variant of its own for this.
pub(crate) fn is_authority(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::Other(other) if format!("{other:?}").contains(AUTHORITY))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    #[test]
    fn formats_system_and_tls_errors() {
        assert_eq!(error_text(&io::Error::from_raw_os_error(111)), "connection refused");
        assert_eq!(error_text(&io::Error::other(Error::HandshakeNotComplete)), "tls: handshake not complete");
        assert_eq!(tls_error_text("handshake not complete"), "tls: handshake not complete");
    }

    /// Returns the error for a certificate for `name.test` that `host` presents and that is trusted if `is_known`.
    fn error_of(params: &rcgen::CertificateParams, is_known: bool, host: &str) -> Error {
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
        error.unwrap_err()
    }

    #[test]
    fn formats_certificate_errors() {
        let named = || rcgen::CertificateParams::new(["name.test".to_owned()]).unwrap();
        let changed = |change: fn(&mut rcgen::CertificateParams)| {
            let mut params = named();
            change(&mut params);
            params
        };
        let authority = changed(|params| params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
        let old = changed(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        let future = changed(|params| params.not_before = rcgen::date_time_ymd(2100, 1, 1));
        let cases = [
            (named(), false, "name.test", "signed by an unknown authority"),
            (named(), true, "other.test", "not valid for name \"other.test\""),
            (authority, true, "name.test", "a CA certificate"),
            (old, true, "name.test", "it expired on 2020-01-01, 2571 days ago"),
            (future, true, "name.test", "it will be valid on 2100-01-01, in 26648 days"),
        ];
        for (params, is_known, host, part) in cases {
            let error = error_of(&params, is_known, host);
            let said = error_text(&io::Error::other(error.clone()));
            assert!(said.starts_with("tls: failed to verify certificate: ") && said.contains(part), "{said}");
            assert_eq!(tls_error_text(&error.to_string()), said);
        }
    }
}
