//! Statement `console`: commands as people type them, each with its expected output.

use core::net::{IpAddr, SocketAddr};
use std::time::Duration;

use engine::Transport;
use testkit::{Arrival, CLIENT, Extension, Line, Parsed, Problem, Question, Record, Stage, Statement};
use wire::{Class, Name, Section, Type, reverse_name};

/// Time to wait for a response: longer than any deadline of the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// Start of a command line.
const PROMPT: &str = "$ dig ";
/// Section headings of dig.
const HEADINGS: [(&str, Section); 3] = [
    (";; ANSWER SECTION:", Section::Answer),
    (";; AUTHORITY SECTION:", Section::Authority),
    (";; ADDITIONAL SECTION:", Section::Additional),
];

pub(crate) struct Console;

impl Extension for Console {
    fn words(&self) -> &'static [&'static str] {
        &["console"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let lines: Vec<&Line> = statement.body.iter().filter(|line| !line.text.trim().is_empty()).collect();
        let mut rest = lines.as_slice();
        while let Some((command, after)) = rest.split_first() {
            let until = after.iter().position(|line| line.text.starts_with(PROMPT)).unwrap_or(after.len());
            let (printed, next) = after.split_at(until);
            let typed = command.text.strip_prefix(PROMPT).ok_or_else(|| statement.problem("a command is `$ dig …`"))?;
            let said = |what: String| statement.problem(format!("{}: {what}", command.text));
            ask(typed, stage).and_then(|answer| compare(answer.as_ref(), printed)).map_err(said)?;
            rest = next;
        }
        Ok(())
    }
}

/// Runs a query with dig's arguments. Returns the response, if there is one.
fn ask(words: &str, stage: &mut Stage) -> Result<Option<Parsed>, String> {
    let mut question = Question::new(Name::root(), Type::A);
    let mut arrival = Arrival::default();
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or("a value is missing");
        match word {
            "+tcp" => arrival.transport = Transport::Tcp,
            "+dnssec" => question.opt = question.opt.map(|opt| wire::Opt { dnssec_ok: true, ..opt }),
            "-b" => arrival.peer = SocketAddr::new(address(value()?)?, CLIENT.port()),
            "-p" => arrival.port = Some(value()?.parse().map_err(|_| "not a port")?),
            "-x" => (question.name, question.qtype) = (reverse_name(address(value()?)?), Type::PTR),
            "CH" => question.qclass = Class::CH,
            _ if word.starts_with('@') => {}
            _ => match word.parse() {
                Ok(qtype) if word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) => {
                    question.qtype = qtype;
                }
                _ => question.name = Name::from_text(word).map_err(|error| error.to_string())?,
            },
        }
    }
    let ticket = stage.server.ask(&question.packet(), arrival);
    let answer = stage.server.wait_for(&ticket, PATIENCE).and_then(|outcome| outcome.answer);
    answer.map(|bytes| Parsed::read(&bytes).map_err(|error| format!("{error:?}"))).transpose()
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an address"))
}

fn compare(answer: Option<&Parsed>, printed: &[&Line]) -> Result<(), String> {
    let printed: Vec<&str> = printed.iter().map(|line| line.text.trim()).collect();
    let silent = printed.iter().any(|line| line.starts_with(";; connection timed out"));
    let Some(answer) = answer.filter(|_| !silent) else {
        return if silent && answer.is_none() {
            Ok(())
        } else {
            Err("expected an answer or a timeout, got the other".to_owned())
        };
    };
    let stated = |start: &str| printed.iter().find_map(|line| line.strip_prefix(start));
    let status = answer.rcode().to_string();
    if stated(";; status: ").unwrap_or("NOERROR") != status {
        return Err(format!("the status is {status}"));
    }
    let error = answer.ede().map(|(code, _)| code.0.to_string());
    if stated("; EDE: ").and_then(|text| text.split(' ').next()) != error.as_deref() {
        return Err(format!("the Extended DNS Error is {error:?}"));
    }
    let (mut section, mut wanted) = (Section::Answer, vec![(Section::Answer, Vec::new())]);
    for line in printed {
        if let Some((_, named)) = HEADINGS.iter().find(|(heading, _)| *heading == line) {
            section = *named;
            wanted.retain(|(known, _)| *known != section);
            wanted.push((section, Vec::new()));
        } else if !line.starts_with(';') {
            let of_section = wanted.iter_mut().find(|(known, _)| *known == section);
            of_section.into_iter().for_each(|(_, records)| records.push(line));
        }
    }
    wanted.iter().try_for_each(|(section, records)| compare_records(answer.section(*section), records))
}

fn compare_records(got: &[Record], wanted: &[&str]) -> Result<(), String> {
    let mut left: Vec<String> = got.iter().map(ToString::to_string).collect();
    let same = |got: &str, wanted: &str| {
        let (got, wanted): (Vec<_>, Vec<_>) = (got.split_whitespace().collect(), wanted.split_whitespace().collect());
        got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| *got == wanted || wanted == "*")
    };
    for record in wanted {
        let at = left.iter().position(|got| same(got, record));
        left.remove(at.ok_or_else(|| format!("`{record}` is not among {left:#?}"))?);
    }
    if left.is_empty() { Ok(()) } else { Err(format!("there are also {left:#?}")) }
}
