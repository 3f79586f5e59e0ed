//! Counts of all nodes, which the measuring thread reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::times::{Delays, WriteTimes};

/// Counts of all nodes.
pub(crate) struct Tally {
    pub(crate) times: WriteTimes,
    /// Delays of all changes that decoding nodes have received on open watches.
    pub(crate) delays: Delays,
    /// Open watches.
    pub(crate) open: AtomicU64,
    /// Bytes of the bodies of watches of slices.
    pub(crate) body: AtomicU64,
    /// Bytes that TCP has delivered.
    pub(crate) wire: AtomicU64,
    /// Requests with all objects, and refused requests.
    pub(crate) lists: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Watches that ended because the relay has no history from their version on.
    pub(crate) expired: AtomicU64,
    /// Connections that ended.
    pub(crate) ended: AtomicU64,
    /// Joining nodes that have listed everything.
    pub(crate) joined: AtomicU64,
    nodes: Vec<State>,
}

/// State of a decoding node.
#[derive(Default)]
struct State {
    /// Version of the slices that it has.
    version: AtomicU64,
    /// Longest time in µs for which it lacked a change.
    stale: AtomicU32,
}

impl Tally {
    pub(crate) fn new(times: WriteTimes, nodes: usize) -> Tally {
        Tally {
            times,
            delays: Delays::default(),
            open: AtomicU64::new(0),
            body: AtomicU64::new(0),
            wire: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            nodes: (0..nodes).map(|_| State::default()).collect(),
        }
    }

    /// Records that a node had a version and has reached a later one.
    pub(crate) fn reach(&self, number: usize, known: u64, reached: u64, is_change: bool) {
        // A joining node has none: it begins with a list that may be a second old.
        let Some(state) = self.nodes.get(number) else { return };
        if is_change && let Some(delay) = self.times.since(reached) {
            self.delays.add(delay);
        }
        state.version.fetch_max(reached, Ordering::Relaxed);
        if known > 0
            && reached > known
            && let Some(stale) = self.times.since(known + 1)
        {
            state.stale.fetch_max(stale, Ordering::Relaxed);
        }
    }

    /// Returns the number of nodes that have a version.
    pub(crate) fn have(&self, version: u64) -> usize {
        self.nodes.iter().filter(|state| state.version.load(Ordering::Relaxed) >= version).count()
    }

    /// Returns the longest time in ms for which a node lacked a change, and forgets it.
    pub(crate) fn take_stale(&self) -> u32 {
        self.nodes.iter().map(|state| state.stale.swap(0, Ordering::Relaxed)).max().unwrap_or(0) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_versions_delays_and_the_time_without_a_change() {
        let tally = Tally::new(WriteTimes::new(1, 10), 2);
        assert_eq!([tally.times.note(), tally.times.note()], [Some(2), Some(3)]);
        tally.reach(0, 0, 1, false);
        tally.reach(0, 1, 3, true);
        tally.reach(7, 1, 2, true);
        assert_eq!([tally.have(1), tally.have(3), tally.have(4)], [1, 1, 0]);
        assert_eq!(tally.delays.take().count, 1);
        assert_eq!(tally.take_stale(), 0, "less than a millisecond");
    }
}
