//! No record twice: a set with the records of one answer, which allocates nothing.

use core::hash::{BuildHasher, Hash};
use core::net::IpAddr;

use foldhash::fast::FixedState;

/// Which of many things have been written already: a filter that says "new" for certain, so that only the few others
/// are looked for in the message.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack for the time of one answer")]
pub(crate) enum Seen {
    /// So few things that each is looked for.
    Few,
    /// One bit for each of the hashes of the things seen.
    Many([u64; SEEN_WORDS]),
}

/// Words in the filter: 64 Ki bits, so that of 4,000 things one in sixteen is looked for in vain.
const SEEN_WORDS: usize = 1024;
/// So few things are looked for one by one.
const FEW: usize = 24;

impl Seen {
    /// For so many things at most.
    pub(crate) fn new(count: usize) -> Seen {
        if count <= FEW { Seen::Few } else { Seen::Many([0; SEEN_WORDS]) }
    }

    /// Whether this one was not there before; `look` says so when the filter cannot.
    pub(crate) fn is_new<T: Hash>(&mut self, thing: &T, look: impl FnOnce() -> bool) -> bool {
        let Seen::Many(words) = self else { return !look() };
        let hash = FixedState::default().hash_one(thing);
        let word = &mut words[(hash >> 6) as usize % SEEN_WORDS];
        let bit = 1 << (hash % 64);
        let maybe = *word & bit != 0;
        *word |= bit;
        !maybe || !look()
    }
}

/// Whether the data of a record is this address.
pub(crate) fn is_address(rdata: &[u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => rdata == v4.octets(),
        IpAddr::V6(v6) => rdata == v6.octets(),
    }
}
