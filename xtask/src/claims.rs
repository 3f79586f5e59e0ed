//! Checks the pages that list claims with their tests: each number has one row, and each row cites tests or says that
//! it has none. Every cited test, scenario and file exists under its whole path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::root;

/// Page with one row for each check, which begins with its number.
const CLAIMS: &str = "docs/claims.md";
/// Page with a table of what each attacker can do.
const THREATS: &str = "docs/threat-model.md";
/// Number of checks.
const CHECKS: usize = 80;
/// Heading of the column with the tests.
const HEADING: &str = "test";
/// Beginnings of a cell that cites no test.
const WITHOUT_TEST: [&str; 2] = ["not shown: ", "refused: "];
/// Folders whose paths are cited.
const FOLDERS: [&str; 8] = ["crates/", "xtask/", "docs/", "deploy/", "examples/", "benches/", ".github/", ".ci/"];

/// Returns what is wrong with a page of claims. Other files have no problems.
pub(crate) fn check(path: &Path, text: &str, files: &[PathBuf]) -> Vec<String> {
    if path != Path::new(CLAIMS) && path != Path::new(THREATS) {
        return Vec::new();
    }
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap_or_default();
    let mut wrong = missing(text, files, &read);
    wrong.extend(rows(text).filter_map(|(row, test)| uncited(row, test)));
    if path == Path::new(CLAIMS) {
        wrong.extend(numbers(text));
    }
    wrong
}

/// Returns the cited paths and tests that do not exist.
fn missing(text: &str, files: &[PathBuf], read: &dyn Fn(&str) -> String) -> Vec<String> {
    let wrong = |cited: &str| {
        let (file, test) = cited.split_once("::").unwrap_or((cited, ""));
        if !files.iter().any(|known| known.starts_with(file)) {
            return Some(format!("`{file}` does not exist"));
        }
        let is_needed = file.contains("/tests/") || !test.is_empty();
        let is_rust = Path::new(file).extension().is_some_and(|extension| extension == "rs");
        (is_rust && is_needed && !has_test(&read(file), test)).then(|| format!("`{cited}` is not a test"))
    };
    citations(text).filter_map(wrong).collect()
}

/// Returns the words in backticks that are paths, with the test behind `::`.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| {
        FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains(|c: char| c.is_whitespace() || c == '*')
    };
    text.split('`').skip(1).step_by(2).filter(is_path)
}

/// Returns true if a file has a function with this name and the attribute of a test.
fn has_test(text: &str, name: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let (above, _) = before.rsplit_once('\n').unwrap_or_default();
    let mut attributes = above.lines().rev().map(str::trim_start).take_while(|line| line.starts_with(['#', '/']));
    attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Returns the rows of all tables that have a column of tests, each with the cell in it.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut column = None;
    text.lines().filter_map(move |line| {
        let Some(row) = line.strip_prefix('|') else {
            column = None;
            return None;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match column {
            None => column = Some(cells.iter().position(|cell| *cell == HEADING)),
            Some(Some(at)) if !row.starts_with("---") => return Some((line, *cells.get(at).unwrap_or(&""))),
            Some(_) => {}
        }
        None
    })
}

/// Returns what is wrong with a row that neither cites a test nor says that it has none.
fn uncited(row: &str, test: &str) -> Option<String> {
    let says_so = WITHOUT_TEST.iter().any(|start| test.starts_with(start));
    let start: String = row.chars().take(60).collect();
    (!says_so && citations(test).next().is_none())
        .then(|| format!("a row cites no test and does not begin with {WITHOUT_TEST:?}: {start}"))
}

/// Returns the numbers of checks that do not have exactly one row.
fn numbers(text: &str) -> Vec<String> {
    let mut counts: BTreeMap<usize, usize> = (1..=CHECKS).map(|number| (number, 0)).collect();
    for (row, _) in rows(text) {
        let number = row.split('|').nth(1).and_then(|cell| cell.trim().parse().ok()).unwrap_or_default();
        *counts.entry(number).or_default() += 1;
    }
    let wrong = counts.into_iter().filter(|(number, count)| *number == 0 || *number > CHECKS || *count != 1);
    wrong.map(|(number, count)| format!("check {number} has {count} rows")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[test]\nfn first() {}\n\n#[test]\n#[ignore]\nfn holds() {}\n\n\
                          #[tokio::test(start_paused = true)]\nasync fn later() {}\n\n\
                          // #[test] of another one\n\nfn helper() {}\n";

    #[test]
    fn reports_citations_of_what_does_not_exist() {
        let files = ["crates/a/tests/b.rs", "crates/a/src/c.scn"].map(PathBuf::from);
        for (cited, count) in [
            ("crates/a/tests/b.rs::first", 0),
            ("crates/a/tests/b.rs::holds", 0),
            ("crates/a/tests/b.rs::later", 0),
            ("crates/a/src/c.scn", 0),
            ("crates/a", 0),
            ("cargo xtask fuzz", 0),
            ("crates/a/tests/b.rs::renamed", 1),
            ("crates/a/tests/b.rs::helper", 1),
            ("crates/a/tests/b.rs", 1),
            ("crates/a/src/d.scn", 1),
            ("crates/a/src/c", 1),
        ] {
            let text = format!("| 1 | x | `{cited}` |\n");
            assert_eq!(missing(&text, &files, &|_| SOURCE.to_owned()).len(), count, "{cited}");
        }
    }

    #[test]
    fn each_row_cites_a_test_or_says_that_there_is_none() {
        let other = "\n| other |\n|---|\n| y |\n";
        let table = |cell: &str| format!("| number | claim | test |\n|---|---|---|\n| 1 | x | {cell} |\n{other}");
        for (cell, count) in [("`crates/a.scn`", 0), ("not shown: why", 0), ("refused: why", 0), ("pass", 1), ("", 1)] {
            let text = table(cell);
            assert_eq!(rows(&text).filter_map(|(row, test)| uncited(row, test)).count(), count, "{cell}");
        }
    }

    #[test]
    fn each_check_has_one_row() {
        let table = |numbers: &mut dyn Iterator<Item = usize>| {
            let rows: String = numbers.map(|number| format!("| {number} | x |\n")).collect();
            format!("| number | test |\n|---|---|\n{rows}")
        };
        assert_eq!(numbers(&table(&mut (1..=CHECKS))), Vec::<String>::new());
        assert_eq!(numbers(&table(&mut (2..=CHECKS).chain([7]))), ["check 1 has 0 rows", "check 7 has 2 rows"]);
        assert_eq!(numbers(&table(&mut (1..=CHECKS + 1))), ["check 81 has 1 rows"]);
    }

    #[test]
    fn the_pages_are_checked() {
        let wrong = |path: &str| check(Path::new(path), "| test |\n|---|\n| pass |\n", &[]).len();
        assert_eq!([wrong(CLAIMS), wrong(THREATS), wrong("docs/other.md")], [1 + CHECKS + 1, 1, 0]);
    }
}
