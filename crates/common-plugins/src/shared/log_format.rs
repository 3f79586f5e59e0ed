//! Format strings with placeholders for a query and its response, parsed once. *log* uses them for its lines, *dnstap*
//! for its extra field.

use std::io::Write;

use engine::{Instant, Label, Labels, Query, Response};
use wire::Flags;

/// Expansion of `{common}`.
const COMMON: &str = "{remote}:{port} - {>id} \"{type} {class} {name} {proto} {size} {>do} {>bufsize}\" {rcode} {>rflags} {rsize} {duration}";
/// Suffix that `{combined}` adds to `{common}`.
const COMBINED_END: &str = " \"{>opcode}\"";
/// Text for a value that does not exist.
const ABSENT: &[u8] = b"-";

/// A parsed format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Value),
    /// A metadata label by name. [`Format::bind`] resolves it once the labels of the server block are known.
    Label(String, Option<Label>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Type,
    Class,
    Name,
    Protocol,
    Remote,
    Local,
    Port,
    Size,
    ResponseSize,
    Duration,
    Rcode,
    Id,
    Opcode,
    DnssecOk,
    BufferSize,
    ResponseFlags,
}

const VALUES: [(&str, Value); 16] = [
    ("type", Value::Type),
    ("class", Value::Class),
    ("name", Value::Name),
    ("proto", Value::Protocol),
    ("remote", Value::Remote),
    ("local", Value::Local),
    ("port", Value::Port),
    ("size", Value::Size),
    ("rsize", Value::ResponseSize),
    ("duration", Value::Duration),
    ("rcode", Value::Rcode),
    (">id", Value::Id),
    (">opcode", Value::Opcode),
    (">do", Value::DnssecOk),
    (">bufsize", Value::BufferSize),
    (">rflags", Value::ResponseFlags),
];

impl Default for Format {
    fn default() -> Self {
        Format::read(COMMON)
    }
}

impl Format {
    /// Parses a format. Unknown placeholders stay as literal text.
    pub fn read(text: &str) -> Format {
        let text = text.replace("{combined}", &format!("{COMMON}{COMBINED_END}")).replace("{common}", COMMON);
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        let mut literal = String::new();
        while let Some(open) = rest.find('{') {
            literal.push_str(&rest[..open]);
            rest = &rest[open..];
            let part = rest.find('}').and_then(|close| Some((part(&rest[1..close])?, close)));
            let Some((part, close)) = part else {
                literal.push('{');
                rest = &rest[1..];
                continue;
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(part);
            rest = &rest[close + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Format { parts }
    }

    /// Returns the words in single braces that look like placeholders and are unknown, each with the closest known
    /// one. They are written as text.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, Option<&'static str>)> {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Value(_) | Part::Label(..) => None,
        });
        let words = texts.flat_map(|text| text.split('{').skip(1)).filter_map(|rest| Some(rest.split_once('}')?.0));
        let is_placeholder =
            |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_->".contains(c));
        words.filter(is_placeholder).map(|word| {
            let known = VALUES.iter().map(|(name, _)| *name).chain(["common", "combined"]);
            (word, corefile::did_you_mean(word, known))
        })
    }

    /// Resolves the metadata labels that the format uses.
    pub fn bind(&mut self, labels: &Labels) {
        for part in &mut self.parts {
            if let Part::Label(name, label) = part {
                *label = Some(labels.label(name));
            }
        }
    }

    /// Appends the formatted line for a query and its response.
    pub fn write(&self, line: &mut Vec<u8>, seen: &Seen<'_>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => line.extend_from_slice(text.as_bytes()),
                Part::Value(value) => seen.write(*value, line),
                Part::Label(_, label) => {
                    let value = label.as_ref().and_then(|label| label.value(seen.query));
                    line.extend_from_slice(value.as_ref().map_or(ABSENT, String::as_bytes));
                }
            }
        }
    }
}

/// Parses the name inside the braces.
fn part(name: &str) -> Option<Part> {
    let label = || name.strip_prefix('/').map(|label| Part::Label(label.to_owned(), None));
    VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| Part::Value(*value)).or_else(label)
}

/// A query with its response, if there is one.
pub struct Seen<'a> {
    query: &'a Query,
    /// The response and the processing time in nanoseconds.
    answer: Option<(&'a Response, u128)>,
}

