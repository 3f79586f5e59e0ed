//! Random case of the names in queries, as additional bits that an attacker must guess (draft-vixie-dnsext-dns0x20-00).
//!
//! Most servers copy the question byte by byte, so the reply has the case of the query. Some change it. A reply with
//! another case is not used: the query is repeated from other ports, with other message IDs and another case. If
//! [`AGREEING`] replies in a row say the same, the upstream changes the case, and nobody forges replies.
//!
//! ```text
//!            reply with the case of the query ──────────────────────────► Kept
//!   query ──┤                              ┌─ fewer than three in a row ─► Repeat
//!            reply with another case ──────┤  three that agree ──────────► Changed
//!                                          └─ not as the one before ─────► Forged
//! ```

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use host::Instant;
use wire::{HEADER_LEN, Reply, question_end};

/// Replies with another case that must agree. As many as Unbound sends to each server (`use-caps-for-id`).
const AGREEING: u32 = 3;
/// Time for which names keep their case in queries to an upstream that changes it. Its successor may not.
const CHANGES_FOR: Duration = Duration::from_secs(15 * 60);
/// Bit that differs between the upper and the lower case of a letter.
const CASE_BIT: u8 = 0x20;

/// Returns a query whose name has random case. Queries without a name with letters are copied.
#[must_use]
pub fn with_random_case(query: &[u8], mut random: impl FnMut() -> u64) -> Vec<u8> {
    let mut query = query.to_vec();
    let end = question_end(&query).unwrap_or(HEADER_LEN);
    let (mut bits, mut left) = (0, 0);
    // Length bytes, and the bytes of type and class, are below `A`: a label has 63 bytes at most.
    let name = query.get_mut(HEADER_LEN..end.saturating_sub(4)).unwrap_or_default();
    for letter in name.iter_mut().filter(|byte| byte.is_ascii_alphabetic()) {
        if left == 0 {
            (bits, left) = (random(), u64::BITS);
        }
        *letter ^= if bits & 1 == 1 { CASE_BIT } else { 0 };
        (bits, left) = (bits >> 1, left - 1);
    }
    query
}

/// Decision about a reply to a query with random case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseVerdict {
    /// Use it: it has the case of the query.
    Kept,
    /// Use it: the upstream changes the case.
    Changed,
    /// Send the query again.
    Repeat,
    /// Use neither this reply nor the one before: they differ.
    Forged,
}

/// Replies to one query with random case.
#[derive(Debug, Default)]
pub struct CaseCheck {
    /// What the last reply with another case said.
    last: Option<Content>,
    agreeing: u32,
}

/// Response code, flags and answers of a reply, without the case, the order and the TTLs.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    rcode: u16,
    is_truncated: bool,
    answers: Vec<(u16, Vec<u8>)>,
}

impl CaseCheck {
    /// Decides about the reply to a query.
    pub fn judge(&mut self, query: &[u8], reply: &Reply) -> CaseVerdict {
        let question = HEADER_LEN..question_end(query).unwrap_or(HEADER_LEN);
        if query.get(question.clone()) == reply.bytes().get(question) {
            return CaseVerdict::Kept;
        }
        let content = Content::of(reply);
        if self.last.as_ref().is_some_and(|last| *last != content) {
            return CaseVerdict::Forged;
        }
        self.last = Some(content);
        self.agreeing += 1;
        if self.agreeing < AGREEING { CaseVerdict::Repeat } else { CaseVerdict::Changed }
    }
}

impl Content {
    fn of(reply: &Reply) -> Content {
        let mut answers = Vec::new();
        if let Ok(message) = reply.message() {
            let records = message.records().take(usize::from(reply.header().answers));
            answers.extend(records.map(|record| (record.rtype().0, record.rdata().to_ascii_lowercase())));
        }
        answers.sort_unstable();
        Content { rcode: reply.rcode().0, is_truncated: reply.is_truncated(), answers }
    }
}

/// Memory of whether an upstream changes the case, shared by all threads.
#[derive(Debug, Default)]
pub struct CaseMemory {
    /// Time until which it does, in seconds.
    until: AtomicU64,
}

