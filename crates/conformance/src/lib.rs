//! Checks a DNS server, any, by its address, against the Kubernetes DNS specification 1.1.0 and what Kubernetes' own
//! end-to-end tests ask of a cluster's DNS.
//!
//! The checks are data: `checks.txt`, over the objects of `objects.yaml`. They are made in a scratch namespace of a cluster,
//! in a file of manifests that the server reads, or where the user has put the objects ([`Objects`]). All that was made
//! is taken away again, also when the process is told to end. Nothing here knows how Portolan answers.
#![allow(
    clippy::disallowed_methods,
    reason = "it asks a server as its clients do: over sockets, in time, and with files of its user"
)]

mod answer;
mod api;
mod ask;
mod compare;
mod endpoints;
mod expect;
mod objects;
mod place;
mod report;
mod run;
mod script;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use api::Api;
pub use compare::{Difference, Differs, compare};
use objects::Values;
use place::{Manifests, Place};
pub use report::{Checked, Outcome, Report};
use run::Runner;

/// The version of the specification that is checked.
pub const SPECIFICATION: &str = "1.1.0";
/// The letters of the random end of a namespace: those of names that Kubernetes makes, which spell no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them: two runs at once are not to meet.
const SUFFIX: usize = 6;

/// What to check, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub server: SocketAddr,
    /// The zone of the cluster, such as `cluster.local`.
    pub zone: String,
    /// Where the objects are.
    pub objects: Objects,
    /// The namespace, and of a scratch namespace how it begins.
    pub namespace: String,
    /// Only checks in whose name or source this is.
    pub filter: String,
}

/// Where the objects are that the checks need.
#[derive(Clone, Debug)]
pub enum Objects {
    /// To be created in a scratch namespace of a cluster.
    Cluster(cluster::Source),
    /// To be written into a file that the server reads.
    File(PathBuf),
    /// Made by the user, from [`manifests`].
    Given,
}

/// Why the checks could not be made, or not all.
#[derive(Debug)]
pub enum Problem {
    /// The server cannot be asked.
    Server(SocketAddr, String),
    /// The server does not learn of the objects.
    Unknown {
        /// What was asked for last.
        name: String,
        /// What the server says of it.
        answer: String,
        /// Whether the user was to make the objects.
        is_given: bool,
    },
    /// There is no way to the API server.
    Credentials(kubeapi::SetupProblem),
    /// The API server says no, or nothing (code 0).
    Api {
        /// What it was to do.
        what: String,
        /// Of HTTP.
        code: u16,
        /// Its words.
        message: String,
    },
    /// A namespace could not be deleted.
    Left {
        /// Its name.
        namespace: String,
        /// Why.
        reason: String,
    },
    /// A file cannot be read or written.
    File(PathBuf, String),
    /// The process was told to end.
    Interrupted,
    /// The machine does not let us.
    System(std::io::Error),
    /// What is built in is wrong.
    BuiltIn(String),
}

impl Problem {
    fn file(path: &Path, error: &std::io::Error) -> Problem {
        Problem::File(path.to_owned(), error.to_string())
    }
}

impl core::fmt::Display for Problem {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Problem::Server(server, why) => write!(out, "the server {server} cannot be asked: {why}"),
            Problem::Unknown { name, answer, is_given } => {
                write!(out, "the server does not know the objects: it answers {name} A with {answer}")?;
                if *is_given { out.write_str("; give it what --print-manifests prints") } else { Ok(()) }
            }
            Problem::Credentials(problem) => problem.fmt(out),
            Problem::Api { what, code: 0, message } => write!(out, "cannot {what}: the API server: {message}"),
            Problem::Api { what, code, message } => write!(out, "cannot {what}: the API server says {code}: {message}"),
            Problem::Left { namespace, reason } => {
                write!(out, "the namespace {namespace} is still there, delete it: {reason}")
            }
            Problem::File(path, reason) => write!(out, "{}: {reason}", path.display()),
            Problem::Interrupted => out.write_str("interrupted"),
            Problem::System(error) => error.fmt(out),
            Problem::BuiltIn(what) => write!(out, "a built-in check is wrong: {what}"),
        }
    }
}

