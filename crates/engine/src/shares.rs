//! Fair shares of a limit: the queries that hold its slots, counted by client and by destination.
//!
//! Without shares, one client that floods a slow zone takes all slots, and the queries of other clients fail. With
//! shares, a client may hold at most a multiple of the number of free slots (dynamic threshold, Choudhury and Hahne
//! 1998). Some slots therefore always stay free for other clients:
//!
//! | greedy clients | slots of 1,000 that stay free, about |
//! |---|---|
//! | 1 | 100 |
//! | 10 | 33 |
//! | 100 | 11 |
//!
//! A destination is a group of servers that queries wait for, such as those of a line of *forward*. The number of slots
//! that its queries hold is limited in the same way. Without this limit, many clients that ask for a zone whose servers
//! are silent take all slots, and queries for all other zones fail. The share of a client is computed from the slots
//! that are left for its destination.
//!
//! The newest query of the greedy client loses, because no work has been done for it yet. Nothing is evicted, so a
//! decision takes no lock and costs the same for each query.
//!
//! Clients and destinations are counted in two rows of buckets with different hashes, of which the lower count is
//! valid (a count-min sketch). A destination may hold thousands of slots, so a client that meets one in both rows
//! counts as greedy: with ten destinations, six of a million clients do. The memory does not depend on the number of
//! clients, and somebody who forges source addresses cannot predict which buckets another client uses. While less than
//! a quarter of the slots is in use, clients and destinations are not counted, and the rows are not allocated.

use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv6Addr};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use host::invariant::{Expected as _, holds};
use host::planted::{Bug, is_planted};

use crate::ids::BlockId;

/// Rows of the sketch. With two, a client is counted too high only if it meets greedy clients in both.
const ROWS: usize = 2;
/// Buckets of a row. With 5,000 clients in flight, a bucket has one or two of them. The rows take 32 KiB.
const BUCKETS: usize = 4096;
/// Slots that a client may hold for each free one.
const PER_FREE_SLOT: u64 = 8;
/// Slots that the queries for a destination may hold for each free one: a single one leaves about a twentieth.
const PER_FREE_SLOT_OF_DESTINATION: u64 = 16;
/// Part of the limit that is given out without counting clients.
const UNCOUNTED_PART: u32 = 4;

/// Part of an IPv6 address that names the network of a client.
const PREFIX: u128 = u128::MAX << 64;

/// Limit of queries in flight, with fair shares for clients and destinations.
#[derive(Debug)]
pub struct FairShares {
    limit: u32,
    in_use: AtomicU32,
    counts: OnceLock<Box<[[AtomicU32; BUCKETS]; ROWS]>>,
    hash: RandomState,
}

/// Reason why a query gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareError {
    /// All slots are in use.
    Full,
    /// The client of the query holds more than its share.
    Greedy,
    /// The queries that wait for the same destination hold more than their share.
    Crowded,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShareError::Full => "all slots are in use",
            ShareError::Greedy => "the client of the query holds more than its share of the slots",
            ShareError::Crowded => "the queries for this destination hold more than their share of the slots",
        })
    }
}

impl Error for ShareError {}

/// Group of servers that queries wait for, such as those of a line of *forward*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Server block.
    pub block: BlockId,
    /// Index of the step.
    pub step: usize,
    /// Index of the group among those of the step ([`Plugin::destination`](crate::Plugin::destination)).
    pub group: usize,
}

/// Slot of one query; dropping it frees the slot.
#[derive(Debug)]
pub struct Share {
    shares: Arc<FairShares>,
    /// Buckets of the destination and of the client in which the slot is counted.
    counted_in: [Option<[usize; ROWS]>; 2],
}

impl FairShares {
    /// Creates a limit with this number of slots.
    #[must_use]
    pub fn new(limit: u32) -> Arc<FairShares> {
        Arc::new(FairShares { limit, in_use: AtomicU32::new(0), counts: OnceLock::new(), hash: RandomState::default() })
    }

