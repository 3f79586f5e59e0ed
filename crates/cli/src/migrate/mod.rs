//! `portolan migrate`: converts an existing cluster DNS configuration to a Corefile, and compares the answers of two
//! servers. The command never writes to a cluster.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its user")]

mod check;
mod container;
pub mod input;
mod questions;
mod summary;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compat::coredns::{Release, unknown_to};
use compat::migrate::{self as migrations, Migration, Note, NoteKind};
use config::Directives;
use corefile::Style;
use serde_json::{Value, json};

use crate::command_error::CommandError;
use check::check;
use container::without_program;
use input::Input;
use process::configuration::{Configuration, Disk, Origin};

/// Exit code if the input could not be used.
const COULD_NOT_RUN: u8 = 2;
/// Maximum size of one input, in bytes: enough for a list of all Services of a large cluster.
const INPUT_MAX: u64 = 256 << 20;

/// Options of `portolan migrate`.
#[derive(Clone, Debug, Default)]
pub struct MigrateOptions {
    /// Corefiles, or manifests of ConfigMaps, Deployments and DaemonSets; empty means standard input.
    pub files: Vec<PathBuf>,
    /// Arguments for dnsmasq.
    pub dnsmasq: Vec<String>,
    /// CoreDNS version that the Corefile was written for.
    pub from: Option<Version>,
    /// True to add the defaults of newer installations.
    pub defaults: bool,
    /// True to print the result, also of a comparison, as one JSON object.
    pub json: bool,
    /// Old and new server whose answers to compare instead. The files then have queries, log lines or Services.
    pub check: Option<[SocketAddr; 2]>,
    /// True to compare TTLs too.
    pub ttl: bool,
    /// Cluster domain, for the queries about Services.
    pub zone: String,
}

/// CoreDNS version: major, minor, patch.
pub type Version = [u32; 3];

/// Text that is not a version of CoreDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version such as 1.6.9")]
pub struct VersionError;

/// Parses `1.6.9`, `v1.6.9` or `1.6`; missing numbers are 0.
pub fn read_version(text: &str) -> Result<Version, VersionError> {
    let mut version = [0; 3];
    let mut parts = text.trim_start_matches('v').split('.');
    let is_read =
        version.iter_mut().zip(parts.by_ref()).all(|(number, part)| part.parse().map(|read| *number = read).is_ok());
    if is_read && parts.next().is_none() { Ok(version) } else { Err(VersionError) }
}

/// Returns true if a note matters to users of the version `from`. A note about changed behaviour matters only to users
/// of an older version.
fn concerns(note: &Note, from: Option<Version>) -> bool {
    match note.since.filter(|_| note.kind == NoteKind::Review).map(read_version) {
        Some(Ok(since)) => from.is_some_and(|from| from < since),
        _ => true,
    }
}

/// Converts a configuration, or compares two servers.
#[must_use]
pub fn migrate(options: &MigrateOptions, directives: Directives) -> ExitCode {
    let outcome = match options.check {
        Some(servers) => check(servers, options),
        None => translate(options, directives),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{}", error.to_string().trim_end());
        ExitCode::from(COULD_NOT_RUN)
    })
}

fn read(path: &Path) -> Result<String, CommandError> {
    let fail = |error| CommandError::Read(path.to_owned(), error);
    if path == Path::new("-") {
        return transport::files::beginning(io::stdin(), INPUT_MAX).map_err(fail);
    }
    transport::files::read_argument(path, INPUT_MAX).map_err(fail)
}

/// Returns the input files: standard input if the command line has neither files nor dnsmasq arguments.
fn files(options: &MigrateOptions) -> Vec<PathBuf> {
    let none = options.files.is_empty() && options.dnsmasq.is_empty();
    if none { vec![PathBuf::from("-")] } else { options.files.clone() }
}

