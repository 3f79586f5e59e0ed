//! Verification of the API server's certificate with the CA certificates of the configuration.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kube::config::Config;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use tracing::warn;
use transport::files::{PEM_FILE_MAX, read_file};
use transport::tls::{certificates, server_verifier};

use crate::{ClientError, LOG};

/// CA certificates of a configuration.
pub(crate) enum Authorities {
    /// PEM file. It may change while the process runs.
    File(PathBuf),
    Given(Vec<CertificateDer<'static>>),
}

impl Authorities {
    /// Returns the CA certificates, or `None` if the configuration has none and those of the system apply.
    pub(crate) fn of(config: &Config) -> Option<Authorities> {
        let given = || config.root_cert.iter().flatten().map(|der| CertificateDer::from(der.clone())).collect();
        match &config.root_cert_file {
            Some(file) => Some(Authorities::File(file.clone())),
            None => config.root_cert.is_some().then(|| Authorities::Given(given())),
        }
    }

    /// Builds the verifier.
    ///
    /// # Errors
    /// The file is unreadable or a certificate is invalid.
    pub(crate) fn verifier(self) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
        match self {
            Authorities::Given(given) => server_verifier(given)
                .map_err(|error| ClientError::Authorities { file: None, reason: error.to_string() }),
            Authorities::File(file) => {
                let last = Mutex::new(read(&file)?);
                Ok(Arc::new(FileVerifier { file, last }))
            }
        }
    }
}

fn read(file: &Path) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    let pem = read_file(file, PEM_FILE_MAX).map_err(|error| ClientError::File { file: file.to_owned(), error })?;
    let verifier = certificates(&pem).and_then(server_verifier);
    verifier.map_err(|error| ClientError::Authorities { file: Some(file.to_owned()), reason: error.to_string() })
}

/// Verifier that reads the CA file at each handshake, so that a new connection trusts rotated certificates. While the
/// file cannot be used, the last certificates stay trusted.
#[derive(Debug)]
struct FileVerifier {
    file: PathBuf,
    last: Mutex<Arc<dyn ServerCertVerifier>>,
}

impl FileVerifier {
    fn last(&self) -> Arc<dyn ServerCertVerifier> {
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fresh(&self) -> Arc<dyn ServerCertVerifier> {
        match read(&self.file) {
            Ok(verifier) => *self.last.lock().unwrap_or_else(PoisonError::into_inner) = verifier,
            Err(problem) => {
                warn!(target: LOG, "CA certificates of the API server: {problem}; the last ones stay trusted");
            }
        }
        self.last()
    }
}

impl ServerCertVerifier for FileVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.fresh().verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.last().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.last().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.last().supported_verify_schemes()
    }
}
