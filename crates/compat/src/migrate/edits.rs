//! Edits at single positions of a text. All other bytes stay as they are.

use std::collections::BTreeMap;

/// Edits by start position. The first one at a position wins, so a snippet that is imported twice is changed once.
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
    /// Replaces a range.
    pub(crate) fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.by_start.entry(start).or_insert_with(|| Edit { end, text: text.into() });
    }

    /// Removes the words `start..end` and their line. Anything else on the line stays, usually a comment.
    pub(crate) fn remove_line(&mut self, text: &str, start: usize, end: usize) {
        let before = text[..start].trim_end_matches([' ', '\t']);
        let alone_before = before.is_empty() || before.ends_with('\n');
        let rest = &text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        let after = &rest[blank..];
        match (alone_before, after.strip_prefix('\n')) {
            (true, Some(_)) => self.replace(before.len(), end + blank + 1, ""),
            (true, None) if after.is_empty() => self.replace(before.len(), text.len(), ""),
            // Words before the removed ones keep their line end. A comment after them keeps the indentation.
            (false, Some(_)) => self.replace(before.len(), end + blank, ""),
            _ => self.replace(start, end + blank, ""),
        }
    }

    /// Adds lines below the line that contains `end`, with the indentation of the line that contains `start`.
    pub(crate) fn add_below(&mut self, text: &str, (start, end): (usize, usize), lines: &[String]) {
        let at = text[end..].find('\n').map_or(text.len(), |length| end + length);
        let indent = indentation(text, start);
        let added: String = lines.iter().map(|line| format!("\n{indent}{line}")).collect();
        let edit = self.by_start.entry(at).or_insert(Edit { end: at, text: String::new() });
        if !edit.text.contains(&added) {
            edit.text.push_str(&added);
        }
    }

    /// Returns the text with all edits applied.
    pub(crate) fn apply(&self, text: &str) -> String {
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (&start, edit) in &self.by_start {
            // An edit inside a range that was replaced is obsolete.
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

/// Returns the indentation of the line that contains a byte position.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_a_line_and_keeps_comments_and_other_words() {
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
    fn adds_lines_once_with_the_indentation_of_their_neighbour() {
        let text = "a\n\tb {\n\t}  # end\nc\n";
        let mut edits = Edits::default();
        for _ in 0..2 {
            edits.add_below(text, (3, 8), &["new {".to_owned(), "}".to_owned()]);
        }
        assert_eq!(edits.apply(text), "a\n\tb {\n\t}  # end\n\tnew {\n\t}\nc\n");
    }
}
