//! Plays the scenarios of the plugins: `src/*/scenarios/*.scn`, in virtual time and without sockets.

use greeting_dns::greet;
use plugin::{DirectiveEntry, Directives, testkit};

/// The plugin above *records*, a directive of the testkit that answers with the records in its block.
static DIRECTIVES: Directives =
    Directives::new(&[DirectiveEntry::Available(&greet::MANIFEST), testkit::toys::RECORDS]);

#[test]
fn plugins_pass_their_scenarios() {
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), DIRECTIVES, &[]);
}
