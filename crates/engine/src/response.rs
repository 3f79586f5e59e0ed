//! An answer on its way up.

use std::borrow::Cow;

use wire::{
    EdeCode, Flags, Header, Message, MessageBuf, NameError, OPT_FIXED_LEN, Opcode, Opt, OptionCode, Rcode, Section,
    Type,
};

use crate::{Failure, Query};

/// Octets that we take over UDP and say so: no fragments on any path (RFC 9715 §3.1).
pub const UDP_SIZE: u16 = 1232;
/// Octets in the longest extra text of an Extended DNS Error: it must not push records out.
const EDE_TEXT_MAX: usize = 96;
/// Octets of the data of the longest Extended DNS Error: its code and its text.
const EDE_LEN_MAX: usize = 2 + EDE_TEXT_MAX;
/// Octets before the data of an EDNS option: code and length.
const OPTION_HEADER_LEN: usize = 4;
/// EDNS options that plugins may add to one answer.
const OPTIONS_MAX: usize = 4;

/// The answer to a query, as the plugins see it.
#[derive(Default)]
pub struct Response {
    /// The message.
    pub message: MessageBuf,
    failure: Option<Failure>,
    ede: Option<(EdeCode, Cow<'static, str>)>,
    options: Vec<(OptionCode, Vec<u8>)>,
    seal: Option<Box<dyn Seal>>,
    more: Option<Box<dyn Continuation>>,
    rcode: Rcode,
    /// The place, among the directives of its block, of the one that wrote the answer.
    source: Option<usize>,
    /// Made from what this process knows, not from what an upstream said.
    local: bool,
    dropped: bool,
}

/// What must see the message as it leaves: TSIG (RFC 8945 §5.3), SIG(0).
pub trait Seal {
    /// Octets that its record takes at most; they are kept free.
    fn room(&self) -> usize;

    /// Writes a record in wire form over the message, in which that record is not counted yet; or nothing.
    fn seal(&self, message: &[u8], record: &mut Vec<u8>);
}

/// More messages of the same answer, over a stream: zone transfers (RFC 5936 §2.2).
pub trait Continuation {
    /// Writes the records of the next message, whose question and flags are those of the first; `false` if there is no
    /// other message. It is called when the one before it is on its way, however long that took.
    fn next(&mut self, message: &mut MessageBuf) -> bool;
}

impl Response {
    /// Begins an empty answer to `query`: QR, the opcode, RD and CD copied, NOERROR.
    pub fn begin(&mut self, query: &Query) {
        let asked = query.flags();
        let mut flags = Flags::default().with_response(true).with_opcode(asked.opcode());
        if asked.opcode() == Opcode::QUERY {
            flags = flags
                .with_recursion_desired(asked.recursion_desired())
                .with_checking_disabled(asked.checking_disabled());
        }
        let header = Header { id: query.header().id, flags, ..Header::default() };
        self.message.start(header, Some((query.name(), query.qtype, query.qclass)));
        self.message.set_limit(self.room(query));
        self.forget();
    }

    /// Begins a bare refusal of something that could not be read: id, opcode and RD copied, no question.
    pub fn begin_unread(&mut self, asked: Header, rcode: Rcode) {
        let flags = Flags::default()
            .with_response(true)
            .with_opcode(asked.flags.opcode())
            .with_recursion_desired(asked.flags.recursion_desired());
        self.message.start(Header { id: asked.id, flags, ..Header::default() }, None);
        self.forget();
        self.set_rcode(rcode);
    }

    fn forget(&mut self) {
        self.failure = None;
        self.ede = None;
        self.options.clear();
        self.more = None;
        self.rcode = Rcode::NOERROR;
        self.source = None;
        self.local = false;
        self.dropped = false;
    }

    /// Octets for question and records beside an OPT record, if the query had one.
    fn room(&self, query: &Query) -> usize {
        let opt = if query.opt().is_some() { OPT_FIXED_LEN } else { 0 };
        usize::from(query.size_max()) - opt
    }

    /// The response code.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        self.rcode
    }

    /// Sets the response code.
    pub fn set_rcode(&mut self, rcode: Rcode) {
        self.rcode = rcode;
        self.message.header.flags = self.message.header.flags.with_rcode(rcode);
    }

    /// Sets AA: this server is an authority for the name.
    pub fn set_authoritative(&mut self, on: bool) {
        self.message.header.flags = self.message.header.flags.with_authoritative(on);
    }

    /// What went wrong, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Becomes an empty answer that says what went wrong.
    pub fn fail(&mut self, query: &Query, failure: Failure) {
        self.begin(query);
        self.set_rcode(failure.rcode);
        let text = if failure.is_cause_public { failure.cause.clone() } else { Cow::Borrowed("") };
        self.ede = Some((failure.ede, text));
        self.failure = Some(failure);
    }

