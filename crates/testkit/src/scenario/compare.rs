//! Comparison of the expected and the actual response, printed side by side.

use core::fmt::Write;
use core::time::Duration;

use wire::{OptionCode, Section};

use super::reply::{ReplyText, note, problem, read_ede, read_option, record};
use super::{Problem, Statement};
use crate::message::{flag_names, hex_of};
use crate::{Outcome, Parsed};

/// Expected outcome of a query.
pub(super) enum Expected {
    /// No response.
    Silence,
    /// A response.
    Reply(Box<ExpectedReply>),
}

/// Expected response.
pub(super) struct ExpectedReply {
    codes: String,
    /// Lines by section. The word `*` matches any word.
    sections: [Vec<String>; 3],
    ordered: bool,
    /// EDNS options, including the Extended DNS Error.
    options: Vec<String>,
    /// Other expected properties: name and value.
    notes: Vec<(&'static str, String)>,
}

/// A line of the comparison.
struct Row {
    expected: String,
    got: String,
    same: bool,
}

impl Expected {
    /// Parses the body of a statement.
    pub(super) fn read(statement: &Statement) -> Result<Expected, Problem> {
        let mut lines = statement.lines();
        if lines.next().is_some_and(|line| line.text == "silence") && lines.next().is_none() {
            return Ok(Expected::Silence);
        }
        let text = ReplyText::read(statement)?;
        let mut expected = ExpectedReply {
            codes: codes(&text.rcode.to_string(), &flag_names(text.flags)),
            sections: Default::default(),
            ordered: false,
            options: Vec::new(),
            notes: Vec::new(),
        };
        for (section, lines) in expected.sections.iter_mut().zip(&text.sections) {
            *section = lines.iter().copied().map(canonical).collect::<Result<_, _>>()?;
        }
        for line in text.notes {
            expected.read_note(line)?;
        }
        Ok(Expected::Reply(Box::new(expected)))
    }
}

impl ExpectedReply {
    fn read_note(&mut self, line: &super::Line) -> Result<(), Problem> {
        match note(line) {
            ("ordered", "") => self.ordered = true,
            ("ede", rest) => {
                let (code, text) = read_ede(line, rest)?;
                self.options.push(format!("ede {} {}", code.0, text.unwrap_or("**")));
            }
            ("option", rest) => {
                let (code, data) = read_option(line, rest)?;
                self.options.push(format!("option {} {}", code.0, hex_of(&data)));
            }
            ("edns", size) => self.notes.push(("edns", size.to_owned())),
            ("messages", count) => self.notes.push(("messages", count.to_owned())),
            ("question", question) => self.notes.push(("question", question.to_owned())),
            ("took", span) => {
                let span = gotext::parse_duration(span).map_err(|_| problem(line, "`took` needs a duration"))?;
                self.notes.push(("took", format!("{span:?}")));
            }
            (word, rest) => return Err(problem(line, format!("`{word}` does not take `{rest}`"))),
        }
        Ok(())
    }

    /// Compares line by line. The order within a section matters only with `ordered`.
    fn compare(&self, got: &Parsed, took: Duration) -> Vec<Row> {
        let mut rows = vec![pair(&self.codes, &codes(&got.rcode().to_string(), &got.flag_names()))];
        for section in Section::ALL {
            let expected = &self.sections[section as usize];
            let got: Vec<String> = got.section(section).iter().map(ToString::to_string).collect();
            if section != Section::Answer && !(expected.is_empty() && got.is_empty()) {
                let heading = format!("{section:?}").to_lowercase();
                rows.push(pair(&heading, &heading));
            }
            rows.extend(pair_up(expected, &got, self.ordered));
        }
        rows.extend(pair_up(&self.options, &option_lines(got), false));
        for (name, expected) in &self.notes {
            rows.push(pair(&format!("{name} {expected}"), &format!("{name} {}", note_of(name, got, took))));
        }
        rows
    }
}

/// Returns a record in canonical form, or unchanged apart from whitespace if it contains `*`.
fn canonical(line: &super::Line) -> Result<String, Problem> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    if words.contains(&"*") { Ok(words.join(" ")) } else { record(line).map(|record| record.to_string()) }
}

fn codes(rcode: &str, flags: &[&str]) -> String {
    core::iter::once(rcode).chain(flags.iter().copied()).collect::<Vec<_>>().join(" ")
}

fn option_lines(got: &Parsed) -> Vec<String> {
    let ede = got.ede().map(|(code, text)| format!("ede {} {text}", code.0));
    let others = got.options.iter().filter(|(code, _)| *code != OptionCode::EXTENDED_ERROR);
    ede.into_iter().chain(others.map(|(code, data)| format!("option {} {}", code.0, hex_of(data)))).collect()
}

