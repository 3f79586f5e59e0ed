//! Certificates of a TLS server. The files are read again when they change.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use config::setup::{FileCheck, FileStamp, FileWatch, Files, Setup};
use engine::log::{Level, Notice};
use engine::tls::{ClientCertificates, Identity, ServerTls, TlsMaker, TlsServer};

/// Interval between checks of the files: a renewed certificate is in use at most this much later.
const EVERY: Duration = Duration::from_secs(60);

/// PEM files of a TLS server and its policy for client certificates.
pub(crate) struct Certificates {
    /// Certificate chain of the server: its own certificate first, then the intermediates.
    pub(crate) certificate: PathBuf,
    /// Private key of the certificate.
    pub(crate) key: PathBuf,
    /// CA certificates that client certificates are verified with.
    pub(crate) authorities: Option<PathBuf>,
    /// Policy for client certificates.
    pub(crate) clients: ClientCertificates,
}

impl Certificates {
    /// Creates a TLS server that reloads these files when they change. It logs under the name `directive`.
    ///
    /// # Errors
    /// One line that says which file is unusable and why.
    pub(crate) fn serve(self, directive: &'static str, setup: &mut Setup<'_>) -> Result<Arc<dyn TlsServer>, String> {
        let maker: Arc<dyn TlsMaker> = setup.process.find().ok_or("TLS is not available in this process")?;
        let made = maker.server(&self.read(setup.files)?);
        let server = made.map_err(|error| format!("{}: {error}", self.certificate.display()))?;
        setup.requests.file_watches.push(self.renewal(directive, Arc::clone(&server), setup.files));
        Ok(server)
    }

    fn read(&self, files: &dyn Files) -> Result<ServerTls, String> {
        let read = |path: &PathBuf| files.read(path).map_err(|error| io_text::cannot_open(path, &error));
        Ok(ServerTls {
            identity: Identity { certificates: read(&self.certificate)?, key: read(&self.key)? },
            clients: self.clients,
            authorities: self.authorities.as_ref().map(read).transpose()?,
        })
    }

    fn stamps(&self, files: &dyn Files) -> Vec<Option<FileStamp>> {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.authorities);
        paths.map(|path| files.stamp(path).ok()).collect()
    }

    /// Returns a job that loads the files after they have changed. If the new files are unusable, it logs a warning and
    /// the server keeps the old ones.
    fn renewal(self, directive: &'static str, server: Arc<dyn TlsServer>, files: &dyn Files) -> FileWatch {
        let mut seen = self.stamps(files);
        let check = move |FileCheck { files, notices, .. }: FileCheck<'_>| {
            let now = self.stamps(files);
            if now == seen {
                return;
            }
            seen = now;
            let path = self.certificate.display();
            notices.push(match self.read(files).and_then(|wanted| server.renew(&wanted)) {
                Ok(()) => Notice::new(Level::Info, directive, format!("{path}: the certificate was renewed")),
                Err(error) => Notice::new(Level::Warning, directive, format!("{path}: {error}")),
            });
        };
        FileWatch::new(EVERY, check)
    }
}
