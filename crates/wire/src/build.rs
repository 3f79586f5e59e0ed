//! A message under construction, in wire form from its first octet on.
//!
//! Records are appended in the order of the sections; beside the octets a short table says where each one stands, so
//! that a plugin on the way up can set TTLs, shuffle addresses or cut sections without parsing. What does not fit in
//! the limit is left out and the message is marked truncated (RFC 2181 §9).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::compress::Compressor;
use crate::message::{Message, Record};
use crate::{Class, Flags, HEADER_LEN, Header, Name, NameError, NameRef, OPT_FIXED_LEN, Opt, OptionCode, Type};

/// Octets in the longest message.
const MESSAGE_MAX: usize = 65_535;
/// Octets that a new buffer has room for: nearly all answers over UDP.
const CAPACITY: usize = 2048;

/// A pointer to the name in the question, which stands right behind the header.
const QUESTION_POINTER: [u8; 2] = [0xc0, 12];

/// A section of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Records that answer the question.
    Answer,
    /// Records that point to an authority.
    Authority,
    /// Records that may help.
    Additional,
}

impl Section {
    /// The sections in their order.
    pub const ALL: [Section; 3] = [Section::Answer, Section::Authority, Section::Additional];
}

/// Who owns a record that is being written.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// The name in the question.
    Question,
    /// The name that stands at this offset of the message.
    At(usize),
    /// Another name.
    Name(NameRef<'a>),
}

/// Where a record stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its first octet.
    pub start: u16,
    /// The first octet of its data.
    pub rdata: u16,
    /// The octet behind it.
    pub end: u16,
    /// Its type.
    pub rtype: Type,
    /// Its section.
    pub section: Section,
}

impl Mark {
    fn ttl_at(self) -> usize {
        usize::from(self.rdata) - 6
    }

    /// Where its data stands.
    #[must_use]
    pub fn rdata_range(self) -> core::ops::Range<usize> {
        usize::from(self.rdata)..usize::from(self.end)
    }
}

/// A message that is being written.
pub struct MessageBuf {
    /// Id and flags; the counts are set by [`MessageBuf::finish`].
    pub header: Header,
    octets: Vec<u8>,
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
    /// An empty message; its buffer grows to the largest answer that it ever held and stays.
    #[must_use]
    pub fn new() -> MessageBuf {
        MessageBuf {
            header: Header::default(),
            octets: Vec::with_capacity(CAPACITY),
            marks: Vec::with_capacity(CAPACITY / 16),
            compressor: Compressor::new(),
            question_end: HEADER_LEN,
            limit: MESSAGE_MAX,
        }
    }

    /// Begins anew, with a question or with none.
    pub fn start(&mut self, header: Header, question: Option<(NameRef<'_>, Type, Class)>) {
        self.header = Header { questions: u16::from(question.is_some()), ..header };
        self.octets.clear();
        self.octets.extend_from_slice(&[0; HEADER_LEN]);
        if let Some((name, qtype, qclass)) = question {
            self.octets.extend_from_slice(name.octets());
            self.octets.extend_from_slice(&qtype.0.to_be_bytes());
            self.octets.extend_from_slice(&qclass.0.to_be_bytes());
        }
        self.question_end = self.octets.len();
        self.limit = MESSAGE_MAX;
        self.clear();
    }

    /// Becomes a copy of another message; names that are written into it later are not shortened by those in it.
    pub fn copy_from(&mut self, other: &MessageBuf) {
        self.header = other.header;
        self.octets.clone_from(&other.octets);
        self.marks.clone_from(&other.marks);
        self.compressor.clear();
        self.question_end = other.question_end;
        self.limit = other.limit;
    }

    /// Takes away all records; the question, the limit and the header but for TC stay.
    pub fn clear(&mut self) {
        self.octets.truncate(self.question_end);
        self.marks.clear();
        self.compressor.clear();
        self.header.flags = self.header.flags.with_truncated(false);
    }

    /// Sets how many octets the records may reach to, the question included and an OPT record not.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(MESSAGE_MAX);
    }

    /// The question in wire form: name, type, class; empty if there is none.
    #[must_use]
    pub fn question(&self) -> &[u8] {
        &self.octets[HEADER_LEN..self.question_end]
    }

