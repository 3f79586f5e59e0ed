//! Migrated Corefiles with their notes: `cases/*.txt`.
#![allow(clippy::expect_used, clippy::disallowed_methods, reason = "a test reads its cases and may fail")]

use std::path::Path;

use compat::migrate::{Migration, migrate_corefile as migrate};
use corefile::NoFiles;

/// Returns the lines below a heading, up to the next one.
fn part<'a>(case: &'a str, heading: &str) -> Option<&'a str> {
    let start = case.find(&format!("--- {heading}\n"))? + heading.len() + "--- \n".len();
    let rest = &case[start..];
    Some(&rest[..rest.find("--- ").unwrap_or(rest.len())])
}

#[test]
fn migrates_all_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = std::fs::read_dir(folder).expect("the cases");
    for file in files.map(|file| file.expect("a case").path()) {
        let (name, case) = (file.display(), std::fs::read_to_string(&file).expect("a case"));
        let old = part(&case, "old").expect("an old text");
        let defaults = part(&case, "defaults").is_some();
        let Migration { text, notes } = migrate(Path::new("C"), old, &NoFiles, defaults).expect("a Corefile");
        assert_eq!(Some(text.as_str()), part(&case, "new"), "{name}");
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let wanted: Vec<&str> = part(&case, "notes").expect("notes").lines().collect();
        assert_eq!(notes.len(), wanted.len(), "{name}: {notes:#?}");
        for (note, wanted) in notes.iter().zip(wanted) {
            let (begin, end) = wanted.split_once(" … ").unwrap_or((wanted, ""));
            assert!(note.starts_with(begin) && note.ends_with(end), "{name}: {note}\n  is not: {wanted}");
        }
        let again = migrate(Path::new("C"), &text, &NoFiles, defaults).expect("a Corefile");
        assert_eq!(again.text, text, "{name}: a second migration changes nothing");
    }
}

#[test]
fn refuses_a_text_that_is_not_a_corefile() {
    let refused = migrate(Path::new("C"), ". {\n  errors\n", &NoFiles, false).expect_err("there is no end");
    assert!(!refused.problems.is_empty());
}
