//! The inputs that are kept, `corpus/TARGET/*`, run through their targets: those that reach much, and those that found
//! something once.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads its files")]

use std::fs;
use std::path::Path;

#[test]
fn no_input_that_is_kept_finds_anything() {
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
