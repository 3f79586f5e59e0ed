//! Queue that serves its clients in turns (stochastic fair queueing, McKenney 1990).
//!
//! Clients are spread over [`LINES`] lines by a hash with a random seed. Each turn takes the oldest entry of the next
//! line that has one. A client with a long line delays itself. A client whose line was empty waits for at most one
//! entry of every other line. Two clients of one line share its turns.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::net::IpAddr;

use engine::client_network;
use foldhash::fast::RandomState;
use host::invariant::{Expected as _, holds};

/// Lines of a queue. A client shares the line of one greedy client with a probability of 0.4 %.
const LINES: usize = 256;

/// Queue with a line for each client.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lines: Box<[VecDeque<T>]>,
    /// Lines with entries, each once, in the order of their turns.
    turns: VecDeque<usize>,
    /// Maximum number of entries of a line.
    line_max: usize,
    hash: RandomState,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue with lines of at most this length.
    pub(crate) fn new(line_max: usize) -> FairQueue<T> {
        holds(line_max > 0, "a line has room for an entry");
        let lines = (0..LINES).map(|_| VecDeque::new()).collect();
        FairQueue { lines, turns: VecDeque::new(), line_max, hash: RandomState::default() }
    }

    /// Appends an entry to the line of a client. Returns false if the line is full; then the entry is not made.
    pub(crate) fn push(&mut self, client: IpAddr, entry: impl FnOnce() -> T) -> bool {
        let at = usize::try_from(self.hash.hash_one(client_network(client)) % LINES as u64).unwrap_or(0);
        let line = &mut self.lines[at];
        if line.len() >= self.line_max {
            return false;
        }
        if line.is_empty() {
            self.turns.push_back(at);
        }
        line.push_back(entry());
        holds(line.len() <= self.line_max, "a line is bounded");
        holds(self.turns.len() <= LINES, "each line has one turn");
        true
    }

    /// Removes the oldest entry of the line whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let at = self.turns.pop_front()?;
        let entry = self.lines[at].pop_front().expected("an entry of a line that has a turn");
        holds(self.lines[at].len() < self.line_max, "a line is bounded");
        if self.lines[at].is_empty() {
            // After a burst, an empty line keeps no memory.
            self.lines[at] = VecDeque::new();
        } else {
            self.turns.push_back(at);
        }
        entry
    }

    /// Returns true if no entry waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    /// Returns the address of a client that does not share the line of the first one.
    fn other(queue: &FairQueue<u32>) -> IpAddr {
        let line = |client| queue.hash.hash_one(client_network(client)) % LINES as u64;
        (2..).map(v4).find(|client| line(*client) != line(v4(1))).expect("a client with another line")
    }

    #[test]
    fn clients_take_turns_and_keep_their_order() {
        let mut queue = FairQueue::new(100);
        let other = other(&queue);
        (0..100).for_each(|number| assert!(queue.push(v4(1), || number)));
        (1000..1003).for_each(|number| assert!(queue.push(other, || number)));
        let first: Vec<_> = (0..6).filter_map(|_| queue.pop()).collect();
        assert_eq!(first, [0, 1000, 1, 1001, 2, 1002]);
        let rest: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, (3..100).collect::<Vec<_>>());
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_line_refuses_only_its_own_clients() {
        let mut queue = FairQueue::new(2);
        let other = other(&queue);
        let pushed: Vec<_> = (0..4).map(|number| queue.push(v4(1), || number)).collect();
        assert_eq!(pushed, [true, true, false, false]);
        assert!(queue.push(other, || 9));
        assert_eq!([queue.pop(), queue.pop(), queue.pop(), queue.pop()], [Some(0), Some(9), Some(1), None]);
        assert!(queue.push(v4(1), || 7));
    }
}
