//! Record of a finished query: a fixed number of words, so that it can be copied between threads without allocation.
//!
//! | word | content |
//! |---|---|
//! | 0 | time of arrival in nanoseconds |
//! | 1 | duration in microseconds (32 bits), response code (12 bits), words of the text (4 bits), type |
//! | 2 | reasons, flags (8 bits), transport (4 bits), attempts at upstreams (4 bits), answer records, EDE code + 1 |
//! | 3, 4 | name of the plugin |
//! | 5, 6 | address of the client |
//! | 7 | port of the client, port of the upstream, weight, length of the name (8 bits), length of the zone (8 bits) |
//! | 8, 9 | address of the upstream |
//! | from 10 | name in wire form, then the text of the Extended DNS Error in the words that are left |

use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use wire::{EdeCode, OptionCode, Rcode, Section, Type};

use crate::peer::Transport;
use crate::tap::{Answerers, Reasons};
use crate::trail::Asked;
use crate::transaction::{Progress, Transaction};
use host::{Clock, Instant};

/// Number of words of a record.
pub const WORDS: usize = 24;
const NAME_AT: usize = 10;
/// Maximum length in bytes of a name in a record. Names of Services and of ip6.arpa fit; the rest of longer ones is cut
/// off.
pub const NAME_MAX: usize = (WORDS - NAME_AT) * WORD;
/// Maximum length in bytes of the name of a plugin.
const PLUGIN_MAX: usize = 2 * WORD;
/// Maximum number of attempts that a record counts. Beyond it, nobody needs the exact number.
pub const ATTEMPTS_MAX: u8 = 15;
const WORD: usize = 8;
/// Bits of a response code with its extension (RFC 6891 §6.1.3), and of the number of words of a text.
const RCODE_MASK: u64 = 0xfff;
const TEXT_WORDS_MASK: u64 = 0xf;

// The fields of the words have room for their values.
const _: () = assert!((WORDS - NAME_AT) as u64 <= TEXT_WORDS_MASK);
const _: () = assert!(NAME_MAX <= u8::MAX as usize);
const _: () = assert!(ATTEMPTS_MAX < 16 && TRANSPORTS.len() <= 16);

/// Properties of a query and its response, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// The client got no response.
    pub const DROPPED: RecordFlags = RecordFlags(1);
    /// The response has the flag TC.
    pub const TRUNCATED: RecordFlags = RecordFlags(2);
    /// The message was not a query that could be read. Name and type are unknown.
    pub const UNREAD: RecordFlags = RecordFlags(4);
    /// The name is longer than [`NAME_MAX`].
    pub const NAME_CUT: RecordFlags = RecordFlags(8);
    /// The query is marked as a probe ([`OptionCode::PROBE`]).
    pub const PROBE: RecordFlags = RecordFlags(16);
    /// A plugin changed the question for the plugins after it.
    pub const REWRITTEN: RecordFlags = RecordFlags(32);
    /// Other upstreams were asked before the last one.
    pub const OTHER_UPSTREAMS: RecordFlags = RecordFlags(64);

    /// Returns true if all of these are set.
    #[must_use]
    pub const fn has(self, other: RecordFlags) -> bool {
        self.0 & other.0 == other.0
    }

    const fn with(self, other: RecordFlags, on: bool) -> RecordFlags {
        if on { RecordFlags(self.0 | other.0) } else { self }
    }
}

/// Record of a finished query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Reasons for the record.
    pub reasons: Reasons,
    /// Number of queries that it represents in the sample.
    pub weight: u32,
    /// Time of arrival.
    pub received: Instant,
    /// Time from the arrival to the response.
    pub took: Duration,
    /// Response code. For a dropped query, that which it would have had.
    pub rcode: Rcode,
    /// Type in the query.
    pub qtype: Type,
    /// Properties.
    pub flags: RecordFlags,
    /// Transport.
    pub transport: Transport,
    /// Number of records in the answer section.
    pub answers: u16,
    /// Extended DNS Error.
    pub ede: Option<EdeCode>,
    /// Client.
    pub client: SocketAddr,
    /// Upstream that was asked last for this query, if any.
    pub upstream: Option<SocketAddr>,
    /// Number of attempts at upstreams for this query, at most [`ATTEMPTS_MAX`].
    pub attempts: u8,
    plugin: [u8; PLUGIN_MAX],
    name: [u8; NAME_MAX],
    name_len: usize,
    zone_len: usize,
    /// Text of the Extended DNS Error, with zeros after it.
    ede_text: [u8; NAME_MAX],
}

