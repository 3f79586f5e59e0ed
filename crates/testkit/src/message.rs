//! Queries and responses as a client sees them.

use core::fmt;

use wire::{
    Class, EdeCode, Flags, Header, Message, MessageBuf, MessageError, Name, NameRef, Opcode, Opt, OptionCode, Owner,
    Rcode, Section, Type,
};

use crate::Record;

/// Default UDP payload size of a client in bytes: what resolvers have used since 2020.
const UDP_SIZE: u16 = 1232;
/// Length in bytes of an EDNS option's code and length fields.
const OPTION_HEADER_LEN: usize = 4;

/// A query to send.
#[derive(Clone, Debug)]
pub struct Question {
    /// Name, in its original case.
    pub name: Name,
    /// Query type.
    pub qtype: Type,
    /// Query class.
    pub qclass: Class,
    /// Id, opcode and flags.
    pub header: Header,
    /// EDNS fields; `None` for a client without EDNS.
    pub opt: Option<Opt>,
    /// EDNS options.
    pub options: Vec<(OptionCode, Vec<u8>)>,
    /// Zone serial known to the client, sent in an SOA record (RFC 1995 §3).
    pub serial: Option<u32>,
}

impl Question {
    /// Creates a typical query: class IN, RD set, EDNS with a payload size of 1232 bytes.
    #[must_use]
    pub fn new(name: Name, qtype: Type) -> Question {
        let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
        let opt = Opt { udp_size: UDP_SIZE, extended_rcode: 0, version: 0, dnssec_ok: false };
        Question { name, qtype, qclass: Class::IN, header, opt: Some(opt), options: Vec::new(), serial: None }
    }

    /// Returns the packet.
    #[must_use]
    pub fn packet(&self) -> Vec<u8> {
        let mut message = MessageBuf::new();
        message.start(self.header, Some((self.name.as_ref(), self.qtype, self.qclass)));
        if let Some(serial) = self.serial {
            message.push(Section::Authority, Owner::Question, (Type::SOA, Class::IN, 0), |rdata| {
                (0..2).for_each(|_| rdata.plain_name(NameRef::ROOT));
                [serial, 0, 0, 0, 0].into_iter().for_each(|number| rdata.u32(number));
            });
        }
        let options = self.options.iter().map(|(code, data)| (*code, data.as_slice()));
        message.finish(self.opt, options).to_vec()
    }
}

/// A parsed message: a response, or a query received by an upstream.
#[derive(Clone)]
pub struct Parsed {
    /// Header.
    pub header: Header,
    /// Question, if there is exactly one.
    pub question: Option<(Name, Type, Class)>,
    /// Records of the three sections, without OPT.
    pub sections: [Vec<Record>; 3],
    /// EDNS fields.
    pub opt: Option<Opt>,
    /// EDNS options.
    pub options: Vec<(OptionCode, Vec<u8>)>,
    /// Number of bytes after the last record.
    pub trailing: usize,
    /// Number of messages. A response over a stream may have several.
    pub messages: usize,
}

impl Parsed {
    /// Converts the name in the question to lower case.
    #[must_use]
    pub(crate) fn in_lower_case(mut self) -> Parsed {
        self.question = self.question.map(|(name, qtype, qclass)| (name.into_lowercase(), qtype, qclass));
        self
    }

    /// Parses a message.
    ///
    /// # Errors
    /// Fails if the message is malformed.
    pub fn read(bytes: &[u8]) -> Result<Parsed, MessageError> {
        let message = Message::parse(bytes)?;
        let mut parsed = Parsed {
            header: message.header(),
            question: message.question(),
            sections: Default::default(),
            opt: None,
            options: Vec::new(),
            trailing: bytes.len() - message.as_bytes().len(),
            messages: 1,
        };
        for record in message.records() {
            if record.rtype() == Type::OPT {
                parsed.opt = Some(Opt::from_fields(record.class().0, record.raw_ttl()));
                parsed.options = options(record.rdata());
            } else {
                parsed.sections[record.section() as usize].push(Record::read(&record)?);
            }
        }
        Ok(parsed)
    }

    /// Appends the records of another message.
    #[must_use]
    pub fn followed_by(mut self, other: Parsed) -> Parsed {
        for (section, more) in self.sections.iter_mut().zip(other.sections) {
            section.extend(more);
        }
        self.messages += other.messages;
        self
    }