impl CaseMemory {
    /// Records that the upstream changes the case.
    pub fn note_changed(&self, now: Instant) {
        self.until.store((now + CHANGES_FOR).nanos(), Ordering::Relaxed);
    }

    /// Returns true if names in queries should have random case.
    #[must_use]
    pub fn is_kept(&self, now: Instant) -> bool {
        now.nanos() >= self.until.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Header, MessageBuf, Name, Type};

    fn query(name: &str) -> Vec<u8> {
        let mut message = MessageBuf::new();
        message.start(Header::default(), Some((Name::from_text(name).unwrap().as_ref(), Type::A, Class::IN)));
        message.finish(None, core::iter::empty()).to_vec()
    }

    /// Returns a reply with these addresses, to the query as it is.
    fn reply(query: &[u8], addresses: &[u8]) -> Reply {
        let mut bytes = query.to_vec();
        (bytes[2], bytes[7]) = (0x80, u8::try_from(addresses.len()).unwrap());
        for (ttl, address) in (1..).zip(addresses) {
            bytes.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4, 192, 0, 2, *address]);
        }
        Reply::parse(bytes).unwrap()
    }

    #[test]
    fn letters_of_the_name_alone_get_random_case() {
        let query = query("www-1.a_[z].Example.org.");
        let inverted = with_random_case(&query, || u64::MAX);
        assert_eq!(inverted[HEADER_LEN..], *b"\x05WWW-1\x05A_[Z]\x07eXAMPLE\x03ORG\0\0\x01\0\x01");
        assert_eq!(with_random_case(&query, || 0), query);
        assert_eq!(with_random_case(b"short", || 0), b"short");
        // A long name takes several numbers.
        let long = super::tests::query(&format!("{0}.{0}.{0}.", "x".repeat(63)));
        let mut numbers = [u64::MAX, 0, u64::MAX].into_iter();
        let changed = with_random_case(&long, || numbers.next().unwrap());
        assert_eq!(changed.iter().filter(|byte| **byte == b'X').count(), 64 + 189 - 128);
    }

    #[test]
    fn a_reply_with_the_case_of_the_query_is_used() {
        let query = query("wWw.tEst.");
        assert_eq!(CaseCheck::default().judge(&query, &reply(&query, &[1])), CaseVerdict::Kept);
        // Names in its records that point to the question get the case of the client too.
        let written = super::tests::query("www.test.");
        assert_eq!(reply(&query, &[1]).with_case_of(&written), reply(&written, &[1]));
        let other = super::tests::query("www.best.");
        assert_eq!(reply(&query, &[1]).with_case_of(&other), reply(&query, &[1]));
    }

    #[test]
    fn three_replies_that_agree_are_used_in_any_order_and_with_any_ttl() {
        let mut check = CaseCheck::default();
        let verdicts =
            [[1, 2], [2, 1], [1, 2]].map(|answers| check.judge(&query("wWw."), &reply(&query("www."), &answers)));
        assert_eq!(verdicts, [CaseVerdict::Repeat, CaseVerdict::Repeat, CaseVerdict::Changed]);
    }

    #[test]
    fn replies_that_differ_are_not_used() {
        let mut check = CaseCheck::default();
        let verdicts = [[1], [6]].map(|answers| check.judge(&query("wWw."), &reply(&query("www."), &answers)));
        assert_eq!(verdicts, [CaseVerdict::Repeat, CaseVerdict::Forged]);
        // The forged reply comes first, and the right one has the case of its query.
        let mut check = CaseCheck::default();
        assert_eq!(check.judge(&query("wWw."), &reply(&query("www."), &[6])), CaseVerdict::Repeat);
        assert_eq!(check.judge(&query("WWw."), &reply(&query("WWw."), &[1])), CaseVerdict::Kept);
    }

    #[test]
    fn an_upstream_that_changes_the_case_is_tried_again_after_fifteen_minutes() {
        let (memory, start) = (CaseMemory::default(), Instant::START + Duration::from_secs(1000));
        assert!(memory.is_kept(Instant::START));
        memory.note_changed(start);
        assert!(!memory.is_kept(start + CHANGES_FOR - Duration::from_secs(1)) && memory.is_kept(start + CHANGES_FOR));
    }
}
