//! The times of the edge, each with its reason, and the pauses between attempts.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::failure::Failure;

/// The times that the edge goes by. They are a value so that tests need not wait.
#[derive(Clone, Debug)]
pub struct Timing {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long the server may take to begin an answer.
    pub answer: Duration,
    /// How long a list may pause.
    pub list_silence: Duration,
    /// How long a watch may say nothing until it is asked for anew, from the version that is known: so what a blind one
    /// did not bring comes within a minute. Asking costs the server next to nothing.
    pub watch_silence: Duration,
    /// The shortest time that a watch asks the server to keep it; the longest is twice that.
    pub watch: Duration,
    /// A watch that ends within this and has said nothing is a failure: asking again at once would never end.
    pub watch_min: Duration,
    /// The first pauses after a failure; they grow with the time for which it fails.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// After so long without a failure pauses are short again. What fails later than this paces itself.
    pub calm: Duration,
    /// How long a client is kept although it fails: making one may run a credential plugin.
    pub client_min: Duration,
    /// The pause after which it is tried again to see a namespace that we may not see.
    pub forbidden: Duration,
    /// The pause after which objects are asked for again of which the server does not know the kind: it may be installed
    /// later.
    pub absent: Duration,
    /// How often manifests are looked at.
    pub poll: Duration,
    /// The least time between two snapshots: what is lost with a process that dies is no older.
    pub snapshot: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            connect: seconds(10),
            answer: seconds(30),
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

/// The time of day, since 1970.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time of day as serials have it.
pub(crate) fn now_seconds() -> u32 {
    u32::try_from(since_epoch().as_secs()).unwrap_or(u32::MAX)
}

/// The longest time that `Retry-After` is obeyed: a mistake there must not blind us for a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// A pause is this part of the time for which it fails already, and at most twice that: what is known gets older by no
/// more than an eighth for it, be it an API server that begins anew in a few seconds or an outage of minutes.
const PAUSE_PART: u32 = 16;

/// The pauses between attempts that fail.
#[derive(Default)]
pub(crate) struct Backoff {
    /// Since when it fails, and when the last pause was to end.
    failing: Option<(Instant, Instant)>,
    /// Whether the server was reached since then.
    reached: bool,
}

impl Backoff {
    /// The pause after a failure now. `jitter` is random from 0 to 1, so that a fleet does not come back as one.
    pub(crate) fn pause(&mut self, timing: &Timing, now: Instant, jitter: f64, failure: &Failure) -> Duration {
        // The longest pauses are as random as the others: a fleet that waits for one server is spread over half of them.
        let longest = timing.pause_min.max(timing.pause_max / 2);
        let failing_for = now.saturating_duration_since(self.since(timing, now, failure));
        let pause = (failing_for / PAUSE_PART).clamp(timing.pause_min, longest);
        let asked = failure.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX).mul_f64(1.0 + jitter / 4.0);
        let pause = pause.mul_f64(1.0 + jitter).max(asked);
        self.failing = Some((now - failing_for, now + pause));
        pause
    }

    /// Since when it fails. A server that is there again may refuse for a moment, until it knows whose rights are what:
    /// that is no part, once, of the time for which it could not be reached.
    fn since(&mut self, timing: &Timing, now: Instant, failure: &Failure) -> Instant {
        let known = self.failing.filter(|(_, end)| now.saturating_duration_since(*end) <= timing.calm);
        let is_reached = !matches!(failure, Failure::Connection(_));
        let is_news = is_reached && !self.reached;
        self.reached = is_reached || known.is_some() && self.reached;
        known.filter(|_| !is_news).map_or(now, |(since, _)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_shrink_again() {
        let timing = Timing::default();
        let start = Instant::now();
        let mut backoff = Backoff::default();
        let millis = |pause: Duration| pause.as_millis();
        // (seconds since the start, jitter, what fails) and the pause in milliseconds
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

    fn unreachable() -> Failure {
        Failure::Connection(String::new())
    }

    fn refused(retry_after: Option<u64>) -> Failure {
        Failure::Status { code: 403, message: String::new(), retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn a_fleet_does_not_come_back_as_one() {
        let (timing, start) = (Timing::default(), Instant::now());
        let outage = Duration::from_secs(600);
        // Three hundred replicas that fail from one moment on: when they ask first after it is over.
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
