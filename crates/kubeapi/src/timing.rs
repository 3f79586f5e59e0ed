//! The times of the edge, each with its reason, and the pauses between attempts.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

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
    /// The first pause after a failure; it doubles.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// After so long without a failure pauses are short again.
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
            pause_min: Duration::from_millis(800),
            pause_max: seconds(30),
            calm: seconds(120),
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

/// The pauses between attempts that fail.
pub(crate) struct Backoff {
    next: Duration,
    failed: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new(timing: &Timing) -> Backoff {
        Backoff { next: timing.pause_min, failed: None }
    }

    /// The pause after a failure now. `jitter` is random from 0 to 1, so that a fleet does not come back as one.
    pub(crate) fn pause(
        &mut self,
        timing: &Timing,
        now: Instant,
        jitter: f64,
        retry_after: Option<Duration>,
    ) -> Duration {
        if self.failed.is_some_and(|failed| now.duration_since(failed) > timing.calm + self.next) {
            self.next = timing.pause_min;
        }
        self.failed = Some(now);
        let pause = self.next.mul_f64(1.0 + jitter);
        // The longest pauses are as random as the others: a fleet that waits for one server is spread over half of them.
        self.next = (self.next * 2).min(timing.pause_min.max(timing.pause_max / 2));
        pause.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX).mul_f64(1.0 + jitter / 4.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_shrink_again() {
        let timing = Timing::default();
        let start = Instant::now();
        let mut backoff = Backoff::new(&timing);
        let millis = |pause: Duration| pause.as_millis();
        // (seconds since the start, jitter, Retry-After in seconds) and the pause in milliseconds
        for (at, jitter, retry_after, expected) in [
            (0, 0.0, None, 800),
            (1, 0.5, None, 2400),
            (4, 0.0, None, 3200),
            (10, 1.0, None, 12_800),
            (20, 0.0, Some(1), 12_800),
            (40, 0.0, None, 15_000),
            (70, 1.0, None, 30_000),
            (100, 0.0, Some(60), 60_000),
            (200, 1.0, Some(4000), 150_000),
            (330, 0.0, None, 15_000),
            (500, 0.0, None, 800),
        ] {
            let retry_after = retry_after.map(Duration::from_secs);
            let pause = backoff.pause(&timing, start + Duration::from_secs(at), jitter, retry_after);
            assert_eq!(millis(pause), expected, "at {at}");
        }
    }

    #[test]
    fn a_fleet_does_not_come_back_as_one() {
        let (timing, start) = (Timing::default(), Instant::now());
        let outage = Duration::from_secs(600);
        // Three hundred replicas that fail from one moment on: when they ask first after it is over.
        let back = |replica: u32| {
            let (mut backoff, mut at, mut luck) = (Backoff::new(&timing), Duration::ZERO, replica);
            while at < outage {
                luck = luck.wrapping_add(1).wrapping_mul(2_654_435_761);
                at += backoff.pause(&timing, start + at, f64::from(luck >> 8) / f64::from(1 << 24), None);
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
