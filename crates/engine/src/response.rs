//! The response that travels up the chain, and its conversion to wire form.
//!
//! A plugin starts from an empty response with the question of the query and adds records, or takes over the reply of
//! an upstream ([`Response::adopt`]). The steps above may still change it. [`Response::finish`] writes it out last:
//!
//! 1. It cuts the message to the size that the client accepts and sets TC if records are missing.
//! 2. It adds the OPT record if the query had one, with the Extended DNS Error, the options that plugins added, and the
//!    padding if the client asked for it over an encrypted transport.
//! 3. It signs the message if a plugin registered a [`MessageSigner`].
//!
//! A zone transfer is one response of several messages: see [`Continuation`].

use core::cell::Cell;
use core::fmt::{self, Write as _};
use std::borrow::Cow;

use host::invariant::holds;
use wire::{
    EdeCode, Flags, Header, Mark, Message, MessageBuf, NameError, OPT_FIXED_LEN, Opcode, Opt, OptionCode, Rcode,
    Section, Type,
};

use crate::query::{Query, UDP_SIZE};
use crate::verdict::Failure;

/// Maximum length in bytes of the text of an Extended DNS Error. A longer text could displace records.
const EDE_TEXT_MAX: usize = 96;
/// Maximum length in bytes of the data of an Extended DNS Error: code and text.
const EDE_LEN_MAX: usize = 2 + EDE_TEXT_MAX;
/// Length in bytes of the header of an EDNS option: code and length.
const OPTION_HEADER_LEN: usize = 4;
/// Padded responses have a multiple of this length in bytes (RFC 8467 §4.1).
const PADDING_BLOCK: usize = 468;
/// Data of padding options (RFC 7830 §3).
static PADDING: [u8; PADDING_BLOCK] = [0; PADDING_BLOCK];
/// Maximum number of EDNS options that plugins may add to a response.
const OPTIONS_MAX: usize = 4;

/// Largest response code with its extension (RFC 6891 §6.1.3).
const RCODE_MAX: u16 = 0xfff;

/// The response to a query, as the plugins see it.
#[derive(Default)]
pub struct Response {
    /// Message.
    pub message: MessageBuf,
    failure: Option<Failure>,
    ede: Option<(EdeCode, EdeText)>,
    /// Text of an [`EdeText::Written`]. It is kept between queries, so that a text with a number allocates once.
    ede_buffer: String,
    options: Vec<(OptionCode, Vec<u8>)>,
    signer: Option<Box<dyn MessageSigner>>,
    more: Option<Box<dyn Continuation>>,
    rcode: Rcode,
    /// Index, among the directives of the block, of the plugin that wrote the answer.
    source: Option<usize>,
    /// Index, among the directives of the block, of the plugin that failed or dropped the query.
    failed_at: Option<usize>,
    /// True if the answer comes from local data, not from an upstream.
    local: bool,
    dropped: bool,
}

/// Text of an Extended DNS Error.
#[derive(Clone, Debug)]
enum EdeText {
    Given(Cow<'static, str>),
    /// In the buffer of the response.
    Written,
}

/// Signer of outgoing messages: TSIG (RFC 8945 §5.3), SIG(0).
pub trait MessageSigner {
    /// Length in bytes of the signature record. The response keeps this space free.
    fn room(&self) -> usize;

    /// Appends the signature record for `message` to `record`, in wire form, or nothing. The counts in `message` do
    /// not include that record yet.
    fn sign(&self, message: &[u8], record: &mut Vec<u8>);
}

/// Source of further messages of the same response over a stream: zone transfers (RFC 5936 §2.2).
pub trait Continuation {
    /// Writes the records of the next message and returns true, or returns false if there are no more messages.
    ///
    /// The engine has already set the question and the flags to those of the first message. It calls this method after
    /// the previous message has been sent.
    fn next(&mut self, message: &mut MessageBuf) -> bool;
}

impl Response {
    /// Starts an empty response to `query`: sets QR, copies the opcode, RD and CD, and sets NOERROR.
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

