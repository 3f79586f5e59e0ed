//! The bounds of the edge, each with its reason, counted when hit.

use std::time::Duration;

use engine::metrics::{Counter, Kind, Metric, Registry};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Datagrams read by one system call: half of what saturates the gain of batching costs half the memory.
pub const BATCH: usize = 32;
/// Octets of the longest query over UDP: a name of 255 octets with EDNS options fits several times.
pub(crate) const DATAGRAM_MAX: usize = 2048;
/// Queries that wait for the outside world, at all workers: some kilobytes each, so some tens of megabytes at worst.
pub(crate) const PARKED_MAX: usize = 6144;
/// Answers that one stream may wait for before it is not read any further.
pub(crate) const PIPELINE_MAX: usize = 128;
/// Octets of answers that one stream may have unwritten before no more of its queries are answered.
pub(crate) const UNWRITTEN_MAX: usize = 64 << 10;
/// Bytes that a connection may buffer each way without a reservation: more than queries and most answers have.
pub(crate) const BUFFERED_FREE: usize = 4096;
/// Bytes read from a stream at once: some hundred pipelined queries.
pub(crate) const READ_AT_ONCE: usize = 16 << 10;
/// Batches in a row before tasks get their turn.
pub const BATCHES_IN_A_ROW: usize = 8;

/// Raises the number of descriptors that this process may have open as far as the system allows, and gives it. Where it was
/// set for programs that call `select`, it is too small for connections of many clients.
pub fn raise_descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where the system refuses, the limit is what it was.
    let granted = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    granted.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// What clients may do with streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections open at a time, at all workers: a file descriptor and some kilobytes each.
    pub open_max: usize,
    /// Connections of one address open at a time: a node whose pods share its address has some hundred.
    pub per_address_max: usize,
    /// Bytes that all connections together may buffer beyond [`BUFFERED_FREE`] each: long queries that have not arrived as a
    /// whole, answers that clients do not take.
    pub buffered_max: usize,
    /// How long a query may take to arrive once its first octet has; the first one, from the start of the stream.
    pub read: Duration,
    /// How long a stream may be silent while nothing is on its way.
    pub idle: Duration,
    /// How long a client may take to accept the answers that are ready for it.
    pub write: Duration,
}

impl Default for StreamLimits {
    /// The times are CoreDNS's.
    fn default() -> Self {
        let [read, idle, write] = [3, 10, 5].map(Duration::from_secs);
        StreamLimits { open_max: 8192, per_address_max: 2048, buffered_max: 8 << 20, read, idle, write }
    }
}

static HITS: Metric = Metric {
    name: "portolan_limit_hits_total",
    help: "How often a bound of the server was reached, by bound.",
    kind: Kind::Counter,
    labels: &["limit"],
};

/// What is counted here, for the documentation.
pub static LIMIT_METRICS: [&Metric; 1] = [&HITS];

/// Counts when a bound is hit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// [`PARKED_MAX`].
    pub(crate) parked: Counter,
    /// Connections that were evicted: [`StreamLimits::open_max`], [`StreamLimits::per_address_max`].
    pub(crate) streams: Counter,
    /// [`StreamLimits::buffered_max`].
    pub(crate) buffers: Counter,
    /// [`CallLimits::connections_max`](engine::setup::CallLimits::connections_max).
    pub(crate) callers: Counter,
    /// Connections to pages over HTTP that were evicted for others.
    pub pages: Counter,
    /// Answers that the kernel did not take: its buffer was full.
    pub(crate) sends: Counter,
}

impl Limits {
    /// The counters in a registry.
    #[must_use]
    pub fn new(registry: &Registry) -> Limits {
        let counter = |limit: &str| registry.counter(&HITS, &[limit]);
        Limits {
            parked: counter("parked_queries"),
            streams: counter("streams"),
            buffers: counter("stream_buffers"),
            callers: counter("calling_connections"),
            pages: counter("page_connections"),
            sends: counter("udp_send_buffer"),
        }
    }
}
