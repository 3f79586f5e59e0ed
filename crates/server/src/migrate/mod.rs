//! `portolan migrate`: from what a cluster's DNS is told today to a Corefile for this server, and whether two servers
//! answer the same. Nothing here writes to a cluster.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

mod check;
mod container;
pub(crate) mod input;
mod questions;
mod summary;

use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use corefile::Style;
use migrate::{Migration, Note, What};
use serde_json::{Value, json};

use crate::configuration::{Configuration, Disk, Origin};
use check::check;
use container::without_program;
use input::Input;

/// What it ends with if nothing could be done.
const COULD_NOT_RUN: u8 = 2;
/// Octets of the longest input: a list of all Services of a large cluster.
const INPUT_MAX: u64 = 256 << 20;

/// How the command was written.
#[derive(Clone, Debug, Default)]
pub struct MigrateOptions {
    /// Corefiles, or manifests of ConfigMaps, Deployments and DaemonSets; standard input if there is none.
    pub files: Vec<PathBuf>,
    /// Arguments of dnsmasq.
    pub dnsmasq: Vec<String>,
    /// The version of CoreDNS that the Corefile was written for.
    pub from: Option<Version>,
    /// Add what newer installations have.
    pub defaults: bool,
    /// Print the result, of a comparison too, as one JSON object.
    pub json: bool,
    /// Compare the answers of these two servers instead: the files have questions, log lines or Services.
    pub check: Option<[SocketAddr; 2]>,
    /// Compare times to live too.
    pub ttl: bool,
    /// The zone of the cluster, for the questions about Services.
    pub zone: String,
}

/// A version of CoreDNS.
pub type Version = [u32; 3];

/// Reads `1.6.9`, `v1.6.9` or `1.6`.
pub(crate) fn read_version(text: &str) -> Result<Version, String> {
    let mut version = [0; 3];
    let mut parts = text.trim_start_matches('v').split('.');
    let is_read =
        version.iter_mut().zip(parts.by_ref()).all(|(number, part)| part.parse().map(|read| *number = read).is_ok());
    if is_read && parts.next().is_none() { Ok(version) } else { Err("a version such as 1.6.9 is wanted".to_owned()) }
}

/// Reports whether a note tells something to those who come from `from`. What only means something else since a version is told
/// to those who had an older one.
fn concerns(note: &Note, from: Option<Version>) -> bool {
    match note.since.filter(|_| note.what == What::Look).map(read_version) {
        Some(Ok(since)) => from.is_some_and(|from| from < since),
        _ => true,
    }
}

/// Migrates, or compares.
#[must_use]
pub fn migrate(options: &MigrateOptions) -> ExitCode {
    let outcome = match options.check {
        Some(servers) => check(servers, options),
        None => translate(options),
    };
    outcome.unwrap_or_else(|problem| {
        eprintln!("{}", problem.trim_end());
        ExitCode::from(COULD_NOT_RUN)
    })
}

fn read(path: &Path) -> Result<String, String> {
    let fail = |error: io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    if path == Path::new("-") {
        io::stdin().take(INPUT_MAX).read_to_string(&mut text).map_err(fail)?;
    } else {
        std::fs::File::open(path).map_err(fail)?.take(INPUT_MAX).read_to_string(&mut text).map_err(fail)?;
    }
    Ok(text)
}

/// The files that were named; standard input if none was and nothing else says what to do.
fn files(options: &MigrateOptions) -> Vec<PathBuf> {
    let none = options.files.is_empty() && options.dnsmasq.is_empty();
    if none { vec![PathBuf::from("-")] } else { options.files.clone() }
}

fn translate(options: &MigrateOptions) -> Result<ExitCode, String> {
    let mut input = Input::default();
    for path in files(options) {
        input.add(&path, read(&path)?)?;
    }
    if !options.dnsmasq.is_empty() {
        input.containers.push([&["--".to_owned()][..], without_program(&options.dnsmasq)].concat());
    }
    let (name, mut migration) = migrated(&input, options.defaults)?;
    migration.notes.retain(|note| concerns(note, options.from));
    migration.notes.splice(..0, input.notes);
    if !options.json {
        migration.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if name.is_some_and(|name| name.contains("node-local")) {
        eprintln!(
            "this is the Corefile of a node cache: `portolan node` takes it as it is, `__PILLAR__` words and all"
        );
    }
    print!("{}", if options.json { format!("{:#}\n", json(&migration)) } else { migration.text.clone() });
    let lost = migration.notes.iter().any(|note| note.what == What::Lost);
    Ok(if refused(&migration.text) || lost { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What came of it, for machines.
fn json(migration: &Migration) -> Value {
    json!({ "corefile": migration.text, "notes": migration.notes.iter().map(json_of_note).collect::<Vec<_>>() })
}

/// What a note knows; what it does not is not there.
fn json_of_note(note: &Note) -> Value {
    let mut object = json!({ "what": note.what.word(), "text": note.text });
    let place = (!note.place.is_empty()).then_some(note.place.as_str());
    for (name, known) in [("place", place), ("directive", note.directive.as_deref()), ("since", note.since)] {
        if let Some(text) = known {
            object[name] = text.into();
        }
    }
    object
}

fn migrated(input: &Input, defaults: bool) -> Result<(Option<String>, Migration), String> {
    match input.corefiles.as_slice() {
        [] => {
            let migration = migrate::kube_dns(&input.data, &input.containers).map_err(|error| error.to_string())?;
            Ok((None, migration))
        }
        [(name, text)] => {
            let migrated = migrate::corefile(Path::new(name), text, &Disk, defaults);
            let migration = migrated
                .map_err(|unreadable| corefile::render(&unreadable.problems, &unreadable.sources, Style::Plain))?;
            Ok((Some(name.clone()), migration))
        }
        [_, (second, _), ..] => Err(format!("{second}: one Corefile at a time")),
    }
}

/// Whether this server would refuse a Corefile; says why.
fn refused(text: &str) -> bool {
    // What stands in for values of another place is not there to be looked at.
    if text.contains("__PILLAR__") {
        return false;
    }
    if let Some(name) = unset_variable(text) {
        eprintln!("`{name}` has no value here: whether this server takes the Corefile is not looked at");
        return false;
    }
    let origin = Origin::Text { name: "Corefile".into(), text: text.to_owned() };
    match Configuration::read(&origin, kubedns::DNS_PORT) {
        Ok(configuration) => {
            eprint!("{}", configuration.render_problems(Style::Plain));
            configuration.plan.is_none()
        }
        Err(error) => {
            eprintln!("{error}");
            true
        }
    }
}

/// A variable of the environment that a Corefile uses and this process does not have.
fn unset_variable(text: &str) -> Option<&str> {
    let named = |begin: &'static str, end: &'static str| {
        text.split(begin).skip(1).filter_map(move |rest| rest.split_once(end).map(|(name, _)| name))
    };
    named("{$", "}").chain(named("{%", "%}")).find(|name| std::env::var_os(name).is_none())
}