    /// Takes over the size limits of a query after a plugin has changed them. Call it before any records are added.
    pub fn update_limit(&mut self, query: &Query) {
        self.message.set_limit(self.room(query));
    }

    /// Starts an error response to a message that could not be parsed: ID, opcode and RD copied, no question.
    pub(crate) fn begin_unread(&mut self, asked: Header, rcode: Rcode) {
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
        self.failed_at = None;
        self.local = false;
        self.dropped = false;
    }

    /// Size in bytes available for the question and records, without the OPT record if the query had one.
    fn room(&self, query: &Query) -> usize {
        let opt = if query.opt().is_some() { OPT_FIXED_LEN } else { 0 };
        let size_max = usize::from(query.size_max());
        holds(opt == 0 || size_max > opt, "a response has room for more than its OPT record");
        size_max.saturating_sub(opt)
    }

    /// Response code.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        self.rcode
    }

    /// Sets the response code.
    pub fn set_rcode(&mut self, rcode: Rcode) {
        holds(rcode.0 <= RCODE_MAX, "a response code has twelve bits");
        self.rcode = rcode;
        self.message.header.flags = self.message.header.flags.with_rcode(rcode);
    }

    /// Sets or clears AA: this server is authoritative for the name.
    pub fn set_authoritative(&mut self, on: bool) {
        self.message.header.flags = self.message.header.flags.with_authoritative(on);
    }

    /// Failure that this response reports, if any.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Replaces the response by an error response.
    pub fn fail(&mut self, query: &Query, failure: Failure) {
        self.begin(query);
        self.set_rcode(failure.rcode);
        self.ede = Some((failure.ede, EdeText::Given(failure.text.clone())));
        self.failure = Some(failure);
    }

    /// Records why the response is an error, for the log. The client gets nothing of it.
    pub fn set_failure(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Sets the Extended DNS Error, sent to clients that use EDNS.
    pub fn set_ede(&mut self, code: EdeCode, text: impl Into<Cow<'static, str>>) {
        self.ede = Some((code, EdeText::Given(text.into())));
    }

    /// Sets the Extended DNS Error with a formatted text, without an allocation per query.
    pub fn write_ede(&mut self, code: EdeCode, text: fmt::Arguments<'_>) {
        self.ede_buffer.clear();
        // Writing to a `String` cannot fail.
        let _ = self.ede_buffer.write_fmt(text);
        self.ede = Some((code, EdeText::Written));
    }

    /// Copies the Extended DNS Error of another response, for example that of a subquery.
    pub fn copy_ede(&mut self, other: &Response) {
        self.ede.clone_from(&other.ede);
        self.ede_buffer.clone_from(&other.ede_buffer);
    }

    /// Code of the Extended DNS Error, if one is set.
    #[must_use]
    pub fn ede(&self) -> Option<EdeCode> {
        self.ede.as_ref().map(|(code, _)| *code)
    }

    /// Returns the text of the Extended DNS Error; empty without one.
    #[must_use]
    pub fn ede_text(&self) -> &str {
        match &self.ede {
            Some((_, EdeText::Given(text))) => text,
            Some((_, EdeText::Written)) => &self.ede_buffer,
            None => "",
        }
    }

    /// Sets an EDNS option, sent to clients that use EDNS. It replaces an option with the same code. If
    /// `OPTIONS_MAX` other options exist, the call has no effect.
    pub fn set_option(&mut self, code: OptionCode, data: Vec<u8>) {
        self.options.retain(|(known, _)| *known != code);
        if self.options.len() < OPTIONS_MAX {
            self.options.push((code, data));
        }
        holds(self.options.len() <= OPTIONS_MAX, "the number of options is bounded");
    }

    /// Index, among the directives of the block, of the plugin that wrote the answer, if any.
    #[must_use]
    pub const fn source(&self) -> Option<usize> {
        self.source
    }

    pub(crate) fn set_source(&mut self, step: Option<usize>) {
        self.source = step;
    }

    /// Index, among the directives of the block, of the plugin that failed or dropped the query, if any.
    pub(crate) const fn failed_at(&self) -> Option<usize> {
        self.failed_at
    }

    pub(crate) fn set_failed_at(&mut self, step: Option<usize>) {
        self.failed_at = step;
    }

    /// Returns true if [`Response::finish`] will set TC, apart from rare cases in which only the OPT record does not
    /// fit.
    pub(crate) fn will_truncate(&self, query: &Query) -> bool {
        self.message.is_truncated() || self.message.len() > usize::from(query.size_max())
    }

    /// Returns true if the answer comes from local data, so that caching it gains nothing.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.local
    }

