//! Checks that no compiler does: short files with a module header, plain language (`prose`), error types (`errors`), no
//! paths of a developer's machine, and existing tests for all names in the documentation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::prose::{self, Openings};
use crate::{Failed, claims, errors, root};

/// Maximum number of lines of a Rust file.
const LINES_MAX: usize = 800;
/// Levels of log lines, which are rendered in one place.
const LOG_LEVELS: [&str; 4] = ["ERROR", "WARNING", "INFO", "DEBUG"];
/// Path prefixes that belong to one machine.
const MACHINE_PATHS: [&str; 3] = ["/home/", "/Users/", "/root/"];

/// Checks all files of the project.
pub(crate) fn run() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let (files, mut openings) = (files()?, Openings::default());
    for path in &files {
        let Ok(text) = std::fs::read_to_string(root().join(path)) else { continue };
        if path.extension().is_some_and(|extension| extension == "rs") {
            openings.add(path, &text);
        }
        let problems = check(path, &text, &files).into_iter().chain(prose::check(path, &text));
        wrong.extend(problems.map(|what| format!("{}: {what}", path.display())));
    }
    wrong.extend(openings.problem());
    wrong.extend(errors::run(&files).err());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns the files that are committed or not ignored.
pub(crate) fn files() -> Result<Vec<PathBuf>, Failed> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

fn check(path: &Path, text: &str, files: &[PathBuf]) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let lines = text.lines().count();
    if is_rust && lines > LINES_MAX {
        wrong.push(format!("{lines} lines; the maximum is {LINES_MAX}: move a part into a file of its own"));
    }
    let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    if is_rust && !is_test && !text.starts_with("//!") {
        wrong.push("does not start with `//!`: add a module doc that says what the file is for".to_owned());
    }
    let own = path.ends_with("tidy.rs");
    let is_product = is_rust && !is_test && path.iter().any(|part| part == "src");
    let is_log = path.iter().any(|part| part == "log" || part == "log.rs");
    if is_product && !own && !is_log && LOG_LEVELS.iter().any(|level| text.contains(&format!("\"[{level}] plugin/"))) {
        wrong.push("has a log line as text: report it with a level and a source (`engine::log`)".to_owned());
    }
    if let Some(part) = MACHINE_PATHS.iter().find(|part| !own && names_path(text, part)) {
        wrong.push(format!("contains a path of a single machine: `{part}`"));
    }
    if let Some(other) = other_mode(path, text) {
        wrong.push(format!("a mode of the server uses the mode `{other}`: move what they share out of both"));
    }
    if path.starts_with("docs") {
        wrong.extend(
            tests_named(text).filter(|test| !exists(test, files)).map(|test| format!("test `{test}` does not exist")),
        );
        wrong.extend(claims::check(path, text, files));
    }
    wrong
}

/// Returns the first other mode that a file of a mode of the server names in its code.
fn other_mode<'t>(path: &Path, text: &'t str) -> Option<&'t str> {
    let own = path.strip_prefix("crates/server/src/modes").ok()?.iter().next()?.to_str()?.trim_end_matches(".rs");
    let named = text
        .split("modes::")
        .skip(1)
        .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default());
    named.into_iter().find(|name| own != "mod" && !name.is_empty() && *name != own)
}

/// Returns the tests that a text names in backticks: `FILE.rs`, `FILE.rs::FUNCTION`, `FILE.scn` or `tests/FILE.txt`.
fn tests_named(text: &str) -> impl Iterator<Item = &str> {
    let is_test = |part: &&str| {
        let (file, function) = part.split_once("::").unwrap_or((part, "x"));
        let is_one =
            file.ends_with(".rs") || file.ends_with(".scn") || (file.contains("tests/") && file.ends_with(".txt"));
        is_one && !part.contains(char::is_whitespace) && !function.is_empty()
    };
    text.split('`').filter(is_test)
}

/// Returns true if a file whose path ends with the given one exists and has the function. The given path may leave out
/// `src` and `scenarios`.
fn exists(test: &str, files: &[PathBuf]) -> bool {
    let (file, function) = test.split_once("::").unwrap_or((test, ""));
    let is_it = |path: &&PathBuf| {
        let short: PathBuf = path.iter().filter(|part| *part != "src" && *part != "scenarios").collect();
        path.ends_with(file) || short.ends_with(file)
    };
    let has = |path: &PathBuf| {
        std::fs::read_to_string(root().join(path)).is_ok_and(|text| text.contains(&format!("fn {function}(")))
    };
    files.iter().filter(is_it).any(|path| function.is_empty() || has(path))
}

/// Returns true if a text contains a path with this prefix. A match within a longer path does not count.
fn names_path(text: &str, start: &str) -> bool {
    text.match_indices(start).any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_tidy() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn reports_each_violation() {
        let wrong =
            |path: &str, text: &str| check(Path::new(path), text, &[PathBuf::from("crates/a/scenarios/b.scn")]).len();
        assert_eq!(wrong("a.rs", "//! Fine.\n"), 0);
        assert_eq!(wrong("a.rs", "fn main() {}\n"), 1);
        assert_eq!(wrong("a.rs", &"//!\n".repeat(801)), 1);
        assert_eq!(wrong("crates/a/src/b.rs", "//! Fine.\nconst A: &str = \"[INFO] plugin/b: text\";\n"), 1);
        let mode = "crates/server/src/modes/kube_dns/mod.rs";
        assert_eq!(wrong(mode, "//! Fine.\nuse crate::modes::node::Settings;\n"), 1);
        assert_eq!(wrong(mode, "//! Fine.\nuse crate::modes::kube_dns::Settings;\n"), 0);
        assert_eq!(wrong("a.md", "see /home/me\n"), 1);
        assert_eq!(wrong("a.md", "see src/root/README.md\n"), 0);
        assert_eq!(wrong("docs/a.md", "`crates/nosuch.scn`, `ab.scn`, `b.rs::no`\n"), 3);
        assert_eq!(wrong("docs/a.md", "`crates/a/scenarios/b.scn`, `a/b.scn`, `b.scn`, `a .scn`\n"), 0);
    }
}