fn note_of(name: &str, got: &Parsed, took: Duration) -> String {
    let question = || got.question.as_ref().map(|(name, qtype, qclass)| format!("{name} {qclass} {qtype}"));
    match name {
        "took" => format!("{took:?}"),
        "messages" => got.messages.to_string(),
        "question" => question().unwrap_or_else(|| "none".to_owned()),
        _ => got.opt.map_or_else(|| "none".to_owned(), |opt| opt.udp_size.to_string()),
    }
}

fn pair(expected: &str, got: &str) -> Row {
    Row { expected: expected.to_owned(), got: got.to_owned(), same: is_like(expected, got) }
}

/// Returns true if the words match. `*` matches any word, `**` the rest of the line.
fn is_like(expected: &str, got: &str) -> bool {
    if !expected.contains('*') {
        return expected.trim_end() == got.trim_end();
    }
    let (mut wanted, mut found) = (expected.split_whitespace(), got.split_whitespace());
    loop {
        match (wanted.next(), found.next()) {
            (Some("**"), _) | (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == "*" || wanted == found => {}
            _ => return false,
        }
    }
}

fn pair_up(expected: &[String], got: &[String], ordered: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut left: Vec<&String> = got.iter().collect();
    for line in expected {
        let like = if ordered { Some(0) } else { left.iter().position(|got| is_like(line, got)) };
        let found = like.filter(|at| *at < left.len()).map(|at| left.remove(at).as_str());
        rows.push(pair(line, found.unwrap_or_default()));
    }
    rows.extend(left.into_iter().map(|line| pair("", line)));
    rows
}

/// Compares the actual outcome with the expected one.
///
/// # Errors
/// Returns both, side by side, if they differ.
pub(super) fn compare(statement: &Statement, expected: &Expected, outcome: Option<&Outcome>) -> Result<(), Problem> {
    let took = outcome.map(|outcome| outcome.took).unwrap_or_default();
    let answer = outcome.and_then(|outcome| outcome.answer.as_deref()).map(Parsed::read).transpose();
    let mut got = answer.map_err(|error| statement.problem(format!("malformed response: {error}")))?;
    for message in outcome.into_iter().flat_map(|outcome| &outcome.more) {
        let more =
            Parsed::read(message).map_err(|error| statement.problem(format!("malformed further message: {error}")))?;
        got = got.map(|got| got.followed_by(more));
    }
    let rows = match (expected, &got) {
        (Expected::Silence, None) => return Ok(()),
        (Expected::Silence, Some(got)) => {
            let lines: Vec<_> = silence().compare(got, took).into_iter().map(|row| row.got).collect();
            let first = pair("silence", lines.first().map_or("", String::as_str));
            core::iter::once(first).chain(lines.iter().skip(1).map(|line| pair("", line))).collect()
        }
        (Expected::Reply(expected), None) => {
            let lines = core::iter::once(&expected.codes).chain(expected.sections.iter().flatten());
            lines.enumerate().map(|(at, line)| pair(line, if at == 0 { "silence" } else { "" })).collect()
        }
        (Expected::Reply(expected), Some(got)) => expected.compare(got, took),
    };
    if rows.iter().all(|row| row.same) {
        return Ok(());
    }
    Err(statement.problem(format!("the answer is not as expected\n{}", side_by_side(&rows))))
}

/// Returns an expectation that differs from any response in every line.
fn silence() -> ExpectedReply {
    let sections = Default::default();
    ExpectedReply { codes: String::new(), sections, ordered: false, options: Vec::new(), notes: Vec::new() }
}

fn side_by_side(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.expected.len()).max().unwrap_or(0).max("expected".len());
    let mut text = format!("      {:width$}   got\n", "expected");
    for Row { expected, got, same } in rows {
        let mark = if *same { ' ' } else { '!' };
        let expected = expected.replace("**", "…");
        let _ = writeln!(text, "    {}", format!("{mark} {expected:width$} | {got}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_one_word_and_double_star_the_rest() {
        for (expected, got, like) in [
            ("x. * IN A 192.0.2.1", "x. 30 IN A 192.0.2.1", true),
            ("x. * IN A 192.0.2.1", "x. 30 IN A 192.0.2.2", false),
            ("x. * IN A", "x. 30 IN A 192.0.2.1", false),
            ("ede 20 **", "ede 20 ", true),
            ("ede 20 **", "ede 20 a text", true),
            ("ede 20", "ede 20 a text", false),
        ] {
            assert_eq!(is_like(expected, got), like, "{expected} / {got}");
        }
    }
}