    /// Marks the answer as coming from local data.
    pub fn set_local(&mut self) {
        self.local = true;
    }

    /// Returns true if the client gets no response.
    #[must_use]
    pub const fn is_dropped(&self) -> bool {
        self.dropped
    }

    pub(crate) fn set_dropped(&mut self) {
        self.dropped = true;
    }

    /// Takes over the reply of an upstream: records, response code, Extended DNS Error, AA, RA, AD and TC. ID, opcode,
    /// question, RD and CD remain those of the client (RFC 5625 §6.2).
    ///
    /// # Errors
    /// A name in the reply is malformed. The response is then empty.
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
        self.ede = opt.and_then(|opt| ede_in(opt.rdata())).map(|(code, text)| (code, EdeText::Given(text)));
        // The size limit of this client applies when the response is sent, so that a cache above can store all
        // records.
        self.message.set_limit(usize::MAX);
        self.message.adopt(message)?;
        if theirs.truncated() {
            self.message.header.flags = self.message.header.flags.with_truncated(true);
        }
        Ok(())
    }

    /// Sets an Extended DNS Error if an upstream has refused or failed the query without one.
    pub(crate) fn explain_upstream_failure(&mut self) {
        let text = match self.rcode {
            Rcode::SERVFAIL => "the upstream answered SERVFAIL",
            Rcode::REFUSED => "the upstream answered REFUSED",
            _ => return,
        };
        if self.ede.is_none() {
            self.set_ede(EdeCode::NO_REACHABLE_AUTHORITY, text);
        }
    }

    /// Rewrites the message for the current question of the query.
    ///
    /// `copy` receives the new message and the old one. It copies the records, and may change their owner, data or
    /// order. `scratch` is the worker's scratch message.
    ///
    /// # Errors
    /// The error of `copy`. The message is then unchanged.
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

    /// Appends the answer records of another response, for example those of a CNAME target. Copies TC.
    pub fn append_answers(&mut self, sub: &Response) {
        self.append(Section::Answer, sub);
        if sub.message.is_truncated() {
            self.message.header.flags = self.message.header.flags.with_truncated(true);
        }
    }

    /// Appends the proof that the name or type does not exist, if `sub` contains one: its SOA and DNSSEC records (RFC
    /// 2308 §2). Returns true if it did.
    pub fn append_denial(&mut self, sub: &Response) -> bool {
        let is_denial = sub.message.section(Section::Authority).any(|mark| mark.rtype == Type::SOA);
        if is_denial {
            self.append(Section::Authority, sub);
        }
        is_denial
    }

    /// Appends the NSEC and NSEC3 records of `sub` with their signatures, unless this response already has them. They
    /// prove that wildcards apply to the answer (RFC 4035 §3.1.3.3).
    pub fn append_proofs(&mut self, sub: &Response) {
        let proof = |response: &Response, mark: Mark| {
            let covered =
                || response.message.bytes_at(mark.rdata_range()).first_chunk().map(|type_| u16::from_be_bytes(*type_));
            let of = if mark.rtype == Type::RRSIG { Type(covered()?) } else { mark.rtype };
            let owner = response.message.owner(mark).ok()?;
            matches!(of, Type::NSEC | Type::NSEC3).then_some((owner.into_lowercase(), of))
        };
        let known: Vec<_> = self.message.section(Section::Authority).filter_map(|mark| proof(self, mark)).collect();
        for mark in sub.message.section(Section::Authority) {
            let is_new = proof(sub, mark).is_some_and(|proof| !known.contains(&proof));
            if is_new && self.message.push_record(Section::Authority, &sub.message.record(mark)).is_err() {
                return;
            }
        }
    }

    /// Appends the records of a section of `sub`. A DNAME record that applies to several names of a chain of aliases
    /// is there once, and so is its signature.
    fn append(&mut self, section: Section, sub: &Response) {
        let known = self.message.marks().len();
        for mark in sub.message.section(section) {
            let is_new = !self.repeats_dname(mark, known, sub);
            // `push_record` sets TC if a record does not fit.
            if is_new && self.message.push_record(section, &sub.message.record(mark)).is_err() {
                return;
            }
        }
    }

    /// Returns true if a record of `sub` is a DNAME record, or the signature of one, that the first `known` records of
    /// this response contain.
    fn repeats_dname(&self, mark: Mark, known: usize, sub: &Response) -> bool {
        let is_of_dname = |message: &MessageBuf, mark: Mark| match mark.rtype {
            Type::DNAME => true,
            Type::RRSIG => message.bytes_at(mark.rdata_range()).starts_with(&Type::DNAME.0.to_be_bytes()),
            _ => false,
        };
        is_of_dname(&sub.message, mark)
            && self.message.marks().iter().take(known).any(|other| {
                other.rtype == mark.rtype
                    && is_of_dname(&self.message, *other)
                    && self.message.owner(*other).ok() == sub.message.owner(mark).ok()
            })
    }

    /// Registers a signer for the finished message. It remains registered if the response starts again.
    pub fn sign_with(&mut self, signer: Box<dyn MessageSigner>) {
        self.signer = Some(signer);
    }

    /// Registers a source of further messages, for clients on a stream. It is dropped if the response starts again.
    pub fn continue_with(&mut self, more: Box<dyn Continuation>) {
        holds(self.more.is_none(), "a response has one source of messages");
        self.more = Some(more);
    }

    /// Writes the next message of a response of several messages, in wire form. `None` after the last one.
    pub fn finish_next(&mut self, query: &Query) -> Option<&[u8]> {
        let mut more = self.more.take()?;
        let header = self.message.header;
        self.message.start(header, Some((query.name(), query.qtype, query.qclass)));
        self.message.set_limit(self.room(query));
        if !more.next(&mut self.message) {
            self.signer = None;
            return None;
        }
        self.more = Some(more);
        holds(!self.message.is_empty(), "each message of a transfer has records");
        Some(self.finish(query))
    }

    /// Returns true if more messages may follow.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// Takes over the signer of `other`, if it has one.
    pub(crate) fn move_signer(&mut self, other: &mut Response) {
        self.signer = other.signer.take().or(self.signer.take());
    }

    /// Removes the signer, before the response is reused for another query.
    pub(crate) fn clear_signer(&mut self) {
        self.signer = None;
    }

    /// Writes the response in wire form: truncated to the client's size, with an OPT record if the query had one, and
    /// with a signature if a plugin set a signer. For a zone transfer, [`Response::finish_next`] writes the messages
    /// after the first.
    pub fn finish(&mut self, query: &Query) -> &[u8] {
        let Some(signer) = self.signer.take() else { return self.write_out(query, usize::from(query.size_max())) };
        let finished = self.write_out(query, usize::from(query.size_max()).saturating_sub(signer.room()));
        let finished_len = finished.len();
        let mut record = Vec::with_capacity(signer.room());
        signer.sign(finished, &mut record);
        holds(record.len() <= signer.room(), "a signature fits into the room that was kept for it");
        holds(finished_len == self.message.len(), "a signer does not change the message");
        if !record.is_empty() {
            self.message.push_behind(&record);
        }
        if self.more.is_some() {
            self.signer = Some(signer);
        }
        self.message.bytes_at(0..self.message.len())
    }

    /// Writes a copy of the message as [`Response::finish`] would now, but without a signature. It serves plugins that
    /// record responses, such as *dnstap*. `scratch` is the worker's scratch message.
    pub fn finish_copy<'s>(&mut self, query: &Query, scratch: &'s mut MessageBuf) -> &'s [u8] {
        scratch.copy_from(&self.message);
        core::mem::swap(&mut self.message, scratch);
        self.write_out(query, usize::from(query.size_max()));
        core::mem::swap(&mut self.message, scratch);
        scratch.bytes_at(0..scratch.len())
    }

    fn write_out(&mut self, query: &Query, limit: usize) -> &[u8] {
        holds(limit <= usize::from(query.size_max()), "a response is at most as long as the client accepts");
        let Some(asked) = query.opt() else {
            self.message.fit(limit);
            return self.message.finish(None, core::iter::empty());
        };
        let upper = (self.rcode.0 >> 4).min(0xff) as u8;
        let opt = Opt { udp_size: UDP_SIZE, extended_rcode: upper, version: 0, dnssec_ok: asked.dnssec_ok };
        let limit = limit.saturating_sub(OPT_FIXED_LEN);
        self.message.fit(limit);
        let mut ede = [0; EDE_LEN_MAX];
        let data = self.ede().map(|code| ede_data(code, self.ede_text(), &mut ede));
        let ede = data.map(|data| (OptionCode::EXTENDED_ERROR, data));
        let options = self.options.iter().map(|(code, data)| (*code, data.as_slice())).chain(ede);
        let room = Cell::new(limit.saturating_sub(self.message.len()));
        let fitting = options.take_while(|(_, data)| {
            let left = room.get().checked_sub(data.len() + OPTION_HEADER_LEN);
            room.set(left.unwrap_or(room.get()));
            left.is_some()
        });
        // The padding fills what the other options leave, so it comes last (RFC 8467 §3). Everything that is not room
        // is part of the message, the signature too.
        let size_max = usize::from(query.size_max());
        let padding = core::iter::once_with(|| padding(size_max - room.get(), room.get())).flatten();
        let padding = padding.take(usize::from(query.wants_padding()));
        self.message.finish(Some(opt), fitting.chain(padding))
    }
}

