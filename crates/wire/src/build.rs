//! Builder for a DNS message in wire form.
//!
//! [`MessageBuf`] appends records in section order. Beside the bytes it keeps a table of [`Mark`]s, one per record with
//! its offsets, so that a plugin on the response path can set TTLs, shuffle addresses or remove sections without
//! parsing. A record that does not fit the size limit is left out, and the message is marked truncated (RFC 2181 §9).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::compress::{Compressor, OFFSET_MAX};
use crate::message::{Mark, Message, Record, Section};
use crate::{
    Class, Flags, HEADER_LEN, Header, NAME_MAX, Name, NameError, NameRef, OPT_FIXED_LEN, Opt, OptionCode, Type,
};

/// Maximum length of a message in bytes.
const MESSAGE_MAX: usize = 65_535;
/// Initial capacity in bytes. Nearly all responses over UDP fit.
const CAPACITY: usize = 2048;
/// Capacity in bytes that [`MessageBuf::trim`] leaves alone: nearly all responses are shorter.
const KEPT: usize = 2 * CAPACITY;

/// Compression pointer to the name in the question, which directly follows the header.
const QUESTION_POINTER: [u8; 2] = [0xc0, 12];

/// Owner name of a record to be written.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// The name in the question.
    Question,
    /// The name at this offset of the message.
    At(usize),
    /// Another name.
    Name(NameRef<'a>),
}

/// Message under construction.
pub struct MessageBuf {
    /// ID and flags. [`MessageBuf::finish`] sets the counts.
    pub header: Header,
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    compressor: Compressor,
    question_end: usize,
    limit: usize,
}

impl Default for MessageBuf {
    fn default() -> Self {
        MessageBuf::new()
    }
}

impl MessageBuf {
    /// Creates an empty message. The buffer grows to the largest message that it has held, until [`MessageBuf::trim`].
    #[must_use]
    pub fn new() -> MessageBuf {
        MessageBuf {
            header: Header::default(),
            bytes: Vec::with_capacity(CAPACITY),
            marks: Vec::with_capacity(CAPACITY / 16),
            compressor: Compressor::new(),
            question_end: HEADER_LEN,
            limit: MESSAGE_MAX,
        }
    }

    /// Discards the contents if the message has grown beyond its first capacity several times, and frees that memory.
    pub fn trim(&mut self) {
        if self.bytes.capacity() > KEPT || self.marks.capacity() > KEPT / 16 {
            self.bytes.clear();
            self.bytes.shrink_to(CAPACITY);
            self.marks.clear();
            self.marks.shrink_to(CAPACITY / 16);
            self.question_end = HEADER_LEN;
            self.compressor.clear();
        }
    }

