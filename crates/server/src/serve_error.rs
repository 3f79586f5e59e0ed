//! Reasons why a server cannot start, or cannot apply a changed configuration.

use core::error::Error;
use core::fmt;
use std::io;

use compat::kube_dns::ConfigMapError;
use net::ListenError;

use crate::admin::PageListenError;
use crate::generated_corefile::ConfigMapReadError;

/// Reason why a configuration cannot be served. The operator must fix what the message names. At startup the process
/// ends; a reload is tried again when the configuration changes.
#[derive(Debug)]
pub(crate) enum ServeError {
    /// The Corefile cannot be read: its name and the reason.
    Load(String, io::Error),
    /// The Corefile has errors: the rendered diagnostics.
    Corefile(String),
    /// The Corefile has no server block: its name.
    NoServerBlock(String),
    /// The ConfigMap of kube-dns cannot be read.
    ConfigMapRead(ConfigMapReadError),
    /// The ConfigMap of kube-dns is invalid.
    ConfigMap(ConfigMapError),
    /// The template of node-cache cannot be used.
    Template(TemplateError),
    /// An address for DNS cannot be bound.
    Listen(ListenError),
    /// An address for HTTP pages cannot be bound.
    PageListen(PageListenError),
    /// The operating system refuses something else, such as a thread.
    Io(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Load(name, error) => {
                write!(out, "loading Corefile: {}", host::errors::cannot_open(name.as_str(), error))
            }
            ServeError::Corefile(diagnostics) => out.write_str(diagnostics),
            ServeError::NoServerBlock(name) => {
                write!(out, "{name} has no server block, so it serves nothing; write at least one, such as `. {{ … }}`")
            }
            ServeError::ConfigMapRead(error) => error.fmt(out),
            ServeError::ConfigMap(error) => write!(out, "the ConfigMap is invalid: {error}"),
            ServeError::Template(error) => error.fmt(out),
            ServeError::Listen(error) => error.fmt(out),
            ServeError::PageListen(error) => error.fmt(out),
            ServeError::Io(error) => out.write_str(&host::errors::describe(error)),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ServeError::Corefile(_) | ServeError::NoServerBlock(_) => None,
            ServeError::Load(_, error) | ServeError::Io(error) => Some(error),
            ServeError::ConfigMapRead(error) => Some(error),
            ServeError::ConfigMap(error) => Some(error),
            ServeError::Template(error) => Some(error),
            ServeError::Listen(error) => Some(error),
            ServeError::PageListen(error) => Some(error),
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
#[derive(Debug)]
pub(crate) enum TemplateError {
    /// The file cannot be read.
    Read(String, io::Error),
    /// The file is larger than this maximum, in bytes.
    TooLarge(String, u64),
    /// The template needs the address of this Service, and the environment variable for it is not set.
    NoService(String, String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Read(path, error) => {
                write!(out, "the template: {}", host::errors::cannot_open(path.as_str(), error))
            }
            TemplateError::TooLarge(path, max) => {
                write!(out, "the template {path} is too large; the maximum is {max} bytes")
            }
            TemplateError::NoService(service, variable) => write!(
                out,
                "Service {service} not found: environment variable {variable} is not set; the kubelet sets it for Services \
                 that exist when it starts the container, so create the Service"
            ),
        }
    }
}

impl Error for TemplateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TemplateError::Read(_, error) => Some(error),
            TemplateError::TooLarge(..) | TemplateError::NoService(..) => None,
        }
    }
}
