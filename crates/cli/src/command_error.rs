//! Reasons why `portolan check` or `portolan migrate` cannot do its work.

use std::io;
use std::path::PathBuf;

use compat::migrate::{CorefileError, PodError};
use wire::NameError;

/// Reason why a command cannot do its work, other than what it checks or converts. The user must change the command
/// line or the input.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A file cannot be read.
    #[error("{}", host::errors::cannot_open(.0, .1))]
    Read(PathBuf, #[source] io::Error),
    /// A file is empty.
    #[error("{0}: the file is empty")]
    Empty(String),
    /// Manifests have no DNS configuration.
    #[error("{0}: found neither a ConfigMap of CoreDNS or kube-dns nor a Deployment of kube-dns")]
    NoConfiguration(String),
    /// Manifests have this key where they should have `Corefile`.
    #[error("{0}: the ConfigMap has the key `{1}`; the Deployment of CoreDNS mounts the key `Corefile`")]
    WrongKey(String, String),
    /// Manifests have only parts of a Corefile.
    #[error(
        "{0}: the ConfigMap coredns-custom has only parts of a Corefile; add the ConfigMap `coredns`, or check them \
         alone with `portolan check`"
    )]
    OnlyParts(String),
    /// Manifests have a DNS configuration, but no Corefile.
    #[error("{0}: no Corefile in these manifests; try `portolan migrate {0} | portolan check -`")]
    NoCorefile(String),
    /// The input has a further Corefile, which is named.
    #[error("{0}: more than one Corefile; convert them one at a time")]
    SecondCorefile(String),
    /// The input has an invalid Corefile.
    #[error("{0}")]
    Corefile(#[source] CorefileError),
    /// The input has an invalid configuration of kube-dns: the file, if it is in one, and the error.
    #[error("{}{}", .0.as_ref().map_or_else(String::new, |name| format!("{name}: ")), .1)]
    Pod(Option<String>, #[source] PodError),
    /// A file of queries has an invalid line.
    #[error("{}: {}", .0.display(), .1)]
    Query(PathBuf, #[source] QueryError),
    /// The input has no query.
    #[error("no queries found; expected lines `NAME TYPE`, a query log, or manifests of Services")]
    NoQueries,
    /// Servers answer no query: their description, and the number of queries.
    #[error("{} not answered {}; giving up", .0, queries(*.1))]
    Unanswered(String, usize),
    /// The operating system refuses something else.
    #[error("{}", host::errors::describe(.0))]
    Io(#[source] io::Error),
    /// A comparison of two servers panicked.
    #[error("{0}")]
    Task(#[source] tokio::task::JoinError),
}

/// Returns this number of queries, in words.
fn queries(number: usize) -> String {
    if number == 1 { "the query".to_owned() } else { format!("any of the first {number} queries") }
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