    /// Frees the room that the contents do not need. [`MessageBuf::start`] makes room again.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.marks.shrink_to_fit();
    }

    /// Returns the number of bytes that the message has room for without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Discards the contents and starts a new message, with or without a question.
    pub fn start(&mut self, header: Header, question: Option<(NameRef<'_>, Type, Class)>) {
        self.header = Header { questions: u16::from(question.is_some()), ..header };
        self.bytes.clear();
        self.bytes.reserve(CAPACITY);
        self.marks.clear();
        self.marks.reserve(CAPACITY / 16);
        self.bytes.extend_from_slice(&[0; HEADER_LEN]);
        if let Some((name, qtype, qclass)) = question {
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.extend_from_slice(&qtype.0.to_be_bytes());
            self.bytes.extend_from_slice(&qclass.0.to_be_bytes());
        }
        self.question_end = self.bytes.len();
        debug_assert!(self.question_end <= HEADER_LEN + NAME_MAX + 4, "a question is a name, a type and a class");
        self.limit = MESSAGE_MAX;
        self.clear();
    }

    /// Copies another message into this buffer. Names written later are not compressed against names in the copied
    /// records.
    pub fn copy_from(&mut self, other: &MessageBuf) {
        self.header = other.header;
        self.bytes.clone_from(&other.bytes);
        self.marks.clone_from(&other.marks);
        self.compressor.clear();
        self.question_end = other.question_end;
        self.limit = other.limit;
    }

    /// Removes all records and clears TC. The question, the limit and the rest of the header stay.
    pub fn clear(&mut self) {
        self.bytes.truncate(self.question_end);
        self.marks.clear();
        self.compressor.clear();
        self.header.flags = self.header.flags.with_truncated(false);
    }

    /// Limits the length of the message in bytes: header, question and records, without the OPT record.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(MESSAGE_MAX);
    }

    /// Returns the question in wire form (name, type, class). The slice is empty if the message has no question.
    #[must_use]
    pub fn question(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..self.question_end]
    }

    /// Returns the positions of all records in message order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Returns the positions of the records in one section.
    pub fn section(&self, section: Section) -> impl Iterator<Item = Mark> + '_ {
        self.marks.iter().copied().filter(move |mark| mark.section == section)
    }

    /// Returns the record at `mark`.
    #[must_use]
    pub fn record(&self, mark: Mark) -> Record<'_> {
        debug_assert!(usize::from(mark.end) <= self.bytes.len(), "a mark is one of this message");
        Record::at_mark(&self.bytes, mark)
    }

    /// Returns the bytes at an offset range of the message, such as a record's RDATA. The slice is empty if the range
    /// is out of bounds.
    #[must_use]
    pub fn bytes_at(&self, range: core::ops::Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns the current length of the message in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if the message has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Returns true if TC is set because a record did not fit.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.header.flags.truncated()
    }

    /// Appends a record and returns its position. If the record does not fit, or TC is already set, sets TC and returns
    /// `None`.
    ///
    /// Callers append records in section order. A record for a section that is already complete is counted in the
    /// current section.
    pub fn push(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        (rtype, class, ttl): (Type, Class, u32),
        rdata: impl FnOnce(&mut RdataWriter<'_>),
    ) -> Option<Mark> {
        if self.is_truncated() {
            return None;
        }
        let start = self.bytes.len();
        self.write_owner(owner);
        self.bytes.extend_from_slice(&rtype.0.to_be_bytes());
        self.bytes.extend_from_slice(&class.0.to_be_bytes());
        self.bytes.extend_from_slice(&ttl.to_be_bytes());
        self.bytes.extend_from_slice(&[0, 0]);
        let rdata_at = self.bytes.len();
        rdata(&mut RdataWriter { bytes: &mut self.bytes, compressor: &mut self.compressor });
        self.close_record(start, rdata_at, rtype, section)
    }

    fn close_record(&mut self, start: usize, rdata_at: usize, rtype: Type, section: Section) -> Option<Mark> {
        debug_assert!(start == self.records_end(), "a record begins where the one before ends");
        debug_assert!(start + 11 <= rdata_at && rdata_at <= self.bytes.len(), "RDATA follows the fixed fields");
        let end = self.bytes.len();
        let fits = end <= self.limit;
        let places = (u16::try_from(start), u16::try_from(rdata_at), u16::try_from(end), u16::try_from(end - rdata_at));
        let (true, (Ok(start), Ok(rdata), Ok(end), Ok(length))) = (fits, places) else {
            self.bytes.truncate(start);
            self.compressor.cut(start);
            self.header.flags = self.header.flags.with_truncated(true);
            return None;
        };
        self.bytes[rdata_at - 2..rdata_at].copy_from_slice(&length.to_be_bytes());
        let open = self.marks.last().map_or(section, |last| last.section.max(section));
        let mark = Mark { start, rdata, end, rtype, section: open };
        self.marks.push(mark);
        debug_assert!(self.records_end() == self.bytes.len(), "the last record ends with the message");
        Some(mark)
    }

    /// Returns the offset after the last record.
    fn records_end(&self) -> usize {
        self.marks.last().map_or(self.question_end, |last| usize::from(last.end))
    }

    fn write_owner(&mut self, owner: Owner<'_>) {
        match owner {
            Owner::Question if self.header.questions == 1 => self.bytes.extend_from_slice(&QUESTION_POINTER),
            Owner::Question => self.bytes.push(0),
            Owner::At(at) => refer_to(&mut self.bytes, at),
            Owner::Name(name) => self.write_name(name),
        }
    }

    fn write_name(&mut self, name: NameRef<'_>) {
        self.remember_question();
        self.compressor.write(&mut self.bytes, name, true);
    }

    /// Registers the suffixes of the question's name for compression.
    ///
    /// The first write of a name calls this, because most responses contain no name besides the question.
    fn remember_question(&mut self) {
        if self.header.questions == 1 && self.compressor.is_empty() {
            let name = NameRef::from_bytes(&self.bytes[HEADER_LEN..self.question_end - 4]);
            debug_assert!(name.is_ok(), "the question begins with its name");
            let Ok(name) = name else { return };
            self.compressor.remember_name(name, HEADER_LEN);
        }
    }

    /// Appends an A or AAAA record.
    pub fn push_address(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: IpAddr) -> Option<Mark> {
        match address {
            IpAddr::V4(v4) => self.push_a(section, owner, ttl, v4),
            IpAddr::V6(v6) => self.push_aaaa(section, owner, ttl, v6),
        }
    }

    /// Appends an A record.
    pub fn push_a(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: Ipv4Addr) -> Option<Mark> {
        self.push(section, owner, (Type::A, Class::IN, ttl), |rdata| rdata.bytes(&address.octets()))
    }

    /// Appends an AAAA record (RFC 3596).
    pub fn push_aaaa(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: Ipv6Addr) -> Option<Mark> {
        self.push(section, owner, (Type::AAAA, Class::IN, ttl), |rdata| rdata.bytes(&address.octets()))
    }

    /// Appends a record whose RDATA is a single name that may be compressed: CNAME, NS or PTR.
    pub fn push_name(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        (rtype, ttl): (Type, u32),
        name: NameRef<'_>,
    ) -> Option<Mark> {
        self.remember_question();
        self.push(section, owner, (rtype, Class::IN, ttl), |rdata| rdata.name(name))
    }

    /// Appends a copy of a record from another message. Names are compressed against this message.
    ///
    /// # Errors
    /// A name in the record cannot be read.
    pub fn push_record(&mut self, section: Section, record: &Record<'_>) -> Result<Option<Mark>, NameError> {
        let owner = record.owner()?;
        self.push_record_as(section, Owner::Name(owner.as_ref()), record.ttl(), record)
    }

    /// Appends a copy of a record like [`MessageBuf::push_record`], with another owner and TTL.
    ///
    /// # Errors
    /// A name in the record cannot be read.
    pub fn push_record_as(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        ttl: u32,
        record: &Record<'_>,
    ) -> Result<Option<Mark>, NameError> {
        self.push_record_mapped(section, owner, ttl, record, |name| name)
    }

    /// Appends a copy of a record like [`MessageBuf::push_record_as`], and replaces each name in RDATA by the result of
    /// `map`.
    ///
    /// # Errors
    /// A name in the record cannot be read.
    pub fn push_record_mapped(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        ttl: u32,
        record: &Record<'_>,
        map: impl FnMut(Name) -> Name,
    ) -> Result<Option<Mark>, NameError> {
        self.remember_question();
        let mut outcome = Ok(());
        let mark = self.push(section, owner, (record.rtype(), record.class(), ttl), |rdata| {
            outcome = rdata.copy(record, map);
        });
        if outcome.is_err()
            && let Some(mark) = mark
        {
            self.marks.pop();
            self.bytes.truncate(usize::from(mark.start));
            debug_assert!(self.records_end() == self.bytes.len(), "a record that is taken back leaves nothing");
            self.compressor.cut(usize::from(mark.start));
        }
        outcome.map(|()| mark)
    }

    /// Appends a record from RDATA in wire form with uncompressed names. Compresses those names for which RFC 3597 §4
    /// allows it.
    pub fn push_data(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        (rtype, class, ttl): (Type, Class, u32),
        data: &[u8],
    ) -> Option<Mark> {
        let Some((compress, fields)) = name_fields(rtype) else {
            return self.push(section, owner, (rtype, class, ttl), |rdata| rdata.bytes(data));
        };
        self.remember_question();
        self.push(section, owner, (rtype, class, ttl), |rdata| {
            // If RDATA does not have the format of its type, it is copied unchanged.
            let start = rdata.bytes.len();
            if rdata.copy_fields(data, compress, fields, |at| Name::read(data, at)).is_err() {
                rdata.compressor.cut(start);
                rdata.bytes.truncate(start);
                rdata.bytes(data);
            }
        })
    }

    /// Replaces the records of this message by those of `message`, which must have the same question up to case.
    ///
    /// Drops OPT and TSIG, because these records are hop-by-hop (RFC 6891 §6.1.1, RFC 8945 §5.3). If possible, copies
    /// the records as bytes, which keeps their compression pointers valid. Writes each record again if the questions
    /// have different lengths, the message is longer than the limit, or OPT or TSIG precedes another record.
    ///
    /// # Errors
    /// A record has to be written again and a name in it cannot be read.
    pub fn adopt(&mut self, message: &Message<'_>) -> Result<(), NameError> {
        self.clear();
        let in_place = message.records_at() == self.question_end && message.as_bytes().len() <= self.limit;
        let of_hop = |record: &Record<'_>| matches!(record.rtype(), Type::OPT | Type::TSIG);
        let mut tail = message.records().skip_while(|record| !of_hop(record));
        if !in_place || !tail.all(|record| of_hop(&record)) {
            let mut kept = message.records().filter(|record| !of_hop(record));
            return kept.try_for_each(|record| self.push_record(record.section(), &record).map(|_| ()));
        }
        // Both questions have the same length, so each compression pointer points at the same name here.
        for record in message.records().take_while(|record| !of_hop(record)) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&message.as_bytes()[record.start()..record.end()]);
            let mark = self.close_record(start, record.rdata_at(), record.rtype(), record.section());
            debug_assert!(mark.is_some(), "a message that fits has records that fit");
        }
        Ok(())
    }

    /// Restores records that this buffer returned from [`MessageBuf::records_bytes`] with their `marks`. The question
    /// must have the same length as at that time. Removes records from the end and sets TC if they exceed the limit.
    pub fn restore(&mut self, bytes: &[u8], marks: &[Mark]) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
        self.marks.extend_from_slice(marks);
        debug_assert!(self.records_end() == self.bytes.len(), "the marks are those of the records");
        debug_assert!(
            marks.first().is_none_or(|first| usize::from(first.start) == self.question_end),
            "the question has its length of that time",
        );
        while self.bytes.len() > self.limit {
            self.pop();
        }
    }

    /// Removes the last record and sets TC.
    fn pop(&mut self) {
        debug_assert!(self.records_end() == self.bytes.len(), "records are removed before the OPT record is written");
        self.header.flags = self.header.flags.with_truncated(true);
        match self.marks.pop() {
            Some(mark) => self.bytes.truncate(usize::from(mark.start)),
            None => self.limit = self.bytes.len(),
        }
    }

    /// Returns the bytes of all records, from the end of the question to the end of the message.
    #[must_use]
    pub fn records_bytes(&self) -> &[u8] {
        &self.bytes[self.question_end..]
    }

    /// Removes `section` and all later sections.
    pub fn cut_from(&mut self, section: Section) {
        self.keep(self.marks.iter().take_while(|mark| mark.section < section).count());
    }

    /// Keeps the first `records` records and removes the rest.
    pub fn keep(&mut self, records: usize) {
        if let Some(first) = self.marks.get(records) {
            self.bytes.truncate(usize::from(first.start));
            self.compressor.cut(usize::from(first.start));
            self.marks.truncate(records);
            debug_assert!(self.marks.len() == records, "the first records are kept");
            debug_assert!(self.records_end() == self.bytes.len(), "the last record ends with the message");
        }
    }

    /// Returns the TTL of a record in seconds.
    #[must_use]
    pub fn ttl(&self, mark: Mark) -> u32 {
        let at = mark.ttl_at();
        debug_assert!(at + 4 <= self.bytes.len(), "a mark is one of this message");
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Returns the lowest TTL in the message, or `None` if it has no records.
    #[must_use]
    pub fn ttl_min(&self) -> Option<u32> {
        self.marks.iter().map(|mark| self.ttl(*mark)).min()
    }

    /// Sets the TTL of a record.
    pub fn set_ttl(&mut self, mark: Mark, ttl: u32) {
        debug_assert!(usize::from(mark.end) <= self.bytes.len(), "a mark is one of this message");
        if let Some(field) = self.bytes.get_mut(mark.ttl_at()..mark.ttl_at() + 4) {
            field.copy_from_slice(&ttl.to_be_bytes());
        }
    }

    /// Lowers the TTL of all records to at most `ttl`.
    pub fn cap_ttls(&mut self, ttl: u32) {
        for at in 0..self.marks.len() {
            if self.ttl(self.marks[at]) > ttl {
                self.set_ttl(self.marks[at], ttl);
            }
        }
    }

    /// Sets the TTL of all records.
    pub fn set_ttls(&mut self, ttl: u32) {
        for at in 0..self.marks.len() {
            self.set_ttl(self.marks[at], ttl);
        }
    }

    /// Swaps the RDATA of two records, given by index. Does nothing unless both have the same length, as two addresses
    /// of one RRset do.
    pub fn swap_rdata(&mut self, one: usize, other: usize) {
        let (Some(one), Some(other)) = (self.marks.get(one), self.marks.get(other)) else { return };
        let (first, second) = if one.start < other.start { (*one, *other) } else { (*other, *one) };
        if first.start == second.start || first.rdata_range().len() != second.rdata_range().len() {
            return;
        }
        let (head, tail) = self.bytes.split_at_mut(usize::from(second.rdata));
        let length = second.rdata_range().len();
        head[first.rdata_range()].swap_with_slice(&mut tail[..length]);
    }

    /// Returns the owner name of a record.
    ///
    /// # Errors
    /// The name cannot be read. This happens only in records adopted from another server.
    pub fn owner(&self, mark: Mark) -> Result<Name, NameError> {
        Name::read(&self.bytes, usize::from(mark.start)).map(|(name, _)| name)
    }

    /// Returns the name at byte `offset` of a record's RDATA.
    ///
    /// # Errors
    /// RDATA has no valid name at `offset`.
    pub fn name_in(&self, mark: Mark, offset: usize) -> Result<Name, NameError> {
        Name::read(&self.bytes, usize::from(mark.rdata) + offset).map(|(name, _)| name)
    }

    /// Removes records from the end until the message is at most `limit` bytes long. Sets TC if it removes any.
    pub fn fit(&mut self, limit: usize) {
        while self.bytes.len() > limit && !self.marks.is_empty() {
            self.pop();
        }
    }

    /// Writes the counts and, if `opt` is set, an OPT record with `options`. Returns the complete message.
    pub fn finish<'o>(&mut self, opt: Option<Opt>, options: impl Iterator<Item = (OptionCode, &'o [u8])>) -> &[u8] {
        let mut counts = [0u16; 3];
        for mark in &self.marks {
            counts[mark.section as usize] += 1;
        }
        debug_assert!(
            self.marks.is_sorted_by_key(|mark| mark.section),
            "the records are in the order of their sections"
        );
        let [answers, authorities, additionals] = counts;
        let additionals = additionals + u16::from(opt.is_some());
        if let Some(opt) = opt {
            self.write_opt(opt, options);
        }
        let header = Header { answers, authorities, additionals, ..self.header };
        debug_assert!(self.bytes.len() <= MESSAGE_MAX, "a message has at most 65,535 bytes");
        self.bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        &self.bytes
    }

    /// Appends an additional record in wire form to a finished message, such as a signature over the preceding bytes.
    pub fn push_behind(&mut self, record: &[u8]) {
        debug_assert!(self.bytes.len() + record.len() <= MESSAGE_MAX, "a message has at most 65,535 bytes");
        const ADDITIONALS_AT: core::ops::Range<usize> = 10..12;
        let counted = self.bytes.get_mut(ADDITIONALS_AT).and_then(|bytes| bytes.first_chunk_mut());
        if let Some(count) = counted {
            *count = u16::from_be_bytes(*count).saturating_add(1).to_be_bytes();
            self.bytes.extend_from_slice(record);
        }
    }

    fn write_opt<'o>(&mut self, opt: Opt, options: impl Iterator<Item = (OptionCode, &'o [u8])>) {
        debug_assert!(self.records_end() == self.bytes.len(), "a message is finished once");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&opt.to_bytes(0));
        for (code, data) in options {
            debug_assert!(data.len() <= usize::from(u16::MAX), "an option has at most 65,535 bytes");
            let length = u16::try_from(data.len()).unwrap_or_default();
            self.bytes.extend_from_slice(&code.0.to_be_bytes());
            self.bytes.extend_from_slice(&length.to_be_bytes());
            self.bytes.extend_from_slice(&data[..usize::from(length)]);
        }
        let options_len = u16::try_from(self.bytes.len() - start - OPT_FIXED_LEN).unwrap_or_default();
        debug_assert!(
            crate::options(&self.bytes[start + OPT_FIXED_LEN..]).count() > 0 || options_len == 0,
            "options are read as they were written",
        );
        self.bytes[start..start + OPT_FIXED_LEN].copy_from_slice(&opt.to_bytes(options_len));
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.header.flags
    }
}

