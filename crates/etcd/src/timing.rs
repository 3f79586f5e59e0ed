//! The times of the edge, each with its reason, and the pauses between attempts.

use std::time::Duration;

/// The times that the edge goes by. They are a value so that tests need not wait.
#[derive(Clone, Debug)]
pub struct Timing {
    /// How long a connection may take, TLS included: then it is the next member's turn.
    pub connect: Duration,
    /// How long an answer may take.
    pub answer: Duration,
    /// How often a quiet connection is tested: etcd takes more than one test in five seconds for an attack.
    pub keep_alive: Duration,
    /// How long such a test may take.
    pub keep_alive_answer: Duration,
    /// How often it is looked whether the end of a lease must be asked for.
    pub leases: Duration,
    /// The first pause once no member could be followed; it doubles.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// A member that was followed for so long has not failed at once: pauses are short again.
    pub calm: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            connect: seconds(3),
            answer: seconds(10),
            keep_alive: seconds(10),
            keep_alive_answer: seconds(5),
            leases: seconds(1),
            pause_min: Duration::from_millis(200),
            pause_max: seconds(10),
            calm: seconds(30),
        }
    }
}

impl Timing {
    /// The pause after so many failures in a row, at least one. `jitter` is random from 0 to 1, so that a fleet does not
    /// come back as one.
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
    fn pauses_grow() {
        let timing = Timing::default();
        for (failures, jitter, millis) in
            [(1, 0.0, 200), (2, 0.0, 400), (3, 1.0, 1200), (7, 0.0, 10_000), (99, 1.0, 15_000)]
        {
            assert_eq!(timing.pause(failures, jitter).as_millis(), millis, "{failures}");
        }
    }
}
