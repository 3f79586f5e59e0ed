//! Flowchart of an explanation in the language of Mermaid, for tickets and pages.
//!
//! ```text
//!   client ──► name ──► server block ──► plugins on the way ──► plugin ──► object, cache or upstreams
//! ```
//!
//! Names that clients ask for can have any bytes. A text keeps only characters without a meaning in Mermaid, HTML and
//! Markdown; the others become numbers of characters, as in `#34;`.

use core::fmt::{self, Write};

use super::{Explained, Step};
use crate::text::{harmless, shortened};

/// Maximum number of characters of a line in a node.
const LINE_MAX: usize = 80;
/// Maximum number of upstreams of a step.
const UPSTREAMS_MAX: usize = 8;
/// Maximum number of plugins on the way of a step.
const TRAIL_MAX: usize = 16;
/// Line break in a node.
const BREAK: &str = "<br/>";

/// Flowchart of an explanation.
pub struct Mermaid<'a>(&'a Explained);

impl Explained {
    /// Returns the explanation as a flowchart in the language of Mermaid.
    #[must_use]
    pub const fn mermaid(&self) -> Mermaid<'_> {
        Mermaid(self)
    }
}

impl fmt::Display for Mermaid<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mermaid(explained) = self;
        let client = explained.from.as_ref().map_or_else(|| "client".to_owned(), ToString::to_string);
        writeln!(out, "flowchart LR")?;
        writeln!(out, "    client([{}])", label(&[&client]))?;
        for (at, step) in explained.steps.iter().enumerate() {
            write_step(at + 1, step, &explained.question.qtype, out)?;
        }
        let why = format!("why: {} [{}]", explained.why.text, explained.why.code);
        let advice = explained.advice.as_ref().map(|advice| format!("do: {advice}"));
        let lines: Vec<&str> = core::iter::once(why.as_str()).chain(advice.as_deref()).collect();
        writeln!(out, "    why>{}]", label(&lines))?;
        // The reason is that of a step, or else of the search as a whole, which the last step ends.
        let own = explained.steps.iter().position(|step| step.why.as_ref() == Some(&explained.why));
        match own.or(explained.answered).or(explained.steps.len().checked_sub(1)) {
            Some(at) => writeln!(out, "    name{} -.- why", at + 1),
            None => Ok(()),
        }
    }
}

/// Writes the nodes of a step and the arrows between them.
fn write_step(number: usize, step: &Step, qtype: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut path = Path { number, last: "client".to_owned(), text: String::new() };
    path.node("name", &[&step.name, qtype], Some(&number.to_string()));
    if let Some(block) = &step.block {
        path.node("block", &[&block.keys, &block.place.to_string()], None);
    }
    for (at, passage) in step.trail.iter().take(TRAIL_MAX).enumerate() {
        let place = passage.place.to_string();
        path.node(&format!("trail{at}x"), &[&passage.plugin, &place, &passage.did], None);
    }
    if let Some(plugin) = &step.plugin {
        let place = step.place.as_ref().map(ToString::to_string);
        let lines: Vec<&str> = core::iter::once(plugin.as_str()).chain(place.as_deref()).collect();
        path.node("plugin", &lines, None);
    }
    path.sources(step);
    out.write_str(&path.text)
}

/// Path of one query through the diagram.
struct Path {
    number: usize,
    /// Node that the next arrow begins at.
    last: String,
    text: String,
}

impl Path {
    /// Adds a node and an arrow to it.
    fn node(&mut self, kind: &str, lines: &[&str], arrow: Option<&str>) {
        let id = self.branch(kind, lines, arrow);
        self.last = id;
    }

    /// Adds a node and an arrow to it. The next arrow begins where this one did.
    fn branch(&mut self, kind: &str, lines: &[&str], arrow: Option<&str>) -> String {
        let id = format!("{kind}{}", self.number);
        let arrow = arrow.map_or_else(String::new, |text| format!("|{}|", label(&[text])));
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "    {} -->{arrow} {id}[{}]", self.last, label(lines));
        id
    }

    /// Adds what the answer comes from: an object, a cache, upstreams, or else the words of the plugin.
    fn sources(&mut self, step: &Step) {
        let result = step.result();
        if !step.upstreams.is_empty() {
            for (at, upstream) in step.upstreams.iter().take(UPSTREAMS_MAX).enumerate() {
                self.branch(&format!("upstream{at}x"), &[&upstream.to_string()], Some(&result));
            }
            return;
        }
        let cache = step.cache.as_ref().map(|cache| format!("{}, {cache}", step.text));
        let not_ready = step.not_ready.as_ref().map(ToString::to_string);
        let lines: Vec<&str> =
            core::iter::once(cache.as_deref().unwrap_or(&step.text)).chain(not_ready.as_deref()).collect();
        self.node("source", &lines, Some(&result));
    }
}

/// Returns lines as a quoted text.
fn label(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().filter(|line| !line.is_empty()).map(|line| escaped(line)).collect();
    // A node without text would be an error.
    format!("\"{}\"", if lines.is_empty() { "–".to_owned() } else { lines.join(BREAK) })
}

/// Escapes a text.
fn escaped(text: &str) -> String {
    let text = shortened(&harmless(text), LINE_MAX);
    // Mermaid removes the last `;` of a line with one of these words, a colon and a `#`.
    let is_style = text.contains("style") || text.contains("classDef");
    let is_plain = |c: char| c.is_alphanumeric() || " .,-_/()[]›·…→=+".contains(c) || (c == ':' && !is_style);
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("#{};", u32::from(c)) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Question, Why};

    fn of_name(name: &str) -> String {
        let step = Step { name: name.to_owned(), rcode: Some("NXDOMAIN".to_owned()), ..Step::default() };
        let explained = Explained {
            question: Question { name: name.to_owned(), qtype: "A".to_owned() },
            from: None,
            listener: None,
            search: None,
            steps: vec![step],
            asked_from: None,
            answered: None,
            queries: 1,
            why: Why { code: "PE-A02".to_owned(), text: name.to_owned() },
            advice: None,
            unjudged: Vec::new(),
            differing: Vec::new(),
        };
        explained.mermaid().to_string()
    }

    #[test]
    fn hostile_names_stay_within_their_quotes() {
        let lines = of_name("a.test.").lines().count();
        for name in [
            "a\"] --> b[\"x",
            "`# *x*`",
            "#quot;#34;",
            "<script>alert(1)</script>&lt;",
            "x\ny\r\n    client --> z",
            "%%{init: {\"theme\": \"x\"}}%%",
            "a\u{202e}b\u{2066}c",
            "\\n|end|",
            "style: #a;",
            "",
        ] {
            let chart = of_name(name);
            assert_eq!(chart.lines().count(), lines, "{chart}");
            for line in chart.lines() {
                assert!(line.matches('"').count().is_multiple_of(2), "{line}");
                let texts = line.split('"').skip(1).step_by(2).collect::<String>().replace(BREAK, "");
                let is_safe =
                    |c: char| !"`<>&{}|%\\\n\"'*".contains(c) && !c.is_control() && c != '\u{202e}' && c != '\u{2066}';
                assert!(texts.chars().all(is_safe), "{line}");
                for after in texts.split('#').skip(1) {
                    assert!(after.split(';').next().is_some_and(|number| number.parse::<u32>().is_ok()), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_long_name_is_shortened() {
        assert!(of_name(&"a".repeat(255)).lines().all(|line| line.chars().count() < 200));
    }
}
