//! Timeouts and intervals with their reasons, and the backoff between attempts.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::failure::ApiError;

/// Timeouts and intervals. Tests use shorter ones.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Timeout for establishing a connection.
    pub connect: Duration,
    /// Timeout from the request to the response headers.
    pub response: Duration,
    /// Longest pause between two parts of a list response.
    pub list_silence: Duration,
    /// Longest silence of a watch. The watch is then restarted from the last known resource version, which costs the
    /// server almost nothing. Events that a stalled watch did not deliver thus arrive within a minute.
    pub watch_silence: Duration,
    /// Shortest `timeoutSeconds` of a watch request. The longest is twice that.
    pub watch: Duration,
    /// Minimum lifetime of a watch without events. A watch that ends earlier counts as failed, because immediate
    /// retries would loop.
    pub watch_min: Duration,
    /// Shortest pause after a failure. Pauses grow with the duration of the outage.
    pub pause_min: Duration,
    /// Longest pause.
    pub pause_max: Duration,
    /// Time without a failure after which the backoff starts over. Failures that are further apart need no backoff.
    pub calm: Duration,
    /// Minimum lifetime of a client even if it fails, because building one may run a credential plugin.
    pub client_min: Duration,
    /// Pause before the next attempt to read a namespace that we have no permission to read.
    pub forbidden: Duration,
    /// Pause before the next attempt to list a kind that the server does not know. Its CRD may be installed later.
    pub absent: Duration,
    /// Interval between checks of the manifest files.
    pub poll: Duration,
    /// Minimum time between two snapshots, and so the maximum age of the snapshot of a process that dies.
    pub snapshot: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            connect: seconds(10),
            response: seconds(30),
            list_silence: seconds(15),
            watch_silence: seconds(50),
            watch: seconds(300),
            watch_min: seconds(1),
            pause_min: Duration::from_millis(400),
            pause_max: seconds(30),
            calm: seconds(10),
            client_min: seconds(10),
            forbidden: seconds(300),
            absent: seconds(30),
            poll: seconds(1),
            snapshot: seconds(30),
        }
    }
}

/// Time since 1970-01-01.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970-01-01, for SOA serials.
pub(crate) fn now_seconds() -> u32 {
    u32::try_from(since_epoch().as_secs()).unwrap_or(u32::MAX)
}

/// Upper bound on `Retry-After`. A wrong value there must not stop updates for a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Divisor of the duration of an outage that yields the pause: 1/16, and up to 1/8 with jitter. After the server is
/// back, data stays stale for at most another eighth of the outage, both after a restart of seconds and an outage of
/// minutes.
const PAUSE_PART: u32 = 16;

/// Backoff between failed attempts.
#[derive(Default)]
pub(crate) struct Backoff {
    /// Time of the first failure, and the end of the last pause.
    failing: Option<(Instant, Instant)>,
    /// True if the server was reached during this outage.
    reached: bool,
}

impl Backoff {
    /// Returns the pause after a failure at `now`. `jitter` is a random number from 0 to 1 that spreads the retries of
    /// a fleet.
    pub(crate) fn pause(&mut self, timing: &Timing, now: Instant, jitter: f64, failure: &ApiError) -> Duration {
        // Half the maximum, so that the jitter doubles the longest pauses too: a waiting fleet then retries spread over
        // that half.
        let longest = timing.pause_min.max(timing.pause_max / 2);
        let failing_for = now.saturating_duration_since(self.since(timing, now, failure));
        let pause = (failing_for / PAUSE_PART).clamp(timing.pause_min, longest);
        let asked = failure.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX).mul_f64(1.0 + jitter / 4.0);
        let pause = pause.mul_f64(1.0 + jitter).max(asked);
        self.failing = Some((now - failing_for, now + pause));
        pause
    }

    /// Returns the start of the outage. The first failure after the server is reachable again resets it once: a
    /// starting server may answer 403 until its authorizer is ready, and these retries must not wait as long as those
    /// of the outage did.
    fn since(&mut self, timing: &Timing, now: Instant, failure: &ApiError) -> Instant {
        let known = self.failing.filter(|(_, end)| now.saturating_duration_since(*end) <= timing.calm);
        let is_reached = !matches!(failure, ApiError::Connection(_));
        let is_news = is_reached && !self.reached;
        self.reached = is_reached || known.is_some() && self.reached;
        known.filter(|_| !is_news).map_or(now, |(since, _)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_the_outage_and_reset_after_it() {
        let timing = Timing::default();
        let start = Instant::now();
        let mut backoff = Backoff::default();
        let millis = |pause: Duration| pause.as_millis();
        // ((seconds since the start, jitter, failure), expected pause in milliseconds)
        for (at, jitter, failure, expected) in [
            (0, 0.0, unreachable(), 400),
            (1, 0.5, unreachable(), 600),
            (8, 0.0, unreachable(), 500),
            (16, 1.0, unreachable(), 2000),
            (20, 0.0, refused(None), 400),
            (28, 0.0, unreachable(), 500),
            (36, 0.0, refused(Some(1)), 1000),
            (45, 1.0, refused(None), 3125),
            (56, 0.0, refused(Some(60)), 60_000),
            (120, 1.0, refused(Some(4000)), 150_000),
            (276, 0.0, unreachable(), 15_000),
            (300, 1.0, unreachable(), 30_000),
            (341, 0.0, unreachable(), 400),
        ] {
            let pause = backoff.pause(&timing, start + Duration::from_secs(at), jitter, &failure);
            assert_eq!(millis(pause), expected, "at {at}");
        }
    }

    fn unreachable() -> ApiError {
        ApiError::Connection(String::new())
    }

    fn refused(retry_after: Option<u64>) -> ApiError {
        ApiError::Status { code: 403, message: String::new(), retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn jitter_spreads_the_retries_of_a_fleet() {
        let (timing, start) = (Timing::default(), Instant::now());
        let outage = Duration::from_secs(600);
        // Time at which each of 300 replicas reaches the server again after an outage that started for all at the same
        // moment.
        let back = |replica: u32| {
            let (mut backoff, mut at, mut luck) = (Backoff::default(), Duration::ZERO, replica);
            while at < outage {
                luck = luck.wrapping_add(1).wrapping_mul(2_654_435_761);
                at += backoff.pause(&timing, start + at, f64::from(luck >> 8) / f64::from(1 << 24), &unreachable());
            }
            at
        };
        let mut seconds: Vec<u64> = (0..300).map(|replica| back(replica).as_secs()).collect();
        seconds.sort_unstable();
        assert!(seconds[299] - seconds[0] >= 10 && seconds[299] <= 630, "{seconds:?}");
        let busiest = seconds.chunk_by(|one, other| one == other).map(<[u64]>::len).max();
        assert!(busiest.unwrap() <= 60, "{seconds:?}");
    }
}