fn translate(options: &MigrateOptions, directives: Directives) -> Result<ExitCode, CommandError> {
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
    migration.notes.extend(no_way_back(&migration.text));
    if !options.json {
        migration.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if name.is_some_and(|name| name.contains("node-local")) {
        eprintln!(
            "this Corefile belongs to NodeLocal DNSCache: `portolan node` runs it unchanged, with its `__PILLAR__` \
             variables"
        );
    }
    print!("{}", if options.json { format!("{:#}\n", json(&migration)) } else { migration.text.clone() });
    let lost = migration.notes.iter().any(|note| note.kind == NoteKind::Lost);
    Ok(if refused(&migration.text, directives) || lost { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns a note if the result has words that CoreDNS does not know.
fn no_way_back(text: &str) -> Option<Note> {
    let file = corefile::parse(Path::new("Corefile"), text.to_owned(), &Disk).corefile;
    let unknown = unknown_to(Release::NEWEST, &file);
    let mut words: Vec<String> =
        unknown.iter().map(|problem| format!("`{}`", file.sources.slice(problem.span))).collect();
    words.sort_unstable();
    words.dedup();
    let words = (!words.is_empty()).then(|| words.join(", "))?;
    let text = format!(
        "CoreDNS {} does not know {words}: `portolan check --for coredns` says what to do before you go back to it",
        Release::NEWEST
    );
    Some(Note { kind: NoteKind::Review, place: String::new(), text, directive: None, since: None })
}

/// Returns the Corefile and the notes as JSON.
fn json(migration: &Migration) -> Value {
    json!({ "corefile": migration.text, "notes": migration.notes.iter().map(json_of_note).collect::<Vec<_>>() })
}

/// Returns a note as JSON, without the fields that it does not have.
fn json_of_note(note: &Note) -> Value {
    let mut object = json!({ "what": note.kind.word(), "text": note.text });
    let place = (!note.place.is_empty()).then_some(note.place.as_str());
    for (name, known) in [("place", place), ("directive", note.directive.as_deref()), ("since", note.since)] {
        if let Some(text) = known {
            object[name] = text.into();
        }
    }
    object
}

fn migrated(input: &Input, defaults: bool) -> Result<(Option<String>, Migration), CommandError> {
    match input.corefiles.as_slice() {
        [] if input.data.is_empty() && input.containers.is_empty() && !input.parts.is_empty() => {
            let name = input.parts.first().map_or(String::new(), |part| part.path.display().to_string());
            Err(CommandError::OnlyParts(name))
        }
        [] => {
            let fail = |error| CommandError::Pod(input.origin(&error), error);
            let migration = migrations::migrate_pod(&input.data, &input.containers).map_err(fail)?;
            Ok((None, migration))
        }
        [(name, text)] => {
            let migrated = migrations::migrate_corefile(Path::new(name), text, &Disk, defaults);
            let migration = migrated.map_err(CommandError::Corefile)?;
            Ok((Some(name.clone()), migration))
        }
        [_, (second, _), ..] => Err(CommandError::SecondCorefile(second.clone())),
    }
}

/// Returns true if this server would not start with a Corefile, and prints the reasons.
fn refused(text: &str, directives: Directives) -> bool {
    // node-cache's template variables have no values here, so the result cannot be checked.
    if text.contains("__PILLAR__") {
        return false;
    }
    if let Some(name) = unset_variable(text) {
        eprintln!("the result was not checked: environment variable `{name}` is not set here");
        return false;
    }
    let origin = Origin::Text { name: "Corefile".into(), text: text.to_owned() };
    match Configuration::read(&origin, compat::kube_dns::DNS_PORT, directives) {
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

/// Returns the first environment variable that a Corefile uses and this process does not have.
fn unset_variable(text: &str) -> Option<&str> {
    let named = |begin: &'static str, end: &'static str| {
        text.split(begin).skip(1).filter_map(move |rest| rest.split_once(end).map(|(name, _)| name))
    };
    named("{$", "}").chain(named("{%", "%}")).find(|name| std::env::var_os(name).is_none())
}
