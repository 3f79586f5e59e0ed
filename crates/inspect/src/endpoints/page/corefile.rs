//! Corefile with its files, the answers of each directive and the warnings about each line.

use control::text::{count, harmless, rate, shortened};
use maud::{Markup, html};

/// Maximum number of lines of all files. A usual Corefile has 20 to 60.
const LINES_MAX: usize = 100;
/// Maximum number of characters of a line.
const WIDTH_MAX: usize = 120;
/// Maximum number of characters of all lines, which bounds the page.
const CHARACTERS_MAX: usize = 4_000;

/// File of the Corefile.
pub(super) struct SourceFile {
    pub(super) name: String,
    pub(super) lines: Vec<SourceLine>,
    /// Number of lines that are left out at the end.
    pub(super) left_out: usize,
}

/// Line of a file.
pub(super) struct SourceLine {
    pub(super) text: String,
    /// Answers per second of the directive that begins here.
    pub(super) per_second: Option<f64>,
    pub(super) warnings: Vec<String>,
}

impl SourceFile {
    /// Returns the files as far as they fit on the page. `line` makes a line from the name of its file, its index and
    /// its text.
    pub(super) fn cut(
        files: &[(String, String)],
        mut line: impl FnMut(&str, usize, &str) -> SourceLine,
    ) -> Vec<SourceFile> {
        let (mut lines_left, mut characters_left) = (LINES_MAX, CHARACTERS_MAX);
        let mut fits = |text: &str| {
            let length = text.chars().count().min(WIDTH_MAX);
            let fits = lines_left > 0 && characters_left >= length;
            (lines_left, characters_left) = if fits { (lines_left - 1, characters_left - length) } else { (0, 0) };
            fits
        };
        let cut = |(name, text): &(String, String)| {
            let shown: Vec<&str> = text.lines().take_while(|text| fits(text)).collect();
            SourceFile {
                name: name.clone(),
                left_out: text.lines().count() - shown.len(),
                lines: shown.into_iter().enumerate().map(|(at, text)| line(name, at, text)).collect(),
            }
        };
        files.iter().map(cut).collect()
    }
}

/// Renders all files.
pub(super) fn part(files: &[SourceFile]) -> Markup {
    let hidden = files.iter().filter(|file| file.lines.is_empty() && file.left_out > 0).count();
    html! {
        p.note {
            "Answers per second of the last minute are beside the first directive of the plugin in its server block. "
            "Values that may be secret are removed."
        }
        @for file in files.iter().filter(|file| !file.lines.is_empty()) { (table(file)) }
        @if hidden > 0 { p.note { (count(hidden as u64)) " more files are left out." } }
    }
}

fn table(file: &SourceFile) -> Markup {
    html! {
        .box tabindex="0" role="group" aria-label=(format!("Lines of {}", super::plain(&file.name))) {
            table.code {
                caption { (super::plain(&file.name)) }
                thead {
                    tr { th scope="col" { "Line" } th.number scope="col" { "Answers/s" } th scope="col" { "Text" } }
                }
                tbody { @for (at, line) in file.lines.iter().enumerate() { (row(at + 1, line)) } }
            }
        }
        @if file.left_out > 0 {
            p.note { (count(file.left_out as u64)) " more lines are left out; " code { "portolan report" } " has all." }
        }
    }
}

fn row(number: usize, line: &SourceLine) -> Markup {
    html! {
        tr.warned[!line.warnings.is_empty()] {
            th scope="row" { (number) }
            td.number { @if let Some(per_second) = line.per_second { (rate(per_second)) } }
            td {
                (shortened(&harmless(&line.text.replace('\t', "    ")), WIDTH_MAX))
                @for warning in line.warnings.iter().take(2) { span.warn { "‼ " (super::plain(warning)) } }
            }
        }
    }
}
