//! What the codes of diagnostics mean: `docs/diagnostics.md`, an entry a code.

use corefile::Code;

/// The page, as it is in the project.
const PAGE: &str = include_str!("../../../docs/diagnostics.md");

/// All codes, room by room.
pub fn codes() -> impl Iterator<Item = Code> {
    corefile::CODES.iter().chain(engine::CODES).copied()
}

/// The entry of a code, without its heading.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    entries().find(|(name, _)| *name == code).map(|(_, text)| text)
}

/// The entries with their codes: what stands below headings of the third order.
pub fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.split("\n## ").flat_map(|room| room.split("\n### ").skip(1)).filter_map(|entry| {
        let (heading, text) = entry.split_once('\n')?;
        Some((heading.trim(), text.trim()))
    })
}
