//! Words and metrics in the README of a plugin of CoreDNS.

use std::collections::BTreeSet;

/// Start of the names of CoreDNS's metrics.
const METRIC: &str = "coredns_";

/// What a README documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readme {
    /// Words in lower case of the syntax: properties, and arguments that are written as they are.
    pub(super) words: BTreeSet<String>,
    /// Names of metrics.
    pub(super) metrics: BTreeSet<String>,
}

impl Readme {
    /// Reads the syntax blocks, which begin with the name of the plugin, and the names of metrics.
    pub(super) fn parse(plugin: &str, text: &str) -> Readme {
        let mut found = Readme { metrics: metrics(text), ..Readme::default() };
        let (mut is_syntax, mut is_block) = (false, false);
        for line in text.lines().map(str::trim) {
            if let Some(title) = line.strip_prefix("## ") {
                is_syntax = title == "Syntax";
            } else if line.starts_with("~~~") || line.starts_with("```") {
                is_block = !is_block;
            } else if is_syntax && is_block {
                // An explanation behind the syntax is no syntax.
                let syntax = line.split(" #").next().unwrap_or_default();
                found.words.extend(words(syntax).filter(|word| *word != plugin).map(str::to_owned));
            }
        }
        found
    }
}

/// Returns the words in lower case, which are written as they are. Words in upper case are values.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    text.split(move |letter| !is_part(letter)).filter(|word| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && !word.contains(|letter: char| letter.is_ascii_uppercase())
    })
}

/// Returns the names of metrics in a text.
pub(super) fn metrics(text: &str) -> BTreeSet<String> {
    words(text).filter(|word| word.starts_with(METRIC) && word.len() > METRIC.len()).map(str::to_owned).collect()
}