/// Padding option that fills a message of `length` bytes to whole blocks, or to the maximum length of a message if
/// there is less `room`.
fn padding(length: usize, room: usize) -> Option<(OptionCode, &'static [u8])> {
    let room = room.checked_sub(OPTION_HEADER_LEN)?;
    let length = length + OPTION_HEADER_LEN;
    let missing = length.next_multiple_of(PADDING_BLOCK) - length;
    PADDING.get(..missing.min(room)).map(|data| (OptionCode::PADDING, data))
}

/// First Extended DNS Error in the data of an OPT record, with its text cut to [`EDE_TEXT_MAX`] bytes.
fn ede_in(data: &[u8]) -> Option<(EdeCode, Cow<'static, str>)> {
    let (_, data) = wire::options(data).find(|(code, _)| *code == OptionCode::EXTENDED_ERROR)?;
    let (code, text) = data.split_first_chunk::<2>()?;
    let text = String::from_utf8_lossy(&text[..text.len().min(EDE_TEXT_MAX)]);
    Some((EdeCode(u16::from_be_bytes(*code)), if text.is_empty() { "".into() } else { text.into_owned().into() }))
}

/// Data of an Extended DNS Error option (RFC 8914 §2): code and text.
fn ede_data<'b>(code: EdeCode, text: &str, buffer: &'b mut [u8; EDE_LEN_MAX]) -> &'b [u8] {
    let end = (0..=text.len().min(EDE_TEXT_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    buffer[..2].copy_from_slice(&code.0.to_be_bytes());
    buffer[2..2 + end].copy_from_slice(&text.as_bytes()[..end]);
    &buffer[..2 + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_fills_whole_blocks_or_the_room_that_is_left() {
        let len = |length, room| padding(length, room).map(|(_, data)| data.len());
        assert_eq!(len(100, 60_000), Some(468 - 100 - OPTION_HEADER_LEN));
        assert_eq!(len(464, 60_000), Some(0));
        assert_eq!(len(465, 60_000), Some(2 * 468 - 465 - OPTION_HEADER_LEN));
        // The longest message has no multiple of the block length.
        assert_eq!(len(65_525, 10), Some(6));
        assert_eq!(len(65_532, 3), None);
    }
}
