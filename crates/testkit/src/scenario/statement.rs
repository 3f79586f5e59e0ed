//! Syntax of a scenario: statements that start at the margin, each with the indented lines below it.

use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;

/// A line of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line number in the file, from 1.
    pub number: usize,
    /// Text, without the indentation that all lines of the body share.
    pub text: String,
}

/// A statement of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Line at the margin.
    pub head: Line,
    /// Indented lines below it, without trailing empty lines.
    pub body: Vec<Line>,
}

/// Iterator over words of a statement.
pub struct Words<'s> {
    statement: &'s Statement,
    words: std::vec::IntoIter<&'s str>,
}

impl<'s> Words<'s> {
    /// Returns the next word.
    pub fn next_word(&mut self) -> Option<&'s str> {
        self.words.next()
    }

    /// Parses the next word. `what` names the expected kind of word.
    ///
    /// # Errors
    /// Fails if there is no word left or if it does not parse.
    pub fn parse<T: FromStr>(&mut self, what: &str) -> Result<T, Problem> {
        let word = self.next_word();
        self.statement.parse(word, what)
    }

    /// Parses the next word as a duration.
    ///
    /// # Errors
    /// Fails if there is no word left or if it is not a duration.
    pub fn duration(&mut self) -> Result<Duration, Problem> {
        let span = self.next_word().and_then(|word| gotext::parse_duration(word).ok());
        span.ok_or_else(|| self.problem("expected a duration such as `30s`"))
    }

    /// Creates a problem at the statement.
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        self.statement.problem(text)
    }
}

/// Error in a scenario, or failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line number.
    pub line: usize,
    /// Description, possibly with several lines.
    pub text: String,
}

impl Statement {
    /// Returns the first word.
    #[must_use]
    pub fn word(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    /// Iterates over the words of the head.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.head.text.split_whitespace()
    }

    /// Returns the words of the head from index `from` up to but not including index `to`.
    #[must_use]
    pub fn words_between(&self, from: usize, to: usize) -> Words<'_> {
        let words = self.words().take(to).skip(from).collect::<Vec<_>>();
        Words { statement: self, words: words.into_iter() }
    }

    /// Returns the head after its first `count` words, as written.
    #[must_use]
    pub fn rest(&self, count: usize) -> &str {
        (0..count).fold(self.head.text.as_str(), |rest, _| {
            rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
        })
    }

    /// Iterates over the lines of the body, without empty lines and comments.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.body.iter().filter(|line| !is_comment(&line.text))
    }

    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> String {
        self.body.iter().map(|line| format!("{}\n", line.text)).collect()
    }

    /// Parses the body as statements.
    ///
    /// # Errors
    /// Fails if the first line is indented further than the others.
    pub fn nested(&self) -> Result<Vec<Statement>, Problem> {
        statements(&self.body)
    }

    /// Creates a problem at this statement.
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        Problem { line: self.head.number, text: text.into() }
    }

    /// Parses a word. `what` names the expected kind of word.
    ///
    /// # Errors
    /// Fails if there is no word or if it does not parse.
    pub fn parse<T: FromStr>(&self, word: Option<&str>, what: &str) -> Result<T, Problem> {
        let word = word.ok_or_else(|| self.problem(format!("`{}` wants {what}", self.word())))?;
        word.parse().map_err(|_| self.problem(format!("`{word}` is not {what}")))
    }

    /// Compares a value with the expected one.
    ///
    /// # Errors
    /// Fails if they differ.
    pub fn expect<T: PartialEq + Display>(&self, what: &str, expected: &T, got: &T) -> Result<(), Problem> {
        if expected == got {
            return Ok(());
        }
        Err(self.problem(format!("{what}: expected {expected}, got {got}")))
    }
}

/// Parses the statements of a scenario.
pub(super) fn read(text: &str) -> Result<Vec<Statement>, Problem> {
    let lines = text.lines().enumerate();
    let lines: Vec<Line> = lines.map(|(at, line)| Line { number: at + 1, text: line.trim_end().to_owned() }).collect();
    statements(&lines)
}

fn is_comment(text: &str) -> bool {
    text.is_empty() || text.trim_start().starts_with('#')
}

fn statements(lines: &[Line]) -> Result<Vec<Statement>, Problem> {
    let mut statements: Vec<Statement> = Vec::new();
    for line in lines {
        let indented = line.text.starts_with(char::is_whitespace) || line.text.is_empty();
        match statements.last_mut() {
            Some(statement) if indented => statement.body.push(line.clone()),
            None if indented && !line.text.is_empty() => {
                let text = "indented line without a statement above it".to_owned();
                return Err(Problem { line: line.number, text });
            }
            _ if is_comment(&line.text) => {}
            _ => statements.push(Statement { head: line.clone(), body: Vec::new() }),
        }
    }
    statements.iter_mut().for_each(|statement| trim(&mut statement.body));
    Ok(statements)
}

/// Removes trailing empty lines, and the indentation that all lines share.
fn trim(body: &mut Vec<Line>) {
    let used = body.iter().rposition(|line| !line.text.is_empty()).map_or(0, |last| last + 1);
    body.truncate(used);
    let indents = body.iter().filter(|line| !line.text.is_empty());
    let shared = indents.map(|line| line.text.len() - line.text.trim_start().len()).min().unwrap_or(0);
    for line in body {
        line.text = line.text.get(shared..).unwrap_or_default().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_statements_and_removes_common_indentation() {
        let text = "# a comment\n\ncorefile  now \n    . {\n        whoami\n\n    }\n\n\n# more\nask\tx A\n  NOERROR\n";
        let statements = read(text).unwrap();
        assert_eq!(statements.len(), 2);
        assert_eq!((statements[0].head.number, statements[0].rest(1)), (3, "now"));
        assert_eq!(statements[0].text(), ". {\n    whoami\n\n}\n");
        assert_eq!(statements[1].words().collect::<Vec<_>>(), ["ask", "x", "A"]);
        assert_eq!(statements[1].body, [Line { number: 12, text: "NOERROR".to_owned() }]);
        assert_eq!(read("\n  a\n").unwrap_err().line, 2);
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn parses_a_body_as_statements() {
        let text = "upstream 192.0.2.1\n  a. A\n      NOERROR\n  # nothing\n  b. A\n";
        let nested = read(text).unwrap()[0].nested().unwrap();
        assert_eq!(nested.iter().map(|nested| nested.head.number).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(nested[0].text(), "NOERROR\n");
    }
}
