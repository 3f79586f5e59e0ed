//! View over a received message. Parsing checks every record boundary and copies nothing.

use core::fmt;

use crate::name::skip_name;
use crate::{Class, HEADER_LEN, Header, Name, NameError, Type};

/// Reason why a packet is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The packet ends before the last record that the header counts.
    Short,
    /// A name is invalid.
    Name(NameError),
}

impl From<NameError> for MessageError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Short => MessageError::Short,
            other => MessageError::Name(other),
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Short => f.write_str("message is too short for the counts in its header"),
            MessageError::Name(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MessageError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let MessageError::Name(error) = self { Some(error) } else { None }
    }
}

/// Record section of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Answer section: records that answer the question.
    Answer,
    /// Authority section: records that point to an authority.
    Authority,
    /// Additional section: records that may help the client.
    Additional,
}

impl Section {
    /// All sections in message order.
    pub const ALL: [Section; 3] = [Section::Answer, Section::Authority, Section::Additional];
}

/// Borrowed message. Every record boundary has been checked. Names are decoded on access.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    packet: &'a [u8],
    header: Header,
    records_at: usize,
    end: usize,
}

impl<'a> Message<'a> {
    /// Checks that all sections counted in the header lie within `packet`. Ignores trailing bytes.
    ///
    /// # Errors
    /// The packet is too short or contains an invalid name.
    pub fn parse(packet: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let (header, records_at) = Message::parse_questions(packet)?;
        let end = Message::parse_records(packet, header, records_at)?;
        debug_assert!(
            HEADER_LEN <= records_at && records_at <= end && end <= packet.len(),
            "the parts follow each other"
        );
        Ok(Message { packet, header, records_at, end })
    }

    /// Returns the header, and the offset after the question section.
    pub(crate) fn parse_questions(packet: &[u8]) -> Result<(Header, usize), MessageError> {
        let header = Header::read(packet).ok_or(MessageError::Short)?;
        let mut at = HEADER_LEN;
        for _ in 0..header.questions {
            at = skip_name(packet, at)? + 4;
        }
        if at > packet.len() { Err(MessageError::Short) } else { Ok((header, at)) }
    }

    /// Returns the offset after the last record that the header counts.
    pub(crate) fn parse_records(packet: &[u8], header: Header, mut at: usize) -> Result<usize, MessageError> {
        let records = u32::from(header.answers) + u32::from(header.authorities) + u32::from(header.additionals);
        for _ in 0..records {
            at = Record::read(packet, at, Section::Answer)?.end();
        }
        Ok(at)
    }

    /// Creates the view from the results of [`Message::parse_questions`] and [`Message::parse_records`].
    pub(crate) const fn from_parts(packet: &'a [u8], header: Header, records_at: usize, end: usize) -> Message<'a> {
        Message { packet, header, records_at, end }
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.header
    }

    /// Returns the bytes of the message without trailing bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        &self.packet[..self.end]
    }

    /// Returns the offset at which the question section ends and the records begin.
    #[must_use]
    pub const fn records_at(&self) -> usize {
        self.records_at
    }

    /// Returns the question, or `None` if the message does not have exactly one or its name cannot be read.
    #[must_use]
    pub fn question(&self) -> Option<(Name, Type, Class)> {
        if self.header.questions != 1 {
            return None;
        }
        let (name, at) = Name::read(self.packet, HEADER_LEN).ok()?;
        Some((name, Type(word(self.packet, at)?), Class(word(self.packet, at + 2)?)))
    }

    /// Returns the records of the three sections in message order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        let Header { answers, authorities, additionals, .. } = self.header;
        Records { packet: self.packet, at: self.records_at, left: [answers, authorities, additionals] }
    }
}

/// Iterator over the records of a [`Message`].
#[derive(Clone)]
pub struct Records<'a> {
    packet: &'a [u8],
    at: usize,
    left: [u16; 3],
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let place = self.left.iter().position(|&left| left > 0)?;
        self.left[place] -= 1;
        let record = Record::read(self.packet, self.at, Section::ALL[place]);
        debug_assert!(record.is_ok(), "the boundaries of each record were checked");
        let record = record.ok()?;
        self.at = record.end();
        Some(record)
    }
}

/// Borrowed record of a message.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    packet: &'a [u8],
    start: usize,
    rdata_at: usize,
    rdata_len: usize,
    section: Section,
}

