//! Certificates of a TLS server. The files are read again when they change.

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::hash::DefaultHasher;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::SETUP_WARNED;
use config::setup::{FileCheck, FileStamp, FileWatch, Files, InspectCertificate, Setup};
use engine::log::{Level, Notice};
use engine::tls::{
    ClientCertificates, Identity, ServerTls, SessionKeys, TlsError, TlsMaker, TlsMaterial, TlsServer, Validity,
    ValidityProblem,
};

use crate::shared::open_error::{self, OpenError};

/// Interval between checks of the files: a renewed certificate is in use at most this much later.
const EVERY: Duration = Duration::from_secs(60);

/// File with the certificate of the server block's listeners.
#[derive(Clone)]
pub struct ServedCertificate(pub PathBuf);

/// PEM files of a TLS server and its policy for client certificates.
pub struct Certificates {
    /// Certificate chain of the server: its own certificate first, then the intermediates.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// CA certificates that client certificates are verified with.
    pub authorities: Option<PathBuf>,
    /// Policy for client certificates.
    pub clients: ClientCertificates,
    /// File to which the secrets of sessions are appended.
    pub key_log: Option<PathBuf>,
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
    pub fn serve(
        self,
        directive: &'static str,
        setup: &mut Setup<'_>,
    ) -> Result<Arc<dyn TlsServer>, CertificateFileError> {
        self.serve_with_material(directive, setup).map(|(server, _)| server)
    }

    /// Creates a TLS server like [`Certificates::serve`], and returns the content of its files too, for a comparison
    /// with other server blocks on the listener.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn serve_with_material(
        self,
        directive: &'static str,
        setup: &mut Setup<'_>,
    ) -> Result<(Arc<dyn TlsServer>, Arc<TlsMaterial>), CertificateFileError> {
        let maker: Arc<dyn TlsMaker> = setup.process.find().ok_or(CertificateFileError::NoTls)?;
        let (seen, problem) = (self.stamps(setup.files), Arc::<CertificateProblem>::default());
        let last = self.last_good(setup);
        let read = self.read(setup.files).map_err(CertificateFileError::from);
        let opened = match read.and_then(|wanted| self.open(wanted, &*maker, setup)) {
            Ok(opened) => opened,
            Err(error) => {
                let Some(kept) = last.get() else { return Err(error) };
                let text = old_pair_stays(&error);
                setup.warn_of_followed(SETUP_WARNED, &text);
                problem.set(Some(text));
                self.open(kept.with_policy_of(&self), &*maker, setup)?
            }
        };
        let Opened { wanted, server, material, sessions } = opened;
        last.set(&wanted);
        let validity = maker.validity(&wanted.identity.certificates).ok();
        let renewal = Renewal {
            directive,
            seen,
            validity,
            files: self,
            server: Arc::clone(&server),
            maker,
            sessions,
            last,
            reported: None,
            problem,
        };
        setup.requests.inspection.certificates.push(Arc::clone(&renewal.problem) as _);
        setup.requests.file_watches.push(renewal.watch());
        Ok((server, Arc::new(material)))
    }

    /// Creates the TLS server from the content of its files.
    fn open(
        &self,
        mut wanted: ServerTls,
        maker: &dyn TlsMaker,
        setup: &mut Setup<'_>,
    ) -> Result<Opened, CertificateFileError> {
        let sessions = self.sessions(&wanted, maker, setup);
        wanted.sessions = Some(sessions.keys.clone());
        let server = maker.server(&wanted).map_err(|error| self.unusable(error))?;
        let material = maker.material(&wanted).map_err(|error| self.unusable(error))?;
        Ok(Opened { wanted, server, material, sessions })
    }

    /// Returns the content that the files had when they could last be used. It outlives a reload with the same files,
    /// in which they may be away, or a certificate may be there and its key not yet.
    fn last_good(&self, setup: &mut Setup<'_>) -> Arc<LastGood> {
        let mut hasher = DefaultHasher::new();
        (&self.certificate, &self.key, &self.authorities).hash(&mut hasher);
        setup.reload_state.get_or_insert_with(format!("tls files {:016x}", hasher.finish()), LastGood::default)
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

    fn unusable(&self, error: TlsError) -> CertificateFileError {
        match error {
            TlsError::KeyMismatch => {
                CertificateFileError::KeyMismatch { certificate: self.certificate.clone(), key: self.key.clone() }
            }
            error => CertificateFileError::Unusable(self.certificate.clone(), error),
        }
    }

    /// Returns the keys of session tickets, which outlive a reload with the same files and the same policy for client
    /// certificates.
    fn sessions(&self, wanted: &ServerTls, maker: &dyn TlsMaker, setup: &mut Setup<'_>) -> Arc<Sessions> {
        let mut hasher = DefaultHasher::new();
        (&self.certificate, &self.key, self.clients, &wanted.authorities).hash(&mut hasher);
        let make = || Sessions { keys: maker.session_keys(), authorities: wanted.authorities.clone() };
        setup.reload_state.get_or_insert_with(format!("tls sessions {:016x}", hasher.finish()), make)
    }

    fn stamps(&self, files: &dyn Files) -> Vec<Option<FileStamp>> {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.authorities);
        paths.map(|path| files.stamp(path).ok()).collect()
    }
}

