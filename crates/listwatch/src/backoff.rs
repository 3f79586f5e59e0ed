//! Pauses between failed attempts.

use core::time::Duration;

use host::Instant;
use host::invariant::holds;

use crate::event::{Failure, FailureKind};

/// Upper bound on the pause that a source asks for. A wrong value there must not stop updates for a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Divisor of the duration of an outage that yields the pause: 1/16, and up to 1/8 with jitter. After the source is
/// back, data stays stale for at most another eighth of the outage, both after a restart of seconds and an outage of
/// minutes.
const PAUSE_PART: u32 = 16;

/// How pauses grow.
#[derive(Clone, Debug)]
pub enum BackoffRule {
    /// With the duration of the outage.
    PartOfOutage {
        /// Shortest pause, without jitter.
        min: Duration,
        /// Longest pause, with jitter.
        max: Duration,
        /// Time without a failure after which the next one counts as a new outage.
        calm: Duration,
    },
    /// Twice as long after each round in which all servers failed. Within a round there is no pause.
    Doubling {
        /// First pause, without jitter.
        min: Duration,
        /// Longest pause, without jitter.
        max: Duration,
        /// Duration of a successful attempt after which the next failure counts as the first.
        calm: Duration,
        /// Number of servers.
        servers: usize,
    },
}

/// Pauses of an outage, by a [`BackoffRule`].
#[derive(Debug)]
pub struct Backoff {
    rule: BackoffRule,
    /// Time of the first failure, and the end of the last pause.
    failing: Option<(Instant, Instant)>,
    /// True if the source was reached during this outage.
    reached: bool,
    /// Number of failures in a row.
    failures: usize,
}

impl Backoff {
    /// Creates a backoff before the first failure.
    #[must_use]
    pub fn new(rule: BackoffRule) -> Backoff {
        let (BackoffRule::PartOfOutage { min, max, .. } | BackoffRule::Doubling { min, max, .. }) = rule;
        holds(!min.is_zero() && min <= max, "pauses have a range above zero");
        let has_server = !matches!(rule, BackoffRule::Doubling { servers: 0, .. });
        holds(has_server, "a round has at least one server");
        Backoff { rule, failing: None, reached: false, failures: 0 }
    }

    /// Returns the pause after a failure at `now` of an attempt that `began` then. `jitter` is a random number from 0
    /// to 1 that spreads the retries of a fleet.
    pub fn pause(&mut self, now: Instant, began: Instant, jitter: f64, failure: &Failure) -> Duration {
        match self.rule {
            BackoffRule::PartOfOutage { min, max, calm } => self.part_of_outage((min, max, calm), now, jitter, failure),
            BackoffRule::Doubling { min, max, calm, servers } => {
                self.failures = if now.since(began) > calm { 1 } else { self.failures.saturating_add(1) };
                doubled((min, max), self.failures / servers.max(1), jitter)
            }
        }
    }

    fn part_of_outage(
        &mut self,
        (min, max, calm): (Duration, Duration, Duration),
        now: Instant,
        jitter: f64,
        failure: &Failure,
    ) -> Duration {
        // Half the maximum, so that the jitter doubles the longest pauses too: a waiting fleet then retries spread over
        // that half.
        let longest = min.max(max / 2);
        let failing_for = now.since(self.since(calm, now, failure));
        let pause = (failing_for / PAUSE_PART).clamp(min, longest);
        let asked = failure.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX).mul_f64(1.0 + jitter / 4.0);
        let pause = pause.mul_f64(1.0 + jitter).max(asked);
        holds(pause >= min, "a failure is followed by a pause");
        holds(pause <= max.max(2 * min).max(RETRY_AFTER_MAX + RETRY_AFTER_MAX / 4), "a pause is bounded");
        self.failing = Some((now - failing_for, now + pause));
        holds(self.failing.is_some_and(|(since, end)| since <= now && now < end), "a pause ends later");
        pause
    }

    /// Returns the start of the outage. The first failure after the source is reachable again resets it once: a
    /// starting server may answer 403 until its authorizer is ready, and these retries must not wait as long as those
    /// of the outage did.
    fn since(&mut self, calm: Duration, now: Instant, failure: &Failure) -> Instant {
        let known = self.failing.filter(|(_, end)| now.since(*end) <= calm);
        let is_reached = failure.kind != FailureKind::Disconnected;
        let is_news = is_reached && !self.reached;
        self.reached = is_reached || known.is_some() && self.reached;
        let since = known.filter(|_| !is_news).map_or(now, |(since, _)| since);
        holds(since <= now, "an outage begins before it ends");
        since
    }
}

