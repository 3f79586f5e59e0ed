//! Changes of single places of a text, all other octets left alone.

use std::collections::BTreeMap;

/// Changes by the place where they begin. Two at one place are one: a snippet that is imported twice is changed once.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    by_start: BTreeMap<usize, Edit>,
}

#[derive(Debug)]
struct Edit {
    end: usize,
    text: String,
}

impl Edits {
    /// Writes something else there.
    pub(crate) fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.by_start.entry(start).or_insert_with(|| Edit { end, text: text.into() });
    }

    /// Takes a line away of which `start..end` are the words. What else stands on it, a comment above all, stays.
    pub(crate) fn remove_line(&mut self, text: &str, start: usize, end: usize) {
        let before = text[..start].trim_end_matches([' ', '\t']);
        let alone_before = before.is_empty() || before.ends_with('\n');
        let rest = &text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        let after = &rest[blank..];
        match (alone_before, after.strip_prefix('\n')) {
            (true, Some(_)) => self.replace(before.len(), end + blank + 1, ""),
            (true, None) if after.is_empty() => self.replace(before.len(), text.len(), ""),
            // Words that stood before it on the line keep their end of line; a comment keeps its indentation.
            (false, Some(_)) => self.replace(before.len(), end + blank, ""),
            _ => self.replace(start, end + blank, ""),
        }
    }

    /// Adds lines below the line in which `end` lies, indented as the line of `start` is.
    pub(crate) fn add_below(&mut self, text: &str, (start, end): (usize, usize), lines: &[String]) {
        let at = text[end..].find('\n').map_or(text.len(), |length| end + length);
        let indent = indentation(text, start);
        let added: String = lines.iter().map(|line| format!("\n{indent}{line}")).collect();
        let edit = self.by_start.entry(at).or_insert(Edit { end: at, text: String::new() });
        if !edit.text.contains(&added) {
            edit.text.push_str(&added);
        }
    }

    /// The text with all changes.
    pub(crate) fn apply(&self, text: &str) -> String {
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (&start, edit) in &self.by_start {
            // What lies within a place that is gone is gone with it.
            if start < at {
                continue;
            }
            out.push_str(&text[at..start]);
            out.push_str(&edit.text);
            at = edit.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

/// What stands before the first word of the line of an octet.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_and_what_else_stands_on_it_stays() {
        for (text, left) in [
            ("a\n  gone x\nb\n", "a\nb\n"),
            ("a\n  gone x # why\nb\n", "a\n  # why\nb\n"),
            ("a {\tgone x\n}", "a {\n}"),
            ("gone x", ""),
            ("a\r\n gone x\r\nb", "a\r\nb"),
            ("{ gone x }", "{ }"),
        ] {
            let start = text.find("gone").expect("it is there");
            let mut edits = Edits::default();
            edits.remove_line(text, start, start + "gone x".len());
            assert_eq!(edits.apply(text), left, "{text:?}");
        }
    }

    #[test]
    fn lines_are_added_once_with_the_indentation_of_their_neighbour() {
        let text = "a\n\tb {\n\t}  # end\nc\n";
        let mut edits = Edits::default();
        for _ in 0..2 {
            edits.add_below(text, (3, 8), &["new {".to_owned(), "}".to_owned()]);
        }
        assert_eq!(edits.apply(text), "a\n\tb {\n\t}  # end\n\tnew {\n\t}\nc\n");
    }
}
