//! CPU time for queries that go to upstreams, if the process has a CPU limit that its workers can exceed.
//!
//! A container above its CPU limit does not run slower: the kernel stops all its threads until the next period, usually
//! for tens of milliseconds. Local names then wait as well. A query for an upstream costs several times as much as a
//! local answer, so the server takes only as many as leave CPU time for local names:
//!
//! - The balance grows with [`SHARE`] of the limit, and shrinks by all CPU time that the process uses. Every
//!   [`WINDOW`], the worker asks the kernel for that time. Until then, each query is charged [`QUERY_COST`].
//! - While the balance is positive, a query starts at once. Otherwise it waits its turn among the other clients
//!   (`fair_queue.rs`), at most for [`WAIT_MAX`].
//! - A query that finds the line of its client full fails at once.
//!
//! Whatever else the process does, [`SHARE_MIN`] of the limit is left for queries for upstreams. Local answers are
//! never delayed and never counted one by one: they cost nothing here.
//!
//! The limit may change while the process runs, because Kubernetes resizes Pods in place.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{Clock, Instant};
use host::invariant::{Expected as _, holds};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot::{Receiver, Sender, channel};
use transport::MonotonicClock;

use crate::fair_queue::FairQueue;

/// Part of the limit that the process may use while it still accepts queries for upstreams, in percent. The rest is
/// for local names that arrive at once, and for the burst that an idle server accepts
/// (docs/decisions/0012-cpu-budget.md).
const SHARE: u32 = 75;
/// Part of the limit that is left for queries for upstreams whatever else the process does, in percent.
const SHARE_MIN: u32 = 5;
/// Time between two looks at the used CPU time, which cost a system call each.
const WINDOW: Duration = Duration::from_millis(5);
/// Estimated CPU time of a query for an upstream until the next measurement: to receive, forward and answer it.
const QUERY_COST: Duration = Duration::from_micros(15);
/// Waiting queries of a client. More would wait longer than they are wanted.
const LINE_MAX: usize = 256;
/// Time after which a waiting query fails. Clients give up or ask another server after two to five seconds.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// CPU limit of the process: this CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLimit {
    /// CPU time.
    pub quota: Duration,
    /// Period.
    pub period: Duration,
}

impl CpuLimit {
    /// Returns true if this number of threads can use more than the limit.
    fn is_exceeded_by(self, workers: u32) -> bool {
        !self.period.is_zero() && self.quota < self.period * workers
    }
}

/// CPU limit of the process at this time, for all threads.
///
/// The value is quota and period in microseconds, with 32 bits each, so that both change at once. 0 is no limit.
#[derive(Debug, Default)]
pub struct CurrentCpuLimit(AtomicU64);

impl CurrentCpuLimit {
    /// Sets the limit. Workers read it with their next query for an upstream.
    pub fn set(&self, limit: Option<CpuLimit>) {
        let micros = |time: Duration| u64::from(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        let value = limit.map_or(0, |limit| micros(limit.quota) << 32 | micros(limit.period));
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> Option<CpuLimit> {
        let value = self.0.load(Ordering::Relaxed);
        let micros = |value: u64| Duration::from_micros(value & u64::from(u32::MAX));
        (value != 0).then(|| CpuLimit { quota: micros(value >> 32), period: micros(value) })
    }
}

/// Decision about a query for an upstream.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The query starts now.
    Now,
    /// The query starts when the value arrives. If the channel closes without one, it has waited too long.
    Later(Receiver<()>),
    /// Too many queries of the client wait.
    Refused,
}

/// CPU time of one worker for queries that go to upstreams.
#[derive(Debug)]
pub(crate) struct CpuBudget {
    limit: Arc<CurrentCpuLimit>,
    workers: u32,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// `None` without a limit that the workers can exceed.
    balance: Option<Balance>,
    waiting: FairQueue<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    start: Sender<()>,
}

impl CpuBudget {
    /// Creates the budget of one of `workers` workers.
    pub(crate) fn new(limit: Arc<CurrentCpuLimit>, workers: usize) -> Rc<CpuBudget> {
        let state = RefCell::new(State { balance: None, waiting: FairQueue::new(LINE_MAX) });
        let workers = u32::try_from(workers).ok().expected("a bounded number of workers").unwrap_or(u32::MAX);
        Rc::new(CpuBudget { limit, workers, state })
    }

    /// Decides about a query of a client. The boolean is true if it is the only one that waits, so that
    /// [`CpuBudget::serve_waiting`] has to run.
    pub(crate) fn turn(&self, client: IpAddr) -> (Turn, bool) {
        let (limit, mut state) = (self.limit(), self.state.borrow_mut());
        if limit.is_none() && state.balance.is_none() && state.waiting.is_empty() {
            return (Turn::Now, false);
        }
        let now = MonotonicClock.now();
        state.follow(limit, self.workers, now, used);
        state.turn(client, now, used)
    }

    /// Starts waiting queries, until none waits.
    pub(crate) async fn serve_waiting(self: Rc<Self>) {
        loop {
            tokio::time::sleep(WINDOW).await;
            let (mut state, now) = (self.state.borrow_mut(), MonotonicClock.now());
            state.follow(self.limit(), self.workers, now, used);
            if state.start_waiting(now, used) {
                break;
            }
        }
    }

