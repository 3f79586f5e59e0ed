//! Syntax of a message in a scenario: an upstream's answer, or the response that a client expects.
//!
//! ```text
//! NOERROR aa rd
//! www.example.org. 30 IN A 192.0.2.80
//! authority
//! example.org. 30 IN NS ns1.example.org.
//! ede 3 stale
//! ```

use wire::{EdeCode, Flags, OptionCode, Rcode};

use super::{Line, Problem, Statement};
use crate::message::with_flag;
use crate::{Answer, Record};

/// Parsed message: code and flags, records by section, and other lines.
pub(super) struct ReplyText<'a> {
    pub(super) rcode: Rcode,
    pub(super) flags: Flags,
    pub(super) sections: [Vec<&'a Line>; 3],
    /// Lines that start with one of [`NOTES`].
    pub(super) notes: Vec<&'a Line>,
}

/// First words of lines that are not records.
const NOTES: [&str; 7] = ["ede", "option", "edns", "ordered", "took", "question", "messages"];
/// Headings of the sections. Records above any heading are in the answer section.
const HEADINGS: [&str; 3] = ["answer", "authority", "additional"];

impl<'a> ReplyText<'a> {
    /// Parses the body of a statement.
    pub(super) fn read(statement: &'a Statement) -> Result<ReplyText<'a>, Problem> {
        let mut lines = statement.lines();
        let first = lines.next().ok_or_else(|| statement.problem("the message is missing: `NOERROR rd`, …"))?;
        let (rcode, flags) = read_codes(first)?;
        let mut reply = ReplyText { rcode, flags, sections: Default::default(), notes: Vec::new() };
        let mut section = 0;
        for line in lines {
            let word = line.text.split_whitespace().next().unwrap_or_default();
            if let Some(at) = HEADINGS.iter().position(|heading| *heading == line.text) {
                section = at;
            } else if NOTES.contains(&word) {
                reply.notes.push(line);
            } else {
                reply.sections[section].push(line);
            }
        }
        Ok(reply)
    }

    /// Converts the message to an answer of an upstream.
    pub(super) fn to_answer(&self) -> Result<Answer, Problem> {
        let mut answer = Answer { rcode: self.rcode, flags: self.flags, ..Answer::default() };
        for (records, lines) in answer.sections.iter_mut().zip(&self.sections) {
            *records = lines.iter().map(|line| record(line)).collect::<Result<_, _>>()?;
        }
        for line in &self.notes {
            match note(line) {
                ("ede", rest) => {
                    let (code, text) = read_ede(line, rest)?;
                    answer.push_ede(code, text.unwrap_or_default());
                }
                ("option", rest) => answer.options.push(read_option(line, rest)?),
                (word, _) => return Err(problem(line, format!("an upstream does not say `{word}`"))),
            }
        }
        Ok(answer)
    }
}

pub(super) fn problem(line: &Line, text: impl Into<String>) -> Problem {
    Problem { line: line.number, text: text.into() }
}

/// Splits a line into its first word and the rest.
pub(super) fn note(line: &Line) -> (&str, &str) {
    line.text.split_once(char::is_whitespace).map_or((line.text.as_str(), ""), |(word, rest)| (word, rest.trim()))
}

fn read_codes(line: &Line) -> Result<(Rcode, Flags), Problem> {
    let mut words = line.text.split_whitespace();
    let word = words.next().unwrap_or_default();
    let rcode = word.parse().map_err(|_| problem(line, format!("`{word}` is not a response code")))?;
    let flags = words.try_fold(Flags::default(), |flags, word| {
        with_flag(flags, word)
            .ok_or_else(|| problem(line, format!("`{word}` is not a flag; the flags are aa, tc, rd, ra, ad and cd")))
    })?;
    Ok((rcode, flags))
}

pub(super) fn record(line: &Line) -> Result<Record, Problem> {
    line.text.parse().map_err(|error| problem(line, format!("`{}`: {error}", line.text)))
}

/// Parses `CODE [TEXT]`.
pub(super) fn read_ede<'l>(line: &Line, rest: &'l str) -> Result<(EdeCode, Option<&'l str>), Problem> {
    let (code, text) = rest.split_once(' ').map_or((rest, None), |(code, text)| (code, Some(text)));
    let code = code.parse().map_err(|_| problem(line, format!("`{code}` is not the number of an extended error")))?;
    Ok((EdeCode(code), text))
}

/// Parses `CODE [HEX]`.
pub(super) fn read_option(line: &Line, rest: &str) -> Result<(OptionCode, Vec<u8>), Problem> {
    let (code, data) = rest.split_once(' ').unwrap_or((rest, ""));
    let code = code.parse().map_err(|_| problem(line, format!("`{code}` is not the number of an option")))?;
    let data = crate::hex(data).ok_or_else(|| problem(line, format!("`{data}` is not hexadecimal")))?;
    Ok((OptionCode(code), data))
}
