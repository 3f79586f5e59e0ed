//! Passes the commit and the target to `src/version.rs`. The environment variable `PORTOLAN_COMMIT` overrides the
//! commit of the repository. Without either, for example without git, the commit is `unknown`.
//!
//! Only optimized builds look the commit up. Otherwise each commit would compile this crate and all its tests again
//! during development.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script runs git and instructs Cargo through its output"
)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PORTOLAN_COMMIT");
    // Without any file, Cargo would run this script after each change in the package.
    println!("cargo:rerun-if-changed=build.rs");
    let given = std::env::var("PORTOLAN_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| is_release.then(commit)?).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=PORTOLAN_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=PORTOLAN_TARGET={target}");
}

/// Returns the commit that is checked out, and makes Cargo run this script again when that changes.
fn commit() -> Option<String> {
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
