//! Timeouts and intervals with their reasons.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use host::Instant;
use kube::Client;
use listwatch::{BackoffRule, Order, Policy, Resume};
use rand::rngs::StdRng;
use rustix::time::{ClockId, clock_gettime};

/// Timeouts and intervals, and what else tests need smaller.
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
    /// Age of what a watch knows from which the API server is asked whether it is current, if the subscription limits
    /// the age of its view. A list of at most one object is the cheapest consistent read.
    pub prove: Duration,
    /// Mean interval between questions for the number of objects, by which events that the API server left out are
    /// noticed. With the longest one, half longer, they are listed within a minute. Each question makes the API server
    /// look up one object and, before Kubernetes 1.34, count the keys in etcd.
    pub count: Duration,
    /// Interval between looks at the age of the view, and so the error of the age that stale answers carry.
    pub age: Duration,
    /// Clock for the age of the view.
    pub clock: fn() -> Instant,
    /// Source of random numbers, which spread the requests of many servers.
    pub random: fn() -> StdRng,
    /// Creates the client for an API server with this URL, in place of one with connections. A simulation uses it.
    pub client: Option<fn(&str) -> Client>,
    /// Timeout for establishing a connection to a relay, and for the begin of its response: another one is near.
    pub relay_connect: Duration,
    /// See [`relay_connect`](Timing::relay_connect).
    pub relay_response: Duration,
    /// Longest pause before the next relay is asked: the nodes of a relay that ends spread their connections.
    pub relay_reconnect: Duration,
    /// Longest silence of a relay, which sends a bookmark each second while its view is current.
    pub relay_silence: Duration,
    /// Time without a relay from which the API server is asked: a restart of all relays takes less.
    pub relay_patience: Duration,
    /// Longest additional time. It spreads the requests of all nodes to the API server, and their return to the relays.
    pub relay_spread: Duration,
    /// Time for which all servers lacked the known position after which the API server is asked whether its storage was
    /// restored. A relay that lags has caught up before.
    pub relay_behind: Duration,
    /// Pause before a new snapshot is begun after a failure. It costs a list of everything, and each further failure
    /// doubles it.
    pub snapshot: Duration,
    /// Length in bytes of what a snapshot has after its base from which it is compacted, unless the base is longer.
    pub snapshot_growth: u64,
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
            prove: seconds(10),
            count: seconds(30),
            age: seconds(1),
            clock: time_since_boot,
            random: rand::make_rng,
            client: None,
            relay_connect: seconds(3),
            relay_response: seconds(10),
            relay_reconnect: seconds(1),
            relay_silence: seconds(3),
            relay_patience: seconds(30),
            relay_spread: seconds(60),
            relay_behind: seconds(60),
            snapshot: seconds(60),
            snapshot_growth: 1 << 20,
        }
    }
}

impl Timing {
    /// Returns the order of this many relays, and of the API server after them.
    pub(crate) fn order(&self, relays: usize, has_server: bool) -> Order {
        Order {
            relays,
            has_server,
            reconnect: self.relay_reconnect,
            silence: self.relay_silence,
            patience: self.relay_patience,
            spread: self.relay_spread,
            behind: self.relay_behind,
        }
    }

    /// Returns the timing of requests to a relay.
    pub(crate) fn of_relay(&self) -> Timing {
        Timing { connect: self.relay_connect, response: self.relay_response, ..self.clone() }
    }

    /// Returns the settings of a list and its watch.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            streams: true,
            resume: Resume::Check,
            order: None,
            counts_from_watch: false,
            unknown_is_empty: false,
            forbidden_is_listed: false,
            list_silence: self.list_silence,
            watch_silence: self.watch_silence,
            watch_min: self.watch_min,
            forbidden: self.forbidden,
            absent: self.absent,
            relist: self.pause_min,
            backoff: BackoffRule::PartOfOutage { min: self.pause_min, max: self.pause_max, calm: self.calm },
        }
    }
}

/// Returns the time since the machine was started, with the time in which it was suspended: the view of a virtual
/// machine that continues after hours is hours old.
fn time_since_boot() -> Instant {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    Instant::START + seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time since 1970-01-01.
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970-01-01, for SOA serials.
pub(crate) fn now_seconds() -> u32 {
    u32::try_from(since_epoch().as_secs()).unwrap_or(u32::MAX)
}