impl<'a> Seen<'a> {
    /// A query with its response, which was ready at `now`.
    pub const fn new(query: &'a Query, response: &'a Response, now: Instant) -> Seen<'a> {
        Seen { query, answer: Some((response, now.since(query.received).as_nanos())) }
    }

    /// Returns the processing time in nanoseconds; 0 without a response.
    pub fn nanos(&self) -> u128 {
        self.answer.map_or(0, |(_, nanos)| nanos)
    }

    /// A query without a response yet.
    pub const fn unanswered(query: &'a Query) -> Seen<'a> {
        Seen { query, answer: None }
    }

    fn write(&self, value: Value, line: &mut Vec<u8>) {
        let query = self.query;
        let asked = &query.request;
        // Writing to memory cannot fail.
        let _ = match value {
            Value::Type => write!(line, "{}", query.qtype),
            Value::Class => write!(line, "{}", query.qclass),
            Value::Name => write!(line, "{}", asked.name.clone().into_lowercase()),
            Value::Protocol => line.write_all(query.peer.transport.label().as_bytes()),
            Value::Remote => write_address(line, query.peer.address.ip()),
            Value::Local => write_address(line, query.peer.local.ip()),
            Value::Port => write!(line, "{}", query.peer.address.port()),
            Value::Size => write!(line, "{}", query.packet.len()),
            Value::Id => write!(line, "{}", asked.header.id),
            Value::Opcode => write!(line, "{}", asked.header.flags.opcode().0),
            Value::DnssecOk => write!(line, "{}", asked.opt.is_some_and(|opt| opt.dnssec_ok)),
            Value::BufferSize if query.peer.transport.label() == "udp" => write!(line, "{}", query.udp_size),
            Value::BufferSize => write!(line, "{}", u16::MAX),
            Value::ResponseSize | Value::Duration | Value::Rcode | Value::ResponseFlags => {
                self.write_of_answer(value, line)
            }
        };
    }

    fn write_of_answer(&self, value: Value, line: &mut Vec<u8>) -> std::io::Result<()> {
        let Some((response, nanos)) = self.answer else { return line.write_all(ABSENT) };
        match value {
            Value::Duration => write_seconds(line, nanos),
            Value::ResponseSize if response.is_dropped() => line.write_all(b"0"),
            Value::ResponseSize => write!(line, "{}", response.message.len()),
            _ if response.is_dropped() => line.write_all(ABSENT),
            Value::Rcode => write_rcode(line, response),
            _ => write_flags(line, response.message.flags()),
        }
    }
}

fn write_address(line: &mut Vec<u8>, address: std::net::IpAddr) -> std::io::Result<()> {
    match address.to_canonical() {
        std::net::IpAddr::V4(v4) => write!(line, "{v4}"),
        std::net::IpAddr::V6(v6) => write!(line, "[{v6}]"),
    }
}

fn write_seconds(line: &mut Vec<u8>, nanos: u128) -> std::io::Result<()> {
    write_seconds_number(line, nanos)?;
    line.push(b's');
    Ok(())
}

/// Writes seconds with up to nine decimals and without trailing zeros.
pub fn write_seconds_number(line: &mut Vec<u8>, nanos: u128) -> std::io::Result<()> {
    const SECOND: u128 = 1_000_000_000;
    write!(line, "{}.{:09}", nanos / SECOND, nanos % SECOND)?;
    while line.ends_with(b"0") {
        line.pop();
    }
    if line.ends_with(b".") {
        line.pop();
    }
    Ok(())
}

/// Writes the mnemonic of the response code, or its number if it has none.
pub fn write_rcode(line: &mut Vec<u8>, response: &Response) -> std::io::Result<()> {
    match response.rcode().mnemonic() {
        Some(name) => line.write_all(name.as_bytes()),
        None => write!(line, "{}", response.rcode().0),
    }
}

fn write_flags(line: &mut Vec<u8>, flags: Flags) -> std::io::Result<()> {
    let named = [
        (true, "qr"),
        (flags.authoritative(), "aa"),
        (flags.truncated(), "tc"),
        (flags.recursion_desired(), "rd"),
        (flags.recursion_available(), "ra"),
        (flags.reserved(), "z"),
        (flags.authentic_data(), "ad"),
        (flags.checking_disabled(), "cd"),
    ];
    for (at, (_, name)) in named.iter().filter(|(on, _)| *on).enumerate() {
        if at > 0 {
            line.push(b',');
        }
        line.extend_from_slice(name.as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_unknown_placeholders_as_text() {
        let parts = Format::read("{when} {name}{ {/forward/upstream} {").parts;
        let text = |text: &str| Part::Text(text.to_owned());
        let (name, metadata) = (Part::Value(Value::Name), Part::Label("forward/upstream".to_owned(), None));
        assert_eq!(parts, [text("{when} "), name, text("{ "), metadata, text(" {")]);
        assert_eq!(Format::read("{common} x"), Format::read(&format!("{COMMON} x")));
        assert!(Format::read("{combined}").parts.len() > Format::default().parts.len());
    }

    #[test]
    fn prints_durations_in_seconds() {
        for (nanos, text) in [(37_990_251, "0.037990251s"), (0, "0s"), (2_500_000_000, "2.5s"), (10_000_000_000, "10s")]
        {
            let mut line = Vec::new();
            write_seconds(&mut line, nanos).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), text);
        }
    }
}
