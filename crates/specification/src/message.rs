//! Queries and responses as bytes (RFC 1035 §4), for tests only: short, and apart from the server's own code.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::answer::Rcode;
use crate::record::{Data, Question, Record, Type};

/// Class IN.
const IN: u16 = 1;
/// Code of OPT records (RFC 6891 §6.1.1).
const OPT: u16 = 41;
/// Size of datagrams in bytes that the client accepts (DNS Flag Day 2020).
pub const UDP_SIZE: u16 = 1232;
/// Maximum number of compression pointers in a name. Each must lead to an earlier place.
const POINTERS_MAX: usize = 128;
/// Flags in the second 16 bits of the header: QR, AA, TC, and the mask of the response code.
const QR: u16 = 0x8000;
const AA: u16 = 0x0400;
const TC: u16 = 0x0200;
const RCODE: u16 = 0x000f;

/// Response to a question.
#[derive(Clone, Debug)]
pub struct Response {
    /// Response code.
    pub rcode: Rcode,
    /// AA flag.
    pub authoritative: bool,
    /// TC flag.
    pub truncated: bool,
    /// Records of the answer, authority and additional section, without OPT.
    pub sections: [Vec<Record>; 3],
}

/// Reason why bytes are not the response to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The message ends within a field.
    Short,
    /// A compression pointer does not lead to an earlier place, or a label has an unknown type.
    Name,
    /// The data of a record have another length than their type needs.
    Data,
    /// The message is a query, or its question differs from the one that was asked.
    Question,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MessageError::Short => "the message ends within a field",
            MessageError::Name => "a name is malformed",
            MessageError::Data => "the data of a record have a wrong length",
            MessageError::Question => "the response is not one to this question",
        })
    }
}

impl core::error::Error for MessageError {}

/// Returns the query for a question, with an OPT record and with RD cleared.
#[must_use]
pub fn query(id: u16, question: &Question) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    bytes.extend(question_bytes(question));
    bytes.push(0);
    [OPT, UDP_SIZE, 0, 0, 0].iter().for_each(|field| bytes.extend(field.to_be_bytes()));
    bytes
}

fn question_bytes(question: &Question) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in question.name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(question.qtype.code().to_be_bytes());
    bytes.extend(IN.to_be_bytes());
    bytes
}

/// Reads the response to a question.
///
/// # Errors
/// Fails if the message is malformed or answers another question. The case of the letters counts (RFC 4343 §4.1).
pub fn read(bytes: &[u8], question: &Question) -> Result<Response, MessageError> {
    let mut reader = Reader { bytes, at: 2 };
    let flags = reader.u16()?;
    let counts = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
    let asked = question_bytes(question);
    if flags & QR == 0 || counts[0] != 1 || reader.take(asked.len())? != asked {
        return Err(MessageError::Question);
    }
    let mut sections: [Vec<Record>; 3] = Default::default();
    for (section, count) in sections.iter_mut().zip(&counts[1..]) {
        for _ in 0..*count {
            section.extend(reader.record()?);
        }
    }
    Ok(Response {
        rcode: Rcode::from_code(u8::try_from(flags & RCODE).unwrap_or_default()),
        authoritative: flags & AA != 0,
        truncated: flags & TC != 0,
        sections,
    })
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], MessageError> {
        let taken = self.bytes.get(self.at..self.at + count).ok_or(MessageError::Short)?;
        self.at += count;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads a name in lower case. Other bytes than printable ones, and dots in labels, are escaped.
    fn name(&mut self) -> Result<String, MessageError> {
        let (mut name, mut after) = (String::new(), None);
        for _ in 0..POINTERS_MAX {
            let start = self.at;
            let length = usize::from(self.take(1)?[0]);
            match length {
                0 => {
                    self.at = after.unwrap_or(self.at);
                    return Ok(if name.is_empty() { ".".to_owned() } else { name });
                }
                1..=63 => {
                    self.take(length)?.iter().for_each(|byte| push_byte(&mut name, *byte));
                    name.push('.');
                }
                192..=255 => {
                    let low = usize::from(self.take(1)?[0]);
                    after = after.or(Some(self.at));
                    self.at = (length & 63) << 8 | low;
                    if self.at >= start {
                        return Err(MessageError::Name);
                    }
                }
                _ => return Err(MessageError::Name),
            }
        }
        Err(MessageError::Name)
    }

    /// Reads a record; `None` for OPT.
    fn record(&mut self) -> Result<Option<Record>, MessageError> {
        let owner = self.name()?;
        let code = self.u16()?;
        self.take(6)?;
        let length = usize::from(self.u16()?);
        let end = self.at + length;
        let data = self.data(Type::from_code(code), length)?;
        // Some data are not read to their end.
        if self.at > end || end > self.bytes.len() {
            return Err(MessageError::Data);
        }
        self.at = end;
        Ok((code != OPT).then(|| Record::new(owner, data)))
    }

    fn data(&mut self, rtype: Type, length: usize) -> Result<Data, MessageError> {
        Ok(match rtype {
            Type::A => {
                Data::A(<[u8; 4]>::try_from(self.take(length)?).map(Ipv4Addr::from).map_err(|_| MessageError::Data)?)
            }
            Type::Aaaa => Data::Aaaa(
                <[u8; 16]>::try_from(self.take(length)?).map(Ipv6Addr::from).map_err(|_| MessageError::Data)?,
            ),
            Type::Cname => Data::Cname(self.name()?),
            Type::Dname => Data::Dname(self.name()?),
            Type::Ns => Data::Ns(self.name()?),
            Type::Ptr => Data::Ptr(self.name()?),
            Type::Soa => Data::Soa,
            Type::Ds => Data::Ds(self.u16()?),
            Type::Srv => {
                self.take(4)?;
                Data::Srv(self.u16()?, self.name()?)
            }
            Type::Txt => {
                let data = self.take(length)?;
                let (first, text) = data.split_first().ok_or(MessageError::Data)?;
                let is_one = usize::from(*first) == text.len();
                Data::Txt(if is_one { String::from_utf8_lossy(text).into_owned() } else { format!("{data:?}") })
            }
            other => Data::Other(other.code()),
        })
    }
}

fn push_byte(name: &mut String, byte: u8) {
    match byte {
        b'.' | b'\\' | 0..=32 | 127..=255 => name.push_str(&format!("\\{byte:03}")),
        _ => name.push(char::from(byte.to_ascii_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_with_pointers_and_refuses_loops() {
        let question = Question { name: "A.b.".to_owned(), qtype: Type::Cname };
        let mut bytes = query(7, &question);
        bytes[2] = 0x84;
        bytes[7] = 1;
        bytes[11] = 0;
        bytes.truncate(bytes.len() - 11);
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01X\xc0\x0e");
        let response = read(&bytes, &question).unwrap();
        assert!(response.authoritative);
        assert_eq!(response.sections[0], [Record::new("a.b.", Data::Cname("x.b.".to_owned()))]);
        let end = bytes.len();
        bytes[end - 1] = 0x21;
        assert_eq!(read(&bytes, &question).unwrap_err(), MessageError::Name);
        let other = Question { name: "a.b.".to_owned(), ..question };
        assert_eq!(read(&bytes, &other).unwrap_err(), MessageError::Question);
    }
}