    /// Where the records stand, in order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The records of one section.
    pub fn section(&self, section: Section) -> impl Iterator<Item = Mark> + '_ {
        self.marks.iter().copied().filter(move |mark| mark.section == section)
    }

    /// The record at a mark.
    #[must_use]
    pub fn record(&self, mark: Mark) -> Record<'_> {
        Record::at_mark(&self.octets, mark)
    }

    /// The octets at an offset range of the message, such as a record's data.
    #[must_use]
    pub fn octets_at(&self, range: core::ops::Range<usize>) -> &[u8] {
        self.octets.get(range).unwrap_or_default()
    }

    /// Octets so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.octets.len()
    }

    /// Whether no record has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether something did not fit.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.header.flags.truncated()
    }

    /// Appends a record and gives its mark, or marks the message truncated and gives `None`.
    ///
    /// Records come in the order of their sections; one that comes late counts to the section that is open.
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
        let start = self.octets.len();
        self.write_owner(owner);
        self.octets.extend_from_slice(&rtype.0.to_be_bytes());
        self.octets.extend_from_slice(&class.0.to_be_bytes());
        self.octets.extend_from_slice(&ttl.to_be_bytes());
        self.octets.extend_from_slice(&[0, 0]);
        let rdata_at = self.octets.len();
        rdata(&mut RdataWriter { octets: &mut self.octets, compressor: &mut self.compressor });
        self.close_record(start, rdata_at, rtype, section)
    }

    fn close_record(&mut self, start: usize, rdata_at: usize, rtype: Type, section: Section) -> Option<Mark> {
        let end = self.octets.len();
        let fits = end <= self.limit;
        let places = (u16::try_from(start), u16::try_from(rdata_at), u16::try_from(end), u16::try_from(end - rdata_at));
        let (true, (Ok(start), Ok(rdata), Ok(end), Ok(length))) = (fits, places) else {
            self.octets.truncate(start);
            self.compressor.cut(start);
            self.header.flags = self.header.flags.with_truncated(true);
            return None;
        };
        self.octets[rdata_at - 2..rdata_at].copy_from_slice(&length.to_be_bytes());
        let open = self.marks.last().map_or(section, |last| last.section.max(section));
        let mark = Mark { start, rdata, end, rtype, section: open };
        self.marks.push(mark);
        Some(mark)
    }

    fn write_owner(&mut self, owner: Owner<'_>) {
        match owner {
            Owner::Question if self.header.questions == 1 => self.octets.extend_from_slice(&QUESTION_POINTER),
            Owner::Question => self.octets.push(0),
            Owner::At(at @ ..0x4000) => {
                let pointer = 0xc000 | u16::try_from(at).unwrap_or_default();
                self.octets.extend_from_slice(&pointer.to_be_bytes());
            }
            Owner::At(at) => {
                let name = Name::read(&self.octets, at).map_or(Name::root(), |(name, _)| name);
                self.octets.extend_from_slice(name.octets());
            }
            Owner::Name(name) => self.write_name(name),
        }
    }

    fn write_name(&mut self, name: NameRef<'_>) {
        self.remember_question();
        self.compressor.write(&mut self.octets, name, true);
    }

    /// The question's suffixes are remembered when the first name is written beside it: most answers write none.
    fn remember_question(&mut self) {
        if self.header.questions == 1 && self.compressor.is_empty() {
            let Ok(name) = NameRef::from_octets(&self.octets[HEADER_LEN..self.question_end - 4]) else { return };
            self.compressor.remember_name(name, HEADER_LEN);
        }
    }

    /// Appends an address record.
    pub fn push_address(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: IpAddr) -> Option<Mark> {
        match address {
            IpAddr::V4(v4) => self.push_a(section, owner, ttl, v4),
            IpAddr::V6(v6) => self.push_aaaa(section, owner, ttl, v6),
        }
    }

    /// Appends an A record.
    pub fn push_a(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: Ipv4Addr) -> Option<Mark> {
        self.push(section, owner, (Type::A, Class::IN, ttl), |rdata| rdata.octets(&address.octets()))
    }

    /// Appends an AAAA record (RFC 3596).
    pub fn push_aaaa(&mut self, section: Section, owner: Owner<'_>, ttl: u32, address: Ipv6Addr) -> Option<Mark> {
        self.push(section, owner, (Type::AAAA, Class::IN, ttl), |rdata| rdata.octets(&address.octets()))
    }

    /// Appends a record whose data is one name that may be compressed: CNAME, NS or PTR.
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

    /// Appends a copy of a record of another message, its names written anew.
    ///
    /// # Errors
    /// If a name in it cannot be read.
    pub fn push_record(&mut self, section: Section, record: &Record<'_>) -> Result<Option<Mark>, NameError> {
        let owner = record.owner()?;
        self.push_record_as(section, Owner::Name(owner.as_ref()), record.ttl(), record)
    }

    /// As [`MessageBuf::push_record`], with another owner and time to live.
    ///
    /// # Errors
    /// If a name in it cannot be read.
    pub fn push_record_as(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        ttl: u32,
        record: &Record<'_>,
    ) -> Result<Option<Mark>, NameError> {
        self.push_record_mapped(section, owner, ttl, record, |name| name)
    }

    /// As [`MessageBuf::push_record_as`], with each name in the data as `map` gives it.
    ///
    /// # Errors
    /// If a name in it cannot be read.
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
            self.octets.truncate(usize::from(mark.start));
            self.compressor.cut(usize::from(mark.start));
        }
        outcome.map(|()| mark)
    }

    /// Appends a record whose data are given in wire form with their names in full; those that may be are compressed.
    pub fn push_data(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        (rtype, class, ttl): (Type, Class, u32),
        data: &[u8],
    ) -> Option<Mark> {
        let Some((compress, fields)) = name_fields(rtype) else {
            return self.push(section, owner, (rtype, class, ttl), |rdata| rdata.octets(data));
        };
        self.remember_question();
        self.push(section, owner, (rtype, class, ttl), |rdata| {
            // Data without such names are taken as they are.
            let start = rdata.octets.len();
            if rdata.copy_fields(data, compress, fields, |at| Name::read(data, at)).is_err() {
                rdata.compressor.cut(start);
                rdata.octets.truncate(start);
                rdata.octets(data);
            }
        })
    }

    /// Takes the records of a message whose question is this one's but for case; OPT and TSIG are left behind, since
    /// they speak of one hop (RFC 6891 §6.1.1, RFC 8945 §5.3).
    ///
    /// # Errors
    /// If a record must be written anew and a name in it cannot be read.
    pub fn adopt(&mut self, message: &Message<'_>) -> Result<(), NameError> {
        self.clear();
        let in_place = message.records_at() == self.question_end && message.octets().len() <= self.limit;
        let of_hop = |record: &Record<'_>| matches!(record.rtype(), Type::OPT | Type::TSIG);
        let mut tail = message.records().skip_while(|record| !of_hop(record));
        if !in_place || !tail.all(|record| of_hop(&record)) {
            let mut kept = message.records().filter(|record| !of_hop(record));
            return kept.try_for_each(|record| self.push_record(record.section(), &record).map(|_| ()));
        }
        // The same question has the same length, so each pointer of the message points at the same name here.
        for record in message.records().take_while(|record| !of_hop(record)) {
            let start = self.octets.len();
            self.octets.extend_from_slice(&message.octets()[record.start()..record.end()]);
            self.close_record(start, record.rdata_at(), record.rtype(), record.section());
        }
        Ok(())
    }

    /// Takes records that this buffer itself gave away by [`MessageBuf::records_octets`], for a question of the same
    /// length: octets and marks.
    pub fn restore(&mut self, octets: &[u8], marks: &[Mark]) {
        self.clear();
        self.octets.extend_from_slice(octets);
        self.marks.extend_from_slice(marks);
        while self.octets.len() > self.limit {
            self.pop();
        }
    }

    /// Takes away the last record and marks the message truncated.
    fn pop(&mut self) {
        self.header.flags = self.header.flags.with_truncated(true);
        match self.marks.pop() {
            Some(mark) => self.octets.truncate(usize::from(mark.start)),
            None => self.limit = self.octets.len(),
        }
    }

    /// The octets of all records: what stands between the question and the end.
    #[must_use]
    pub fn records_octets(&self) -> &[u8] {
        &self.octets[self.question_end..]
    }

    /// Takes away this section and those after it.
    pub fn cut_from(&mut self, section: Section) {
        self.keep(self.marks.iter().take_while(|mark| mark.section < section).count());
    }

    /// Takes away all records behind the first so many.
    pub fn keep(&mut self, records: usize) {
        if let Some(first) = self.marks.get(records) {
            self.octets.truncate(usize::from(first.start));
            self.compressor.cut(usize::from(first.start));
            self.marks.truncate(records);
        }
    }

    /// The time to live of a record.
    #[must_use]
    pub fn ttl(&self, mark: Mark) -> u32 {
        let at = mark.ttl_at();
        self.octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |octets| u32::from_be_bytes(*octets))
    }

    /// The lowest time to live in the message, if there is a record.
    #[must_use]
    pub fn ttl_min(&self) -> Option<u32> {
        self.marks.iter().map(|mark| self.ttl(*mark)).min()
    }

    /// Sets the time to live of a record.
    pub fn set_ttl(&mut self, mark: Mark, ttl: u32) {
        if let Some(field) = self.octets.get_mut(mark.ttl_at()..mark.ttl_at() + 4) {
            field.copy_from_slice(&ttl.to_be_bytes());
        }
    }

    /// Sets the time to live of all records.
    pub fn set_ttls(&mut self, ttl: u32) {
        for at in 0..self.marks.len() {
            self.set_ttl(self.marks[at], ttl);
        }
    }

    /// Exchanges the data of two records of the same length of data, such as two addresses of one RRset.
    pub fn swap_rdata(&mut self, one: usize, other: usize) {
        let (Some(one), Some(other)) = (self.marks.get(one), self.marks.get(other)) else { return };
        let (first, second) = if one.start < other.start { (*one, *other) } else { (*other, *one) };
        if first.start == second.start || first.rdata_range().len() != second.rdata_range().len() {
            return;
        }
        let (head, tail) = self.octets.split_at_mut(usize::from(second.rdata));
        let length = second.rdata_range().len();
        head[first.rdata_range()].swap_with_slice(&mut tail[..length]);
    }

    /// The owner of a record.
    ///
    /// # Errors
    /// If it cannot be read, which can be only in records of another server.
    pub fn owner(&self, mark: Mark) -> Result<Name, NameError> {
        Name::read(&self.octets, usize::from(mark.start)).map(|(name, _)| name)
    }

    /// A name in the data of a record, `offset` octets in.
    ///
    /// # Errors
    /// If there is none.
    pub fn name_in(&self, mark: Mark, offset: usize) -> Result<Name, NameError> {
        Name::read(&self.octets, usize::from(mark.rdata) + offset).map(|(name, _)| name)
    }

    /// Takes whole records from the end until the message has at most `limit` octets, and marks it truncated if any went.
    pub fn fit(&mut self, limit: usize) {
        while self.octets.len() > limit && !self.marks.is_empty() {
            self.pop();
        }
    }

    /// Writes the counts, and an OPT record with options if there is one, and gives the whole message.
    pub fn finish<'o>(&mut self, opt: Option<Opt>, options: impl Iterator<Item = (OptionCode, &'o [u8])>) -> &[u8] {
        let mut counts = [0u16; 3];
        for mark in &self.marks {
            counts[mark.section as usize] += 1;
        }
        let [answers, authorities, additionals] = counts;
        let additionals = additionals + u16::from(opt.is_some());
        if let Some(opt) = opt {
            self.write_opt(opt, options);
        }
        let header = Header { answers, authorities, additionals, ..self.header };
        self.octets[..HEADER_LEN].copy_from_slice(&header.to_octets());
        &self.octets
    }

    /// Appends one more additional record, in wire form, to a message that is finished: a signature over all before it.
    pub fn push_behind(&mut self, record: &[u8]) {
        const ADDITIONALS_AT: core::ops::Range<usize> = 10..12;
        let counted = self.octets.get_mut(ADDITIONALS_AT).and_then(|octets| octets.first_chunk_mut());
        if let Some(count) = counted {
            *count = u16::from_be_bytes(*count).saturating_add(1).to_be_bytes();
            self.octets.extend_from_slice(record);
        }
    }

    fn write_opt<'o>(&mut self, opt: Opt, options: impl Iterator<Item = (OptionCode, &'o [u8])>) {
        let start = self.octets.len();
        self.octets.extend_from_slice(&opt.to_octets(0));
        for (code, data) in options {
            let length = u16::try_from(data.len()).unwrap_or_default();
            self.octets.extend_from_slice(&code.0.to_be_bytes());
            self.octets.extend_from_slice(&length.to_be_bytes());
            self.octets.extend_from_slice(&data[..usize::from(length)]);
        }
        let options_len = u16::try_from(self.octets.len() - start - OPT_FIXED_LEN).unwrap_or_default();
        self.octets[start..start + OPT_FIXED_LEN].copy_from_slice(&opt.to_octets(options_len));
    }

    /// The flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.header.flags
    }
}

