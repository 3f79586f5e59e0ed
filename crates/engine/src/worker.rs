//! What one worker thread has for itself: counters, a clock, a small random source, log lines, walks to reuse.

use core::fmt;
use core::time::Duration;
use std::io::Write;
use std::sync::Arc;

use wire::MessageBuf;

use crate::log::{EventBuffer, Level, Source};
use crate::metrics::{Counters, Registry};
use crate::{Moment, Query, Walk};

/// Bytes of log events that wait for the end of a batch: some hundred lines.
const LOG_BYTES_MAX: usize = 64 * 1024;
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
    log: EventBuffer,
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
            log: EventBuffer::new(LOG_BYTES_MAX),
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

    /// Reports an event to the log; `write` appends its message. It is handed over at the end of the batch.
    pub fn log(&mut self, level: Level, source: Source<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.log.push(self.clock.since_1970(), level, source, write);
    }

    /// Reports an event with a formatted message.
    pub fn log_text(&mut self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        self.log(level, source, |out| drop(out.write_fmt(message)));
    }

    /// Passes the events of this batch to `take` and forgets them.
    pub fn take_log(&mut self, take: impl FnOnce(&EventBuffer)) {
        if !self.log.is_empty() {
            take(&self.log);
            self.log.clear();
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
