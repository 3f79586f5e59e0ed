//! Runs the fuzz targets with libFuzzer, guided by code coverage.
//!
//! cargo-fuzz needs a nightly compiler for the sanitizers. This code is safe Rust and needs no sanitizers, and the
//! flags for coverage work with the stable compiler.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::{Arg, ArgAction, ArgMatches};

use crate::{Failed, root};

/// Programs with the targets.
const TARGETS: &str = "crates/fuzz/src/bin";
/// Default duration per target in seconds.
const SECONDS: &str = "20";
/// Maximum length of an input in bytes. Some packets and Corefiles are longer, but length alone finds no new behaviour.
const INPUT_MAX: usize = 4096;
/// Compiler with coverage instrumentation, for the crates of this project alone. The tests use the others too.
const COMPILER: &str = "xtask/src/coverage.sh";
/// Optimisation of the crates of this project. Without it, a target tries a tenth of the inputs.
const OPTIMISED: &str = "profile.dev.opt-level=1";

/// Returns the command line of `fuzz`.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("fuzz")
        .about("Fuzz the parsers; findings are saved in target/fuzz/findings")
        .arg(Arg::new("target").help("Run only this target: query, reply, corefile …"))
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .default_value(SECONDS)
                .value_parser(clap::value_parser!(u32))
                .help("Duration per target in seconds"),
        )
        .arg(
            Arg::new("keep")
                .long("keep")
                .action(ArgAction::SetTrue)
                .help("Add the inputs with new coverage to the committed corpus"),
        )
}

/// How to run the targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session<'a> {
    /// Name of the only target to run; all of them if `None`.
    pub(crate) only: Option<&'a str>,
    /// How long each target runs.
    pub(crate) limit: Limit,
    /// Seed of the mutations; chosen at random if `None`.
    pub(crate) seed: Option<u32>,
    /// True to add inputs with new coverage to the committed corpus.
    pub(crate) keep: bool,
}

/// End of the run of a target.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// Duration in seconds.
    Seconds(u32),
    /// Number of inputs, so that a fast machine does not look further than a slow one.
    Inputs(u32),
}

/// Runs the targets that the command line selects.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let Some(build) = Build::start()? else { return Ok(()) };
    let session = Session {
        only: options.get_one("target").map(String::as_str),
        limit: Limit::Seconds(options.get_one::<u32>("seconds").copied().unwrap_or_default()),
        seed: None,
        keep: options.get_flag("keep"),
    };
    build.finish()?;
    look(session)
}

/// Runs as many targets at a time as there are CPUs: a target uses one.
pub(crate) fn look(session: Session<'_>) -> Result<(), Failed> {
    let is_selected = |name: &String| session.only.is_none_or(|only| only == name);
    let names: Vec<String> = targets()?.into_iter().filter(is_selected).collect();
    let next = AtomicUsize::new(0);
    let run_rest = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_target(name, session)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let runs: Vec<_> = (0..cpus).map(|_| scope.spawn(run_rest)).collect();
        runs.into_iter().try_for_each(|run| run.join().unwrap_or_else(|_| Err("fuzz: a thread panicked".to_owned())))
    })
}

/// Returns the names of the targets: each is a program of the crate `fuzz`.
fn targets() -> Result<Vec<String>, Failed> {
    let fail = |error: std::io::Error| format!("{TARGETS}: {error}");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join(TARGETS)).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn run_target(name: &str, session: Session<'_>) -> Result<(), Failed> {
    println!("fuzz: {name}, {:?}", session.limit);
    let fuzzer = Fuzzer::new(name)?;
    fuzzer.look(session)?;
    if session.keep { fuzzer.keep() } else { Ok(()) }
}

fn has_cxx() -> bool {
    Command::new("c++").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn folder() -> PathBuf {
    target().join("fuzz")
}

/// Returns the folder of what cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// Build of all targets, which goes on until it is waited for, or dropped.
pub(crate) struct Build(Child);

impl Build {
    /// Starts it, with the least share of the CPUs. Returns nothing, and says so, without a C++ compiler.
    pub(crate) fn start() -> Result<Option<Build>, Failed> {
        if !has_cxx() {
            println!("fuzz: SKIPPED, libFuzzer needs a C++ compiler");
            return Ok(None);
        }
        let cargo = Command::new("nice")
            .args(["-n", "19", "cargo", "build", "--quiet", "--package", "portolan-fuzz", "--features", "libfuzzer"])
            .args(["--bins", "--config", OPTIMISED])
            .env("RUSTC_WORKSPACE_WRAPPER", root().join(COMPILER))
            .current_dir(root())
            .spawn();
        cargo.map(|cargo| Some(Build(cargo))).map_err(|error| format!("nice cargo: {error}"))
    }

    /// Waits until all targets are built.
    pub(crate) fn finish(mut self) -> Result<(), Failed> {
        if self.0.wait().map_err(|error| format!("cargo: {error}"))?.success() {
            Ok(())
        } else {
            Err("fuzz: the targets cannot be built".to_owned())
        }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        // It has ended if somebody has waited for it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fuzzer of one target, with its folders.
struct Fuzzer {
    name: String,
    program: PathBuf,
    /// Committed corpus.
    kept: PathBuf,
    /// Inputs found with new coverage.
    fresh: PathBuf,
}

impl Fuzzer {
    fn new(name: &str) -> Result<Fuzzer, Failed> {
        let fresh = folder().join("corpus").join(name);
        for folder in [&fresh, &folder().join("findings")] {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        Ok(Fuzzer {
            name: name.to_owned(),
            program: target().join("debug").join(name),
            kept: root().join("crates/fuzz/corpus").join(name),
            fresh,
        })
    }

    fn look(&self, session: Session<'_>) -> Result<(), Failed> {
        let findings = folder().join("findings");
        let arguments = [
            match session.limit {
                Limit::Seconds(seconds) => format!("-max_total_time={seconds}"),
                Limit::Inputs(inputs) => format!("-runs={inputs}"),
            },
            // libFuzzer reads 0 as: choose one.
            format!("-seed={}", session.seed.unwrap_or_default()),
            format!("-max_len={INPUT_MAX}"),
            format!("-artifact_prefix={}/{}-", findings.display(), self.name),
            "-verbosity=0".to_owned(),
            "-print_final_stats=1".to_owned(),
        ];
        self.run(&arguments, &[&self.fresh, &self.kept])
    }

    fn keep(&self) -> Result<(), Failed> {
        self.run(&["-merge=1".to_owned()], &[&self.kept, &self.fresh])
    }

    fn run(&self, arguments: &[String], folders: &[&Path]) -> Result<(), Failed> {
        let status = Command::new(&self.program).args(arguments).args(folders).status();
        let good = status.map_err(|error| format!("{}: {error}", self.program.display()))?.success();
        if good { Ok(()) } else { Err(format!("fuzz: target {} failed; see the output above", self.name)) }
    }
}
