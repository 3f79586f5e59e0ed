//! Differences that are deliberate, from `explained.txt`.

use xtask::Failed;

/// The file: an entry per line, `CASE | PATTERN | REASON | ANCHOR`.
const TEXT: &str = include_str!("explained.txt");

/// An explanation.
#[derive(Clone, Copy)]
pub(crate) struct Explanation {
    /// Pattern of the names of cases.
    case: &'static str,
    /// Pattern of `QUESTION: DIFFERENCE`.
    pattern: &'static str,
    reason: &'static str,
    /// Section of docs/differences.md.
    anchor: &'static str,
}

/// All explanations, and how many questions each one explains.
pub(crate) struct Explanations(Vec<(Explanation, usize)>);

impl Explanations {
    /// Parses the file.
    pub(crate) fn read() -> Result<Explanations, Failed> {
        let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let entries = lines.map(|line| {
            let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let [case, pattern, reason, anchor] = *fields.as_slice() else {
                return Err(format!("explained.txt: expected `CASE | PATTERN | REASON | ANCHOR`, found `{line}`"));
            };
            Ok((Explanation { case, pattern, reason, anchor }, 0))
        });
        entries.collect::<Result<_, _>>().map(Explanations)
    }

    /// Returns the differences of a question that no entry explains, and counts the entries that explain others.
    pub(crate) fn unexplained(&mut self, case: &str, question: &str, differences: Vec<String>) -> Vec<String> {
        let mut used = vec![false; self.0.len()];
        let mut left = differences;
        left.retain(|difference| {
            let text = format!("{question}: {difference}");
            let entry = self.0.iter().position(|(entry, _)| matches(entry.case, case) && matches(entry.pattern, &text));
            entry.map(|entry| used[entry] = true).is_none()
        });
        self.0.iter_mut().zip(used).for_each(|((_, count), used)| *count += usize::from(used));
        left
    }

    /// Prints what each entry explains. With `all`, also prints those that explain nothing.
    pub(crate) fn print(&self, all: bool) {
        for (Explanation { case, pattern, reason, anchor }, count) in self.0.iter().filter(|(_, count)| *count > 0) {
            println!("{count:6} {case} | {pattern}: {reason} (docs/differences.md#{anchor})");
        }
        for (Explanation { case, pattern, .. }, _) in self.0.iter().filter(|(_, count)| all && *count == 0) {
            println!("unused: {case} | {pattern}");
        }
    }
}

/// Returns true if a text matches a pattern, in which `*` stands for any text and `\*` for an asterisk.
///
/// Each part between two asterisks is taken where it is found first, so the time does not grow with the number of
/// asterisks.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let parts = parts(pattern);
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return text.is_empty() };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    if parts.len() == 1 {
        return rest.is_empty();
    }
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

/// Returns the texts between the asterisks of a pattern.
fn parts(pattern: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => parts.push(String::new()),
            '\\' => parts.iter_mut().last().into_iter().for_each(|part| part.extend(letters.next())),
            letter => parts.iter_mut().last().into_iter().for_each(|part| part.push(letter)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_names_a_section_of_the_differences() {
        let differences = std::fs::read_to_string(xtask::root().join("docs/differences.md")).unwrap();
        let anchor = |heading: &str| {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect::<String>()
        };
        let anchors: Vec<String> =
            differences.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
        for (entry, _) in Explanations::read().unwrap().0 {
            assert!(
                anchors.iter().any(|known| known == entry.anchor),
                "{}: no section `{}`",
                entry.pattern,
                entry.anchor
            );
            assert!(!entry.reason.is_empty(), "{}", entry.pattern);
        }
    }

    #[test]
    fn patterns_match_the_whole_text() {
        assert!(matches("*", "") && matches("a*c*", "abcd") && matches("a*b*b", "abb"));
        assert!(!matches("a", "ab") && !matches("*a", "ab") && !matches("a*b*b", "ab"));
        assert!(matches("\\*a*", "*ab") && !matches("\\*a", "ba"));
    }
}
