//! Statements that send queries, and the rules that every response must follow.

use core::net::SocketAddr;
use core::time::Duration;

use engine::Transport;
use wire::{Name, Opt, OptionCode, Type};

use super::compare::{Expected, compare};
use super::stage::Asked;
use super::{Problem, Stage, Statement, Words};
use crate::{Arrival, Outcome, Parsed, Question};

/// Time to wait for a response: longer than any deadline of the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// UDP payload size in bytes that every client accepts (RFC 1035 §4.2.1).
const UDP_SIZE_MIN: u16 = 512;

/// Executes `ask NAME TYPE [WORDS…]` with the answer below, or `… as LABEL` with the answer checked later.
pub(super) fn ask(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let name: Name = statement.parse::<NameWord>(statement.words().nth(1), "a name")?.0;
    let qtype: Type = statement.parse(statement.words().nth(2), "a type")?;
    let mut asking = Asking { question: Question::new(name, qtype), arrival: Arrival::default(), label: None };
    stage.next_id = stage.next_id.wrapping_add(1);
    asking.question.header.id = stage.next_id;
    asking.read(&mut statement.words_between(3, usize::MAX))?;
    let Asking { question, arrival, label } = asking;
    let ticket = stage.server.ask(&question.packet(), arrival);
    conclude(stage, statement, Asked { ticket, question: Some((question, arrival.transport)) }, label)
}

/// Executes `raw [tcp] [from ADDRESS] HEX…`: sends bytes that need not be a query.
pub(super) fn raw(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let question = Question::new(Name::root(), Type::A);
    let mut asking = Asking { question, arrival: Arrival::default(), label: None };
    let words: Vec<&str> = statement.words().collect();
    let is_hex = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hex_at = words.len() - words.iter().rev().take_while(is_hex).count();
    let packet = crate::hex(&words[hex_at..].concat());
    let packet = packet.ok_or_else(|| statement.problem("`raw` must end with hexadecimal bytes"))?;
    asking.read(&mut statement.words_between(1, hex_at))?;
    let ticket = stage.server.ask(&packet, asking.arrival);
    conclude(stage, statement, Asked { ticket, question: None }, None)
}

fn conclude(stage: &mut Stage, statement: &Statement, asked: Asked, label: Option<String>) -> Result<(), Problem> {
    let Some(label) = label else { return check(stage, statement, &asked) };
    stage.asked.insert(label, asked);
    match statement.lines().next() {
        Some(_) => Err(statement.problem("with `as`, write the answer below a later `answer LABEL`")),
        None => Ok(()),
    }
}

/// Executes `answer LABEL`, with the answer below.
pub(super) fn answer(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let label = statement.rest(1);
    let asked = stage.asked.remove(label);
    let asked = asked.ok_or_else(|| statement.problem(format!("no query has the label `{label}`")))?;
    check(stage, statement, &asked)
}

/// Executes `pending LABEL`: there must be no response yet.
pub(super) fn pending(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    match stage.asked.get(statement.rest(1)).map(|asked| asked.ticket.outcome()) {
        None => Err(statement.problem(format!("no query has the label `{}`", statement.rest(1)))),
        Some(Some(outcome)) => Err(statement.problem(format!("it was answered after {:?}", outcome.took))),
        Some(None) => Ok(()),
    }
}

fn check(stage: &mut Stage, statement: &Statement, asked: &Asked) -> Result<(), Problem> {
    let expected = Expected::read(statement)?;
    let outcome = stage.server.wait_for(&asked.ticket, PATIENCE);
    if let Some((question, transport)) = &asked.question
        && let Some(Outcome { answer: Some(answer), more, .. }) = &outcome
    {
        let messages = core::iter::once(answer).chain(more);
        let broken: Vec<_> = messages.flat_map(|answer| broken_rules(question, *transport, answer)).collect();
        if !broken.is_empty() {
            return Err(statement.problem(format!("the answer breaks the rules: {}", broken.join("; "))));
        }
    }
    compare(statement, &expected, outcome.as_ref())
}

/// Parsed words after `ask NAME TYPE`.
struct Asking {
    question: Question,
    arrival: Arrival,
    label: Option<String>,
}

impl Asking {
    fn read(&mut self, words: &mut Words<'_>) -> Result<(), Problem> {
        while let Some(word) = words.next_word() {
            if !self.read_edns(word, words)? && !self.read_header(word, words)? {
                self.read_arrival(word, words)?;
            }
        }
        Ok(())
    }

