//! A cached response.

use core::hash::Hash;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use engine::{Instant, Query, Response};
use host::invariant::holds;
use host::planted::{Bug, is_planted};
use rcu::Seed;
use wire::{Flags, Mark, Rcode, Type};

use super::manifest::Prefetch;

/// Maximum duration of a refresh, longer than any upstream timeout. After it, another refresh may start.
const REFRESH_MAX: Duration = Duration::from_secs(10);

/// Maximum length of the cause of a failure in bytes: an address and the text of an error.
const CAUSE_MAX: usize = 200;

/// Length of a question in bytes besides its name: type and class.
const QUESTION_FIXED_LEN: usize = 4;

/// Lookup key of an entry: the question and the header bits that change its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    name: &'a [u8],
    qtype: u16,
    qclass: u16,
    pub(super) dnssec_ok: bool,
    pub(super) checking_disabled: bool,
}

impl<'a> Key<'a> {
    pub(super) fn of(query: &'a Query) -> Key<'a> {
        Key {
            name: query.key().as_bytes(),
            qtype: query.qtype.0,
            qclass: query.qclass.0,
            dnssec_ok: query.dnssec_ok,
            checking_disabled: query.flags().checking_disabled(),
        }
    }
}

/// A cached response. Its records are stored as they follow a question of this length.
pub(super) struct Entry {
    name: Box<[u8]>,
    qtype: u16,
    qclass: u16,
    dnssec_ok: bool,
    checking_disabled: bool,
    flags: Flags,
    rcode: Rcode,
    records: Box<[u8]>,
    marks: Box<[Mark]>,
    stored: Instant,
    /// TTL in seconds.
    ttl: u32,
    /// Cause of a failure, for the operator. Boxed twice, so that it takes one word in all other entries.
    cause: Option<Box<Box<str>>>,
    /// Number of hits without a gap longer than `within`, and the time of the last hit.
    hits: AtomicU32,
    hit_last: AtomicU64,
    /// Time until which a running refresh blocks others.
    refreshing_until: AtomicU64,
    /// Time before which no refresh may start, because the last one failed.
    refresh_after: AtomicU64,
}

impl Entry {
    /// Creates an entry that is valid for `ttl` seconds from `now`.
    pub(super) fn new(query: &Query, response: &Response, ttl: u32, now: Instant) -> Entry {
        let Key { name, qtype, qclass, dnssec_ok, checking_disabled } = Key::of(query);
        holds(ttl > 0, "an entry is valid for some time");
        holds(!response.is_dropped(), "a response that is not sent is not stored");
        holds(
            response.message.question().len() == name.len() + QUESTION_FIXED_LEN,
            "records follow the question of the key",
        );
        Entry {
            name: name.into(),
            qtype,
            qclass,
            dnssec_ok,
            checking_disabled,
            flags: response.message.flags(),
            rcode: response.rcode(),
            records: response.message.records_bytes().into(),
            marks: response.message.marks().into(),
            stored: now,
            ttl,
            cause: cause_of(query, response).map(Box::new),
            hits: AtomicU32::new(0),
            hit_last: AtomicU64::new(now.nanos()),
            refreshing_until: AtomicU64::new(0),
            refresh_after: AtomicU64::new(0),
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            name: &self.name,
            qtype: self.qtype,
            qclass: self.qclass,
            dnssec_ok: self.dnssec_ok,
            checking_disabled: self.checking_disabled,
        }
    }

    /// Returns the name in the question, in lower case.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the type in the question.
    pub(super) fn qtype(&self) -> Type {
        Type(self.qtype)
    }

    /// Returns the time since it was stored.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.since(self.stored)
    }

    /// Returns the approximate size in bytes, including the overhead of the allocator.
    pub(super) fn size(&self) -> usize {
        const OVERHEAD: usize = 64;
        size_of::<Entry>()
            + self.name.len()
            + self.records.len()
            + size_of_val(&*self.marks)
            + self.cause().map_or(0, str::len)
            + OVERHEAD
    }

