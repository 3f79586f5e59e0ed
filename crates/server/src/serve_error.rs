//! Reasons why a server cannot start, or cannot apply a changed configuration.

use std::io;
use std::path::PathBuf;

use compat::kube_dns::ConfigMapError;
use host::mask::masked_lines;
use host::tls::TlsError;
use net::ListenError;

use crate::admin::PageListenError;
use crate::generated_corefile::ConfigMapReadError;

/// Reason why a configuration cannot be served. The operator must fix what the message names. At startup the process
/// ends; a reload is tried again when the configuration changes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The Corefile cannot be read: its name and the reason.
    #[error("loading Corefile: {}", host::errors::cannot_open(.0.as_str(), .1))]
    Load(String, #[source] io::Error),
    /// The Corefile has errors: the rendered diagnostics.
    #[error("{0}")]
    Corefile(String),
    /// The Corefile has no server block: its name.
    #[error("{0} has no server block, so it serves nothing; write at least one, such as `. {{ … }}`")]
    NoServerBlock(String),
    /// The ConfigMap of kube-dns cannot be read.
    #[error("{0}")]
    ConfigMapRead(#[source] ConfigMapReadError),
    /// The ConfigMap of kube-dns is invalid.
    #[error("the ConfigMap is invalid: {0}")]
    ConfigMap(#[source] ConfigMapError),
    /// The template of node-cache cannot be used.
    #[error("{0}")]
    Template(#[source] TemplateError),
    /// An address for DNS cannot be bound.
    #[error("{0}")]
    Listen(#[source] ListenError),
    /// An address for HTTP pages cannot be bound.
    #[error("{0}")]
    PageListen(#[source] PageListenError),
    /// The certificate or the key of a relay cannot be used.
    #[error("{0}")]
    Certificate(#[source] CertificateError),
    /// The API server of a relay cannot be used.
    #[error("{0}")]
    ApiServer(#[source] kubeapi::SetupError),
    /// The operating system refuses something else, such as a thread.
    #[error("{}", host::errors::describe(.0))]
    Io(#[source] io::Error),
}

impl ServeError {
    /// Returns the message for the log, without secrets. Those of the Corefile are masked where they were written, so
    /// masking them again would only make the rest unreadable.
    pub(crate) fn without_secrets(&self) -> String {
        let text = self.to_string();
        match self {
            ServeError::Corefile(_) | ServeError::NoServerBlock(_) => text.trim_end().to_owned(),
            _ => masked_lines(text.trim_end()),
        }
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> ServeError {
        ServeError::Io(error)
    }
}

impl From<ListenError> for ServeError {
    fn from(error: ListenError) -> ServeError {
        ServeError::Listen(error)
    }
}

impl From<PageListenError> for ServeError {
    fn from(error: PageListenError) -> ServeError {
        ServeError::PageListen(error)
    }
}

impl From<ConfigMapReadError> for ServeError {
    fn from(error: ConfigMapReadError) -> ServeError {
        ServeError::ConfigMapRead(error)
    }
}

impl From<ConfigMapError> for ServeError {
    fn from(error: ConfigMapError) -> ServeError {
        ServeError::ConfigMap(error)
    }
}

impl From<TemplateError> for ServeError {
    fn from(error: TemplateError) -> ServeError {
        ServeError::Template(error)
    }
}

/// Reason why the template cannot be used, with its path. The next read is tried anyway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    /// The file cannot be read.
    #[error("the template: {}", host::errors::cannot_open(.0.as_str(), .1))]
    Read(String, #[source] io::Error),
    /// The file is larger than this maximum, in bytes.
    #[error("the template {0} is too large; the maximum is {1} bytes")]
    TooLarge(String, u64),
    /// The template needs the address of this Service, and the environment variable for it is not set.
    #[error(
        "Service {0} not found: environment variable {1} is not set; the kubelet sets it for Services that exist \
         when it starts the container, so create the Service"
    )]
    NoService(String, String),
}

/// Certificate or key that cannot be used. The operator must replace the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// A file cannot be read.
    #[error("{}", host::errors::cannot_open(.0, .1))]
    Read(PathBuf, #[source] io::Error),
    /// The content cannot be used.
    #[error("the certificate of the relay: {0}")]
    Tls(#[source] TlsError),
}
