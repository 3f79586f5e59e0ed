//! Certificates of a TLS server. The files are read again when they change.

use core::error::Error;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::hash::DefaultHasher;
use std::path::PathBuf;
use std::sync::Arc;

use config::setup::{FileCheck, FileStamp, FileWatch, Files, Setup};
use engine::log::{Level, Notice};
use engine::tls::{ClientCertificates, Identity, ServerTls, SessionKeys, TlsError, TlsMaker, TlsServer};

use crate::shared::open_error::{self, OpenError};

/// Interval between checks of the files: a renewed certificate is in use at most this much later.
const EVERY: Duration = Duration::from_secs(60);

/// File with the certificate of the server block's listeners.
#[derive(Clone)]
pub(crate) struct ServedCertificate(pub(crate) PathBuf);

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
    /// File to which the secrets of sessions are appended.
    pub(crate) key_log: Option<PathBuf>,
}

/// Keys of session tickets, with the CA certificates that they depend on.
struct Sessions {
    keys: SessionKeys,
    authorities: Option<Vec<u8>>,
}

impl Certificates {
    /// Creates a TLS server that reloads these files when they change. It logs under the name `directive`.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub(crate) fn serve(
        self,
        directive: &'static str,
        setup: &mut Setup<'_>,
    ) -> Result<Arc<dyn TlsServer>, CertificateFileError> {
        let maker: Arc<dyn TlsMaker> = setup.process.find().ok_or(CertificateFileError::NoTls)?;
        let mut wanted = self.read(setup.files)?;
        let sessions = self.sessions(&wanted, &*maker, setup);
        wanted.sessions = Some(sessions.keys.clone());
        let server = maker.server(&wanted).map_err(|error| self.unusable(error))?;
        setup.requests.file_watches.push(self.renewal(directive, Arc::clone(&server), sessions, setup.files));
        Ok(server)
    }

    fn read(&self, files: &dyn Files) -> Result<ServerTls, OpenError> {
        let read = |path: &PathBuf| open_error::read(files, path);
        Ok(ServerTls {
            identity: Identity { certificates: read(&self.certificate)?, key: read(&self.key)? },
            clients: self.clients,
            authorities: self.authorities.as_ref().map(read).transpose()?,
            sessions: None,
            key_log: self.key_log.clone(),
        })
    }

    fn renew(
        &self,
        server: &dyn TlsServer,
        sessions: &Sessions,
        files: &dyn Files,
    ) -> Result<(), CertificateFileError> {
        let wanted = self.read(files)?;
        let is_same = wanted.authorities == sessions.authorities;
        let wanted = ServerTls { sessions: is_same.then(|| sessions.keys.clone()), ..wanted };
        server.renew(&wanted).map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: TlsError) -> CertificateFileError {
        match error {
            TlsError::KeyMismatch => CertificateFileError::KeyMismatch {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
            },
            error => CertificateFileError::Unusable(self.certificate.clone(), error),
        }
    }

    /// Returns the keys of session tickets, which outlive a reload with the same files and the same policy for client
    /// certificates.
    fn sessions(&self, wanted: &ServerTls, maker: &dyn TlsMaker, setup: &mut Setup<'_>) -> Arc<Sessions> {
        let mut hasher = DefaultHasher::new();
        (&self.certificate, &self.key, self.clients, &wanted.authorities).hash(&mut hasher);
        let make = || Sessions { keys: maker.session_keys(), authorities: wanted.authorities.clone() };
        setup.reload_state.take_over(format!("tls sessions {:016x}", hasher.finish()), make)
    }

    fn stamps(&self, files: &dyn Files) -> Vec<Option<FileStamp>> {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.authorities);
        paths.map(|path| files.stamp(path).ok()).collect()
    }

    /// Returns a job that loads the files after they have changed. If the new files are unusable, it logs a warning and
    /// the server keeps the old ones.
    fn renewal(
        self,
        directive: &'static str,
        server: Arc<dyn TlsServer>,
        sessions: Arc<Sessions>,
        files: &dyn Files,
    ) -> FileWatch {
        let mut seen = self.stamps(files);
        let check = move |FileCheck { files, notices, .. }: FileCheck<'_>| {
            let now = self.stamps(files);
            if now == seen {
                return;
            }
            seen = now;
            notices.push(match self.renew(&*server, &sessions, files) {
                Ok(()) => {
                    let text = format!("{}: the certificate was renewed", self.certificate.display());
                    Notice::new(Level::Info, directive, text)
                }
                Err(error) => {
                    let text = format!("{error}; the old pair stays in use. Write both files of the same certificate");
                    Notice::new(Level::Warning, directive, text)
                }
            });
        };
        FileWatch::new(EVERY, check)
    }
}

/// Reason why the certificate files of a TLS server cannot be used.
#[derive(Debug)]
pub(crate) enum CertificateFileError {
    /// The process offers no TLS.
    NoTls,
    /// A file cannot be read.
    Open(OpenError),
    /// The key is that of another certificate.
    KeyMismatch { certificate: PathBuf, key: PathBuf },
    /// The files cannot be used; with the file of the server's certificate.
    Unusable(PathBuf, TlsError),
}

impl From<OpenError> for CertificateFileError {
    fn from(error: OpenError) -> CertificateFileError {
        CertificateFileError::Open(error)
    }
}

impl fmt::Display for CertificateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateFileError::NoTls => f.write_str("TLS is not available in this process"),
            CertificateFileError::Open(error) => error.fmt(f),
            CertificateFileError::KeyMismatch { certificate, key } => {
                write!(f, "`{}` does not belong to `{}`", key.display(), certificate.display())
            }
            CertificateFileError::Unusable(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl Error for CertificateFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CertificateFileError::NoTls | CertificateFileError::KeyMismatch { .. } => None,
            CertificateFileError::Open(error) => Some(error),
            CertificateFileError::Unusable(_, error) => Some(error),
        }
    }
}