    /// Returns the remaining TTL, or `None` if it has expired.
    pub(super) fn left(&self, now: Instant) -> Option<u32> {
        let age = u32::try_from(now.since(self.stored).as_secs()).unwrap_or(u32::MAX);
        self.ttl.checked_sub(age).filter(|left| *left > 0)
    }

    /// Returns true if the entry may still be used when entries are kept for `keep` after they expire. A failure is
    /// not: it would be served for longer than RFC 9520 §3.2 permits, while its upstream works again.
    pub(super) fn is_of_use(&self, now: Instant, keep: Duration) -> bool {
        let keep = if self.rcode == Rcode::SERVFAIL { Duration::ZERO } else { keep };
        now.since(self.stored) < Duration::from_secs(self.ttl.into()) + keep || is_planted(Bug::StaleForever)
    }

    /// Returns the response code.
    pub(super) fn rcode(&self) -> Rcode {
        self.rcode
    }

    /// Returns the cause of a failure, if it is known.
    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.as_deref().map(|cause| &**cause)
    }

    /// Returns the original TTL.
    pub(super) fn ttl(&self) -> u32 {
        self.ttl
    }

    /// Writes the records into the response, all with the given TTL.
    pub(super) fn restore(&self, response: &mut Response, ttl: u32) {
        let question_len = response.message.question().len();
        holds(question_len == self.name.len() + QUESTION_FIXED_LEN, "records follow a question of their length");
        response.message.restore(&self.records, &self.marks);
        response.message.set_ttls(ttl);
        let flags = response.message.header.flags;
        response.message.header.flags = flags
            .with_authoritative(self.flags.authoritative())
            .with_recursion_available(self.flags.recursion_available())
            .with_authentic_data(self.flags.authentic_data());
        response.set_rcode(self.rcode);
    }

    /// Counts a hit. Returns true, once, if the entry should be prefetched.
    pub(super) fn hit(&self, prefetch: Prefetch, left: u32, now: Instant) -> bool {
        if prefetch.amount == 0 {
            return false;
        }
        let last = Instant::from_nanos(self.hit_last.swap(now.nanos(), Ordering::Relaxed));
        if now.since(last) > prefetch.within {
            self.hits.store(0, Ordering::Relaxed);
        }
        let hits = self.hits.fetch_add(1, Ordering::Relaxed) + 1;
        holds(left <= self.ttl, "the TTL of an entry does not grow");
        let threshold = (u64::from(self.ttl) * u64::from(prefetch.percentage)).div_ceil(100);
        hits >= prefetch.amount && u64::from(left) <= threshold && self.begin_refresh(now)
    }

    /// Starts a refresh. Returns false if another one is running or the last one failed a moment ago.
    ///
    /// A refresh that never completes blocks the next one only for a limited time.
    pub(super) fn begin_refresh(&self, now: Instant) -> bool {
        let until = self.refreshing_until.load(Ordering::Relaxed);
        let free = now.nanos() >= until && !self.is_held_back(now);
        // Of two workers that see the same end of the last refresh, one wins the exchange below. A load and a store
        // would let both refresh.
        let next = (now + REFRESH_MAX).nanos();
        holds(next > until || !free, "a refresh ends after the one before");
        free && self.refreshing_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns true if a refresh failed a moment ago.
    pub(super) fn is_held_back(&self, now: Instant) -> bool {
        now.nanos() < self.refresh_after.load(Ordering::Relaxed)
    }

    /// Records that a refresh failed. The next one may start at `at`.
    pub(super) fn end_refresh(&self, at: Instant) {
        self.refresh_after.store(at.nanos(), Ordering::Relaxed);
        self.refreshing_until.store(0, Ordering::Relaxed);
    }

    /// Takes over the hits of the entry that this one replaces.
    pub(super) fn inherit(&self, before: &Entry) {
        holds(self.key() == before.key(), "an entry replaces one for the same question");
        self.hits.store(before.hits.load(Ordering::Relaxed), Ordering::Relaxed);
        self.hit_last.store(before.hit_last.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Returns the cause of a failure: the upstream that was asked last, and its error or Extended DNS Error.
fn cause_of(query: &Query, response: &Response) -> Option<Box<str>> {
    if response.rcode() != Rcode::SERVFAIL {
        return None;
    }
    let failed = response.failure().map(|failure| &*failure.cause).filter(|cause| !cause.is_empty());
    let text = failed.unwrap_or_else(|| response.ede_text());
    let upstream = query.upstream().map(|address| address.to_string());
    let mut cause = match upstream.filter(|address| !text.contains(address.as_str())) {
        Some(address) if text.is_empty() => format!("{address} answered SERVFAIL"),
        Some(address) => format!("{address}: {text}"),
        None if text.is_empty() => return None,
        None => text.to_owned(),
    };
    cause.truncate(cause.floor_char_boundary(CAUSE_MAX));
    holds((1..=CAUSE_MAX).contains(&cause.len()), "the cause of a failure is a bounded text");
    Some(cause.into())
}

impl rcu::Entry for Entry {
    fn hash(&self, seed: &Seed) -> u64 {
        hash(&self.key(), seed)
    }
}

pub(super) fn hash(key: &Key<'_>, seed: &Seed) -> u64 {
    use core::hash::BuildHasher;
    seed.hash_one(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Failure;
    use wire::{Class, EdeCode, Name, Owner, Section};

    fn query() -> Query {
        let mut query = Query::default();
        query.set_name(Name::from_text("www.test.").unwrap().as_ref());
        query
    }

    fn response_to(query: &Query) -> Response {
        let mut response = Response::default();
        response.begin(query);
        response.message.set_limit(usize::from(u16::MAX));
        response
    }

    #[test]
    fn has_the_size_of_its_parts() {
        const OVERHEAD: usize = 64;
        let query = query();
        let size = |response: &Response| Entry::new(&query, response, 60, Instant::START).size();
        let mut response = response_to(&query);
        let fixed = size_of::<Entry>() + OVERHEAD + query.key().as_bytes().len();
        assert_eq!(size(&response), fixed);

        for _ in 0..2 {
            response.message.push(Section::Answer, Owner::Question, (Type::TXT, Class::IN, 60), |rdata| {
                rdata.bytes(&[0; 100]);
            });
        }
        // The owner is a pointer of two bytes, before ten bytes of type, class, TTL and length.
        assert_eq!(size(&response), fixed + 2 * (112 + size_of::<Mark>()));

        let failure = Failure::servfail(EdeCode::NETWORK_ERROR, "a cause of 22 bytes...");
        response.fail(&query, failure);
        assert_eq!(size(&response), fixed + 22);
    }

    #[test]
    fn the_cause_of_a_failure_names_the_upstream_and_its_error() {
        let (without, with) = (query(), query());
        with.set_upstream(([192, 0, 2, 53], 53).into());
        let cause = |query: &Query, failure: Option<Failure>, reported: &'static str| {
            let mut response = response_to(query);
            response.set_rcode(Rcode::SERVFAIL);
            response.set_ede(EdeCode::OTHER, reported);
            failure.into_iter().for_each(|failure| response.set_failure(failure));
            cause_of(query, &response).map(String::from)
        };
        let failed = |cause: &'static str| Some(Failure::servfail(EdeCode::OTHER, cause));
        for (query, failure, reported, expected) in [
            (&without, None, "", None),
            (&without, failed(""), "", None),
            (&without, failed(""), "bad signature", Some("bad signature")),
            (&without, failed("i/o timeout"), "bad signature", Some("i/o timeout")),
            (&with, None, "", Some("192.0.2.53:53 answered SERVFAIL")),
            (&with, None, "bad signature", Some("192.0.2.53:53: bad signature")),
            (&with, failed("i/o timeout"), "", Some("192.0.2.53:53: i/o timeout")),
            (&with, failed("read udp 192.0.2.53:53: i/o timeout"), "", Some("read udp 192.0.2.53:53: i/o timeout")),
        ] {
            assert_eq!(cause(query, failure, reported).as_deref(), expected);
        }
        let long = failed(Box::leak("ä".repeat(CAUSE_MAX).into_boxed_str()));
        assert_eq!(cause(&without, long, ""), Some("ä".repeat(CAUSE_MAX / 2)));
        assert!(cause_of(&with, &response_to(&with)).is_none(), "only a failure has a cause");
    }
}