    /// Parses a word about EDNS. Returns false for any other word.
    fn read_edns(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, Problem> {
        let Question { opt, options, .. } = &mut self.question;
        let mut set = |change: &dyn Fn(Opt) -> Opt| *opt = opt.map(change);
        match word {
            "noedns" => *opt = None,
            "do" => set(&|opt| Opt { dnssec_ok: true, ..opt }),
            "bufsize" => {
                let udp_size = words.parse("a number of bytes")?;
                set(&|opt| Opt { udp_size, ..opt });
            }
            "version" => {
                let version = words.parse("a version of EDNS")?;
                set(&|opt| Opt { version, ..opt });
            }
            "option" => {
                let code = OptionCode(words.parse("a number of an option")?);
                let data = words.next_word().and_then(crate::hex);
                options.push((code, data.ok_or_else(|| words.problem("`option` needs a number and bytes"))?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses a word about the header, the class or the client's zone serial (for IXFR). Returns false for any other
    /// word.
    fn read_header(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, Problem> {
        let Question { header, qclass, serial, .. } = &mut self.question;
        match word {
            "cd" => header.flags = header.flags.with_checking_disabled(true),
            "ad" => header.flags = header.flags.with_authentic_data(true),
            "nord" => header.flags = header.flags.with_recursion_desired(false),
            "opcode" => header.flags = header.flags.with_opcode(words.parse("an opcode")?),
            "serial" => *serial = Some(words.parse("a serial")?),
            "class" => *qclass = words.parse("a class")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses a word about the transport, the client or the port.
    fn read_arrival(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Problem> {
        match word {
            "tcp" => self.arrival.transport = Transport::Tcp,
            "grpc" => self.arrival.transport = Transport::Grpc,
            "quic" => self.arrival.transport = Transport::Quic,
            "https" => self.arrival.transport = Transport::Https,
            "https3" => self.arrival.transport = Transport::Https3,
            "port" => self.arrival.port = Some(words.parse("a port")?),
            "from" => self.arrival.peer = SocketAddr::new(words.parse("an IP address")?, self.arrival.peer.port()),
            "as" => self.label = words.next_word().map(str::to_owned),
            _ => return Err(words.problem(format!("unknown word `{word}` for a query"))),
        }
        Ok(())
    }
}

/// A name as a word. `Name` itself does not implement `FromStr`.
struct NameWord(Name);

impl core::str::FromStr for NameWord {
    type Err = wire::NameError;

    fn from_str(word: &str) -> Result<Self, wire::NameError> {
        Name::from_text(word).map(NameWord)
    }
}

/// Returns the rules that a response breaks.
fn broken_rules(question: &Question, transport: Transport, answer: &[u8]) -> Vec<String> {
    let Ok(got) = Parsed::read(answer) else { return vec!["it is malformed".to_owned()] };
    let (asked, flags) = (question.header.flags, got.header.flags);
    let size = match (transport, question.opt) {
        (transport, _) if transport.is_stream() => u16::MAX,
        (_, opt) => opt.map_or(UDP_SIZE_MIN, |opt| opt.udp_size.max(UDP_SIZE_MIN)),
    };
    let same_question = got.question.as_ref().is_some_and(|(name, qtype, qclass)| {
        let same_name = name.as_bytes() == question.name.as_bytes();
        same_name && (*qtype, *qclass) == (question.qtype, question.qclass)
    });
    let rules = [
        (got.header.id == question.header.id, "its id differs"),
        (flags.is_response(), "QR is not set"),
        (!flags.reserved(), "the reserved bit is set"),
        (flags.opcode() == asked.opcode(), "its opcode differs"),
        (flags.recursion_desired() == asked.recursion_desired(), "RD differs from the query"),
        (flags.checking_disabled() == asked.checking_disabled(), "CD differs from the query"),
        (same_question, "its question differs, or the case of its letters"),
        (got.opt.is_some() == question.opt.is_some(), "only one of query and response has EDNS"),
        (got.opt.is_none_or(|opt| opt.version == 0), "its EDNS version is not 0"),
        (
            got.opt.is_none_or(|opt| question.opt.is_some_and(|asked| asked.dnssec_ok == opt.dnssec_ok)),
            "DO differs from the query",
        ),
        (answer.len() <= usize::from(size), "it is longer than the client accepts"),
        (got.trailing == 0, "extra bytes follow the message"),
    ];
    rules.iter().filter(|(holds, _)| !holds).map(|(_, text)| (*text).to_owned()).collect()
}
