//! All checks that a change must pass, ordered so that cheap ones fail first.

use std::process::Command;

use crate::{Failed, fuzzing, root};

/// Duration of the run of each fuzz target in seconds.
const FUZZ_SECONDS: u32 = 15;

/// Check: its name, the program and its arguments.
struct Check(&'static str, &'static str, &'static [&'static str]);

const CHECKS: &[Check] = &[
    Check("format", "cargo", &["fmt", "--all", "--check"]),
    Check("lints", "cargo", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    Check("generated text", "cargo", &["xtask", "gen", "--check"]),
    Check("documentation", "cargo", &["doc", "--workspace", "--no-deps", "--quiet"]),
    Check("tests", "cargo", &["test", "--workspace", "--quiet"]),
    Check("licences, sources and bans", "cargo", &["deny", "--all-features", "check", "licenses", "sources", "bans"]),
];

/// Runs all checks and stops at the first failure.
pub(crate) fn run() -> Result<(), Failed> {
    for Check(name, program, arguments) in CHECKS {
        if arguments[0] == "deny" && !has_cargo_deny() {
            println!("{name}: SKIPPED, cargo-deny is not installed; run `cargo install --locked cargo-deny`");
            continue;
        }
        println!("{name}: {program} {}", arguments.join(" "));
        let status = Command::new(program).args(*arguments).current_dir(root()).status();
        let passed = status.map_err(|error| format!("{program}: {error}"))?.success();
        if !passed {
            return Err(format!("{name}: FAILED"));
        }
    }
    fuzzing::look(None, FUZZ_SECONDS, false)?;
    check_advisories()
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

    /// Workflows of GitHub Actions.
    const WORKFLOWS: [&str; 2] = ["ci.yml", "release.yml"];

    fn workflow(name: &str) -> String {
        let path = root().join(".github/workflows").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    /// Returns the command lines of tasks. A value that the workflow inserts becomes a word.
    fn tasks(workflow: &str) -> Vec<String> {
        let joined = workflow.replace("\\\n", " ");
        let code = joined.lines().filter(|line| !line.trim_start().starts_with('#'));
        let commands = code.filter_map(|line| line.split_once("cargo xtask ").or(line.split_once("/xtask ")));
        commands.map(|(_, words)| words.replace("${{ matrix.target }}", "TARGET").replace('"', "")).collect()
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
