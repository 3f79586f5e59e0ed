//! Scenarios of the engine itself: the processing before and after the plugins, with directives of the testkit as
//! plugins.

use config::Directives;

#[test]
fn server_passes_its_scenarios() {
    let slots = Directives::new(Box::leak(Box::new([testkit::toys::RECORDS, testkit::toys::OUTWARD])));
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server"), slots, &[]);
}
