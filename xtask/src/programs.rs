//! Tasks that are programs of their own, because they need crates of the project.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use clap::{Arg, ArgMatches, value_parser};

use crate::{Failed, root};

/// Task of another program.
struct Task {
    name: &'static str,
    package: &'static str,
    about: &'static str,
}

const TASKS: &[Task] = &[
    Task {
        name: "gen",
        package: TEXT,
        about: "Write the text that is generated from the code: READMEs, metrics, diagnostics, alerts",
    },
    Task {
        name: "parity",
        package: TEXT,
        about: "List what a release of CoreDNS documents and Portolan does not have",
    },
    Task {
        name: "bench",
        package: "xtask-bench",
        about: "Measure the server under load, as a ratio to a bare UDP echo",
    },
    Task { name: "swarm", package: "xtask-bench", about: "Measure relays with many simulated nodes" },
    Task {
        name: "informers",
        package: "xtask-bench",
        about: "Compare informers of client-go at a relay with those at the API server",
    },
    Task {
        name: "replay",
        package: "xtask-bench",
        about: "Ask recorded questions again and compare the answers; fails if a difference is not explained",
    },
    Task {
        name: "respdiff",
        package: "xtask-bench",
        about: "Ask CoreDNS and Portolan the same random questions; fails if a difference is not explained",
    },
    Task {
        name: "torture",
        package: "xtask-bench",
        about: "Run the whole server under faults; fails if an answer is wrong or a query is lost",
    },
    Task {
        name: "specification",
        package: "xtask-specification",
        about: "Ask servers all small cases of the executable specification, and compare their answers",
    },
    Task {
        name: "cluster",
        package: "xtask-lab",
        about: "Run a real Kubernetes node in namespaces of this machine, and test DNS servers in it",
    },
];

/// Program that writes generated text.
const TEXT: &str = "xtask-text";

/// Returns the definitions of the command lines. The programs read their arguments.
pub(crate) fn commands() -> impl Iterator<Item = clap::Command> {
    TASKS.iter().map(|task| {
        let arguments = Arg::new("arguments")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString));
        clap::Command::new(task.name).about(task.about).disable_help_flag(true).arg(arguments)
    })
}

/// Builds and runs the program of a task.
pub(crate) fn run(name: &str, options: &ArgMatches) -> Result<(), Failed> {
    let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| format!("no task `{name}`"))?;
    let arguments = options.get_many::<OsString>("arguments").into_iter().flatten();
    run_package(task.package, [OsString::from(name)].into_iter().chain(arguments.cloned()))
}

/// Writes the files of a release that are made from the code into a directory: man pages and completion scripts in
/// `manual`, and dashboards.yaml.
pub(crate) fn write_release_texts(output: &Path) -> Result<(), Failed> {
    run_package(TEXT, ["release-texts".into(), output.as_os_str().to_owned()].into_iter())
}

fn run_package(package: &str, arguments: impl Iterator<Item = OsString>) -> Result<(), Failed> {
    run_with(package, arguments, &[])
}

/// Builds and runs a program of the workspace with further variables.
pub(crate) fn run_with(
    package: &str,
    arguments: impl Iterator<Item = OsString>,
    variables: &[(&str, String)],
) -> Result<(), Failed> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .args(["--package", package, "--"])
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .status()
        .map_err(|error| format!("cargo run: {error}"))?;
    // The program has printed what failed.
    if status.success() { Ok(()) } else { Err(format!("{package} failed")) }
}