/// Returns the pause after this many failed rounds, or zero within the first one.
fn doubled((min, max): (Duration, Duration), rounds: usize, jitter: f64) -> Duration {
    if rounds == 0 {
        return Duration::ZERO;
    }
    let doublings = (rounds - 1).min(16);
    let pause = min.saturating_mul(1 << doublings).min(max).mul_f64(1.0 + jitter / 2.0);
    holds(min <= pause && pause <= 2 * max, "a pause is bounded");
    pause
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_of_outage() -> Backoff {
        let seconds = Duration::from_secs;
        let (min, max, calm) = (Duration::from_millis(400), seconds(30), seconds(10));
        Backoff::new(BackoffRule::PartOfOutage { min, max, calm })
    }

    fn unreachable() -> Failure {
        Failure::new(FailureKind::Disconnected, "connection")
    }

    fn rejected(retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        Failure { retry_after, ..Failure::new(FailureKind::Forbidden, "forbidden") }
    }

    #[test]
    fn pauses_grow_with_the_outage_and_reset_after_it() {
        let mut backoff = part_of_outage();
        // ((seconds since the start, jitter, failure), expected pause in milliseconds)
        for (at, jitter, failure, expected) in [
            (0, 0.0, unreachable(), 400),
            (1, 0.5, unreachable(), 600),
            (8, 0.0, unreachable(), 500),
            (16, 1.0, unreachable(), 2000),
            (20, 0.0, rejected(None), 400),
            (28, 0.0, unreachable(), 500),
            (36, 0.0, rejected(Some(1)), 1000),
            (45, 1.0, rejected(None), 3125),
            (56, 0.0, rejected(Some(60)), 60_000),
            (120, 1.0, rejected(Some(4000)), 150_000),
            (276, 0.0, unreachable(), 15_000),
            (300, 1.0, unreachable(), 30_000),
            (341, 0.0, unreachable(), 400),
        ] {
            let now = Instant::START + Duration::from_secs(at);
            assert_eq!(backoff.pause(now, now, jitter, &failure).as_millis(), expected, "at {at}");
        }
    }

    #[test]
    fn jitter_spreads_the_retries_of_a_fleet() {
        let outage = Duration::from_secs(600);
        // Time at which each of 300 replicas reaches the server again after an outage that started for all at the same
        // moment.
        let back = |replica: u32| {
            let (mut backoff, mut at, mut luck) = (part_of_outage(), Instant::START, replica);
            while at < Instant::START + outage {
                luck = luck.wrapping_add(1).wrapping_mul(2_654_435_761);
                at = at + backoff.pause(at, at, f64::from(luck >> 8) / f64::from(1 << 24), &unreachable());
            }
            at.since(Instant::START)
        };
        let mut seconds: Vec<u64> = (0..300).map(|replica| back(replica).as_secs()).collect();
        seconds.sort_unstable();
        assert!(seconds[299] - seconds[0] >= 10 && seconds[299] <= 630, "{seconds:?}");
        let busiest = seconds.chunk_by(|one, other| one == other).map(<[u64]>::len).max();
        assert!(busiest.unwrap() <= 60, "{seconds:?}");
    }

    #[test]
    fn pauses_double_after_each_round_up_to_the_maximum() {
        let seconds = Duration::from_secs;
        let at = |time| Instant::START + seconds(time);
        let (min, max, calm) = (Duration::from_millis(200), seconds(10), seconds(30));
        let mut backoff = Backoff::new(BackoffRule::Doubling { min, max, calm, servers: 2 });
        // (duration of the attempt, jitter, expected pause in milliseconds)
        for (step, (took, jitter, millis)) in
            [(3, 0.0, 0), (3, 0.0, 200), (3, 0.0, 200), (3, 0.0, 400), (3, 1.0, 600), (3, 1.0, 1200), (31, 0.0, 0)]
                .into_iter()
                .enumerate()
        {
            let pause = backoff.pause(at(100 + took), at(100), jitter, &unreachable());
            assert_eq!(pause.as_millis(), millis, "step {step}");
        }
        let last = (0..99).map(|_| backoff.pause(at(1), at(1), 1.0, &unreachable())).last();
        assert_eq!(last, Some(seconds(15)));
    }
}
