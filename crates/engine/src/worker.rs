//! State of one worker thread: metric counters, clock, random numbers, log buffer, and a pool of transactions.

use core::fmt;
use core::time::Duration;
use std::io::Write;
use std::sync::Arc;

use host::invariant::{Expected as _, holds};
use wire::MessageBuf;

use crate::line_limit::{LeftOut, LineLimit};
use crate::log::{EventBuffer, Level, Source};
use crate::query::Query;
use crate::tap::{self, Answerers, Filters, Ring, Tap};
use crate::transaction::{Progress, Transaction};
use host::{Clock, Instant};
use metrics::{Counters, Registry};

/// Size in bytes of the buffer for the log events of a batch, enough for some hundred lines.
const LOG_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of pooled transactions. More may be in progress, but they are freed afterwards.
const POOL_MAX: usize = 256;
/// Maximum number of refreshes requested within one batch, which has fewer queries.
const REFRESHES_MAX: usize = 256;

/// State of one worker thread.
#[allow(clippy::vec_box, reason = "transactions move between pools, parents and futures by their box")]
pub struct Worker {
    /// Metric counters of this worker.
    pub counters: Counters,
    /// Scratch message for rewriting responses. Its contents are undefined.
    pub scratch: MessageBuf,
    clock: Box<dyn Clock>,
    random: u64,
    log: EventBuffer,
    pool: Vec<Box<Transaction>>,
    pool_max: usize,
    refreshes: Vec<Box<Transaction>>,
    tap: Tap,
    refused_updates: LineLimit,
}

impl Worker {
    /// Creates a worker that counts in `registry`. `seed` initializes its random numbers.
    #[must_use]
    pub fn new(registry: &Arc<Registry>, clock: Box<dyn Clock>, seed: u64) -> Worker {
        Worker {
            counters: registry.counters(),
            scratch: MessageBuf::new(),
            clock,
            random: seed | 1,
            log: EventBuffer::new(LOG_BYTES_MAX),
            pool: Vec::with_capacity(POOL_MAX),
            pool_max: POOL_MAX,
            refreshes: Vec::with_capacity(REFRESHES_MAX),
            tap: Tap::default(),
            refused_updates: LineLimit::default(),
        }
    }

    /// Copies failures and a sample of the queries to this ring from now on.
    pub fn attach_tap(&mut self, ring: Arc<Ring>) {
        self.tap.attach(ring);
    }

    /// Keeps at most this number of transactions for reuse, if it is less than the default.
    pub fn limit_pool(&mut self, max: usize) {
        self.pool_max = POOL_MAX.min(max);
    }

    /// Begins the sample of the tap again with the next query.
    pub fn restart_sample(&mut self) {
        self.tap.restart_sample();
    }

    /// Copies the queries that these filters select as well, in place of earlier ones.
    pub fn set_filters(&mut self, filters: Arc<Filters>) {
        self.tap.set_filters(filters);
    }

    /// Shows a query that has its response to the tap.
    #[inline]
    pub(crate) fn observe(&mut self, answerers: &dyn Answerers, transaction: &Transaction, progress: Progress) {
        let failed = tap::has_failed(transaction, progress);
        if self.tap.is_wanted(failed) {
            self.record(answerers, transaction, progress, failed);
        }
    }

