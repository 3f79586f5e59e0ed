//! Allocation-free set that keeps duplicate records out of one answer.

use core::hash::{BuildHasher, Hash};
use core::net::IpAddr;

use foldhash::fast::FixedState;

/// Filter for items that were already written. Its "new" is always right, so only the other items are searched for in
/// the message.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack for the time of one answer")]
pub enum Seen {
    /// Few items: each one is searched for.
    Few,
    /// Many items: one bit per hash of an item seen so far.
    Many([u64; SEEN_WORDS]),
}

/// Words in the filter: 65,536 bits, so that with 4,000 items about one in sixteen is searched for in vain.
const SEEN_WORDS: usize = 1024;
/// Maximum number of items that are searched for one by one.
const FEW: usize = 24;

impl Seen {
    /// Creates a set for at most `count` items.
    pub fn new(count: usize) -> Seen {
        if count <= FEW { Seen::Few } else { Seen::Many([0; SEEN_WORDS]) }
    }

    /// Adds an item and returns true if it was not in the set. Calls `look`, which searches the message, if the filter
    /// cannot tell.
    pub fn is_new<T: Hash>(&mut self, thing: &T, look: impl FnOnce() -> bool) -> bool {
        let Seen::Many(words) = self else { return !look() };
        let hash = FixedState::default().hash_one(thing);
        let word = &mut words[(hash >> 6) as usize % SEEN_WORDS];
        let bit = 1 << (hash % 64);
        let maybe = *word & bit != 0;
        *word |= bit;
        !maybe || !look()
    }
}

/// Returns true if the data of a record is this address.
pub fn is_address(rdata: &[u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => rdata == v4.octets(),
        IpAddr::V6(v6) => rdata == v6.octets(),
    }
}