    /// Returns the limit, if the workers can exceed it.
    fn limit(&self) -> Option<CpuLimit> {
        self.limit.get().filter(|limit| limit.is_exceeded_by(self.workers))
    }
}

impl State {
    /// Begins a new balance if the limit has changed.
    fn follow(&mut self, limit: Option<CpuLimit>, workers: u32, now: Instant, used: impl FnOnce() -> Duration) {
        if self.balance.as_ref().map(|balance| balance.limit) != limit {
            self.balance = limit.map(|limit| Balance::new(limit, workers, now, used()));
        }
    }

    fn turn(&mut self, client: IpAddr, now: Instant, used: impl FnOnce() -> Duration) -> (Turn, bool) {
        self.refresh(now, used);
        let is_first = self.waiting.is_empty();
        if is_first && self.charge() {
            return (Turn::Now, false);
        }
        let mut turn = None;
        self.waiting.push(client, || {
            let (start, later) = channel();
            turn = Some(later);
            Waiting { since: now, start }
        });
        turn.map_or((Turn::Refused, false), |turn| (Turn::Later(turn), is_first))
    }

    /// Starts the queries that the balance pays for. Returns true if no other waits.
    fn start_waiting(&mut self, now: Instant, used: impl FnOnce() -> Duration) -> bool {
        self.refresh(now, used);
        while self.is_positive()
            && let Some(waiting) = self.waiting.pop()
        {
            // Dropping the sender fails the query. One whose client has gone costs nothing.
            if now.since(waiting.since) <= WAIT_MAX && waiting.start.send(()).is_ok() {
                self.charge();
            }
        }
        holds(self.waiting.is_empty() || !self.is_positive(), "queries wait only while the balance is used up");
        self.waiting.is_empty()
    }

    fn refresh(&mut self, now: Instant, used: impl FnOnce() -> Duration) {
        if let Some(balance) = &mut self.balance {
            balance.refresh(now, used);
        }
    }

    fn is_positive(&self) -> bool {
        self.balance.as_ref().is_none_or(Balance::is_positive)
    }

    fn charge(&mut self) -> bool {
        self.balance.as_mut().is_none_or(Balance::charge)
    }
}

/// CPU time that is left, in nanoseconds.
#[derive(Debug)]
struct Balance {
    limit: CpuLimit,
    workers: u32,
    /// Balance at the last look.
    measured: i64,
    /// Balance now.
    left: i64,
    looked: Instant,
    /// CPU time that the process had used then.
    used: Duration,
}

impl Balance {
    fn new(limit: CpuLimit, workers: u32, now: Instant, used: Duration) -> Balance {
        let mut balance = Balance { limit, workers, measured: 0, left: 0, looked: now, used };
        holds(workers > 0 && !limit.period.is_zero(), "a limit is a time in each period of some workers");
        balance.measured = balance.burst();
        balance.left = balance.measured;
        holds(balance.left >= 0, "a new balance owes nothing");
        balance
    }

    /// Largest balance. With what is earned meanwhile, it is the quota of one period.
    fn burst(&self) -> i64 {
        nanos(self.limit.quota) * i64::from(100 - SHARE) / 100 / i64::from(self.workers)
    }

    /// Returns this percentage of the limit during `elapsed`.
    fn earned(&self, elapsed: Duration, percent: u32) -> i64 {
        let all = elapsed.as_nanos() * self.limit.quota.as_nanos() / self.limit.period.as_nanos().max(1);
        i64::try_from(all * u128::from(percent) / 100 / u128::from(self.workers)).unwrap_or(i64::MAX)
    }

    fn refresh(&mut self, now: Instant, used: impl FnOnce() -> Duration) {
        let elapsed = now.since(self.looked);
        if elapsed < WINDOW {
            return;
        }
        let used = used();
        holds(used >= self.used, "the CPU time of a process only grows");
        let spent = nanos(used.saturating_sub(self.used)) / i64::from(self.workers);
        let (earned, burst) = (self.earned(elapsed, SHARE), self.burst());
        self.measured = self.measured.saturating_add(earned).saturating_sub(spent).clamp(-burst, burst);
        holds((-burst..=burst).contains(&self.measured), "the balance is bounded by one period");
        self.left = self.measured.max(self.earned(elapsed.min(self.limit.period), SHARE_MIN));
        (self.looked, self.used) = (now, used);
    }

    const fn is_positive(&self) -> bool {
        self.left > 0
    }

