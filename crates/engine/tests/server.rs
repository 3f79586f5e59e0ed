//! What the engine does with a query before, beside and behind the plugins: scenarios with directives that stand in for
//! plugins.

#[test]
fn scenarios() {
    let slots = [testkit::toys::RECORDS, testkit::toys::OUTWARD];
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server"), &slots, &[]);
}
