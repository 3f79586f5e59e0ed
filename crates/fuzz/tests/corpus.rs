//! Runs the inputs in `corpus/TARGET/*` through their targets: inputs with much coverage, and those of earlier
//! findings.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads its files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn corpus_inputs_produce_no_findings() {
    for (name, target) in fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let mut count = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let input = fs::read(entry.unwrap().path()).unwrap();
            target(&input);
            count += 1;
        }
        assert!(count > 0, "{} is empty", folder.display());
    }
}

#[test]
fn every_target_has_a_program() {
    let programs = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin")).unwrap();
    let programs = programs.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    let programs: BTreeSet<String> = programs.collect();
    assert_eq!(programs, fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}
