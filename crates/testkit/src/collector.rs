//! Fake dnstap collector: the reader side of Frame Streams, and a text form of dnstap messages.

use core::net::IpAddr;

use crate::Parsed;

/// Maximum length in bytes of a data frame.
const FRAME_MAX: usize = 1 << 20;
/// Types of control frames.
const ACCEPT: u32 = 1;
const START: u32 = 2;
const STOP: u32 = 3;
const READY: u32 = 4;
const FINISH: u32 = 5;

/// Reader side of a stream.
#[derive(Debug, Default)]
pub struct FrameReader {
    unread: Vec<u8>,
    /// Received frames: dnstap messages in text form ([`dnstap_line`]), and control frames by name.
    pub lines: Vec<String>,
}

impl FrameReader {
    /// Consumes received bytes and returns the bytes to send back.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.unread.extend_from_slice(bytes);
        let mut answer = Vec::new();
        while let Some((is_control, body, used)) = next_frame(&self.unread) {
            if is_control {
                let (name, said) = hear(&body);
                self.lines.push(name.to_owned());
                answer.extend(said);
            } else {
                self.lines.push(dnstap_line(&body));
            }
            self.unread.drain(..used);
        }
        answer
    }
}

/// Returns the next complete frame: true for a control frame, its content, and its total length in bytes.
fn next_frame(bytes: &[u8]) -> Option<(bool, Vec<u8>, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    match u32::from_be_bytes(*length) as usize {
        0 => {
            let (length, rest) = rest.split_first_chunk()?;
            let length = u32::from_be_bytes(*length) as usize;
            Some((true, rest.get(..length)?.to_vec(), length + 8))
        }
        length => Some((false, rest.get(..length.min(FRAME_MAX))?.to_vec(), length + 4)),
    }
}

/// Returns the name of a control frame and the reply to it.
fn hear(frame: &[u8]) -> (&'static str, Vec<u8>) {
    let (number, fields) = frame.split_first_chunk().unwrap_or((&[0; 4], &[]));
    let say = |kind: u32, fields: &[u8]| {
        let length = u32::try_from(4 + fields.len()).unwrap_or_default();
        [&[0; 4][..], &length.to_be_bytes(), &kind.to_be_bytes(), fields].concat()
    };
    match u32::from_be_bytes(*number) {
        READY => ("READY", say(ACCEPT, fields)),
        START => ("START", Vec::new()),
        STOP => ("STOP", say(FINISH, &[])),
        _ => ("an unexpected control frame", Vec::new()),
    }
}

/// Formats a dnstap message by its fields: type, protocol, query address, response address, identity, version, extra,
/// and times since 1970. Then follow name, type, response code and number of answers of the DNS message.
#[must_use]
pub fn dnstap_line(frame: &[u8]) -> String {
    let outer = Fields::read(frame).unwrap_or_default();
    let inner = outer.bytes(14).and_then(Fields::read).unwrap_or_default();
    let name = |names: &[&'static str], number: Option<u64>| {
        usize::try_from(number.unwrap_or(0)).ok().and_then(|number| names.get(number)).copied().unwrap_or("?")
    };
    let mut words = vec![
        name(&KINDS, inner.number(1)).to_owned(),
        name(&PROTOCOLS, inner.number(3)).to_owned(),
        inner.address(4, 6),
        inner.address(5, 7),
    ];
    words.extend([1, 2].iter().filter_map(|field| outer.text(*field)));
    words.extend(outer.text(3).map(|text| format!("`{text}`")));
    words.extend([inner.time(8, 9), inner.time(12, 13)].into_iter().flatten());
    if let Some(parsed) = inner.bytes(10).or(inner.bytes(14)).and_then(|bytes| Parsed::read(bytes).ok()) {
        let (name, qtype, _) = parsed.question.clone().unwrap_or_default();
        words.push(format!("| {name} {qtype} {} {}", parsed.header.flags.rcode(), parsed.sections[0].len()));
    }
    words.join(" ")
}

/// Message types by number.
const KINDS: [&str; 9] = ["?", "AQ", "AR", "RQ", "RR", "CQ", "CR", "FQ", "FR"];
/// Protocols by number.
const PROTOCOLS: [&str; 4] = ["?", "udp", "tcp", "tls"];

/// Value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Fields of a Protocol Buffers message.
#[derive(Default)]
struct Fields<'a>(Vec<(u64, Value<'a>)>);

impl<'a> Fields<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)?),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    Value::Bytes(bytes.split_off(..length)?)
                }
                5 => Value::Number(u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?).into()),
                _ => return None,
            };
            fields.push((key >> 3, value));
        }
        Some(Fields(fields))
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find_map(|(known, value)| match value {
            Value::Number(number) if *known == field => Some(*number),
            _ => None,
        })
    }

    fn bytes(&self, field: u64) -> Option<&'a [u8]> {
        self.0.iter().find_map(|(known, value)| match value {
            Value::Bytes(bytes) if *known == field => Some(*bytes),
            _ => None,
        })
    }

    fn text(&self, field: u64) -> Option<String> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn time(&self, seconds: u64, nanos: u64) -> Option<String> {
        self.number(seconds).map(|seconds| format!("{seconds}.{:03}", self.number(nanos).unwrap_or(0) / 1_000_000))
    }

    fn address(&self, ip: u64, port: u64) -> String {
        let bytes = self.bytes(ip).unwrap_or_default();
        let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        let ip = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
        ip.map_or("-".to_owned(), |ip| format!("{ip}:{}", self.number(port).unwrap_or(0)))
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
