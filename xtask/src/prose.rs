//! Checks the language of comments, messages and documents: banned phrases, the width of comments, and the first words
//! of docstrings.
//!
//! The rules are those of CONTRIBUTING.md, section "Language". They do not recognise good prose. They only keep phrases
//! out that readers have misunderstood before.

use std::path::Path;

/// Maximum width of a comment line in columns.
const WIDTH_MAX: usize = 120;
/// Percentage of docstrings that may start with one of [`WEAK_OPENINGS`].
const WEAK_PERCENT_MAX: usize = 3;

/// Phrases that an engineer would not say in a review.
const BANNED: &[&str] = &[
    "anew",
    "by itself",
    "for ever",
    "gives nothing",
    "goes by",
    "hears",
    "is none",
    "it is told",
    "lets go of",
    "means nothing",
    "none such",
    "octet",
    "octets",
    "one a line",
    "so many",
    "speaks",
    "what comes of",
    "whom",
];

/// First words that announce a description instead of a name: wh-words, pronouns, prepositions and conjunctions.
const WEAK_OPENINGS: &[&str] = &[
    "about",
    "above",
    "after",
    "among",
    "as",
    "at",
    "because",
    "before",
    "behind",
    "below",
    "beside",
    "between",
    "by",
    "during",
    "for",
    "from",
    "here",
    "how",
    "if",
    "in",
    "it",
    "its",
    "nobody",
    "nothing",
    "of",
    "on",
    "once",
    "over",
    "since",
    "somebody",
    "something",
    "than",
    "that",
    "their",
    "them",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "under",
    "unless",
    "until",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whoever",
    "whose",
    "why",
    "with",
    "without",
];

/// Counts of docstrings over all files.
#[derive(Default)]
pub(crate) struct Openings {
    all: usize,
    weak: Vec<String>,
}

impl Openings {
    /// Adds the docstrings of a Rust file.
    pub(crate) fn add(&mut self, path: &Path, text: &str) {
        let mut follows = false;
        for (number, line) in text.lines().enumerate() {
            let doc = doc_text(line);
            if let Some(doc) = doc.filter(|_| !follows) {
                self.all += 1;
                if has_weak_opening(doc) {
                    self.weak.push(format!("{}:{}: {doc}", path.display(), number + 1));
                }
            }
            follows = doc.is_some();
        }
    }

    /// Returns what is wrong, with the docstrings to rewrite.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_bad = self.weak.len() * 100 > self.all * WEAK_PERCENT_MAX;
        is_bad.then(|| {
            format!(
                "{} of {} docstrings start with a wh-word, a pronoun or a preposition; at most {WEAK_PERCENT_MAX} % \
                 may. Start with a noun or a verb:\n{}",
                self.weak.len(),
                self.all,
                self.weak.join("\n")
            )
        })
    }
}

/// Returns the problems of a file's texts, each with its line number.
pub(crate) fn check(path: &Path, text: &str) -> Vec<String> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let is_prose = path.extension().is_some_and(|extension| extension == "md");
    // Results of measurements stay as they were written.
    let is_exempt = path.ends_with("prose.rs") || path.starts_with("benches/results");
    if is_exempt || !(is_rust || is_prose) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let visible = if is_rust { rust_text(line) } else { line.to_owned() };
        let banned = banned_in(&visible);
        problems.extend(banned.map(|phrase| format!("line {number} says `{phrase}`: use plain words")));
        if is_rust && line.trim_start().starts_with("//") && line.chars().count() > WIDTH_MAX {
            problems.push(format!("line {number}: a comment of more than {WIDTH_MAX} columns"));
        }
    }
    problems
}

fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let doc = line.strip_prefix("///").filter(|rest| !rest.starts_with('/')).or_else(|| line.strip_prefix("//!"));
    doc.map(str::trim)
}

fn has_weak_opening(doc: &str) -> bool {
    let word = doc.trim_start_matches(['`', '*', '[']).split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    WEAK_OPENINGS.contains(&word.to_lowercase().as_str())
}

/// Returns the comment and the string literals of a line of Rust, without the values that are formatted into them.
fn rust_text(line: &str) -> String {
    // Quotes that start no literal would turn code into text.
    let line = line.replace("\\\"", "").replace("'\"'", "");
    let (code, comment) = line.split_once("//").unwrap_or((&line, ""));
    let literals = code.split('"').skip(1).step_by(2).flat_map(without_values);
    literals.chain([comment]).collect::<Vec<_>>().join(" ")
}

fn without_values(literal: &str) -> impl Iterator<Item = &str> {
    literal.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest))
}

/// Returns the banned phrases in a text; code in backticks does not count.
fn banned_in(text: &str) -> impl Iterator<Item = &'static str> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
    BANNED.iter().copied().filter(move |phrase| {
        prose.match_indices(phrase).any(|(at, _)| {
            let is_inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            !is_inner(prose[..at].chars().next_back()) && !is_inner(prose[at + phrase.len()..].chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> usize {
        check(Path::new(path), text).len()
    }

    #[test]
    fn finds_banned_phrases_in_comments_strings_and_documents() {
        assert_eq!(problems("a.rs", "/// Lists it anew.\n"), 1);
        assert_eq!(problems("a.rs", "let text = \"there is none\";\n"), 1);
        assert_eq!(problems("a.md", "Octets that mean something, for ever.\n"), 2);
        assert_eq!(problems("a.yaml", "# anew\n"), 0);
    }

    #[test]
    fn ignores_code_and_parts_of_words() {
        assert_eq!(problems("a.rs", "let anew = octets(); // see `octets`\n"), 0);
        assert_eq!(problems("a.rs", "format!(\"%{octet:02x}\", b'\"', |octet| \"application/octet-stream\")\n"), 0);
        assert_eq!(problems("a.rs", "/// Renewals and rehearsals.\n"), 0);
    }

    #[test]
    fn finds_wide_comments_only() {
        let wide = "x".repeat(WIDTH_MAX);
        assert_eq!(problems("a.rs", &format!("// {wide}\n")), 1);
        assert_eq!(problems("a.rs", &format!("let {wide} = 1;\n")), 0);
    }

    #[test]
    fn counts_the_first_line_of_each_docstring() {
        let mut openings = Openings::default();
        openings.add(Path::new("a.rs"), "/// What it is.\n/// If so.\nfn a() {}\n/// Returns `a`.\n");
        assert_eq!((openings.all, openings.weak.len()), (2, 1));
        assert!(openings.problem().is_some());
        openings.weak.clear();
        assert_eq!(openings.problem(), None);
    }
}