const TRANSPORTS: [Transport; 6] =
    [Transport::Udp, Transport::Tcp, Transport::Grpc, Transport::Quic, Transport::Https, Transport::Https3];

impl Record {
    /// Reads a record. Words that are missing at the end are zeros.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Record {
        let mut whole = [0; WORDS];
        for (to, word) in whole.iter_mut().zip(words) {
            *to = *word;
        }
        let words = &whole;
        let [took, rcode, qtype] = [words[1] & 0xffff_ffff, part(words[1], 32), part(words[1], 48)];
        let number = |word: u64| u16::try_from(word & 0xffff).unwrap_or(u16::MAX);
        let upstream = SocketAddr::new(address([words[8], words[9]]), number(part(words[7], 16)));
        let mut record = Record {
            reasons: Reasons(number(words[2])),
            weight: u32::from(number(part(words[7], 32))),
            received: Record::received_in(words[0]),
            took: Duration::from_micros(took),
            rcode: Rcode(number(rcode & RCODE_MASK)),
            qtype: Type(number(qtype)),
            flags: RecordFlags(byte(words[2], 16)),
            transport: TRANSPORTS.get(usize::from(byte(words[2], 24) & 15)).copied().unwrap_or_default(),
            attempts: byte(words[2], 24) >> 4,
            answers: number(part(words[2], 32)),
            ede: number(part(words[2], 48)).checked_sub(1).map(EdeCode),
            client: SocketAddr::new(address([words[5], words[6]]), number(words[7])),
            upstream: (upstream.port() != 0).then_some(upstream),
            plugin: [0; PLUGIN_MAX],
            name: [0; NAME_MAX],
            name_len: usize::from(byte(words[7], 48)).min(NAME_MAX),
            zone_len: usize::from(byte(words[7], 56)),
            ede_text: [0; NAME_MAX],
        };
        unpack(&words[3..5], &mut record.plugin);
        unpack(&words[NAME_AT..], &mut record.name);
        record.name[record.name_len..].fill(0);
        unpack(&words[text_words(words)], &mut record.ede_text);
        record
    }

    /// Returns the time of arrival in the first word.
    pub(super) const fn received_in(word: u64) -> Instant {
        Instant::from_nanos(word)
    }

    /// Returns the words of a record without those that its name leaves unused.
    #[must_use]
    pub fn used(words: &[u64; WORDS]) -> &[u64] {
        &words[..text_words(words).end]
    }

    /// Text of the Extended DNS Error; empty if there was no room for it beside the name. A long one is cut off.
    #[must_use]
    pub fn ede_text(&self) -> &str {
        let len = self.ede_text.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
        match core::str::from_utf8(&self.ede_text[..len]) {
            Ok(text) => text,
            // The end of the room was within a character.
            Err(error) => core::str::from_utf8(&self.ede_text[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// Plugin that answered or failed; empty if none did.
    #[must_use]
    pub fn plugin(&self) -> &str {
        let len = self.plugin.iter().position(|byte| *byte == 0).unwrap_or(PLUGIN_MAX);
        core::str::from_utf8(&self.plugin[..len]).unwrap_or_default()
    }

    /// Name in the query in wire form, as the client wrote it. Its end is missing with [`RecordFlags::NAME_CUT`].
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_len]
    }

    /// Length in bytes of the zone of the plugin that answered, at the end of the whole name; 0 without a zone.
    #[must_use]
    pub const fn zone_len(&self) -> usize {
        self.zone_len
    }
}

/// Returns the range of the words of the text: those after the name.
fn text_words(words: &[u64; WORDS]) -> core::ops::Range<usize> {
    let name_len = usize::from(byte(words[7], 48)).min(NAME_MAX);
    let start = NAME_AT + name_len.div_ceil(WORD);
    let len = usize::from(byte(words[1], 40) >> 4);
    start..(start + len).min(WORDS)
}

/// Returns the byte of a word that starts at this bit.
const fn byte(word: u64, shift: u32) -> u8 {
    word.to_le_bytes()[(shift / 8) as usize]
}

const fn part(word: u64, shift: u32) -> u64 {
    word >> shift
}

fn address(words: [u64; 2]) -> IpAddr {
    let bits = u128::from(words[0]) << 64 | u128::from(words[1]);
    IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical()
}

/// Returns an address as two words: IPv4 in its IPv6 form.
fn address_words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    #[allow(clippy::cast_possible_truncation, reason = "the two halves")]
    [(bits >> 64) as u64, bits as u64]
}

