//! All checks that a change must pass, ordered so that cheap ones fail first.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::{Failed, fuzzing, root};

/// Run of the fuzz targets. Seed and number of inputs are fixed, so that a change passes or fails for what it contains,
/// and not for what a faster machine finds; `cargo xtask fuzz` explores.
const FUZZING: fuzzing::Session<'_> =
    fuzzing::Session { only: None, limit: fuzzing::Limit::Inputs(1000), seed: Some(1), keep: false };

/// Check: its name, the program and its arguments.
struct Check(&'static str, &'static str, &'static [&'static str]);

const CHECKS: &[Check] = &[
    Check("format", "cargo", &["fmt", "--all", "--check"]),
    Check("lints", "cargo", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    Check("generated text", "cargo", &["xtask", "gen", "--check"]),
    Check("documentation", "cargo", &["doc", "--workspace", "--no-deps", "--quiet"]),
    Check("licences, sources and bans", "cargo", &["deny", "--all-features", "check", "licenses", "sources", "bans"]),
];

/// Package outside of the workspace, as users write theirs.
const TEMPLATE: &str = "examples/plugin-template";
/// Arguments of cargo that run all tests, as the README shows them, to the end.
const TESTS: &[&str] = &["test", "--workspace", "--quiet", "--no-fail-fast"];
/// Maximum number of test programs that run a second time. More of them do not fail by coincidence.
const SECOND_RUNS_MAX: usize = 3;
/// Variable that `.ci/run` sets if it has installed everything that it can.
const INSTALLED: &str = "PORTOLAN_CI_INSTALLED";
/// What `.ci/run` does not install, in the words of the tests that it keeps from running. A test that another cause
/// keeps from running is one that nobody runs any more.
const NOT_INSTALLED: &[&str] = &[
    // Built from sources, which takes longer than all other checks.
    "kube-apiserver",
    "PORTOLAN_COREDNS",
    "PORTOLAN_STATIC",
    "`h2spec`",
    // Programs with many dependencies, for a single test each.
    "`dnsdist`",
    "`haproxy`",
    "`dnspython`",
    "go:",
    // Properties of the machine.
    "no QUIC",
    "cgroups",
    "Linux 5.11",
    "seccomp",
    "namespace",
    "unshare",
];
/// Maximum time that a line of cargo's output needs after its end.
const REST_MAX: Duration = Duration::from_secs(1);

/// Runs all checks and stops at the first failure.
pub(crate) fn run() -> Result<(), Failed> {
    for Check(name, program, arguments) in CHECKS {
        if arguments[0] == "deny" && !has_cargo_deny() {
            println!("{name}: SKIPPED, cargo-deny is not installed; run `cargo install --locked cargo-deny`");
            continue;
        }
        let _timed = Timed::new(name);
        println!("{name}: {program} {}", arguments.join(" "));
        let status = Command::new(program).args(*arguments).current_dir(root()).status();
        let passed = status.map_err(|error| format!("{program}: {error}"))?.success();
        if !passed {
            return Err(format!("{name}: FAILED"));
        }
    }
    check_template()?;
    build_tests()?;
    // The tests of the whole server mostly wait, and leave time to build the fuzz targets.
    let fuzzers = fuzzing::Build::start()?;
    let Tested { unreliable, skipped } = test()?;
    fuzz(fuzzers)?;
    check_advisories()?;
    println!("{} parts of tests did not run here", skipped.len());
    skipped.iter().for_each(|line| println!("{line}"));
    if std::env::var_os(INSTALLED).is_some() {
        check_skipped(&skipped)?;
    }
    for program in &unreliable {
        println!("UNRELIABLE: `cargo test {program}` failed, and passed in a second run; see above, and mend the test");
    }
    Ok(())
}

/// Check that runs. Its time is shown at the end, for those who wait for it.
struct Timed(&'static str, Instant);

impl Timed {
    fn new(name: &'static str) -> Timed {
        Timed(name, Instant::now())
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        println!("{}: {} s", self.0, self.1.elapsed().as_secs());
    }
}

fn build_tests() -> Result<(), Failed> {
    let _timed = Timed::new("build of the tests");
    let status = Command::new("cargo").args(TESTS).arg("--no-run").current_dir(root()).status();
    if status.map_err(|error| format!("cargo: {error}"))?.success() {
        Ok(())
    } else {
        Err("tests: they cannot be built".to_owned())
    }
}

fn fuzz(fuzzers: Option<fuzzing::Build>) -> Result<(), Failed> {
    let _timed = Timed::new("fuzz");
    let Some(fuzzers) = fuzzers else { return Ok(()) };
    fuzzers.finish()?;
    fuzzing::look(FUZZING)
}

/// Checks that the example of a program with a plugin of its own compiles. Its scenarios are played by the tests of the
/// crate `plugin`.
fn check_template() -> Result<(), Failed> {
    let _timed = Timed::new("plugin template");
    println!("plugin template: cargo check in {TEMPLATE}");
    let folder = root().join(TEMPLATE);
    // Without the same versions, all dependencies would be compiled again.
    let lock = std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"));
    lock.map_err(|error| format!("{TEMPLATE}/Cargo.lock: {error}"))?;
    let status = Command::new("cargo")
        .args(["check", "--quiet", "--all-targets", "--target-dir"])
        .arg(fuzzing::target())
        .current_dir(folder)
        .status();
    if status.map_err(|error| format!("cargo: {error}"))?.success() {
        Ok(())
    } else {
        Err("plugin template: FAILED".to_owned())
    }
}

/// Result of a run of all tests that have passed.
struct Tested {
    /// Test programs that passed in their second run.
    unreliable: Vec<String>,
    /// Lines about what this machine cannot run.
    skipped: BTreeSet<String>,
}

/// Runs all tests. Programs that fail run a second time, alone: one test in a thousand that depends on the load of the
/// machine must not hide what the others say about a change.
fn test() -> Result<Tested, Failed> {
    let _timed = Timed::new("tests");
    println!("tests: cargo {}", TESTS.join(" "));
    let no_cargo = |error| format!("cargo: {error}");
    let mut cargo = Command::new("cargo")
        .args(TESTS)
        .env("RUST_TEST_THREADS", threads().to_string())
        .current_dir(root())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(no_cargo)?;
    let lines = cargo.stderr.take().map(show_lines);
    let passed = cargo.wait().map_err(no_cargo)?.success();
    // Not until the end of the pipe: a program that a failed test left behind keeps it open.
    let (mut failed, mut skipped) = (Vec::new(), BTreeSet::new());
    for line in lines.iter().flat_map(|lines| std::iter::from_fn(|| lines.recv_timeout(REST_MAX).ok())) {
        failed.extend(failed_program(&line).map(str::to_owned));
        // The harness writes its progress on the same line.
        skipped.extend(line.find("SKIPPED: ").map(|at| line[at..].to_owned()));
    }
    // A build that fails names no program.
    if passed != failed.is_empty() || failed.len() > SECOND_RUNS_MAX {
        return Err("tests: FAILED".to_owned());
    }
    for program in &failed {
        println!("tests: second run of {program}");
        let words = ["test", "--quiet"].into_iter().chain(program.split(' '));
        if !Command::new("cargo").args(words).current_dir(root()).status().map_err(no_cargo)?.success() {
            return Err(format!("tests: FAILED twice: {program}"));
        }
    }
    Ok(Tested { unreliable: failed, skipped })
}

/// Fails if a test did not run for want of what `.ci/run` installs.
fn check_skipped(skipped: &BTreeSet<String>) -> Result<(), Failed> {
    let is_unexpected = |line: &&String| !NOT_INSTALLED.iter().any(|cause| line.contains(cause));
    match skipped.iter().find(is_unexpected) {
        None => Ok(()),
        Some(line) => Err(format!("tests: FAILED, a test no longer runs: {line}\nInstall what it needs in .ci/run")),
    }
}

/// Returns the number of tests that run at a time. Those of the whole server mostly wait: on two CPUs, they take 268 s
/// with two threads and 123 s with five.
fn threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from) + 1
}

