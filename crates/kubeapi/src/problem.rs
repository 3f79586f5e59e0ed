//! Why a subscription cannot begin: what somebody wrote, or what the machine lacks. What may still become right, such as
//! an API server that is down, is no such problem.

use core::fmt;
use std::path::PathBuf;

use cluster::SelectorError;

/// Why a subscription cannot begin.
#[derive(Debug)]
pub enum SetupProblem {
    /// This process does not run in a cluster, or its service account is not mounted.
    NotInCluster(String),
    /// The kubeconfig file cannot be used.
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// This is no URL of an API server.
    Url {
        /// What was given.
        url: String,
        /// Why not.
        reason: String,
    },
    /// Certificates, a key or credentials cannot be used.
    Credentials(String),
    /// There are no manifests here.
    Manifests {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A label selector cannot be read.
    Selector {
        /// What was given.
        text: String,
        /// Why not.
        error: SelectorError,
    },
}

impl fmt::Display for SetupProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupProblem::NotInCluster(reason) => write!(out, "unable to load in-cluster configuration: {reason}"),
            SetupProblem::Kubeconfig { file, reason } => write!(out, "kubeconfig {}: {reason}", file.display()),
            SetupProblem::Url { url, reason } => write!(out, "endpoint '{url}': {reason}"),
            SetupProblem::Credentials(reason) => write!(out, "credentials for the API server: {reason}"),
            SetupProblem::Manifests { path, reason } => write!(out, "manifests {}: {reason}", path.display()),
            SetupProblem::Selector { text, error } => write!(out, "label selector '{text}': {error}"),
        }
    }
}

impl core::error::Error for SetupProblem {}
