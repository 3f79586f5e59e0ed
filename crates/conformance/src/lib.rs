//! Conformance test for any DNS server: the Kubernetes DNS specification 1.1.0, and the expectations of Kubernetes'
//! own end-to-end tests.
//!
//! The checks are data: `checks.txt` queries the objects of `objects.yaml`. The objects are created in a scratch
//! namespace of a cluster, written to a file of manifests that the server reads, or provided by the user
//! ([`Objects`]). Everything created is removed at the end, also after SIGINT or SIGTERM.
//!
//! The server is treated as a black box: nothing here depends on how Portolan works.
#![allow(
    clippy::disallowed_methods,
    reason = "it queries a server as its clients do: with sockets, timeouts and the user's files"
)]

mod api;
mod built_in_error;
mod client;
mod compare;
mod endpoints;
mod expect;
mod objects;
mod report;
mod response;
mod run;
mod script;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use api::Api;
pub use built_in_error::{BuiltInError, PlaceholderError};
pub use compare::{Comparison, Difference, DifferenceKind, compare};
use objects::Values;
pub use report::{Checked, Outcome, Report};
use run::Runner;
use store::{Manifests, ObjectStore};

/// Version of the specification that is checked.
pub const SPECIFICATION: &str = "1.1.0";
/// Alphabet of the random suffix of a namespace: that of Kubernetes' generated names, which cannot spell words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of the suffix. It keeps concurrent runs apart.
const SUFFIX: usize = 6;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address of the server.
    pub server: SocketAddr,
    /// Zone of the cluster, such as `cluster.local`.
    pub zone: String,
    /// Location of the objects.
    pub objects: Objects,
    /// Namespace of the objects; the prefix of its name if it is a scratch namespace.
    pub namespace: String,
    /// Text that the name or description of a check must contain.
    pub filter: String,
}

/// Location of the objects that the checks query.
#[derive(Clone, Debug)]
pub enum Objects {
    /// Created in a scratch namespace of a cluster.
    Cluster(cluster::Source),
    /// Written to a file that the server reads.
    File(PathBuf),
    /// Provided by the user, from [`manifests`].
    Given,
}

