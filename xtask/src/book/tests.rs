use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::pages::{self, Page, Pages};
use super::stage;

/// Pages with these texts.
fn pages(texts: &[(&str, &str)]) -> Pages {
    let page = |(path, text): &(&str, &str)| (PathBuf::from(path), Page::parse((*text).to_owned()));
    Pages(texts.iter().map(page).collect::<BTreeMap<_, _>>())
}

#[track_caller]
fn assert_wrong(texts: &[(&str, &str)], expected: &[&str]) {
    let found = pages(texts).check().err().unwrap_or_default();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn all_links_lead_somewhere_and_all_pages_are_chapters() {
    assert_eq!(pages::read_all().and_then(|pages| pages.check()), Ok(()));
}

#[test]
fn reports_links_that_lead_nowhere() {
    let summary = ("docs/SUMMARY.md", "[a](a.md)\n[b](../b.md)\n");
    let good = "# One\n## Two `code` (3)\n## One\n[x](#one-1) [y](../b.md#b) [z](https://nowhere.example#x)\n";
    assert_wrong(&[summary, ("docs/a.md", good), ("b.md", "# B\n[a](docs/a.md#two-code-3)")], &[]);
    let bad = "[x](#no)\n\n[y](c.md)\n[z](../b.md#no)\n\n[o](../../c)\n";
    assert_wrong(
        &[summary, ("docs/a.md", bad), ("b.md", "")],
        &[
            "docs/a.md:1: `#no`: the page has no heading `#no`",
            "docs/a.md:3: `c.md` does not exist",
            "docs/a.md:4: `../b.md#no`: the page has no heading `#no`",
            "docs/a.md:6: `../../c` leaves the project",
        ],
    );
}

#[test]
fn ignores_links_in_code() {
    let summary = ("docs/SUMMARY.md", "[a](a.md)\n");
    assert_wrong(&[summary, ("docs/a.md", "`[x](no.md)`\n\n```sh\n# x\n[x](no.md)\n```\n")], &[]);
}

#[test]
fn reports_pages_that_the_summary_does_not_have() {
    assert_wrong(
        &[("docs/SUMMARY.md", "[a](a.md)\n"), ("docs/a.md", "[b](../b.md)"), ("b.md", ""), ("docs/c.md", "")],
        &["docs/a.md:1: `b.md` is not a chapter: add it to docs/SUMMARY.md", "docs/SUMMARY.md: `docs/c.md` is missing"],
    );
}

#[test]
fn links_lead_to_the_places_in_the_book() {
    let text = "See [a](a.md#x), [`b`](../../b/README.md#y), [code](../../xtask/Cargo.toml), [folder](../../xtask) and \
                [c](https://c.example).";
    let all = pages(&[("docs/a.md", ""), ("docs/x/y.md", text), ("b/README.md", ""), ("docs/x/a.md", "")]);
    let path = Path::new("docs/x/y.md");
    assert_eq!(
        stage::rewritten(&all, path, &all.0[path]).unwrap(),
        "See [a](a.md#x), [`b`](../repository/b/index.md#y), [code](../repository/xtask/Cargo.toml), folder and \
         [c](https://c.example)."
    );
    assert_eq!(stage::relative(Path::new("repository/b.md"), Path::new("a.md")), "../a.md");
}
