//! What one worker thread has for itself: counters, a clock, a small random source, log lines, walks to reuse.

use core::time::Duration;
use std::sync::Arc;

use wire::MessageBuf;

use crate::metrics::{Counters, Registry};
use crate::{Moment, Query, Walk};

/// Octets of log lines that wait for the end of a batch: some hundred lines.
const LINES_MAX: usize = 64 * 1024;
/// Walks that are kept for reuse; more may be on their way, but they are freed afterwards.
const POOL_MAX: usize = 256;
/// Refreshes that may be asked for within one batch: a batch has fewer queries.
const REFRESHES_MAX: usize = 256;

/// Tells the time.
pub trait Clock {
    /// The time.
    fn now(&self) -> Moment;

    /// The time since 1970 as the calendar has it: for signatures, which others check. It may jump.
    fn since_1970(&self) -> Duration;
}

/// What one worker thread has for itself.
#[allow(clippy::vec_box, reason = "walks move between pools, parents and futures by their box")]
pub struct Worker {
    /// This worker's counters.
    pub counters: Counters,
    /// A message to write answers anew with; what is in it has no meaning.
    pub scratch: MessageBuf,
    clock: Box<dyn Clock>,
    random: u64,
    lines: Vec<u8>,
    lines_lost: u64,
    pool: Vec<Box<Walk>>,
    refreshes: Vec<Box<Walk>>,
}

impl Worker {
    /// A worker that counts in `registry`; `seed` starts its random numbers.
    #[must_use]
    pub fn new(registry: &Arc<Registry>, clock: Box<dyn Clock>, seed: u64) -> Worker {
        Worker {
            counters: registry.counters(),
            scratch: MessageBuf::new(),
            clock,
            random: seed | 1,
            lines: Vec::with_capacity(LINES_MAX),
            lines_lost: 0,
            pool: Vec::with_capacity(POOL_MAX),
            refreshes: Vec::with_capacity(REFRESHES_MAX),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The time since 1970 as the calendar has it: for signatures, which others check. It may jump.
    #[must_use]
    pub fn since_1970(&self) -> Duration {
        self.clock.since_1970()
    }

    /// A number for shuffling, not for secrets (xorshift64*).
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn random_below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.random()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Writes one line of the log; `write` appends it without its line end.
    pub fn log(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.lines.len() >= LINES_MAX {
            self.lines_lost += 1;
            return;
        }
        write(&mut self.lines);
        self.lines.push(b'\n');
    }

    /// Takes the log lines of this batch: gives them to `write` and forgets them.
    pub fn take_lines(&mut self, write: impl FnOnce(&[u8], u64)) {
        if !self.lines.is_empty() || self.lines_lost > 0 {
            write(&self.lines, self.lines_lost);
            self.lines.clear();
            self.lines_lost = 0;
        }
    }

    /// Asks the steps below the present one for the same question once more, with nobody waiting for it: what comes up
    /// passes the present step and ends there.
    pub fn refresh(&mut self, query: &Query) {
        if self.refreshes.len() < REFRESHES_MAX {
            let mut walk = self.take_walk();
            walk.begin_refresh(query);
            self.refreshes.push(walk);
        }
    }

    /// Takes a refresh that was asked for and must be run.
    pub fn next_refresh(&mut self) -> Option<Box<Walk>> {
        self.refreshes.pop()
    }

    /// A walk to use.
    #[must_use]
    pub fn take_walk(&mut self) -> Box<Walk> {
        self.pool.pop().unwrap_or_default()
    }

    /// Gives a walk back.
    pub fn give_walk(&mut self, walk: Box<Walk>) {
        if self.pool.len() < POOL_MAX {
            self.pool.push(walk);
        }
    }
}
