//! One answer that is kept.

use core::hash::Hash;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use engine::{Moment, Query, Response};
use rcu::Seed;
use wire::{Flags, Mark, Rcode};

use super::config::Prefetch;

/// A refresh takes no longer, whatever becomes of it: more than any upstream is given.
const REFRESH_MAX: Duration = Duration::from_secs(10);

/// What an entry is found by: the question, and the bits that change its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    name: &'a [u8],
    qtype: u16,
    qclass: u16,
    dnssec_ok: bool,
    checking_disabled: bool,
}

impl<'a> Key<'a> {
    pub(super) fn of(query: &'a Query) -> Key<'a> {
        Key {
            name: query.key().octets(),
            qtype: query.qtype.0,
            qclass: query.qclass.0,
            dnssec_ok: query.dnssec_ok,
            checking_disabled: query.flags().checking_disabled(),
        }
    }
}

/// An answer that is kept: its records as they stand behind a question of this length.
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
    stored: Moment,
    /// Its life, in seconds.
    ttl: u32,
    /// Hits with no gap that was too long, and when the last one was.
    hits: AtomicU32,
    hit_last: AtomicU64,
    /// Somebody asks for it anew, and may be taken to do so until this.
    refreshing_until: AtomicU64,
    /// It was asked for in vain: not again before this.
    refresh_after: AtomicU64,
}

impl Entry {
    /// Keeps an answer for `ttl` seconds from `now` on.
    pub(super) fn new(query: &Query, response: &Response, ttl: u32, now: Moment) -> Entry {
        let Key { name, qtype, qclass, dnssec_ok, checking_disabled } = Key::of(query);
        Entry {
            name: name.into(),
            qtype,
            qclass,
            dnssec_ok,
            checking_disabled,
            flags: response.message.flags(),
            rcode: response.rcode(),
            records: response.message.records_octets().into(),
            marks: response.message.marks().into(),
            stored: now,
            ttl,
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

    /// Octets that it takes, roughly: with what an allocator adds.
    pub(super) fn octets(&self) -> usize {
        const OVERHEAD: usize = 64;
        size_of::<Entry>() + self.name.len() + self.records.len() + size_of_val(&*self.marks) + OVERHEAD
    }

    /// What is left of its life; `None` if that is over.
    pub(super) fn left(&self, now: Moment) -> Option<u32> {
        let age = u32::try_from(now.since(self.stored).as_secs()).unwrap_or(u32::MAX);
        self.ttl.checked_sub(age).filter(|left| *left > 0)
    }

    /// Whether it is of use still, if entries are for `keep` after their end.
    pub(super) fn is_of_use(&self, now: Moment, keep: Duration) -> bool {
        now.since(self.stored) < Duration::from_secs(self.ttl.into()) + keep
    }

    /// The response code that it answers with.
    pub(super) fn rcode(&self) -> Rcode {
        self.rcode
    }

    /// The time to live that it came with.
    pub(super) fn ttl(&self) -> u32 {
        self.ttl
    }

    /// Puts its records in the response, all with this time to live.
    pub(super) fn restore(&self, response: &mut Response, ttl: u32) {
        response.message.restore(&self.records, &self.marks);
        response.message.set_ttls(ttl);
        let flags = response.message.header.flags;
        response.message.header.flags = flags
            .with_authoritative(true)
            .with_recursion_available(self.flags.recursion_available())
            .with_authentic_data(self.flags.authentic_data());
        response.set_rcode(self.rcode);
    }

    /// Counts a hit; says whether it is time to ask for it anew, which is said once.
    pub(super) fn hit(&self, prefetch: Prefetch, left: u32, now: Moment) -> bool {
        if prefetch.amount == 0 {
            return false;
        }
        let last = Moment::from_nanos(self.hit_last.swap(now.nanos(), Ordering::Relaxed));
        if now.since(last) > prefetch.within {
            self.hits.store(0, Ordering::Relaxed);
        }
        let hits = self.hits.fetch_add(1, Ordering::Relaxed) + 1;
        let threshold = (u64::from(self.ttl) * u64::from(prefetch.percentage)).div_ceil(100);
        hits >= prefetch.amount && u64::from(left) <= threshold && self.begin_refresh(now)
    }

    /// Whether a refresh may begin: none is on its way, and none failed a moment ago.
    ///
    /// One that never came to an end holds the next one up for a while only.
    pub(super) fn begin_refresh(&self, now: Moment) -> bool {
        let until = self.refreshing_until.load(Ordering::Relaxed);
        let free = now.nanos() >= until && !self.is_held_back(now);
        let next = (now + REFRESH_MAX).nanos();
        free && self.refreshing_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether it was asked for in vain a moment ago.
    pub(super) fn is_held_back(&self, now: Moment) -> bool {
        now.nanos() < self.refresh_after.load(Ordering::Relaxed)
    }

    /// A refresh has brought nothing better: the next one not before `at`.
    pub(super) fn end_refresh(&self, at: Moment) {
        self.refresh_after.store(at.nanos(), Ordering::Relaxed);
        self.refreshing_until.store(0, Ordering::Relaxed);
    }

    /// Takes over the hits of the entry that this one replaces.
    pub(super) fn inherit(&self, before: &Entry) {
        self.hits.store(before.hits.load(Ordering::Relaxed), Ordering::Relaxed);
        self.hit_last.store(before.hit_last.load(Ordering::Relaxed), Ordering::Relaxed);
    }
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
