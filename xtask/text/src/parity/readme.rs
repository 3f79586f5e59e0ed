//! Words and metrics in the README of a plugin of CoreDNS.

use std::collections::BTreeSet;

/// Start of the names of CoreDNS's metrics.
const METRIC: &str = "coredns_";

/// Words and metrics that a README documents.
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
        let (mut is_syntax, mut block) = (false, None);
        for line in text.lines().map(str::trim) {
            if let Some(title) = line.strip_prefix("## ") {
                is_syntax = title == "Syntax";
            } else if line.starts_with("~~~") || line.starts_with("```") {
                block = if block.is_none() { Some(Block::Begins) } else { None };
            } else if is_syntax && block.is_some() {
                // Examples, log lines and shell commands begin with something else.
                if matches!(block, Some(Block::Begins)) {
                    let is_plugin = line.split_whitespace().next() == Some(plugin);
                    block = Some(if is_plugin { Block::Syntax } else { Block::Other });
                }
                if matches!(block, Some(Block::Syntax)) {
                    found.words.extend(literals(line).filter(|word| *word != plugin).map(str::to_owned));
                }
            }
        }
        found
    }
}

/// Block of code.
enum Block {
    /// Its first line comes next.
    Begins,
    /// Syntax of the plugin.
    Syntax,
    /// Anything else.
    Other,
}

/// Returns the words of a line of syntax that are written as they are: not those of a comment, or of `<a value>`.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    let syntax = line.split(" #").next().unwrap_or_default();
    let is_value = |part: &&str| part.starts_with('<') && !part.contains('|');
    syntax.split_whitespace().filter(move |part| !is_value(part)).flat_map(words)
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
    // The series of a histogram have the name of their family, and a suffix.
    let family =
        |word: &str| ["_count", "_sum", "_bucket"].iter().find_map(|end| word.strip_suffix(end).map(str::to_owned));
    let names = words(text).filter(|word| word.starts_with(METRIC) && word.len() > METRIC.len());
    names.map(|word| family(word).unwrap_or_else(|| word.to_owned())).collect()
}
