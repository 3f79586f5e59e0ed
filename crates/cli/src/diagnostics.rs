//! Explanations of diagnostic codes, from `docs/diagnostics.md`, which has one entry per code.

use corefile::Code;

/// Content of `docs/diagnostics.md`.
const PAGE: &str = include_str!("../../../docs/diagnostics.md");

/// Returns all diagnostic codes, crate by crate.
pub fn codes() -> impl Iterator<Item = Code> {
    corefile::CODES.iter().chain(config::CODES).chain(compat::coredns::CODES).copied()
}

/// Returns the entry of a code, without its heading.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    entries().find(|(name, _)| *name == code).map(|(_, text)| text)
}

/// Returns all entries with their codes. An entry is the text below a third-level heading.
pub fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.split("\n## ").flat_map(|room| room.split("\n### ").skip(1)).filter_map(|entry| {
        let (heading, text) = entry.split_once('\n')?;
        Some((heading.trim(), text.trim()))
    })
}
