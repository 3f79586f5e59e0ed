//! All that a change must pass, in the order in which failures are cheapest to find.

use std::process::Command;

use crate::{Failed, root};

/// A check: its name, the program and its arguments.
struct Check(&'static str, &'static str, &'static [&'static str]);

const CHECKS: &[Check] = &[
    Check("format", "cargo", &["fmt", "--all", "--check"]),
    Check("lints", "cargo", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    Check("generated text", "cargo", &["xtask", "gen", "--check"]),
    Check("tests", "cargo", &["test", "--workspace", "--quiet"]),
    Check("licences and advisories", "cargo", &["deny", "--all-features", "check"]),
];

/// Runs all checks; stops at the first that fails.
pub(crate) fn run() -> Result<(), Failed> {
    for Check(name, program, arguments) in CHECKS {
        if arguments[0] == "deny" && !has_cargo_deny() {
            println!("{name}: SKIPPED, cargo-deny is not installed (`cargo install --locked cargo-deny`)");
            continue;
        }
        println!("{name}: {program} {}", arguments.join(" "));
        let status = Command::new(program).args(*arguments).current_dir(root()).status();
        let passed = status.map_err(|error| format!("{program}: {error}"))?.success();
        if !passed {
            return Err(format!("{name}: FAILED"));
        }
    }
    Ok(())
}

fn has_cargo_deny() -> bool {
    Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|output| output.status.success())
}
