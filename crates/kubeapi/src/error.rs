//! Errors that prevent a subscription from starting: wrong configuration, or missing files. Conditions that may go
//! away, such as an unreachable API server, are not among them.

use core::fmt;

use cluster::SelectorError;

/// Error that prevents a subscription from starting.
#[derive(Debug)]
pub enum SetupError {
    /// The process does not run in a cluster, or the service account is not mounted.
    NotInCluster(String),
    /// The kubeconfig file cannot be used: the path and the cause.
    Kubeconfig(String),
    /// Not a URL of an API server.
    Url {
        /// Text from the configuration.
        url: String,
        /// Cause.
        reason: String,
    },
    /// Certificates, a key or credentials cannot be used.
    Credentials(String),
    /// Manifests cannot be found or read: the path and the cause.
    Manifests(String),
    /// Invalid label selector.
    Selector {
        /// Text from the configuration.
        text: String,
        /// Cause.
        error: SelectorError,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::NotInCluster(reason) => write!(out, "unable to load in-cluster configuration: {reason}"),
            SetupError::Kubeconfig(reason) => write!(out, "kubeconfig: {reason}"),
            SetupError::Url { url, reason } => write!(out, "endpoint '{url}': {reason}"),
            SetupError::Credentials(reason) => write!(out, "credentials for the API server: {reason}"),
            SetupError::Manifests(reason) => write!(out, "manifests: {reason}"),
            SetupError::Selector { text, error } => write!(out, "label selector '{text}': {error}"),
        }
    }
}

impl core::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let SetupError::Selector { error, .. } = self { Some(error) } else { None }
    }
}
