//! Errors that prevent a subscription from starting: wrong configuration, or missing files. Conditions that may go
//! away, such as an unreachable API server, are not among them.

use core::error::Error;
use core::fmt;
use std::io;
use std::path::PathBuf;

use cluster::SelectorError;
use kube::config::LoadDataError;
use rustls::pki_types::InvalidDnsNameError;
use tokio::task::JoinError;

use crate::causes::causes;

/// Error that prevents a subscription from starting.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The process does not run in a cluster, or the service account is not mounted.
    #[error("unable to load in-cluster configuration: {0}")]
    NotInCluster(String),
    /// The kubeconfig file cannot be used: the path and the cause.
    #[error("kubeconfig: {0}")]
    Kubeconfig(String),
    /// Not a URL of an API server.
    #[error("endpoint '{url}': {reason}")]
    Url {
        /// Text from the configuration.
        url: String,
        /// Cause.
        reason: String,
    },
    /// Certificates, a key or credentials cannot be used.
    #[error("credentials for the API server: {0}")]
    Credentials(#[source] ClientError),
    /// Manifests cannot be found or read: the path and the cause.
    #[error("manifests: {0}")]
    Manifests(String),
    /// Invalid label selector.
    #[error("label selector '{text}': {error}")]
    Selector {
        /// Text from the configuration.
        text: String,
        /// Cause.
        #[source]
        error: SelectorError,
    },
}

/// Error that prevents a client for the API server from being built. It may go away when files change or the credential
/// plugin works again.
#[derive(Debug)]
pub enum ClientError {
    /// The configuration cannot be read.
    Setup(Box<SetupError>),
    /// The token, the certificate, the key or the output of the credential plugin cannot be used.
    Credentials(kube::Error),
    /// The CA file cannot be read.
    File {
        /// Path of the file.
        file: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The CA certificates cannot be used.
    Authorities {
        /// Path of the file, unless the certificates are in the configuration itself.
        file: Option<PathBuf>,
        /// Cause.
        reason: String,
    },
    /// `tls-server-name` is not a name of a server.
    ServerName(InvalidDnsNameError),
    /// The thread that builds the client ended early.
    Thread(JoinError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Setup(error) => error.fmt(out),
            ClientError::Credentials(error) => out.write_str(&unusable(error)),
            ClientError::File { file, error } => out.write_str(&host::errors::cannot_open(file, error)),
            ClientError::Authorities { file: Some(file), reason } => write!(out, "{}: {reason}", file.display()),
            ClientError::Authorities { file: None, reason } => out.write_str(reason),
            ClientError::ServerName(error) => error.fmt(out),
            ClientError::Thread(error) => error.fmt(out),
        }
    }
}

/// Returns why credentials cannot be used. Of a file that cannot be read, names only the file.
fn unusable(error: &(dyn Error + 'static)) -> String {
    let mut chain = core::iter::successors(Some(error), |error| Error::source(*error));
    let unread = chain.find_map(|error| match error.downcast_ref() {
        Some(LoadDataError::ReadFile(error, file)) => Some(host::errors::cannot_open(file, error)),
        _ => None,
    });
    unread.unwrap_or_else(|| causes(error))
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ClientError::Setup(error) => Some(error),
            ClientError::Credentials(error) => Some(error),
            ClientError::File { error, .. } => Some(error),
            ClientError::ServerName(error) => Some(error),
            ClientError::Thread(error) => Some(error),
            ClientError::Authorities { .. } => None,
        }
    }
}
