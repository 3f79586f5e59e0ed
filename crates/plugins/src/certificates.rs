//! The certificates of a TLS server: files that are read again when they have changed.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use engine::log::{Level, Notice};
use engine::setup::{Files, Inspection, Looking, Setup, Stamp};
use engine::tls::{ClientCertificates, Identity, ServerTls, TlsMaker, TlsServer};

/// How often the files are looked at: a renewed certificate is shown a minute later.
const EVERY: Duration = Duration::from_secs(60);

/// Files in PEM, and what is asked of clients.
pub(crate) struct Certificates {
    /// The server's own certificate, with those that lead to an authority behind it.
    pub(crate) certificate: PathBuf,
    /// The key to it.
    pub(crate) key: PathBuf,
    /// The authorities that are believed about clients.
    pub(crate) authorities: Option<PathBuf>,
    /// Whether clients show certificates.
    pub(crate) clients: ClientCertificates,
}

impl Certificates {
    /// TLS with these, which is renewed when they have changed; lines of the log are this directive's.
    ///
    /// # Errors
    /// What is wrong with the files, in one line.
    pub(crate) fn serve(self, directive: &'static str, setup: &mut Setup<'_>) -> Result<Arc<dyn TlsServer>, String> {
        let maker: Arc<dyn TlsMaker> = setup.process.find().ok_or("there is no TLS here")?;
        let made = maker.server(&self.read(setup.files)?);
        let server = made.map_err(|error| format!("{}: {error}", self.certificate.display()))?;
        setup.needs.inspections.push(self.renewal(directive, Arc::clone(&server), setup.files));
        Ok(server)
    }

    fn read(&self, files: &dyn Files) -> Result<ServerTls, String> {
        let read = |path: &PathBuf| files.read(path).map_err(|error| format!("open {}: {error}", path.display()));
        Ok(ServerTls {
            identity: Identity { certificates: read(&self.certificate)?, key: read(&self.key)? },
            clients: self.clients,
            authorities: self.authorities.as_ref().map(read).transpose()?,
        })
    }

    fn stamps(&self, files: &dyn Files) -> Vec<Option<Stamp>> {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.authorities);
        paths.map(|path| files.stamp(path).ok()).collect()
    }

    /// Takes over the files when they have changed; what is wrong with them is said, and those before are used on.
    fn renewal(self, directive: &'static str, server: Arc<dyn TlsServer>, files: &dyn Files) -> Inspection {
        let mut seen = self.stamps(files);
        let look = move |Looking { files, notices, .. }: Looking<'_>| {
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
        Inspection::new(EVERY, look)
    }
}