    /// Returns the number of slots.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a slot for a query of a client. An IPv6 client is its network of 64 bits. Without a destination, all
    /// queries wait for the same.
    ///
    /// # Errors
    /// No slot is free, or none for this client or destination.
    pub fn acquire(self: &Arc<Self>, client: IpAddr, destination: Option<Destination>) -> Result<Share, ShareError> {
        let before = self.in_use.fetch_add(1, Ordering::Relaxed);
        holds(before < u32::MAX - 1, "each slot in use is counted once");
        let mut share = Share { shares: Arc::clone(self), counted_in: [None; 2] };
        if before >= self.limit {
            if is_planted(Bug::KeepsSlot) {
                self.in_use.fetch_add(1, Ordering::Relaxed);
            }
            return Err(ShareError::Full);
        }
        if before < self.limit / UNCOUNTED_PART {
            return Ok(share);
        }
        // What exceeds its share is given back when the share is dropped.
        let mut free = self.limit - before;
        if let Some(destination) = destination {
            let buckets = self.buckets(self.hash.hash_one(destination));
            share.counted_in[0] = Some(buckets);
            free = left(free, self.count(buckets)).ok_or(ShareError::Crowded)?;
        }
        let buckets = self.buckets(self.hash.hash_one(client_network(client)));
        share.counted_in[1] = Some(buckets);
        if self.count(buckets) < self.held_max(free) { Ok(share) } else { Err(ShareError::Greedy) }
    }

    /// Counts a slot in these buckets. Returns how many were counted there before.
    fn count(&self, buckets: [usize; ROWS]) -> u32 {
        let rows = self.counts().iter().zip(buckets);
        rows.map(|(row, bucket)| row[bucket].fetch_add(1, Ordering::Relaxed)).min().unwrap_or(0)
    }

    /// Returns the number of slots that one client may hold while `free` ones are left.
    ///
    /// In the last eighth, it falls with the square of the free slots, so that some stay free for others even if very
    /// many clients are greedy. It is at least 1: while a slot is free, a client that holds none gets one.
    fn held_max(&self, free: u32) -> u32 {
        holds(free > 0 && free <= self.limit, "a client asks for a slot that is free");
        let (free, limit) = (u64::from(free), u64::from(self.limit));
        let steep = (PER_FREE_SLOT * free).pow(2) / limit.max(1);
        u32::try_from((PER_FREE_SLOT * free).min(steep).max(1)).unwrap_or(u32::MAX)
    }

    fn counts(&self) -> &[[AtomicU32; BUCKETS]; ROWS] {
        self.counts.get_or_init(|| Box::new([const { [const { AtomicU32::new(0) }; BUCKETS] }; ROWS]))
    }

    fn buckets(&self, hash: u64) -> [usize; ROWS] {
        let bucket = |hash: u64| usize::try_from(hash % BUCKETS as u64).unwrap_or(0);
        [bucket(hash), bucket(hash / BUCKETS as u64)]
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let in_use = self.shares.in_use.fetch_sub(1, Ordering::Relaxed);
        holds(in_use > 0, "a slot that is freed is in use");
        for buckets in self.counted_in.into_iter().flatten() {
            let counts = self.shares.counts.get().expected("the counts of a client that is counted");
            for (row, bucket) in counts.into_iter().flat_map(|rows| rows.iter()).zip(buckets) {
                let held = row[bucket].fetch_sub(1, Ordering::Relaxed);
                holds(held > 0, "a slot that is freed is counted for its client and its destination");
            }
        }
    }
}

/// Returns how many of the `free` slots are left for a destination that holds `held`; `None` without any. Each that it
/// takes is one less that is free, so it comes to its limit sooner than the others do.
fn left(free: u32, held: u32) -> Option<u32> {
    let room = (PER_FREE_SLOT_OF_DESTINATION * u64::from(free)).checked_sub(u64::from(held))?;
    let left = room.div_ceil(PER_FREE_SLOT_OF_DESTINATION + 1);
    holds(left <= u64::from(free), "a destination gets slots that are free");
    u32::try_from(left).ok().filter(|left| *left > 0)
}

