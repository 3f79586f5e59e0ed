//! The form of a scenario: statements that begin at the margin, each with the indented lines below it.

use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;

/// A line of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its text, without the indentation that all lines of the body share.
    pub text: String,
}

/// A statement of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The line at the margin.
    pub head: Line,
    /// The indented lines below it, empty ones at its end left out.
    pub body: Vec<Line>,
}

/// Words of a statement that are taken one by one.
pub struct Words<'s> {
    statement: &'s Statement,
    words: std::vec::IntoIter<&'s str>,
}

impl<'s> Words<'s> {
    /// Takes the next word.
    pub fn next_word(&mut self) -> Option<&'s str> {
        self.words.next()
    }

    /// Takes the next word as something that parses.
    ///
    /// # Errors
    /// If there is none or it does not; `what` says as what.
    pub fn parse<T: FromStr>(&mut self, what: &str) -> Result<T, Problem> {
        let word = self.next_word();
        self.statement.parse(word, what)
    }

    /// Takes the next word as a duration.
    ///
    /// # Errors
    /// If there is none or it is none.
    pub fn duration(&mut self) -> Result<Duration, Problem> {
        let span = self.next_word().and_then(|word| engine::options::duration(word).ok());
        span.ok_or_else(|| self.problem("a duration such as `30s` is wanted"))
    }

    /// A problem with the statement.
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        self.statement.problem(text)
    }
}

/// What is wrong with a scenario, or with what it has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line.
    pub line: usize,
    /// What is wrong; it may have several lines.
    pub text: String,
}

impl Statement {
    /// The first word.
    #[must_use]
    pub fn word(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    /// The words of the head.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.head.text.split_whitespace()
    }

    /// The words of the head from number `from` up to, not with, number `to`, to be taken one by one.
    #[must_use]
    pub fn take_words(&self, from: usize, to: usize) -> Words<'_> {
        let words = self.words().take(to).skip(from).collect::<Vec<_>>();
        Words { statement: self, words: words.into_iter() }
    }

    /// The head behind its first `count` words, as it was written.
    #[must_use]
    pub fn rest(&self, count: usize) -> &str {
        (0..count).fold(self.head.text.as_str(), |rest, _| {
            rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
        })
    }

    /// The lines of the body that say something: neither empty nor a comment.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.body.iter().filter(|line| !is_comment(&line.text))
    }

    /// The body as a text of its own.
    #[must_use]
    pub fn text(&self) -> String {
        self.body.iter().map(|line| format!("{}\n", line.text)).collect()
    }

    /// The body as statements.
    ///
    /// # Errors
    /// If its first line is indented further than the others.
    pub fn nested(&self) -> Result<Vec<Statement>, Problem> {
        statements(&self.body)
    }

    /// A problem with this statement.
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        Problem { line: self.head.number, text: text.into() }
    }

    /// Reads a word of it as something that parses.
    ///
    /// # Errors
    /// If there is no word or it does not; `what` says as what.
    pub fn parse<T: FromStr>(&self, word: Option<&str>, what: &str) -> Result<T, Problem> {
        let word = word.ok_or_else(|| self.problem(format!("`{}` wants {what}", self.word())))?;
        word.parse().map_err(|_| self.problem(format!("`{word}` is not {what}")))
    }

    /// Compares something with what the statement says of it.
    ///
    /// # Errors
    /// If it is not the same.
    pub fn expect<T: PartialEq + Display>(&self, what: &str, expected: &T, got: &T) -> Result<(), Problem> {
        if expected == got {
            return Ok(());
        }
        Err(self.problem(format!("{what}: expected {expected}, got {got}")))
    }
}

/// Reads the statements of a scenario.
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
                let text = "an indented line belongs to a statement, and there is none above it".to_owned();
                return Err(Problem { line: line.number, text });
            }
            _ if is_comment(&line.text) => {}
            _ => statements.push(Statement { head: line.clone(), body: Vec::new() }),
        }
    }
    statements.iter_mut().for_each(|statement| trim(&mut statement.body));
    Ok(statements)
}

/// Takes away the empty lines at the end, and the indentation that all lines share.
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
    fn bodies_are_what_is_indented() {
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
    fn a_body_holds_statements_too() {
        let text = "upstream 192.0.2.1\n  a. A\n      NOERROR\n  # nothing\n  b. A\n";
        let nested = read(text).unwrap()[0].nested().unwrap();
        assert_eq!(nested.iter().map(|nested| nested.head.number).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(nested[0].text(), "NOERROR\n");
    }
}
