//! Timeouts and intervals with their reasons.

use std::time::Duration;

use listwatch::{BackoffRule, Policy, Resume};

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
    /// Returns the settings of a store with this many members. Every failure leads to a new list, and a list counts
    /// when the watch from it has begun. Pings replace the timeouts of silence.
    pub(crate) fn policy(&self, servers: usize) -> Policy {
        let Timing { pause_min: min, pause_max: max, calm, .. } = *self;
        Policy {
            streams: false,
            resume: Resume::List,
            counts_from_watch: true,
            backoff: BackoffRule::Doubling { min, max, calm, servers },
            ..Policy::default()
        }
    }
}