/// Writes the data of one record.
pub struct RdataWriter<'m> {
    octets: &'m mut Vec<u8>,
    compressor: &'m mut Compressor,
}

impl RdataWriter<'_> {
    /// Appends octets as they are.
    pub fn octets(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Appends a number of two octets.
    pub fn u16(&mut self, number: u16) {
        self.octets(&number.to_be_bytes());
    }

    /// Appends a number of four octets.
    pub fn u32(&mut self, number: u32) {
        self.octets(&number.to_be_bytes());
    }

    /// Appends a character string: at most 255 octets, the rest is cut (RFC 1035 §3.3).
    pub fn character_string(&mut self, text: &[u8]) {
        let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
        self.octets.push(length);
        self.octets(&text[..usize::from(length)]);
    }

    /// Appends a name, compressed: only for the types of RFC 1035 (RFC 3597 §4).
    pub fn name(&mut self, name: NameRef<'_>) {
        self.compressor.write(self.octets, name, true);
    }

    /// Appends a name in full, as SRV and all newer types want it; later names may point at it.
    pub fn plain_name(&mut self, name: NameRef<'_>) {
        self.compressor.write(self.octets, name, false);
    }

    /// Appends labels in wire form without a root label, and a pointer to the name that stands at `at` of the message.
    pub fn labels_to(&mut self, labels: &[u8], at: usize) {
        self.octets(labels);
        self.u16(0xc000 | u16::try_from(at & 0x3fff).unwrap_or_default());
    }

    /// Appends the data of another message's record, its names written anew as `map` gives them.
    fn copy(&mut self, record: &Record<'_>, mut map: impl FnMut(Name) -> Name) -> Result<(), NameError> {
        let Some((compress, fields)) = name_fields(record.rtype()) else {
            self.octets(record.rdata());
            return Ok(());
        };
        self.copy_fields(record.rdata(), compress, fields, |at| record.name_at(at).map(|(name, end)| (map(name), end)))
    }

    /// Appends data whose names stand where `fields` says and are read by `name_at`, which gives their ends too.
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
                Field::Octets(length) => *length,
                Field::String => 1 + usize::from(*rdata.get(at).ok_or(NameError::Short)?),
                Field::Name => {
                    let (name, end) = name_at(at)?;
                    self.compressor.write(self.octets, name.as_ref(), compress);
                    at = end;
                    continue;
                }
            };
            self.octets(rdata.get(at..at + length).ok_or(NameError::Short)?);
            at += length;
        }
        self.octets(rdata.get(at..).ok_or(NameError::Short)?);
        Ok(())
    }
}

enum Field {
    Octets(usize),
    String,
    Name,
}

/// The data of the types in which a name may come compressed, up to their last name, and whether we may compress it
/// (RFC 3597 §4: receivers decompress all of these, senders compress only the types of RFC 1035).
fn name_fields(rtype: Type) -> Option<(bool, &'static [Field])> {
    use Field::{Name, Octets, String};
    Some(match rtype {
        Type::NS | Type::CNAME | Type::PTR | Type::MB | Type::MD | Type::MF | Type::MG | Type::MR => (true, &[Name]),
        Type::SOA | Type::MINFO => (true, &[Name, Name]),
        Type::MX => (true, &[Octets(2), Name]),
        Type::RP => (false, &[Name, Name]),
        Type::AFSDB | Type::RT | Type::KX => (false, &[Octets(2), Name]),
        Type::PX => (false, &[Octets(2), Name, Name]),
        Type::SRV => (false, &[Octets(6), Name]),
        Type::NAPTR => (false, &[Octets(4), String, String, String, Name]),
        Type::DNAME | Type::NXT | Type::NSEC => (false, &[Name]),
        Type::SIG | Type::RRSIG => (false, &[Octets(18), Name]),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