/// Returns the address by which a client is counted: its IPv4 address, or its IPv6 prefix of 64 bits, because a host
/// can use any address of its prefix.
#[must_use]
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & PREFIX).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    /// Takes as many slots as the client gets.
    fn flood(shares: &Arc<FairShares>, client: IpAddr, held: &mut Vec<Share>) {
        for _ in 0..2 * shares.limit() {
            held.extend(shares.acquire(client, None));
        }
    }

    #[test]
    fn a_small_limit_belongs_to_whoever_comes() {
        for limit in 1..=8 {
            let (shares, mut held) = (FairShares::new(limit), Vec::new());
            flood(&shares, v4(1), &mut held);
            assert_eq!(held.len(), limit as usize);
            assert_eq!(shares.acquire(v4(2), None).unwrap_err(), ShareError::Full);
        }
    }

    #[test]
    fn greedy_clients_leave_slots_for_others() {
        for (greedy, free_min) in [(1, 99), (10, 30), (100, 8), (1000, 0)] {
            let (shares, mut held) = (FairShares::new(1000), Vec::new());
            // In turns, like clients that ask at the same time.
            for _ in 0..shares.limit() {
                (0..greedy).for_each(|client| held.extend(shares.acquire(v4(client), None)));
            }
            let free = 1000 - held.len();
            assert!(free >= free_min, "{greedy} greedy clients leave {free} slots");
            if greedy <= 100 {
                // One may share both buckets with greedy clients, whatever the seed; three do not.
                let other = (100_000..100_003).find_map(|client| shares.acquire(v4(client), None).ok());
                assert!(other.is_some(), "another client gets a slot");
                assert_eq!(shares.acquire(v4(0), None).unwrap_err(), ShareError::Greedy);
                drop(other);
            }
            held.clear();
            assert!(shares.acquire(v4(0), None).is_ok(), "dropped slots are free again");
        }
    }

    #[test]
    fn a_destination_leaves_slots_for_others_whoever_asks() {
        let shares = FairShares::new(1000);
        let group = |group| Some(Destination { block: BlockId(0), step: 3, group });
        let (mut held, mut refused) = (Vec::new(), Vec::new());
        for client in 0..5000 {
            match shares.acquire(v4(client), group(0)) {
                Ok(share) => held.push(share),
                Err(error) => refused.push(error),
            }
        }
        assert!((940..=960).contains(&held.len()), "{}", held.len());
        // Few clients share both buckets with the destination.
        let crowded = refused.iter().filter(|error| **error == ShareError::Crowded).count();
        assert!(crowded >= refused.len() - 20, "{crowded} of {}", refused.len());
        let others: Vec<Share> = (5000..5060).filter_map(|client| shares.acquire(v4(client), group(1)).ok()).collect();
        assert!(others.len() >= 30, "{}", others.len());
        drop((held, others));
        let counts = shares.counts.get().into_iter().flat_map(|rows| rows.iter().flatten());
        assert!(counts.into_iter().all(|count| count.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn the_clients_of_a_destination_share_what_is_left_for_it() {
        let (shares, mut held) = (FairShares::new(1000), Vec::new());
        let only = Some(Destination { block: BlockId(0), step: 3, group: 0 });
        for _ in 0..2000 {
            held.extend(shares.acquire(v4(1), only));
        }
        assert!((780..=860).contains(&held.len()), "{}", held.len());
        assert_eq!(shares.acquire(v4(1), only).unwrap_err(), ShareError::Greedy);
        let others = (2..102).filter_map(|client| shares.acquire(v4(client), only).ok());
        assert!(others.collect::<Vec<Share>>().len() >= 90);
    }

    #[test]
    fn a_small_limit_belongs_to_whoever_comes_for_a_destination() {
        let only = Some(Destination { block: BlockId(0), step: 3, group: 0 });
        for limit in 1..=8 {
            let shares = FairShares::new(limit);
            let held: Vec<Share> = (0..limit).map_while(|client| shares.acquire(v4(client), only).ok()).collect();
            assert_eq!(held.len(), limit as usize);
        }
    }

    #[test]
    fn a_client_without_rivals_gets_most_slots() {
        let (shares, mut held) = (FairShares::new(1000), Vec::new());
        flood(&shares, v4(1), &mut held);
        assert!(held.len() >= 850, "{}", held.len());
    }

    #[test]
    fn forged_addresses_do_not_count_for_others() {
        let (shares, mut held) = (FairShares::new(6144), Vec::new());
        (0..5000).for_each(|client| held.extend(shares.acquire(v4(client), None)));
        let refused = (0..500).filter(|client| shares.acquire(v4(1_000_000 + client), None).is_err()).count();
        assert_eq!((held.len(), refused), (5000, 0));
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_client() {
        let (shares, mut held) = (FairShares::new(1000), Vec::new());
        for host in 0..2000 {
            held.extend(shares.acquire(IpAddr::V6((0x2001_0db8_u128 << 96 | host).into()), None));
        }
        assert!(held.len() <= 900, "{}", held.len());
        assert!(shares.acquire(IpAddr::V6((0x2001_0db8_0001_u128 << 80).into()), None).is_ok());
        assert_eq!(client_network("::ffff:10.0.0.1".parse().unwrap()), client_network(v4(1)));
    }

    #[test]
    fn counts_of_several_threads_return_to_zero() {
        let shares = FairShares::new(64);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let shares = &shares;
                scope.spawn(move || (0..10_000).for_each(|_| drop(shares.acquire(v4(client), None))));
            }
        });
        assert_eq!(shares.in_use.load(Ordering::Relaxed), 0);
        let counts = shares.counts.get().into_iter().flat_map(|rows| rows.iter().flatten());
        assert!(counts.into_iter().all(|count| count.load(Ordering::Relaxed) == 0));
    }
}