    /// Shows a query that was parked, or could not be, to the tap. [`drive`](crate::drive) does so for those that it
    /// runs.
    pub fn observe_parked(&mut self, answerers: &dyn Answerers, transaction: &Transaction, progress: Progress) {
        // A refresh has no client.
        if !transaction.query.is_awaited() {
            return;
        }
        let is_slow = self.now().since(transaction.query.received) >= tap::SLOW;
        let failed = is_slow || tap::has_failed(transaction, progress);
        if self.tap.is_wanted(failed) {
            self.record(answerers, transaction, progress, failed);
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, answerers: &dyn Answerers, transaction: &Transaction, progress: Progress, failed: bool) {
        if self.tap.is_attached() {
            let random = self.random();
            let finished = tap::finished(answerers, transaction, progress, &*self.clock);
            self.tap.record(&finished, failed, random);
        }
    }

    /// Monotonic time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Wall-clock time since the Unix epoch, for what others share: signatures, and hours of the day. It may jump.
    #[must_use]
    pub fn since_1970(&self) -> Duration {
        self.clock.since_1970()
    }

    /// Returns a random number for load balancing and shuffling, not for secrets (xorshift64*).
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a random number below `bound`; 0 if `bound` is 0.
    pub fn random_below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.random()) * bound as u128;
        let below = usize::try_from(wide >> 64).ok().expected("a number that fits").unwrap_or(0);
        debug_assert!(below < bound.max(1), "a random number is below its bound");
        below
    }

    /// Adds an event to the log; `write` appends its message. The transport passes the events on at the end of the
    /// batch.
    pub fn log(&mut self, level: Level, source: Source<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.log.push(self.clock.since_1970(), level, source, write);
    }

    /// Adds a line of *log* to the log; `write` appends its text, and `describe` its members in the JSON form.
    pub fn log_query(&mut self, write: impl FnOnce(&mut Vec<u8>), describe: impl FnOnce(&mut Vec<u8>)) {
        self.log.push_with(self.clock.since_1970(), Level::Info, Source::Queries, write, describe);
    }

    /// Adds an event with a formatted message to the log.
    pub fn log_text(&mut self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        self.log(level, source, |out| drop(out.write_fmt(message)));
    }

    /// Counts a refused update, and returns true if there may be a line about it.
    pub(crate) fn may_log_refused_update(&mut self) -> bool {
        self.log_left_out_updates();
        self.refused_updates.admit(self.clock.now())
    }

    /// Logs the number of refused updates without a line, once the second is over.
    #[cold]
    fn log_left_out_updates(&mut self) {
        let left_out = self.refused_updates.end_second(self.clock.now());
        if left_out > 0 {
            self.log_text(Level::Info, Source::Server, format_args!("{}", LeftOut(left_out)));
        }
    }

    /// Passes the events of this batch to `take` and clears them.
    pub fn take_log(&mut self, take: impl FnOnce(&EventBuffer)) {
        if self.refused_updates.has_left_out() {
            self.log_left_out_updates();
        }
        if !self.log.is_empty() {
            take(&self.log);
            self.log.clear();
        }
    }

    /// Requests a refresh: the same question goes to the steps below the current one again, without a client. The
    /// response ends at the current step, after its `on_response`.
    pub fn refresh(&mut self, query: &Query) {
        if self.refreshes.len() < REFRESHES_MAX {
            let mut transaction = self.take_transaction();
            transaction.begin_refresh(query);
            self.refreshes.push(transaction);
            holds(self.refreshes.len() <= REFRESHES_MAX, "the number of refreshes is bounded");
        }
    }

    /// Takes a requested refresh, which the caller must run.
    pub(crate) fn next_refresh(&mut self) -> Option<Box<Transaction>> {
        self.refreshes.pop()
    }

    /// Takes a transaction from the pool, or creates one.
    #[must_use]
    pub fn take_transaction(&mut self) -> Box<Transaction> {
        let transaction = self.pool.pop().unwrap_or_default();
        holds(transaction.parent.is_none(), "a pooled transaction is alone");
        transaction
    }

    /// Returns a transaction to the pool.
    pub fn give_transaction(&mut self, mut transaction: Box<Transaction>) {
        debug_assert!(transaction.parent.is_none(), "a transaction that ends has returned to its parent");
        holds(self.pool.len() <= POOL_MAX, "the number of pooled transactions is bounded");
        if self.pool.len() < self.pool_max {
            transaction.trim();
            self.pool.push(transaction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Header;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Instant {
            Instant::START
        }

        fn since_1970(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn pooled_transactions_keep_no_long_messages() {
        let mut worker = Worker::new(&Registry::new(), Box::new(Stopped), 1);
        let mut transaction = worker.take_transaction();
        transaction.query.packet = vec![0; 65_535];
        transaction.response.message.start(Header::default(), None);
        transaction.response.message.push_behind(&[0; 60_000]);
        assert!(transaction.excess() > 100_000);
        worker.give_transaction(transaction);
        assert_eq!(worker.take_transaction().excess(), 0);
    }

    #[test]
    fn pools_at_most_the_given_number_of_transactions() {
        let mut worker = Worker::new(&Registry::new(), Box::new(Stopped), 1);
        worker.limit_pool(2);
        for kept in [1, 2, 2] {
            worker.give_transaction(Box::default());
            assert_eq!(worker.pool.len(), kept);
        }
    }

    #[test]
    fn random_numbers_below_a_bound_reach_each_number() {
        let mut worker = Worker::new(&Registry::new(), Box::new(Stopped), 1);
        for bound in [0, 1, 2, 3, 10] {
            let mut counts = vec![0; bound.max(1)];
            (0..100 * bound.max(1)).for_each(|_| counts[worker.random_below(bound)] += 1);
            assert!(counts.iter().all(|count| *count > 20), "{bound}: {counts:?}");
        }
    }
}