/// Writer for the RDATA of one record.
pub struct RdataWriter<'m> {
    bytes: &'m mut Vec<u8>,
    compressor: &'m mut Compressor,
}

impl RdataWriter<'_> {
    /// Appends bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, number: u16) {
        self.bytes(&number.to_be_bytes());
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, number: u32) {
        self.bytes(&number.to_be_bytes());
    }

    /// Appends a character string (RFC 1035 §3.3). Text beyond 255 bytes is cut off.
    pub fn character_string(&mut self, text: &[u8]) {
        let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
        self.bytes.push(length);
        self.bytes(&text[..usize::from(length)]);
    }

    /// Appends a compressed name. Only the types of RFC 1035 may use this (RFC 3597 §4).
    pub fn name(&mut self, name: NameRef<'_>) {
        self.compressor.write(self.bytes, name, true);
    }

    /// Appends an uncompressed name, as SRV and all newer types require. Later names may point at it.
    pub fn plain_name(&mut self, name: NameRef<'_>) {
        self.compressor.write(self.bytes, name, false);
    }

    /// Appends labels in wire form without a root label, followed by a pointer to the name at offset `at` of the
    /// message. If a pointer cannot reach that name, it is repeated instead.
    pub fn labels_to(&mut self, labels: &[u8], at: usize) {
        self.bytes(labels);
        refer_to(self.bytes, at);
    }

    /// Appends the RDATA of a record from another message, with each name in it replaced by the result of `map`.
    fn copy(&mut self, record: &Record<'_>, mut map: impl FnMut(Name) -> Name) -> Result<(), NameError> {
        let Some((compress, fields)) = name_fields(record.rtype()) else {
            self.bytes(record.rdata());
            return Ok(());
        };
        self.copy_fields(record.rdata(), compress, fields, |at| record.name_at(at).map(|(name, end)| (map(name), end)))
    }

    /// Appends RDATA laid out as `fields`. `name_at` reads the name at an offset and returns it with its end offset.
    fn copy_fields(
        &mut self,
        rdata: &[u8],
        compress: bool,
        fields: &[Field],
        mut name_at: impl FnMut(usize) -> Result<(Name, usize), NameError>,
    ) -> Result<(), NameError> {
        let mut at = 0;
        for field in fields {
            let length = match field {
                Field::Bytes(length) => *length,
                Field::String => 1 + usize::from(*rdata.get(at).ok_or(NameError::Short)?),
                Field::Name => {
                    let (name, end) = name_at(at)?;
                    self.compressor.write(self.bytes, name.as_ref(), compress);
                    at = end;
                    debug_assert!(at <= rdata.len(), "a name ends within RDATA");
                    continue;
                }
            };
            self.bytes(rdata.get(at..at + length).ok_or(NameError::Short)?);
            at += length;
        }
        self.bytes(rdata.get(at..).ok_or(NameError::Short)?);
        Ok(())
    }
}

