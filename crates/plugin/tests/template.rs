//! Plays the scenarios of `examples/plugin-template`, which is not a member of the workspace.
#![allow(missing_docs, reason = "the module is the public plugin of another package")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads its files")]

#[path = "../../../examples/plugin-template/src/greet/mod.rs"]
mod greet;

use plugin::{DirectiveEntry, Directives};

static DIRECTIVES: Directives = Directives::new(&[DirectiveEntry::Available(&greet::MANIFEST), testkit::toys::RECORDS]);

#[test]
fn the_template_passes_its_scenarios() {
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugin-template/src"), DIRECTIVES, &[]);
}

/// Returns the packages of the release profile that have a setting first.
fn packages<'a>(manifest: &'a str, setting: &str) -> Vec<&'a str> {
    let tables = manifest.split("[profile.release.package.").skip(1);
    let named = tables.filter_map(|table| table.split_once("]\n"));
    named.filter(|(_, settings)| settings.starts_with(setting)).map(|(name, _)| name).collect()
}

#[test]
fn the_template_is_built_like_the_server() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let of_both = |path: &str| {
        ["", "/examples/plugin-template"]
            .map(|folder| std::fs::read_to_string(format!("{root}{folder}/{path}")).unwrap())
    };
    let checked = of_both("Cargo.toml").map(|manifest| packages(&manifest, "overflow-checks = true").join(" "));
    assert!(checked[0].contains("portolan-wire"), "{}", checked[0]);
    assert_eq!(checked[0], checked[1], "packages with overflow checks");
    let allocator = of_both(".cargo/config.toml")
        .map(|text| text.lines().find(|line| line.starts_with("JEMALLOC")).unwrap().to_owned());
    assert_eq!(allocator[0], allocator[1]);
}
