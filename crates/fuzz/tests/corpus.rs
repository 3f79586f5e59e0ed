//! Runs the inputs in `corpus/TARGET/*` through their targets: inputs with much coverage, and those of earlier
//! findings.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads its files")]

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
