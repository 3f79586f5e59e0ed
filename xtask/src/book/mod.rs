//! `cargo xtask book`: checks the links of all Markdown pages, and makes a book of `docs` with mdBook.
//!
//! `docs/SUMMARY.md` lists the chapters. Chapters may be outside of `docs`, such as the READMEs of the plugins. mdBook
//! needs one folder, so the pages are copied to `target/book/src` with changed links. mdBook is a program of its own,
//! because as a dependency it would be built with every check.

mod pages;
mod stage;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Arg, ArgAction, ArgMatches};

use crate::{Failed, root};

/// Version of mdBook that `--install` installs.
const MDBOOK: &str = "0.5.4";

/// Returns the definition of the command line.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("book")
        .about("Check the links of all pages, and make a book of the documentation with mdBook")
        .arg(Arg::new("check").long("check").action(ArgAction::SetTrue).help("Only check the links"))
        .arg(
            Arg::new("install")
                .long("install")
                .action(ArgAction::SetTrue)
                .help("Install mdBook below `target` first, which builds it"),
        )
}

/// Checks the pages and makes the book.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let pages = pages::read_all()?;
    pages.check()?;
    if options.get_flag("check") {
        return Ok(());
    }
    if options.get_flag("install") {
        install()?;
    }
    let book = root().join("target/book");
    stage::write(&pages, &book)?;
    let program = installed().unwrap_or_else(|| PathBuf::from("mdbook"));
    let status = Command::new(program)
        .arg("build")
        .arg(&book)
        .status()
        .map_err(|error| format!("mdbook: {error}; `cargo xtask book --install` installs it below `target`"))?;
    if !status.success() {
        return Err("mdbook failed".to_owned());
    }
    println!("{}", book.join("html/index.html").display());
    Ok(())
}

/// Folder below `target` for programs.
fn tools() -> PathBuf {
    root().join("target/tools")
}

/// Returns the mdBook that `--install` has installed.
fn installed() -> Option<PathBuf> {
    let program = tools().join("bin/mdbook");
    program.exists().then_some(program)
}

fn install() -> Result<(), Failed> {
    let status = Command::new("cargo")
        .args(["install", "mdbook", "--locked", "--version", MDBOOK, "--no-default-features", "--features", "search"])
        .arg("--root")
        .arg(tools())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("cargo install mdbook failed".to_owned()) }
}

/// Resolves `.` and `..` in a path without looking at the disk. Returns `None` if it leaves the project.
fn normalized(path: &Path) -> Option<PathBuf> {
    let mut parts = Vec::new();
    for part in path.iter() {
        match part.to_str()? {
            "." => {}
            ".." => _ = parts.pop()?,
            other => parts.push(other),
        }
    }
    Some(parts.iter().collect())
}
