//! Certificate verifiers that differ from the default of rustls.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::error_text::is_authority;

/// Verifier that accepts certificates signed by the given authorities, and the given certificates themselves.
///
/// `openssl req -x509` creates a self-signed certificate that is its own authority (`CA:TRUE`, RFC 5280 §4.2.1.9).
/// People configure it as the trusted authority and serve with it. rustls rejects a CA certificate as a server
/// certificate. Go accepts it.
#[derive(Debug)]
pub(crate) struct GivenCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl GivenCertificates {
    pub(crate) const fn new(
        authorities: Arc<WebPkiServerVerifier>,
        given: Vec<CertificateDer<'static>>,
    ) -> GivenCertificates {
        GivenCertificates { authorities, given }
    }
}

impl ServerCertVerifier for GivenCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The inner verifier has already checked the validity period, but not the name.
            Err(Error::InvalidCertificate(reason)) if is_authority(&reason) && self.given.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Verifier that accepts any certificate. It still checks that the peer has the private key.
#[derive(Debug)]
pub(crate) struct AnyCertificate(Arc<CryptoProvider>);

impl AnyCertificate {
    pub(crate) const fn new(provider: Arc<CryptoProvider>) -> AnyCertificate {
        AnyCertificate(provider)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifier of client certificates that accepts any of them. It still checks that the client has the private key.
#[derive(Debug)]
pub(crate) struct AnyClient {
    signatures: AnyCertificate,
    is_mandatory: bool,
}

impl AnyClient {
    /// Creates a verifier. If `is_mandatory` is true, clients without a certificate are rejected.
    pub(crate) const fn new(provider: Arc<CryptoProvider>, is_mandatory: bool) -> AnyClient {
        AnyClient { signatures: AnyCertificate::new(provider), is_mandatory }
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
    use rustls::{CertificateError, RootCertStore};

    use super::*;

    /// Creates a self-signed CA certificate for `name.test`, as OpenSSL does.
    fn own_authority(change: fn(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["name.test".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// Verifies a certificate `shown` against the trusted certificate `given`.
    fn verify(shown: &CertificateDer<'_>, given: &CertificateDer<'static>, host: &str) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(given.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let verifier = GivenCertificates::new(authorities, vec![given.clone()]);
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        verifier.verify_server_cert(shown, &[], &name, &[], now).map(|_| ())
    }

    #[test]
    fn accepts_a_given_certificate_only_for_its_name_and_validity_period() {
        let given = own_authority(|_| {});
        assert_eq!(verify(&given, &given, "name.test"), Ok(()));
        let reason = |outcome: Result<(), Error>| match outcome {
            Err(Error::InvalidCertificate(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let other_name = reason(verify(&given, &given, "other.test"));
        assert!(matches!(other_name, CertificateError::NotValidForNameContext { .. }), "{other_name:?}");
        let old = own_authority(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        let expired = reason(verify(&old, &old, "name.test"));
        assert!(matches!(expired, CertificateError::ExpiredContext { .. }), "{expired:?}");
        let stranger = own_authority(|params| params.distinguished_name.push(DnType::CommonName, "stranger"));
        let unknown = reason(verify(&stranger, &given, "name.test"));
        assert!(is_authority(&unknown) || unknown == CertificateError::UnknownIssuer, "{unknown:?}");
    }
}