/// Appends a pointer to the name at offset `at`, or the name itself if a pointer cannot reach it (RFC 1035 §4.1.4: 14
/// bits).
fn refer_to(message: &mut Vec<u8>, at: usize) {
    debug_assert!(HEADER_LEN <= at && at < message.len(), "a name that is referred to was written before");
    match u16::try_from(at) {
        Ok(offset) if at <= OFFSET_MAX => message.extend_from_slice(&(0xc000 | offset).to_be_bytes()),
        _ => {
            let name = Name::read(message, at).map_or(Name::root(), |(name, _)| name);
            message.extend_from_slice(name.as_bytes());
        }
    }
}

enum Field {
    Bytes(usize),
    String,
    Name,
}

/// Returns the RDATA fields, up to the last name, of the types in which a name may arrive compressed. The flag is true
/// if a sender may compress it. Receivers decompress all of these types, but senders compress only those of RFC 1035
/// (RFC 3597 §4).
fn name_fields(rtype: Type) -> Option<(bool, &'static [Field])> {
    use Field::{Bytes, Name, String};
    Some(match rtype {
        Type::NS | Type::CNAME | Type::PTR | Type::MB | Type::MD | Type::MF | Type::MG | Type::MR => (true, &[Name]),
        Type::SOA | Type::MINFO => (true, &[Name, Name]),
        Type::MX => (true, &[Bytes(2), Name]),
        Type::RP => (false, &[Name, Name]),
        Type::AFSDB | Type::RT | Type::KX => (false, &[Bytes(2), Name]),
        Type::PX => (false, &[Bytes(2), Name, Name]),
        Type::SRV => (false, &[Bytes(6), Name]),
        Type::NAPTR => (false, &[Bytes(4), String, String, String, Name]),
        Type::DNAME | Type::NXT | Type::NSEC => (false, &[Name]),
        Type::SIG | Type::RRSIG => (false, &[Bytes(18), Name]),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
