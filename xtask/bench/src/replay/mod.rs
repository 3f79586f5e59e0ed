//! Replays recorded answers of another server: asks Portolan the same questions and compares.
//!
//! The folder of the recorded answers has one folder per case, with a Corefile (kube-dns has none) and the questions
//! and answers in `answers.jsonl`. `cluster.json` has the objects of the cluster, `etcd.json` the keys of etcd, and
//! `upstream/` the zones of the upstream.
//!
//! Portolan runs as a process, with the project's own fake API server, etcd and Knot DNS. Deliberate differences are
//! listed in `explained.txt`.

mod answer;
mod case;
mod client;
pub(crate) mod compare;
pub(crate) mod explained;
pub(crate) mod programs;
mod report;
mod stage;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use self::case::Case;
use self::explained::Explanations;
use self::report::Report;
use self::stage::Stage;
use xtask::{Failed, server};

/// Returns the command line of `replay`.
pub(crate) fn command() -> Command {
    Command::new("replay")
        .about("Ask recorded questions again and compare the answers; fails if a difference is not explained")
        .arg(
            Arg::new("recorded")
                .long("recorded")
                .value_name("DIR")
                .required(true)
                .help("Folder with the recorded answers, one folder per case"),
        )
        .arg(Arg::new("server").long("server").value_name("BINARY").help("Ask this binary instead of a new build"))
        .arg(Arg::new("case").action(ArgAction::Append).help("Replay only these cases"))
}

/// Replays the cases that the command line selects.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let folder = PathBuf::from(options.get_one::<String>("recorded").map_or("", String::as_str));
    let only: Vec<&String> = options.get_many("case").into_iter().flatten().collect();
    let cases = select(Case::read_all(&folder)?, &only)?;
    let server = match options.get_one::<String>("server") {
        Some(path) => PathBuf::from(path),
        None => server::build("dev")?,
    };
    let mut report = Report::new(Explanations::read()?);
    replay(&folder, &server, &cases, &mut report)?;
    report.finish(only.is_empty())
}

/// Returns the cases with these names; all if there are none.
fn select(cases: Vec<Case>, names: &[&String]) -> Result<Vec<Case>, Failed> {
    if let Some(unknown) = names.iter().find(|name| !cases.iter().any(|case| case.name == ***name)) {
        return Err(format!("no case `{unknown}`; expected a folder with `answers.jsonl`"));
    }
    Ok(cases.into_iter().filter(|case| names.is_empty() || names.contains(&&case.name)).collect())
}

fn replay(folder: &Path, server: &Path, cases: &[Case], report: &mut Report) -> Result<(), Failed> {
    let stage = Stage::start(folder, cases)?;
    for case in cases {
        if let Some(missing) = stage.missing(case) {
            report.skip(&case.name, missing);
            continue;
        }
        let served = stage.serve(server, case)?;
        let differences =
            case.answers.iter().map(|recorded| compare::differences(recorded, served.ask(recorded).as_ref()));
        report.add(case, differences.collect());
    }
    Ok(())
}