fn unpack(words: &[u64], bytes: &mut [u8]) {
    for (chunk, word) in bytes.chunks_mut(WORD).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Writes bytes to words, the rest of the last word as zeros. Bytes that do not fit are left out.
fn pack(bytes: &[u8], words: &mut [u64]) {
    for (chunk, word) in bytes.chunks(WORD).zip(words) {
        let mut whole = [0; WORD];
        whole[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(whole);
    }
}

/// Query with its response.
pub(crate) struct Finished<'a> {
    pub(super) answerers: &'a dyn Answerers,
    pub(super) transaction: &'a Transaction,
    pub(super) progress: Progress,
    /// Clock, read only if a filter or the record needs the duration: that takes longer than most filters.
    pub(super) clock: &'a dyn Clock,
}

impl<'a> Finished<'a> {
    /// Plugin that answered or failed, with the length in bytes of its zone, or of that of the server block.
    pub(super) fn answerer(&self) -> Option<(&'a str, usize)> {
        self.answerers.answerer(self.transaction)
    }

    pub(super) fn is_unread(&self) -> bool {
        self.transaction.is_unread
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.progress == Progress::Dropped
    }

    /// Time from the arrival until now.
    pub(super) fn took(&self) -> Duration {
        self.clock.now().since(self.transaction.query.received)
    }

    fn is_probe(&self) -> bool {
        let query = &self.transaction.query;
        !self.is_unread() && query.request.options(&query.packet).any(|(code, _)| code == OptionCode::PROBE)
    }

    fn flags(&self, name_len: usize) -> RecordFlags {
        let Transaction { query, response, .. } = self.transaction;
        RecordFlags::default()
            .with(RecordFlags::DROPPED, self.is_dropped())
            .with(RecordFlags::TRUNCATED, !self.is_dropped() && response.will_truncate(query))
            .with(RecordFlags::UNREAD, self.is_unread())
            .with(RecordFlags::NAME_CUT, name_len > NAME_MAX)
            .with(RecordFlags::PROBE, self.is_probe())
            .with(RecordFlags::REWRITTEN, query.trail.was_rewritten)
            .with(RecordFlags::OTHER_UPSTREAMS, query.trail.asked.get().has_others)
    }

    /// Returns the record.
    pub(super) fn words(&self, reasons: Reasons, weight: u32) -> [u64; WORDS] {
        let Transaction { query, response, .. } = self.transaction;
        let name = if self.is_unread() { &[] } else { query.request.name.as_bytes() };
        let qtype = if self.is_unread() { Type(0) } else { query.request.qtype };
        let (plugin, zone_len) = self.answerer().unwrap_or_default();
        let Asked { last: upstream, attempts, .. } = query.trail.asked.get();
        let took = u64::try_from(self.took().as_micros()).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        let answers = response.message.section(Section::Answer).count().min(usize::from(u16::MAX));
        let transport = TRANSPORTS.iter().position(|known| *known == query.peer.transport).unwrap_or(0);
        let ede = response.ede().map_or(0, |ede| u64::from(ede.0) + 1);
        let text = response.ede_text().as_bytes();
        let text_at = NAME_AT + name.len().min(NAME_MAX).div_ceil(WORD);
        let text_len = text.len().div_ceil(WORD).min(WORDS - text_at);
        let mut words = [0; WORDS];
        words[0] = query.received.nanos();
        words[1] = took
            | (u64::from(response.rcode().0) & RCODE_MASK) << 32
            | (text_len as u64 & TEXT_WORDS_MASK) << 44
            | u64::from(qtype.0) << 48;
        words[2] = u64::from(reasons.0)
            | u64::from(self.flags(name.len()).0) << 16
            | (transport as u64) << 24
            | u64::from(attempts.min(ATTEMPTS_MAX)) << 28
            | (answers as u64) << 32
            | ede << 48;
        pack(plugin.as_bytes(), &mut words[3..5]);
        [words[5], words[6]] = address_words(query.peer.address.ip());
        words[7] = u64::from(query.peer.address.port())
            | u64::from(upstream.map_or(0, |upstream| upstream.port())) << 16
            | u64::from(weight.min(u32::from(u16::MAX))) << 32
            | (name.len().min(NAME_MAX) as u64) << 48
            | (zone_len.min(usize::from(u8::MAX)) as u64) << 56;
        if let Some(upstream) = upstream {
            [words[8], words[9]] = address_words(upstream.ip());
        }
        pack(name, &mut words[NAME_AT..]);
        pack(text, &mut words[text_at..]);
        words
    }
}