/// Shows the lines of standard error as they come, and returns them.
fn show_lines(stderr: ChildStderr) -> Receiver<String> {
    let (lines, shown) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            eprintln!("{line}");
            let _ = lines.send(line);
        }
    });
    shown
}

/// Returns the arguments that select a test program, from a line of cargo's list of those that failed.
fn failed_program(line: &str) -> Option<&str> {
    line.strip_prefix("    `")?.strip_suffix('`').filter(|program| program.starts_with("-p "))
}

/// Checks the RustSec advisories. This check is separate, because the advisory database is not a crate and cannot be
/// fetched everywhere.
fn check_advisories() -> Result<(), Failed> {
    if !has_cargo_deny() {
        return Ok(());
    }
    println!("advisories: cargo deny check advisories");
    let output =
        Command::new("cargo").args(["deny", "--all-features", "check", "advisories"]).current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(());
    }
    if said.contains("failed to fetch advisory database") {
        println!("advisories: SKIPPED, the advisory database cannot be fetched");
        return Ok(());
    }
    Err(format!("advisories: FAILED\n{said}"))
}

fn has_cargo_deny() -> bool {
    Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_programs_that_failed() {
        let said = "test failed, to rerun pass `-p portolan --test node`\nerror: 2 targets failed:\n    \
            `-p portolan --test node`\n    `-p portolan-net --lib`\n";
        assert_eq!(
            said.lines().filter_map(failed_program).collect::<Vec<_>>(),
            ["-p portolan --test node", "-p portolan-net --lib"]
        );
    }

    #[test]
    fn a_test_that_lacks_an_installed_program_fails_the_checks() {
        let skipped = |line: &str| BTreeSet::from([line.to_owned()]);
        assert!(check_skipped(&skipped("SKIPPED: `haproxy` or `kdig` is missing; install their packages")).is_ok());
        let error = check_skipped(&skipped("SKIPPED: a test needs [\"helm\"] in the PATH")).unwrap_err();
        assert!(error.contains("no longer runs: SKIPPED: a test needs [\"helm\"]"), "{error}");
    }

    /// Workflows of GitHub Actions.
    const WORKFLOWS: [&str; 3] = ["ci.yml", "nightly.yml", "release.yml"];

    fn workflow(name: &str) -> String {
        let path = root().join(".github/workflows").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    /// Returns the command lines of tasks. A value that the workflow inserts becomes a word.
    fn tasks(workflow: &str) -> Vec<String> {
        let joined = workflow.replace("\\\n", " ");
        let code = joined.lines().filter(|line| !line.trim_start().starts_with('#'));
        let commands = code.filter_map(|line| line.split_once("cargo xtask ").or(line.split_once("/xtask ")));
        commands
            .map(|(_, words)| words.replace("${{ matrix.target }}", "TARGET").replace("$FROM", "1").replace('"', ""))
            .collect()
    }

    #[test]
    fn workflows_run_tasks_that_exist() {
        for name in WORKFLOWS {
            let tasks = tasks(&workflow(name));
            assert!(!tasks.is_empty(), "{name}");
            for task in tasks {
                let words = std::iter::once("xtask").chain(task.split_whitespace());
                let parsed = crate::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{name}: {task}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn all_jobs_test_the_same_versions_of_kubernetes() {
        let text = workflow("ci.yml");
        let matrices: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("version: [")).collect();
        assert_eq!(matrices.len(), 2);
        assert_eq!(matrices[0], matrices[1]);
    }
}
