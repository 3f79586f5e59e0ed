//! Plays the scenarios of `examples/plugin-template`, which is not a member of the workspace.
#![allow(missing_docs, reason = "the module is the public plugin of another package")]

#[path = "../../../examples/plugin-template/src/greet/mod.rs"]
mod greet;

use plugin::{DirectiveEntry, Directives};

static DIRECTIVES: Directives = Directives::new(&[DirectiveEntry::Available(&greet::MANIFEST), testkit::toys::RECORDS]);

#[test]
fn the_template_passes_its_scenarios() {
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugin-template/src"), DIRECTIVES, &[]);
}
