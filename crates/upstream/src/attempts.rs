//! Attempts of one query: selects the next upstream until one answers, the deadline passes, or too many attempts
//! failed.

use core::time::Duration;

use host::Instant;
use host::invariant::{Expected as _, holds};
use wire::{Rcode, Reply};

use crate::Health;

/// Limits for the attempts of one query.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for all attempts together.
    pub total: Duration,
    /// Timeout of one attempt.
    pub each: Duration,
    /// Maximum number of failed attempts; `None` for no limit within the deadline.
    pub failures_max: Option<usize>,
    /// Maximum number of consecutive failed health checks. An upstream with more is down; 0 disables the check.
    pub max_fails: u32,
    /// True to fail at once if all upstreams are down, instead of trying one of them.
    pub fail_fast: bool,
}

/// Next action of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Query this upstream.
    Query {
        /// Index of the upstream.
        upstream: usize,
        /// Deadline of the attempt.
        until: Instant,
        /// True if all upstreams are down. This one was selected at random.
        is_last_resort: bool,
    },
    /// Stop: all upstreams are down, and `fail_fast` is set.
    AllDown,
    /// Stop: the limits are reached.
    GiveUp,
}

/// Decision about a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Return the reply.
    Accept,
    /// Query the next upstream. If all have been tried, return the reply.
    TryAnother,
}

/// Attempts of one query.
pub struct Attempts {
    limits: Limits,
    deadline: Instant,
    order: Vec<usize>,
    at: usize,
    down: usize,
    failures: usize,
}

impl Attempts {
    /// Starts attempts at this time, with the upstreams in this order.
    #[must_use]
    pub fn new(limits: Limits, order: Vec<usize>, start: Instant) -> Attempts {
        Attempts { limits, deadline: start + limits.total, order, at: 0, down: 0, failures: 0 }
    }

    /// Limits the attempts to one for each upstream. It shortens the wait of the client if all upstreams failed the
    /// last time.
    #[must_use]
    pub fn once_each(mut self) -> Attempts {
        let each = self.order.len();
        self.limits.failures_max = Some(self.limits.failures_max.map_or(each, |most| most.min(each)));
        self
    }