/// Error that prevents some or all checks.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server cannot be queried.
    #[error("cannot query server {0}: {1}")]
    Server(SocketAddr, String),
    /// The server does not serve the objects.
    #[error(
        "the server does not serve the test objects: {name} A returned {response}{}",
        if *is_given { "; load the objects that --print-manifests prints" } else { "" }
    )]
    Unknown {
        /// Name of the last query.
        name: String,
        /// Last response.
        response: String,
        /// True if the user was to provide the objects.
        is_given: bool,
    },
    /// No usable configuration for the API server.
    #[error("{0}")]
    Credentials(#[source] kubeapi::SetupError),
    /// A request to the API server failed.
    #[error("cannot {action}: {}: {message}", api_failure(*code))]
    Api {
        /// Action that failed.
        action: String,
        /// HTTP status; 0 without a response.
        code: u16,
        /// Message of the API server or of the client.
        message: String,
    },
    /// The namespace could not be deleted.
    #[error("namespace {namespace} was not deleted: {reason}; delete it manually")]
    Left {
        /// Name of the namespace.
        namespace: String,
        /// Reason.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    File(PathBuf, String),
    /// A signal ended the run.
    #[error("interrupted")]
    Interrupted,
    /// Error of the operating system.
    #[error("{}", kubeapi::causes(.0))]
    System(#[source] std::io::Error),
    /// Error in the built-in checks or objects.
    #[error("invalid built-in check: {0}")]
    BuiltIn(#[source] BuiltInError),
}

/// Returns the reason why a request to the API server failed, by its HTTP status.
fn api_failure(code: u16) -> String {
    match code {
        0 => "request to the API server failed".to_owned(),
        code => format!("the API server answered {code}"),
    }
}

impl RunError {
    fn file(path: &Path, error: &std::io::Error) -> RunError {
        RunError::File(path.to_owned(), kubeapi::causes(error))
    }
}

/// Failed request to the API server.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    /// The API server answered with an error.
    #[error("the API server answered {code}: {message}")]
    Refused { code: u16, message: String },
    /// No response. A retry may succeed.
    #[error("request to the API server failed: {0}")]
    Unreachable(String),
}

impl RequestError {
    fn during(self, action: &str) -> RunError {
        let (code, message) = match self {
            RequestError::Refused { code, message } => (code, message),
            RequestError::Unreachable(message) => (0, message),
        };
        RunError::Api { action: action.to_owned(), code, message }
    }
}

/// Progress of a run.
pub enum Progress<'a> {
    /// The checks begin; the namespace.
    Begin(&'a str),
    /// The checks begin once the server has the objects, for which they wait at most this long.
    Waiting(Duration),
    /// A check is complete.
    Checked(&'a Checked),
    /// A problem that does not end the run.
    Warning(&'a str),
}

/// Returns the objects as YAML manifests, for servers without a cluster.
///
/// # Errors
/// Fails only if the built-in objects are invalid.
pub fn manifests(zone: &str, namespace: &str) -> Result<String, RunError> {
    objects::manifests(&Values::new(without_dot(zone), namespace)).map_err(|error| RunError::BuiltIn(error.into()))
}

/// Runs the checks, then removes everything it created, whatever the outcome. A second SIGINT or SIGTERM skips the
/// removal.
///
/// # Errors
/// Returns the error that ended the checks, and the one that prevented the removal.
pub async fn run(options: &Options, report: &mut dyn FnMut(Progress<'_>)) -> Result<Report, Vec<RunError>> {
    let mut signals = Signals::new().map_err(|error| vec![RunError::System(error)])?;
    let (mut store, namespace) = open(options).map_err(|error| vec![error])?;
    let outcome = tokio::select! {
        outcome = make(options, &mut store, &namespace, report) => outcome,
        () = signals.next() => Err(RunError::Interrupted),
    };
    let cleaned = tokio::select! {
        cleaned = store.clean() => cleaned,
        () = signals.next() => Err(RunError::Left { namespace, reason: "interrupted again".to_owned() }),
    };
    match (outcome, cleaned) {
        (Ok(report), Ok(())) => Ok(report),
        (outcome, cleaned) => Err(outcome.err().into_iter().chain(cleaned.err()).collect()),
    }
}

fn open(options: &Options) -> Result<(ObjectStore, String), RunError> {
    let namespace = options.namespace.clone();
    Ok(match &options.objects {
        Objects::Cluster(source) => {
            let client = kubeapi::connect(source).map_err(RunError::Credentials)?;
            let namespace = format!("{namespace}-{}", suffix());
            (ObjectStore::cluster(Api::new(client, namespace.clone())), namespace)
        }
        Objects::File(path) => (ObjectStore::File(Manifests::new(path)?), namespace),
        Objects::Given => (ObjectStore::Given, namespace),
    })
}

fn suffix() -> String {
    let mut random = rand::rng();
    (0..SUFFIX).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
}

async fn make(
    options: &Options,
    store: &mut ObjectStore,
    namespace: &str,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<Report, RunError> {
    let all = script::checks().map_err(|line| RunError::BuiltIn(BuiltInError::Line(line.to_owned())))?;
    let zone = without_dot(&options.zone);
    report(Progress::Begin(namespace));
    let values = Values::new(zone, namespace);
    let mut runner = Runner { server: options.server, store, values, without_endpoints: None };
    runner.create(&mut |warning| report(Progress::Warning(warning))).await?;
    report(Progress::Waiting(run::SOON));
    runner.settle().await?;
    let mut checks = Vec::new();
    let wanted = |check: &&script::Check| check.name.contains(&options.filter) || check.says.contains(&options.filter);
    for check in all.iter().filter(wanted) {
        let checked = runner.check(check).await?;
        report(Progress::Checked(&checked));
        checks.push(checked);
    }
    Ok(Report { server: options.server, zone: zone.to_owned(), namespace: namespace.to_owned(), checks })
}

fn without_dot(zone: &str) -> &str {
    zone.trim_end_matches('.')
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
