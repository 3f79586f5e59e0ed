//! Reasons why `portolan check` or `portolan migrate` cannot do its work.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use compat::migrate::{CorefileError, PodError};
use wire::NameError;

/// Reason why a command cannot do its work, other than what it checks or converts. The user must change the command
/// line or the input.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// A file cannot be read.
    Read(PathBuf, io::Error),
    /// A file is empty.
    Empty(String),
    /// Manifests have no DNS configuration.
    NoConfiguration(String),
    /// Manifests have this key where they should have `Corefile`.
    WrongKey(String, String),
    /// Manifests have only parts of a Corefile.
    OnlyParts(String),
    /// Manifests have a DNS configuration, but no Corefile.
    NoCorefile(String),
    /// The input has a further Corefile, which is named.
    SecondCorefile(String),
    /// The input has an invalid Corefile.
    Corefile(CorefileError),
    /// The input has an invalid configuration of kube-dns: the file, if it is in one, and the error.
    Pod(Option<String>, PodError),
    /// A file of queries has an invalid line.
    Query(PathBuf, QueryError),
    /// The input has no query.
    NoQueries,
    /// Servers answer no query: their description, and the number of queries.
    Unanswered(String, usize),
    /// The operating system refuses something else.
    Io(io::Error),
    /// A comparison of two servers panicked.
    Task(tokio::task::JoinError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Read(path, error) => out.write_str(&host::errors::cannot_open(path, error)),
            CommandError::Empty(name) => write!(out, "{name}: the file is empty"),
            CommandError::NoConfiguration(name) => {
                write!(out, "{name}: found neither a ConfigMap of CoreDNS or kube-dns nor a Deployment of kube-dns")
            }
            CommandError::WrongKey(name, key) => {
                write!(
                    out,
                    "{name}: the ConfigMap has the key `{key}`; the Deployment of CoreDNS mounts the key `Corefile`"
                )
            }
            CommandError::OnlyParts(name) => write!(
                out,
                "{name}: the ConfigMap coredns-custom has only parts of a Corefile; add the ConfigMap `coredns`, or \
                 check them alone with `portolan check`"
            ),
            CommandError::NoCorefile(name) => {
                write!(out, "{name}: no Corefile in these manifests; try `portolan migrate {name} | portolan check -`")
            }
            CommandError::SecondCorefile(name) => {
                write!(out, "{name}: more than one Corefile; convert them one at a time")
            }
            CommandError::Corefile(error) => error.fmt(out),
            CommandError::Pod(None, error) => error.fmt(out),
            CommandError::Pod(Some(name), error) => write!(out, "{name}: {error}"),
            CommandError::Query(path, error) => write!(out, "{}: {error}", path.display()),
            CommandError::NoQueries => {
                out.write_str("no queries found; expected lines `NAME TYPE`, a query log, or manifests of Services")
            }
            CommandError::Unanswered(servers, queries) => {
                let queries =
                    if *queries == 1 { "the query".to_owned() } else { format!("any of the first {queries} queries") };
                write!(out, "{servers} not answered {queries}; giving up")
            }
            CommandError::Io(error) => out.write_str(&host::errors::describe(error)),
            CommandError::Task(error) => error.fmt(out),
        }
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CommandError::Read(_, error) | CommandError::Io(error) => Some(error),
            CommandError::Corefile(error) => Some(error),
            CommandError::Pod(_, error) => Some(error),
            CommandError::Query(_, error) => Some(error),
            CommandError::Task(error) => Some(error),
            _ => None,
        }
    }
}

/// Value of an option that names a DNS server.
#[derive(Debug, thiserror::Error)]
pub enum ServerAddressError {
    /// Neither an address nor a host name.
    #[error("expected an address or a host, such as 10.96.0.10, [::1]:1053 or dns.example.org:53")]
    Form,
    /// The host name cannot be looked up.
    #[error("{0}: {1}")]
    Lookup(String, #[source] io::Error),
    /// The host name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
}

/// Invalid line of a list of queries.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub(crate) struct QueryError {
    pub(crate) line: usize,
    #[source]
    pub(crate) error: QueryLineError,
}

/// Error in a line of a list of queries.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryLineError {
    /// Not a name and a type.
    #[error("`{0}` is not `NAME TYPE`")]
    Form(String),
    /// Not a domain name.
    #[error("`{0}` is not a domain name: {1}")]
    Name(String, #[source] NameError),
    /// Not a record type.
    #[error("`{0}` is not a record type")]
    Type(String),
}
