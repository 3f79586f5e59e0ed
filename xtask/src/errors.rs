//! Checks the errors of the crates: no function returns a text as its error, and every error type implements `Error`.
//!
//! An error type says whose fault a failure is, if a retry helps and what to do. A text says only what its author
//! thought of. Tests may use texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Failed, root};

/// Checks these files of the project.
pub(crate) fn run(files: &[PathBuf]) -> Result<(), Failed> {
    let sources = files.iter().filter(|path| is_checked(path)).filter_map(|path| {
        let text = std::fs::read_to_string(root().join(path)).ok()?;
        Some((path.clone(), without_tests(&text).to_owned()))
    });
    let wrong = problems(&sources.collect());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns true for product code. The simulation is a test as a whole.
fn is_checked(path: &Path) -> bool {
    if path.starts_with("crates/simulation") {
        return false;
    }
    let is_source = path.starts_with("crates") && path.iter().nth(2).is_some_and(|part| part == "src");
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    is_source && is_rust && !is_test
}

/// Returns a source up to its test module, which comes last.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests").map_or(text, |end| &text[..end])
}

fn problems(sources: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in sources {
        if returns_text(text) {
            wrong.push(format!("{}: returns `Result<_, String>`: use an error type", path.display()));
        }
        for name in error_types(text) {
            if !implements_error(sources, path, name) {
                wrong.push(format!("{}: `{name}` does not implement `core::error::Error`", path.display()));
            }
        }
    }
    wrong
}

/// Returns true if a type `Result<…, String>` occurs outside comments.
fn returns_text(text: &str) -> bool {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.match_indices("Result<").any(|(at, start)| last_argument(&code[at + start.len()..]) == Some("String"))
}

/// Returns the last of several type arguments, up to the closing bracket.
fn last_argument(arguments: &str) -> Option<&str> {
    let (mut depth, mut last) = (0_u32, None);
    let mut previous = ' ';
    for (at, letter) in arguments.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' if previous == '-' => {}
            '>' if depth == 0 => return last.map(|start: usize| arguments[start..at].trim()),
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => last = Some(at + 1),
            _ => {}
        }
        previous = letter;
    }
    None
}

/// Returns the names of the types that a source declares as errors.
fn error_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let is_type = matches!(words.next()?, "enum" | "struct");
        let name = words.next()?.split(|letter: char| !letter.is_alphanumeric()).next()?;
        (is_type && name.ends_with("Error")).then_some(name)
    })
}

/// Returns true if the crate of a file implements or derives `Error` for a type.
fn implements_error(sources: &BTreeMap<PathBuf, String>, path: &Path, name: &str) -> bool {
    let of_crate: PathBuf = path.iter().take(2).collect();
    let implementation = format!("Error for {name}");
    let is_it = |text: &String| {
        text.match_indices(&implementation)
            .any(|(at, found)| !text[at + found.len()..].starts_with(|next: char| next.is_alphanumeric()))
    };
    // The attributes of a type are in one paragraph with its head.
    let derives = |item: &str| item.contains("thiserror::Error)]") && error_types(item).any(|known| known == name);
    let mut of_crate = sources.iter().filter(|(other, _)| other.starts_with(&of_crate));
    of_crate.any(|(_, text)| is_it(text) || text.split("\n\n").any(derives))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        problems(&BTreeMap::from([(PathBuf::from("crates/a/src/b.rs"), text.to_owned())])).len()
    }

    #[test]
    fn reports_texts_as_errors() {
        assert_eq!(count("fn a() -> Result<(), String> {}"), 1);
        assert_eq!(count("fn a() -> Result<Vec<(u8, u8)>, String> {}"), 1);
        assert_eq!(count("fn a() -> Result<\n    fn() -> u8,\n    String> {}"), 1);
        assert_eq!(count("/// `Result<(), String>`\nfn a() -> Result<String, AError> {}"), 0);
        assert_eq!(count("fn a() -> io::Result<String> {}"), 0);
        assert_eq!(count(without_tests("#[cfg(test)]\nmod tests { fn a() -> Result<(), String> {} }")), 0);
    }

    #[test]
    fn reports_error_types_that_do_not_implement_error() {
        assert_eq!(count("pub(crate) enum AError {}\nimpl Error for AErrorKind {}"), 1);
        assert_eq!(count("struct AError(u8);\nimpl core::error::Error for AError {}"), 0);
        assert_eq!(count("#[derive(Debug, thiserror::Error)]\n#[error(\"a\")]\nstruct AError;"), 0);
        assert_eq!(count("#[derive(Debug, thiserror::Error)]\nstruct AError;\n\nstruct BError;"), 1);
        assert_eq!(count("struct ErrorCounters;"), 0);
    }
}
