//! What no compiler checks: files are short, each says what it is, nothing names the machine it was written on, and the
//! tests that documents name are there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failed, root};

/// Lines of the longest file.
const LINES_MAX: usize = 800;
/// Parts of paths that are of one machine.
const MACHINE_PATHS: [&str; 3] = ["/home/", "/Users/", "/root/"];

/// Checks all files of the project.
pub(crate) fn run() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for path in files()? {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        wrong.extend(check(&path, &text).into_iter().map(|what| format!("{}: {what}", path.display())));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The files that are committed, or would be.
fn files() -> Result<Vec<PathBuf>, Failed> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

fn check(path: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let lines = text.lines().count();
    if is_rust && lines > LINES_MAX {
        wrong.push(format!("{lines} lines, at most {LINES_MAX}: which idea can have a file of its own?"));
    }
    let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    if is_rust && !is_test && !text.starts_with("//!") {
        wrong.push("begins without `//!`: what is it, and why is it there?".to_owned());
    }
    let own = path.ends_with("tidy.rs");
    if let Some(part) = MACHINE_PATHS.iter().find(|part| !own && names_path(text, part)) {
        wrong.push(format!("names a path of one machine: `{part}`"));
    }
    if path.starts_with("docs") {
        wrong.extend(tests_named(text).filter(|test| !exists(test)).map(|test| format!("there is no `{test}`")));
    }
    wrong
}

/// The tests that a text names: `crates/…/FILE.rs::FUNCTION` or `crates/…/FILE.scn` in backticks.
fn tests_named(text: &str) -> impl Iterator<Item = &str> {
    let is_test = |part: &&str| part.starts_with("crates/") && (part.contains(".rs::") || part.ends_with(".scn"));
    text.split('`').filter(is_test)
}

fn exists(test: &str) -> bool {
    let (file, function) = test.split_once("::").unwrap_or((test, ""));
    let text = std::fs::read_to_string(root().join(file));
    text.is_ok_and(|text| function.is_empty() || text.contains(&format!("fn {function}(")))
}

/// Whether a text names a path that begins so; in the middle of a longer one it is another's folder.
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
    fn what_is_untidy_is_found() {
        let path = Path::new("a.rs");
        assert_eq!(check(path, "//! Fine.\n").len(), 0);
        assert_eq!(check(path, "fn main() {}\n").len(), 1);
        assert_eq!(check(path, &"//!\n".repeat(801)).len(), 1);
        assert_eq!(check(Path::new("a.md"), "see /home/me\n").len(), 1);
        assert_eq!(check(Path::new("a.md"), "see src/root/README.md\n").len(), 0);
        assert_eq!(check(Path::new("docs/a.md"), "`crates/nosuch.scn`\n").len(), 1);
    }
}