    /// Charges a query. Returns false if nothing is left.
    fn charge(&mut self) -> bool {
        holds(
            self.left <= self.burst().max(self.earned(self.limit.period, SHARE_MIN)),
            "the balance is bounded by one period",
        );
        let pays = self.is_positive();
        if pays {
            self.left -= nanos(QUERY_COST);
        }
        pays
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the CPU time that the process has used.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of a CPU.
    const LIMIT: CpuLimit = CpuLimit { quota: Duration::from_millis(10), period: Duration::from_millis(100) };

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn state(used: Duration) -> State {
        State { balance: Some(Balance::new(LIMIT, 1, at(0), used)), waiting: FairQueue::new(LINE_MAX) }
    }

    /// Takes turns until one is not at once, and returns their number.
    fn start_all(state: &mut State, now: Instant, used: Duration) -> u32 {
        let mut count = 0;
        while state.waiting.is_empty() && matches!(state.turn(v4(1), now, || used), (Turn::Now, _)) {
            count += 1;
        }
        count
    }

    #[test]
    fn there_is_no_budget_without_a_limit_that_the_workers_exceed() {
        let current = Arc::new(CurrentCpuLimit::default());
        let limit = |limit: Option<CpuLimit>, workers: usize| {
            current.set(limit);
            CpuBudget::new(Arc::clone(&current), workers).limit()
        };
        assert_eq!(limit(Some(LIMIT), 1), Some(LIMIT));
        let whole = CpuLimit { quota: LIMIT.period * 2, ..LIMIT };
        assert_eq!(limit(Some(whole), 2), None);
        assert_eq!(limit(Some(whole), 3), Some(whole));
        assert_eq!(limit(Some(CpuLimit { period: Duration::ZERO, ..LIMIT }), 1), None);
        assert_eq!(limit(None, 1), None);
    }

    #[test]
    fn a_limit_that_changes_takes_effect_with_the_next_query() {
        let mut state = state(Duration::ZERO);
        let started = start_all(&mut state, at(0), Duration::ZERO);
        let (Turn::Later(mut turn), _) = state.turn(v4(2), at(1), || Duration::ZERO) else { panic!("it waits") };
        // Without a limit, whatever waits starts.
        state.follow(None, 1, at(2), || Duration::ZERO);
        assert!(state.start_waiting(at(2), || Duration::ZERO));
        assert_eq!(turn.try_recv(), Ok(()));
        assert!((0..1000).all(|_| matches!(state.turn(v4(1), at(2), || Duration::ZERO), (Turn::Now, false))));
        let double = CpuLimit { quota: LIMIT.quota * 2, ..LIMIT };
        state.follow(Some(double), 1, at(3), || Duration::ZERO);
        assert!(start_all(&mut state, at(3), Duration::ZERO) > 2 * started - 2);
    }

    #[test]
    fn a_burst_starts_at_once_and_the_rest_waits() {
        let mut state = state(Duration::ZERO);
        // 2.5 ms for 15 µs each.
        assert_eq!(start_all(&mut state, at(0), Duration::ZERO), 167);
        assert!(matches!(state.turn(v4(2), at(1), || Duration::ZERO), (Turn::Later(_), false)));
    }

    #[test]
    fn queries_start_at_the_rate_that_their_measured_time_allows() {
        let mut state = state(Duration::ZERO);
        let (mut used, mut started) = (Duration::ZERO, 0);
        for window in 0..2000 {
            state.waiting = FairQueue::new(LINE_MAX);
            let count = start_all(&mut state, at(5 * window), used);
            // Each takes twice the time that it is charged at first.
            used += 2 * QUERY_COST * count;
            started += count;
        }
        // Ten seconds at 75 % of a tenth of a CPU, for 30 µs each, and not more than 5 % beyond.
        assert!((25_000..26_300).contains(&started), "{started}");
    }

    #[test]
    fn other_work_leaves_a_small_share() {
        let mut state = state(Duration::ZERO);
        let mut started = 0;
        for window in 0..2000 {
            state.waiting = FairQueue::new(LINE_MAX);
            // Local answers alone take the whole limit.
            started += start_all(&mut state, at(5 * window), LIMIT.quota / 20 * u32::try_from(window).unwrap());
        }
        assert!((4_000..7_000).contains(&started), "{started}");
    }

    #[test]
    fn another_client_starts_before_the_rest_of_a_flood() {
        let mut state = state(Duration::ZERO);
        start_all(&mut state, at(0), Duration::ZERO);
        let flood: Vec<_> = (0..2 * LINE_MAX).map(|_| state.turn(v4(1), at(1), || Duration::ZERO).0).collect();
        assert!(flood.iter().any(|turn| matches!(turn, Turn::Refused)));
        // One of these may share the line of the flood, whatever the seed; three do not.
        let mut others: Vec<_> = (2..5).map(|client| state.turn(v4(client), at(1), || Duration::ZERO).0).collect();
        assert!(!state.start_waiting(at(6), || Duration::from_millis(3)));
        let started = others.iter_mut().filter_map(|turn| match turn {
            Turn::Later(turn) => turn.try_recv().ok(),
            Turn::Now | Turn::Refused => None,
        });
        assert!(started.count() > 0);
    }

    #[test]
    fn a_query_that_has_waited_too_long_fails() {
        let mut state = state(Duration::ZERO);
        start_all(&mut state, at(0), Duration::ZERO);
        let (Turn::Later(mut turn), _) = state.turn(v4(2), at(1), || Duration::ZERO) else { panic!("it waits") };
        let late = at(2) + WAIT_MAX;
        assert!(state.start_waiting(late, || Duration::ZERO));
        assert!(turn.try_recv().is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Closed));
    }
}
