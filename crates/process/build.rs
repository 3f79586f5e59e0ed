//! Passes the commit, the target and the date to `src/version.rs`. The environment variable `PORTOLAN_COMMIT`
//! overrides the commit of the repository. Without either, for example without git, the commit is `unknown`.
//!
//! `SOURCE_DATE_EPOCH`, the seconds since 1970 of <https://reproducible-builds.org/specs/source-date-epoch/>, is the
//! date of the build. Without it, the build has no date.
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
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    if let Some(seconds) = epoch.and_then(|seconds| seconds.trim().parse::<u64>().ok()) {
        println!("cargo:rustc-env=PORTOLAN_DATE={}", date(seconds / 86_400));
    }
}

/// Formats the day with a number since 1970 as `YYYY-MM-DD`.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
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