    /// Returns the response code, including the upper bits from EDNS.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let upper = self.opt.map_or(0, |opt| opt.extended_rcode);
        Rcode(u16::from(upper) << 4 | self.header.flags.rcode().0)
    }

    /// Returns the records of a section.
    #[must_use]
    pub fn section(&self, section: Section) -> &[Record] {
        &self.sections[section as usize]
    }

    /// Returns the Extended DNS Error: its code and text.
    #[must_use]
    pub fn ede(&self) -> Option<(EdeCode, String)> {
        let (_, data) = self.options.iter().find(|(code, _)| *code == OptionCode::EXTENDED_ERROR)?;
        let (code, text) = data.split_first_chunk()?;
        Some((EdeCode(u16::from_be_bytes(*code)), String::from_utf8_lossy(text).into_owned()))
    }

    /// Returns the names of the flags that are set, without QR.
    #[must_use]
    pub fn flag_names(&self) -> Vec<&'static str> {
        flag_names(self.header.flags)
    }
}

/// Name, getter and setter of a flag.
type Flag = (&'static str, fn(Flags) -> bool, fn(Flags, bool) -> Flags);

/// Flags in the order in which they are printed.
const FLAGS: [Flag; 6] = [
    ("aa", |flags| flags.authoritative(), Flags::with_authoritative),
    ("tc", |flags| flags.truncated(), Flags::with_truncated),
    ("rd", |flags| flags.recursion_desired(), Flags::with_recursion_desired),
    ("ra", |flags| flags.recursion_available(), Flags::with_recursion_available),
    ("ad", |flags| flags.authentic_data(), Flags::with_authentic_data),
    ("cd", |flags| flags.checking_disabled(), Flags::with_checking_disabled),
];

/// Returns the names of the flags that are set, without QR.
pub(crate) fn flag_names(flags: Flags) -> Vec<&'static str> {
    FLAGS.iter().filter(|(_, is_set, _)| is_set(flags)).map(|(name, ..)| *name).collect()
}

/// Sets a flag by name. Returns `None` for an unknown name.
pub(crate) fn with_flag(flags: Flags, name: &str) -> Option<Flags> {
    FLAGS.iter().find(|(known, ..)| *known == name).map(|(_, _, set)| set(flags, true))
}

fn options(mut data: &[u8]) -> Vec<(OptionCode, Vec<u8>)> {
    let mut options = Vec::new();
    while let Some((header, rest)) = data.split_first_chunk::<OPTION_HEADER_LEN>() {
        let [code_high, code_low, len_high, len_low] = *header;
        let Some((value, after)) = rest.split_at_checked(usize::from(u16::from_be_bytes([len_high, len_low]))) else {
            break;
        };
        options.push((OptionCode(u16::from_be_bytes([code_high, code_low])), value.to_vec()));
        data = after;
    }
    options
}

impl fmt::Display for Parsed {
    /// Formats a query on one line, as in a scenario: `NAME TYPE FLAGS… [edns SIZE] [do] [option CODE HEX]…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.question {
            Some((name, qtype, Class::IN)) => write!(f, "{name} {qtype}")?,
            Some((name, qtype, qclass)) => write!(f, "{name} {qtype} {qclass}")?,
            None => f.write_str("(no question)")?,
        }
        if self.header.flags.opcode() != Opcode::QUERY {
            write!(f, " {}", self.header.flags.opcode())?;
        }
        self.flag_names().iter().try_for_each(|name| write!(f, " {name}"))?;
        if let Some(opt) = self.opt {
            write!(f, " edns {}{}", opt.udp_size, if opt.dnssec_ok { " do" } else { "" })?;
        }
        self.options.iter().try_for_each(|(code, data)| write!(f, " option {} {}", code.0, hex_of(data)))
    }
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_survive_a_round_trip() {
        let mut question = Question::new(Name::from_text("Www.Example.org").unwrap(), Type::A);
        question.opt = question.opt.map(|opt| Opt { dnssec_ok: true, ..opt });
        question.options.push((OptionCode::COOKIE, vec![1, 2]));
        let parsed = Parsed::read(&question.packet()).unwrap();
        assert_eq!(parsed.to_string(), "Www.Example.org. A rd edns 1232 do option 10 0102");
        assert!(Parsed::read(&question.packet()[..30]).is_err());
    }
}
