//! Statements about upstreams.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use engine::{HttpMethod, Transport};
use wire::Name;

use super::reply::ReplyText;
use super::{Problem, Stage, Statement};
use crate::{Answer, Asked, Entry, Names, Reaction};

/// Default port of an upstream.
const DNS_PORT: u16 = 53;

/// Executes `upstream ADDRESS [WORDS…]` with a table below, or `upstream ADDRESS asked N` with queries below.
pub(super) fn upstream(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let word = statement.words().nth(1);
    let address = match word.and_then(|word| word.parse::<IpAddr>().ok()) {
        Some(ip) => SocketAddr::new(ip, DNS_PORT),
        None => statement.parse(word, "an address")?,
    };
    if statement.words().nth(2) == Some("asked") {
        return asked(stage, statement, address);
    }
    let defaults = Manner::read(statement, 2, Manner::default())?;
    let mut table = Vec::new();
    for nested in statement.nested()? {
        table.push(entry(&nested, defaults)?);
    }
    if let Some(word) = defaults.reaction.filter(|_| table.is_empty()) {
        table.push(defaults.entry(Names::Any, None, word.to_reaction(None)));
    }
    stage.server.io.upstreams.set(address, table);
    Ok(())
}

/// Compares the queries received since the last check with the expected ones: their number, and the words of each.
fn asked(stage: &mut Stage, statement: &Statement, address: SocketAddr) -> Result<(), Problem> {
    let count: usize = statement.parse(statement.words().nth(3), "a number of queries")?;
    let got = stage.server.io.upstreams.take_asked(address);
    let got: Vec<String> = got.iter().map(words_of).collect();
    let like = |line: &str, got: &String| {
        let mut words = got.split_whitespace();
        line.split_whitespace().all(|word| words.next().is_some_and(|got| word == "*" || word == got))
    };
    let lines: Vec<&str> = statement.lines().map(|line| line.text.as_str()).collect();
    let as_written = lines.is_empty() || lines.iter().zip(&got).all(|(line, got)| like(line, got));
    if got.len() == count && as_written && (lines.is_empty() || lines.len() == count) {
        return Ok(());
    }
    let listed: String = got.iter().map(|query| format!("\n      {query}")).collect();
    Err(statement.problem(format!("the upstream was asked {} times, not as expected:{listed}", got.len())))
}

/// Parses `NAME TYPE [WORDS…]` with the answer below.
fn entry(statement: &Statement, defaults: Manner) -> Result<Entry, Problem> {
    let word = statement.word();
    let name = |text: &str| Name::from_text(text).map_err(|error| statement.problem(format!("`{text}`: {error}")));
    let names = match word.strip_prefix("*.") {
        _ if word == "*" => Names::Any,
        Some(zone) => Names::Below(name(zone)?),
        None => Names::Is(name(word)?),
    };
    let qtype = match statement.words().nth(1) {
        Some("*") => None,
        word => Some(statement.parse(word, "a type")?),
    };
    let words = Manner::read(statement, 2, defaults)?;
    let answers = statement.lines().next().is_some();
    let answer = if answers { Some(ReplyText::read(statement)?.to_answer()?) } else { None };
    let reaction = match (words.reaction, answer) {
        (Some(word), answer) if answer.is_some() == word.takes_answer() => word.to_reaction(answer),
        (None, Some(answer)) => Reaction::Answer(answer),
        _ => {
            return Err(statement.problem("either an answer below, or one of silence, refused, closed, broken, status"));
        }
    };
    Ok(words.entry(names, qtype, reaction))
}

/// Parsed words of an upstream or of a line of its table.
#[derive(Clone, Copy, Default)]
struct Manner {
    over: Option<Transport>,
    delay: Duration,
    once: bool,
    wrong_ids: u32,
    reaction: Option<Word>,
}

/// A reaction, without its answer.
#[derive(Clone, Copy)]
enum Word {
    Silence,
    Refused,
    Closed,
    Broken,
    Overflow,
    OtherOpcode,
    Truncated,
    LowerCase,
    Cookie,
    Status(u32),
}

impl Word {
    const fn takes_answer(self) -> bool {
        matches!(self, Word::Truncated | Word::LowerCase | Word::Cookie)
    }

    fn to_reaction(self, answer: Option<Answer>) -> Reaction {
        match self {
            Word::Silence => Reaction::Silence,
            Word::Refused => Reaction::Refuse,
            Word::Closed => Reaction::Close,
            Word::Broken => Reaction::Broken,
            Word::Overflow => Reaction::Overflow,
            Word::OtherOpcode => Reaction::OtherOpcode,
            Word::Status(code) => Reaction::Status(code),
            Word::LowerCase => Reaction::LowerCase(answer.unwrap_or_default()),
            Word::Cookie => Reaction::Cookie(answer.unwrap_or_default()),
            Word::Truncated => Reaction::Truncate(answer.unwrap_or_default()),
        }
    }
}

impl Manner {
    fn read(statement: &Statement, skip: usize, mut read: Manner) -> Result<Manner, Problem> {
        let mut words = statement.words_between(skip, usize::MAX);
        while let Some(word) = words.next_word() {
            match word {
                "udp" => read.over = Some(Transport::Udp),
                "tcp" => read.over = Some(Transport::Tcp),
                "grpc" => read.over = Some(Transport::Grpc),
                "https" => read.over = Some(Transport::Https),
                "quic" => read.over = Some(Transport::Quic),
                "status" => read.reaction = Some(Word::Status(words.parse("a code of gRPC")?)),
                "once" => read.once = true,
                "wrong" => read.wrong_ids = words.parse("a number of replies")?,
                "delay" => read.delay = words.duration()?,
                "silence" => read.reaction = Some(Word::Silence),
                "refused" => read.reaction = Some(Word::Refused),
                "closed" => read.reaction = Some(Word::Closed),
                "broken" => read.reaction = Some(Word::Broken),
                "opcode" => read.reaction = Some(Word::OtherOpcode),
                "overflow" => read.reaction = Some(Word::Overflow),
                "lowercase" => read.reaction = Some(Word::LowerCase),
                "cookie" => read.reaction = Some(Word::Cookie),
                "truncated" => read.reaction = Some(Word::Truncated),
                _ => return Err(statement.problem(format!("`{word}` says nothing about an upstream"))),
            }
        }
        Ok(read)
    }

    fn entry(self, names: Names, qtype: Option<wire::Type>, reaction: Reaction) -> Entry {
        let Manner { over, delay, once, wrong_ids, .. } = self;
        Entry { names, qtype, over, delay, once, wrong_ids, reaction }
    }
}

/// Returns the words for a query that an upstream received.
fn words_of(asked: &Asked) -> String {
    let method = match (asked.over, asked.method) {
        (Transport::Https, HttpMethod::Get) => " get",
        (Transport::Https, HttpMethod::Post) => " post",
        _ => "",
    };
    let tls = if asked.has_tls { " tls" } else { "" };
    let http3 = if asked.may_use_http3 { " http3" } else { "" };
    format!("{} {}{tls}{method}{http3}", asked_over(asked.over), asked.query)
}

/// Returns the name of a transport in scenarios.
fn asked_over(over: Transport) -> &'static str {
    match over {
        Transport::Grpc => "grpc",
        Transport::Https => "https",
        Transport::Quic => "quic",
        other => other.label(),
    }
}
