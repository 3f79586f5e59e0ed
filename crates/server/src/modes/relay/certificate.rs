//! Certificate and key of the relay, read again when their files change.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use host::tls::{ClientCertificates, Identity, ServerTls, TlsMaker, TlsServer};
use tokio::time::sleep;
use transport::files::{PEM_FILE_MAX, read_file};
use transport::tls::Rustls;

use super::LOG;
use crate::serve_error::CertificateError;

/// Interval between looks at the files. The kubelet replaces those of a Secret within a minute or two.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Certificate in use.
pub(super) struct Certificate {
    files: [PathBuf; 2],
    pub(super) server: Arc<dyn TlsServer>,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read or used.
    pub(super) fn new(certificate: PathBuf, key: PathBuf) -> Result<(Certificate, Identity), CertificateError> {
        let files = [certificate, key];
        let identity = read(&files)?;
        let server = Rustls.server(&settings(&identity)).map_err(CertificateError::Tls)?;
        Ok((Certificate { files, server }, identity))
    }

    /// Uses new content of the files when they change, until dropped. What cannot be used is reported once.
    pub(super) async fn follow(self: Rc<Certificate>, identity: Identity) {
        let mut known = (identity.certificates, identity.key);
        loop {
            sleep(LOOK_AGAIN).await;
            let Ok(found) = read(&self.files) else { continue };
            if (&found.certificates, &found.key) == (&known.0, &known.1) {
                continue;
            }
            match self.server.renew(&settings(&found)) {
                Ok(()) => tracing::info!(target: LOG, "The certificate has changed and is in use"),
                Err(error) => tracing::error!(target: LOG, "The new certificate is not used: {error}"),
            }
            known = (found.certificates, found.key);
        }
    }
}

fn settings(identity: &Identity) -> ServerTls {
    let identity = Identity { certificates: identity.certificates.clone(), key: identity.key.clone() };
    ServerTls { identity, clients: ClientCertificates::Unasked, authorities: None, sessions: None, key_log: None }
}

fn read(files: &[PathBuf; 2]) -> Result<Identity, CertificateError> {
    let [certificates, key] = files
        .each_ref()
        .map(|file| read_file(file, PEM_FILE_MAX).map_err(|error| CertificateError::Read(file.clone(), error)));
    Ok(Identity { certificates: certificates?, key: key? })
}