/// TLS server, and the content of the files that it has.
struct Opened {
    wanted: ServerTls,
    server: Arc<dyn TlsServer>,
    material: TlsMaterial,
    sessions: Arc<Sessions>,
}

/// Content of the files of a TLS server that could last be used.
#[derive(Default)]
struct LastGood(Mutex<Option<Content>>);

#[derive(Clone)]
struct Content {
    identity: Identity,
    authorities: Option<Vec<u8>>,
}

impl LastGood {
    fn get(&self) -> Option<Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, wanted: &ServerTls) {
        let content = Content { identity: wanted.identity.clone(), authorities: wanted.authorities.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
    }
}

impl Content {
    /// Returns a configuration with this content. What the Corefile says about clients is always the current state.
    fn with_policy_of(self, files: &Certificates) -> ServerTls {
        let Content { identity, authorities } = self;
        ServerTls { identity, authorities, clients: files.clients, sessions: None, key_log: files.key_log.clone() }
    }
}

/// Returns the warning about changed files that cannot be used.
fn old_pair_stays(error: &CertificateFileError) -> String {
    format!("{error}; the old pair stays in use. Write both files of the same certificate")
}

/// Renewal of the certificate of a running TLS server.
struct Renewal {
    directive: &'static str,
    files: Certificates,
    server: Arc<dyn TlsServer>,
    maker: Arc<dyn TlsMaker>,
    sessions: Arc<Sessions>,
    last: Arc<LastGood>,
    /// Stamps of the files at the last check.
    seen: Vec<Option<FileStamp>>,
    /// Validity of the certificate in use, if it could be read.
    validity: Option<Validity>,
    /// Problem with it that the log has already.
    reported: Option<ValidityProblem>,
    /// Problem for those who look at the server from outside.
    problem: Arc<CertificateProblem>,
}

/// Problem with a certificate or its files. Only the check of the files and the control API use the lock.
#[derive(Default)]
struct CertificateProblem(Mutex<Option<String>>);

impl CertificateProblem {
    fn set(&self, problem: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

impl InspectCertificate for CertificateProblem {
    fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Renewal {
    /// Returns a job that loads the files after they have changed. If the new files are unusable, it logs a warning and
    /// the server keeps the old ones. It also logs if the certificate in use is not valid, once.
    fn watch(mut self) -> FileWatch {
        FileWatch { at_once: true, ..FileWatch::new(EVERY, move |check| self.check(check)) }
    }

    fn check(&mut self, FileCheck { files, since_1970, notices }: FileCheck<'_>) {
        let directive = self.directive;
        let mut note = |level, text: &str| notices.push(Notice::new(level, directive, text.to_owned()));
        let stamps = self.files.stamps(files);
        let is_changed = stamps != self.seen;
        self.seen = stamps;
        let path = self.files.certificate.display().to_string();
        let renewed = is_changed.then(|| self.renew(files));
        if let Some(Err(error)) = &renewed {
            let text = old_pair_stays(error);
            note(Level::Warning, &text);
            self.problem.set(Some(text));
        }
        let is_renewed = matches!(renewed, Some(Ok(())));
        let problem = self.validity.as_ref().and_then(|validity| validity.problem(since_1970));
        if is_renewed || self.reported != problem {
            let text = problem.as_ref().map(|problem| format!("{path} {problem}; clients refuse it. Replace the file"));
            match &text {
                Some(text) => note(Level::Warning, text),
                None if is_renewed => note(Level::Info, &format!("{path}: the certificate was renewed")),
                None => {}
            }
            self.problem.set(text);
        }
        self.reported = problem;
    }

    fn renew(&mut self, files: &dyn Files) -> Result<(), CertificateFileError> {
        let wanted = self.files.read(files)?;
        let is_same = wanted.authorities == self.sessions.authorities;
        let wanted = ServerTls { sessions: is_same.then(|| self.sessions.keys.clone()), ..wanted };
        self.server.renew(&wanted).map_err(|error| self.files.unusable(error))?;
        self.last.set(&wanted);
        self.validity = self.maker.validity(&wanted.identity.certificates).ok();
        Ok(())
    }
}

/// Reason why the certificate files of a TLS server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFileError {
    /// The process offers no TLS.
    #[error("TLS is not available in this process")]
    NoTls,
    /// A file cannot be read.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// The key is that of another certificate.
    #[error("`{}` does not belong to `{}`", .key.display(), .certificate.display())]
    KeyMismatch {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The files cannot be used; with the file of the server's certificate.
    #[error("{}: {}", .0.display(), .1)]
    Unusable(PathBuf, #[source] TlsError),
}

impl From<OpenError> for CertificateFileError {
    fn from(error: OpenError) -> CertificateFileError {
        CertificateFileError::Open(error)
    }
}
