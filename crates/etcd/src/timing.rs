//! Timeouts and intervals with their reasons, and the backoff between attempts.

use std::time::Duration;

/// Timeouts and intervals. Tests use shorter ones.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Timeout for a connection including TLS. The next member is tried after it.
    pub connect: Duration,
    /// Timeout for a response.
    pub response: Duration,
    /// Interval between HTTP/2 pings. etcd closes connections that ping more often than once in five seconds.
    pub keep_alive: Duration,
    /// Timeout for the response to a ping.
    pub keep_alive_response: Duration,
    /// Interval between checks for leases to look up.
    pub leases: Duration,
    /// First pause after all members have failed. Each further pause is twice as long.
    pub pause_min: Duration,
    /// Longest pause, without jitter.
    pub pause_max: Duration,
    /// Duration of a successful connection after which the backoff starts over.
    pub calm: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            connect: seconds(3),
            response: seconds(10),
            keep_alive: seconds(10),
            keep_alive_response: seconds(5),
            leases: seconds(1),
            pause_min: Duration::from_millis(200),
            pause_max: seconds(10),
            calm: seconds(30),
        }
    }
}

impl Timing {
    /// Returns the pause after this many failed rounds, at least one. `jitter` is a random number from 0 to 1 that
    /// spreads the retries of a fleet.
    pub(crate) fn pause(&self, failures: usize, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let pause = self.pause_min.saturating_mul(1 << doublings).min(self.pause_max);
        pause.mul_f64(1.0 + jitter / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let timing = Timing::default();
        for (failures, jitter, millis) in
            [(1, 0.0, 200), (2, 0.0, 400), (3, 1.0, 1200), (7, 0.0, 10_000), (99, 1.0, 15_000)]
        {
            assert_eq!(timing.pause(failures, jitter).as_millis(), millis, "{failures}");
        }
    }
}