    /// Adds an Extended DNS Error with an extra text, for clients that speak EDNS.
    pub fn set_ede(&mut self, code: EdeCode, text: impl Into<Cow<'static, str>>) {
        self.ede = Some((code, text.into()));
    }

    /// The Extended DNS Error that will be sent.
    #[must_use]
    pub fn ede(&self) -> Option<EdeCode> {
        self.ede.as_ref().map(|(code, _)| *code)
    }

    /// Adds an EDNS option, for clients that speak EDNS; another of the same code is replaced.
    pub fn set_option(&mut self, code: OptionCode, data: Vec<u8>) {
        self.options.retain(|(known, _)| *known != code);
        if self.options.len() < OPTIONS_MAX {
            self.options.push((code, data));
        }
    }

    /// The place, among the directives of its block, of the one that wrote the answer, if one did.
    #[must_use]
    pub const fn source(&self) -> Option<usize> {
        self.source
    }

    pub(crate) fn set_source(&mut self, step: Option<usize>) {
        self.source = step;
    }

    /// Whether the answer was made from what this process knows: a cache need not keep it.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.local
    }

    /// Says that the answer was made from what this process knows.
    pub fn set_local(&mut self) {
        self.local = true;
    }

    /// Whether the client gets nothing.
    #[must_use]
    pub const fn is_dropped(&self) -> bool {
        self.dropped
    }

    pub(crate) fn set_dropped(&mut self) {
        self.dropped = true;
    }

    /// Becomes what an upstream answered: its records, its code with the reason for it, and its flags; id, opcode, question, RD and CD stay the
    /// client's (RFC 5625 §6.2).
    ///
    /// # Errors
    /// If a name in it cannot be read; the response is then empty.
    pub fn adopt(&mut self, message: &Message<'_>) -> Result<(), NameError> {
        let theirs = message.header().flags;
        let flags = self.message.header.flags;
        self.message.header.flags = flags
            .with_authoritative(theirs.authoritative())
            .with_recursion_available(theirs.recursion_available())
            .with_authentic_data(theirs.authentic_data());
        let opt = message.records().find(|record| record.rtype() == Type::OPT);
        let upper = opt.map_or(0, |opt| Opt::from_fields(opt.class().0, opt.raw_ttl()).extended_rcode);
        self.set_rcode(Rcode(u16::from(upper) << 4 | theirs.rcode().0));
        self.ede = opt.and_then(|opt| ede_in(opt.rdata()));
        // What is too long for this client is cut when it leaves: a cache above keeps the whole.
        self.message.set_limit(usize::MAX);
        self.message.adopt(message)?;
        if theirs.truncated() {
            self.message.header.flags = self.message.header.flags.with_truncated(true);
        }
        Ok(())
    }

    /// Writes the message anew for the name that is asked now: its question is the query's, and `copy` gives each record
    /// of the old message (the second) to the new one, with another owner, other data or in another order. `scratch` is
    /// the worker's.
    ///
    /// # Errors
    /// As `copy` says; the message is then as it was.
    pub fn rewrite(
        &mut self,
        query: &Query,
        scratch: &mut MessageBuf,
        copy: impl FnOnce(&mut MessageBuf, &MessageBuf) -> Result<(), NameError>,
    ) -> Result<(), NameError> {
        core::mem::swap(&mut self.message, scratch);
        let header = scratch.header;
        self.message.start(header, Some((query.name(), query.qtype, query.qclass)));
        self.message.set_limit(self.room(query));
        let copied = copy(&mut self.message, scratch);
        if copied.is_err() {
            core::mem::swap(&mut self.message, scratch);
            return copied;
        }
        let truncated = self.message.is_truncated() || header.flags.truncated();
        self.message.header.flags = header.flags.with_truncated(truncated);
        copied
    }

    /// Takes the records that answer another question over, after those that stand here already.
    pub fn append_answers(&mut self, sub: &Response) {
        self.append(Section::Answer, sub);
        if sub.message.is_truncated() {
            self.message.header.flags = self.message.header.flags.with_truncated(true);
        }
    }

    /// Appends what denies the name or the type, if the other answer does: its SOA record, and proofs (RFC 2308 §2). Says so.
    pub fn append_denial(&mut self, sub: &Response) -> bool {
        let is_denial = sub.message.section(Section::Authority).any(|mark| mark.rtype == Type::SOA);
        if is_denial {
            self.append(Section::Authority, sub);
        }
        is_denial
    }

    fn append(&mut self, section: Section, sub: &Response) {
        let records = sub.message.section(section);
        // What does not fit marks the message as cut.
        let _ = records.map(|mark| self.message.push_record(section, &sub.message.record(mark))).find(Result::is_err);
    }

    /// Has a record written over the finished message, behind it, whatever the message becomes: also if it is begun anew.
    pub fn seal_with(&mut self, seal: Box<dyn Seal>) {
        self.seal = Some(seal);
    }

    /// Has more messages follow this one, if the client came over a stream; what begins the answer anew ends that.
    pub fn continue_with(&mut self, more: Box<dyn Continuation>) {
        self.more = Some(more);
    }

    /// Writes out the next message of an answer of several, once the one before has been; `None` if that was the last.
    pub fn finish_next(&mut self, query: &Query) -> Option<&[u8]> {
        let mut more = self.more.take()?;
        let header = self.message.header;
        self.message.start(header, Some((query.name(), query.qtype, query.qclass)));
        self.message.set_limit(self.room(query));
        if !more.next(&mut self.message) {
            self.seal = None;
            return None;
        }
        self.more = Some(more);
        Some(self.finish(query))
    }

    /// Whether more messages may follow this one.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// Is sealed as `other` was to be.
    pub(crate) fn take_seal(&mut self, other: &mut Response) {
        self.seal = other.seal.take().or(self.seal.take());
    }

    /// Forgets the seal of an earlier life.
    pub(crate) fn unseal(&mut self) {
        self.seal = None;
    }

    /// Writes the message out: cut to the client's size, with an OPT record if the query had one, and sealed if a plugin
    /// wants it so. Of an answer of several messages this is the first ([`Response::finish_next`]).
    pub fn finish(&mut self, query: &Query) -> &[u8] {
        let Some(seal) = self.seal.take() else { return self.write_out(query, usize::from(query.size_max())) };
        let finished = self.write_out(query, usize::from(query.size_max()).saturating_sub(seal.room()));
        let mut record = Vec::with_capacity(seal.room());
        seal.seal(finished, &mut record);
        if !record.is_empty() {
            self.message.push_behind(&record);
        }
        if self.more.is_some() {
            self.seal = Some(seal);
        }
        self.message.octets_at(0..self.message.len())
    }

    /// Writes the message out as [`Response::finish`] would now, but without a seal and as a copy: for those who keep what
    /// is answered. `scratch` is the worker's.
    pub fn finish_copy<'s>(&mut self, query: &Query, scratch: &'s mut MessageBuf) -> &'s [u8] {
        scratch.copy_from(&self.message);
        core::mem::swap(&mut self.message, scratch);
        self.write_out(query, usize::from(query.size_max()));
        core::mem::swap(&mut self.message, scratch);
        scratch.octets_at(0..scratch.len())
    }

    fn write_out(&mut self, query: &Query, limit: usize) -> &[u8] {
        let Some(asked) = query.opt() else {
            self.message.fit(limit);
            return self.message.finish(None, core::iter::empty());
        };
        let upper = (self.rcode.0 >> 4).min(0xff) as u8;
        let opt = Opt { udp_size: UDP_SIZE, extended_rcode: upper, version: 0, dnssec_ok: asked.dnssec_ok };
        let limit = limit.saturating_sub(OPT_FIXED_LEN);
        self.message.fit(limit);
        let mut ede = [0; EDE_LEN_MAX];
        let ede = self.ede.as_ref().map(|(code, text)| (OptionCode::EXTENDED_ERROR, ede_data(*code, text, &mut ede)));
        let options = self.options.iter().map(|(code, data)| (*code, data.as_slice())).chain(ede);
        let mut room = limit.saturating_sub(self.message.len());
        let fitting = options.take_while(|(_, data)| {
            let left = room.checked_sub(data.len() + OPTION_HEADER_LEN);
            room = left.unwrap_or(room);
            left.is_some()
        });
        self.message.finish(Some(opt), fitting)
    }
}

/// The first Extended DNS Error in the data of an OPT record, its text no longer than it can be sent.
fn ede_in(data: &[u8]) -> Option<(EdeCode, Cow<'static, str>)> {
    let (_, data) = wire::options(data).find(|(code, _)| *code == OptionCode::EXTENDED_ERROR)?;
    let (code, text) = data.split_first_chunk::<2>()?;
    let text = String::from_utf8_lossy(&text[..text.len().min(EDE_TEXT_MAX)]);
    Some((EdeCode(u16::from_be_bytes(*code)), if text.is_empty() { "".into() } else { text.into_owned().into() }))
}

/// The data of an Extended DNS Error option (RFC 8914 §2): code and text.
fn ede_data<'b>(code: EdeCode, text: &str, buffer: &'b mut [u8; EDE_LEN_MAX]) -> &'b [u8] {
    let end = (0..=text.len().min(EDE_TEXT_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    buffer[..2].copy_from_slice(&code.0.to_be_bytes());
    buffer[2..2 + end].copy_from_slice(&text.as_bytes()[..end]);
    &buffer[..2 + end]
}