impl<'a> Record<'a> {
    fn read(packet: &'a [u8], start: usize, section: Section) -> Result<Record<'a>, MessageError> {
        let fixed_at = skip_name(packet, start)?;
        let rdata_len = usize::from(word(packet, fixed_at + 8).ok_or(MessageError::Short)?);
        let record = Record { packet, start, rdata_at: fixed_at + 10, rdata_len, section };
        if record.end() > packet.len() { Err(MessageError::Short) } else { Ok(record) }
    }

    /// Returns the record at `mark` of a message under construction.
    pub(crate) fn at_mark(packet: &'a [u8], mark: Mark) -> Record<'a> {
        debug_assert!(mark.start < mark.rdata && mark.rdata <= mark.end, "a record has its parts in order");
        let rdata = mark.rdata_range();
        debug_assert!(rdata.end <= packet.len(), "a mark is one of this message");
        Record {
            packet,
            start: usize::from(mark.start),
            rdata_at: rdata.start,
            rdata_len: rdata.len(),
            section: mark.section,
        }
    }

    /// Returns the section that contains the record.
    #[must_use]
    pub const fn section(&self) -> Section {
        self.section
    }

    /// Returns the owner name.
    ///
    /// # Errors
    /// The name cannot be read.
    pub fn owner(&self) -> Result<Name, NameError> {
        Name::read(self.packet, self.start).map(|(name, _)| name)
    }

    /// Returns the record type.
    #[must_use]
    pub fn rtype(&self) -> Type {
        Type(self.fixed(0))
    }

    /// Returns the record class.
    #[must_use]
    pub fn class(&self) -> Class {
        Class(self.fixed(2))
    }

    /// Returns the TTL in seconds. A value with the top bit set counts as 0 (RFC 2181 §8).
    #[must_use]
    pub fn ttl(&self) -> u32 {
        let ttl = self.raw_ttl();
        if ttl > i32::MAX.unsigned_abs() { 0 } else { ttl }
    }

    /// Returns the TTL field unchanged. An OPT record stores flags in it, not a time.
    #[must_use]
    pub fn raw_ttl(&self) -> u32 {
        u32::from(self.fixed(4)) << 16 | u32::from(self.fixed(6))
    }

    /// Returns RDATA. Names in it may be compressed.
    #[must_use]
    pub fn rdata(&self) -> &'a [u8] {
        &self.packet[self.rdata_at..self.end()]
    }

    /// Returns the name at byte `offset` of RDATA, and the offset after it.
    ///
    /// # Errors
    /// RDATA has no valid name at `offset`, or the name extends past the end of RDATA.
    pub fn name_at(&self, offset: usize) -> Result<(Name, usize), NameError> {
        let (name, end) = Name::read(self.packet, self.rdata_at + offset)?;
        if end > self.end() { Err(NameError::Short) } else { Ok((name, end - self.rdata_at)) }
    }

    /// Returns the offset of the record in the packet.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Returns the offset of RDATA in the packet. The 10 bytes before it hold type, class, TTL and RDLENGTH.
    #[must_use]
    pub(crate) const fn rdata_at(&self) -> usize {
        self.rdata_at
    }

    /// Returns the offset in the packet after the record.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.rdata_at + self.rdata_len
    }

    fn fixed(&self, offset: usize) -> u16 {
        debug_assert!(self.start + 11 <= self.rdata_at && offset <= 8, "the fixed fields are between owner and RDATA");
        word(self.packet, self.rdata_at - 10 + offset).unwrap_or_default()
    }
}

/// Position of a record in the message, as byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Offset of the record's first byte.
    pub start: u16,
    /// Offset of the first byte of RDATA.
    pub rdata: u16,
    /// Offset after the record's last byte.
    pub end: u16,
    /// The record's type.
    pub rtype: Type,
    /// The record's section.
    pub section: Section,
}

impl Mark {
    /// Returns the offset of the TTL field.
    pub(crate) fn ttl_at(self) -> usize {
        usize::from(self.rdata) - 6
    }

    /// Returns the offsets of RDATA.
    #[must_use]
    pub fn rdata_range(self) -> core::ops::Range<usize> {
        usize::from(self.rdata)..usize::from(self.end)
    }
}

/// Returns the offset after the question section of a message with exactly one question.
#[must_use]
pub fn question_end(packet: &[u8]) -> Option<usize> {
    Header::read(packet).filter(|header| header.questions == 1)?;
    let end = skip_name(packet, HEADER_LEN).ok()? + 4;
    (end <= packet.len()).then_some(end)
}

/// Reads the 16-bit number at offset `at`.
pub(crate) fn word(packet: &[u8], at: usize) -> Option<u16> {
    packet.get(at..)?.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}