    /// Returns the next action. `random` is a new random number.
    pub fn next<'h>(&mut self, now: Instant, random: u64, health: impl Fn(usize) -> &'h Health) -> Action {
        let enough = self.limits.failures_max.is_some_and(|most| self.failures >= most);
        if self.order.is_empty() || enough || now >= self.deadline {
            return Action::GiveUp;
        }
        let until = (now + self.limits.each).min(self.deadline);
        holds(now <= until, "an attempt ends after it begins");
        loop {
            if self.at == self.order.len() {
                self.at = 0;
                self.down = 0;
            }
            holds(self.down <= self.at, "upstreams that are down have been tried in this round");
            let upstream = self.order[self.at];
            self.at += 1;
            if !health(upstream).is_down(self.limits.max_fails) {
                return Action::Query { upstream, until, is_last_resort: false };
            }
            self.down += 1;
            if self.down == self.order.len() {
                return self.all_down(until, random);
            }
        }
    }

    /// Selects a random upstream although all are down, because the health checks themselves may be what fails.
    fn all_down(&self, until: Instant, random: u64) -> Action {
        if self.limits.fail_fast {
            return Action::AllDown;
        }
        holds(self.down == self.order.len() && self.down > 0, "all upstreams of a round are down");
        let index = usize::try_from(random % self.order.len() as u64).ok().expected("an index of an upstream");
        let index = index.unwrap_or(0);
        Action::Query { upstream: self.order[index], until, is_last_resort: true }
    }

    /// Records a failed attempt.
    pub fn failed(&mut self) {
        self.failures += 1;
    }

    /// Decides whether a reply is the answer. `failover` returns true for response codes for which another upstream
    /// should be tried.
    #[must_use]
    pub fn judge(&self, reply: &Reply, failover: impl Fn(Rcode) -> bool) -> Decision {
        holds(self.at <= self.order.len(), "a round has as many attempts as upstreams");
        let another_left = self.at < self.order.len();
        if another_left && failover(reply.rcode()) { Decision::TryAnother } else { Decision::Accept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    fn limits() -> Limits {
        Limits { total: 5 * SECOND, each: 2 * SECOND, failures_max: None, max_fails: 2, fail_fast: false }
    }

    fn down() -> Health {
        let health = Health::default();
        (0..3).for_each(|_| health.probe_failed());
        health
    }

    fn queried(next: Action) -> Option<(usize, Instant, bool)> {
        match next {
            Action::Query { upstream, until, is_last_resort } => Some((upstream, until, is_last_resort)),
            Action::AllDown | Action::GiveUp => None,
        }
    }

    #[test]
    fn cycles_through_upstreams_until_the_deadline() {
        let health = [Health::default(), Health::default()];
        let mut attempts = Attempts::new(limits(), vec![1, 0], Instant::START);
        let mut query = |seconds| queried(attempts.next(at(seconds), 0, |at| &health[at]));
        assert_eq!(query(0), Some((1, at(2), false)));
        assert_eq!(query(2), Some((0, at(4), false)));
        assert_eq!(query(4), Some((1, at(5), false)));
        assert_eq!(query(5), None);
    }

    #[test]
    fn skips_upstreams_that_are_down() {
        let health = [down(), Health::default()];
        let mut attempts = Attempts::new(limits(), vec![0, 1], Instant::START);
        for _ in 0..3 {
            let next = attempts.next(Instant::START, 0, |at| &health[at]);
            assert_eq!(queried(next).map(|(upstream, ..)| upstream), Some(1));
        }
    }

    #[test]
    fn tries_a_random_upstream_or_fails_fast_if_all_are_down() {
        let health = [down(), down()];
        let next = Attempts::new(limits(), vec![0, 1], Instant::START).next(Instant::START, 7, |at| &health[at]);
        assert_eq!(queried(next), Some((1, at(2), true)));
        let fast = Limits { fail_fast: true, ..limits() };
        assert_eq!(
            Attempts::new(fast, vec![0, 1], Instant::START).next(Instant::START, 7, |at| &health[at]),
            Action::AllDown
        );
        assert_eq!(
            Attempts::new(limits(), vec![], Instant::START).next(Instant::START, 7, |at| &health[at]),
            Action::GiveUp
        );
    }

    #[test]
    fn gives_up_after_the_maximum_number_of_failures() {
        let health = Health::default();
        let mut attempts = Attempts::new(Limits { failures_max: Some(2), ..limits() }, vec![0], Instant::START);
        for _ in 0..2 {
            assert!(queried(attempts.next(Instant::START, 0, |_| &health)).is_some());
            attempts.failed();
        }
        assert_eq!(attempts.next(Instant::START, 0, |_| &health), Action::GiveUp);
    }

    #[test]
    fn tries_each_upstream_once_with_once_each() {
        let health = Health::default();
        for (failures_max, attempted) in [(None, 2), (Some(4), 2), (Some(1), 1)] {
            let mut attempts =
                Attempts::new(Limits { failures_max, ..limits() }, vec![0, 1], Instant::START).once_each();
            let asks = core::iter::from_fn(|| {
                let next = queried(attempts.next(Instant::START, 0, |_| &health));
                attempts.failed();
                next
            });
            assert_eq!(asks.count(), attempted, "{failures_max:?}");
        }
    }

    #[test]
    fn fails_over_while_untried_upstreams_are_left() {
        let health = Health::default();
        let servfail = Reply::parse(b"\0\0\x80\x02\0\0\0\0\0\0\0\0".to_vec()).unwrap();
        let mut attempts = Attempts::new(limits(), vec![0, 1], Instant::START);
        let failover = |rcode| rcode == Rcode::SERVFAIL;
        attempts.next(Instant::START, 0, |_| &health);
        assert_eq!(attempts.judge(&servfail, failover), Decision::TryAnother);
        assert_eq!(attempts.judge(&servfail, |_| false), Decision::Accept);
        attempts.next(Instant::START, 0, |_| &health);
        assert_eq!(attempts.judge(&servfail, failover), Decision::Accept);
        assert!(servfail.rcode() == Rcode::SERVFAIL && !servfail.is_nodata() && !servfail.is_truncated());
    }
}