/// Why a request to the API server came to nothing.
enum Failure {
    Refused { code: u16, message: String },
    Unreachable(String),
}

impl Failure {
    fn of(self, what: &str) -> Problem {
        let (code, message) = match self {
            Failure::Refused { code, message } => (code, message),
            Failure::Unreachable(message) => (0, message),
        };
        Problem::Api { what: what.to_owned(), code, message }
    }
}

/// What somebody wants to know while the checks are made.
pub enum Told<'a> {
    /// The checks begin, in this namespace.
    Begin(&'a str),
    /// One is made.
    Checked(&'a Checked),
    /// Something is not as it should be.
    Warning(&'a str),
}

/// The objects as manifests, for a server that is to be checked without a cluster.
///
/// # Errors
/// If what is built in is wrong.
pub fn manifests(zone: &str, namespace: &str) -> Result<String, Problem> {
    objects::manifests(&Values::new(without_dot(zone), namespace)).map_err(Problem::BuiltIn)
}

/// Makes the checks. Whatever comes of them, what was made for them is taken away before this ends, unless the process is
/// told to end for a second time.
///
/// # Errors
/// What kept the checks from being made to the end, and what could not be taken away.
pub async fn run(options: &Options, tell: &mut dyn FnMut(Told<'_>)) -> Result<Report, Vec<Problem>> {
    let mut signals = Signals::new().map_err(|error| vec![Problem::System(error)])?;
    let (mut place, namespace) = open(options).map_err(|problem| vec![problem])?;
    let outcome = tokio::select! {
        outcome = make(options, &mut place, &namespace, tell) => outcome,
        () = signals.next() => Err(Problem::Interrupted),
    };
    let cleaned = tokio::select! {
        cleaned = place.clean() => cleaned,
        () = signals.next() => Err(Problem::Left { namespace, reason: "interrupted again".to_owned() }),
    };
    match (outcome, cleaned) {
        (Ok(report), Ok(())) => Ok(report),
        (outcome, cleaned) => Err(outcome.err().into_iter().chain(cleaned.err()).collect()),
    }
}

fn open(options: &Options) -> Result<(Place, String), Problem> {
    let namespace = options.namespace.clone();
    Ok(match &options.objects {
        Objects::Cluster(source) => {
            let client = kubeapi::connect(source).map_err(Problem::Credentials)?;
            let namespace = format!("{namespace}-{}", suffix());
            (Place::cluster(Api::new(client, namespace.clone())), namespace)
        }
        Objects::File(path) => (Place::File(Manifests::new(path)?), namespace),
        Objects::Given => (Place::Given, namespace),
    })
}

fn suffix() -> String {
    let mut random = rand::rng();
    (0..SUFFIX).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
}

async fn make(
    options: &Options,
    place: &mut Place,
    namespace: &str,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Report, Problem> {
    let all = script::checks().map_err(|line| Problem::BuiltIn(line.to_owned()))?;
    let zone = without_dot(&options.zone);
    tell(Told::Begin(namespace));
    let values = Values::new(zone, namespace);
    let mut runner = Runner { server: options.server, place, values, without_endpoints: None };
    runner.create(&mut |warning| tell(Told::Warning(warning))).await?;
    runner.settle().await?;
    let mut checks = Vec::new();
    let wanted = |check: &&script::Check| check.name.contains(&options.filter) || check.says.contains(&options.filter);
    for check in all.iter().filter(wanted) {
        let checked = runner.check(check).await?;
        tell(Told::Checked(&checked));
        checks.push(checked);
    }
    Ok(Report { server: options.server, zone: zone.to_owned(), namespace: namespace.to_owned(), checks })
}

fn without_dot(zone: &str) -> &str {
    zone.trim_end_matches('.')
}

/// The signals by which a process is told to end.
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
