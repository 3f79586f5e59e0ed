//! Limits of the network layer, each with its reason. Reaching one is counted.

use std::ops::RangeInclusive;
use std::time::Duration;

use metrics::{Counter, Kind, Metric, Registry};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cpu_budget::CpuLimit;

/// Queries that may wait for upstreams, across all workers. Each takes a few kilobytes, so some tens of megabytes at
/// worst. No client gets all of them ([`ClientShares`](engine::ClientShares)).
pub(crate) const PARKED_MAX: u32 = 6144;
/// Bytes that parked queries may hold together beyond the few kilobytes of each: long queries over streams, and
/// responses that wait for a part. Queries are rarely longer than a hundred bytes.
pub(crate) const PARKED_EXCESS_MAX: usize = 8 << 20;
/// Transactions that all workers together keep for reuse, of a few kilobytes each.
pub(crate) const POOLED_MAX: usize = 2048;
/// Bytes of kernel buffers for the datagrams of one address in each direction, across all workers. The memory limit of
/// the container includes these buffers.
pub(crate) const KERNEL_BUFFERS_MAX: usize = 32 << 20;
/// Range of the kernel buffers of one socket in bytes: hundreds to thousands of queries. The system may grant less.
pub(crate) const KERNEL_BUFFER: RangeInclusive<usize> = 256 << 10..=4 << 20;
/// Pending answers of one stream. At this number the server stops reading the stream.
pub(crate) const PIPELINE_MAX: usize = 128;
/// Unwritten answer bytes of one stream. At this number the server answers no more of its queries.
pub(crate) const UNWRITTEN_MAX: usize = 64 << 10;
/// Bytes that a connection may buffer in each direction without a reservation. Queries and most answers need less.
pub(crate) const BUFFERED_FREE: usize = 4096;
/// Bytes read from a stream at once: a few hundred pipelined queries.
pub(crate) const READ_AT_ONCE: usize = 16 << 10;
/// Consecutive batches of one socket before other tasks run.
pub(crate) const BATCHES_IN_A_ROW: usize = 8;

/// Raises the limit of open file descriptors to the maximum that the system allows, and returns it. The default limit
/// is often meant for programs that use `select`, which is too low for many client connections.
pub fn raise_descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If the system refuses, the old limit stays.
    let granted = if setrlimit(Resource::Nofile, raised).is_ok() { raised.current } else { limit.current };
    granted.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Limits of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Limits for client streams.
    pub streams: StreamLimits,
    /// Maximum number of queries that wait for upstreams, across all workers.
    pub parked_max: u32,
    /// CPU limit of the process, if it has one.
    pub cpu: Option<CpuLimit>,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        WorkerLimits { streams: StreamLimits::default(), parked_max: PARKED_MAX, cpu: None }
    }
}

/// Limits for client streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Maximum number of open connections across all workers. Each takes a file descriptor and a few kilobytes.
    pub open_max: usize,
    /// Maximum number of open connections from one address. Pods that share the address of their node open a few
    /// hundred.
    pub per_address_max: usize,
    /// Bytes that all connections together may buffer beyond [`BUFFERED_FREE`] each, for incomplete long queries and
    /// for answers that clients do not read.
    pub buffered_max: usize,
    /// Time for a query to arrive after its first byte. For the first query of a connection, time since it was opened.
    pub read: Duration,
    /// Time that a stream may be idle while no query is in flight.
    pub idle: Duration,
    /// Time for a client to read the answers that are ready for it.
    pub write: Duration,
}

impl Default for StreamLimits {
    /// Returns the defaults. The times are CoreDNS's.
    fn default() -> Self {
        let [read, idle, write] = [3, 10, 5].map(Duration::from_secs);
        StreamLimits { open_max: 8192, per_address_max: 2048, buffered_max: 8 << 20, read, idle, write }
    }
}

static HITS: Metric = Metric {
    name: "portolan_limit_hits_total",
    help: "Number of times that the server reached one of its limits, by limit.",
    kind: Kind::Counter,
    labels: &["limit"],
};

/// Metrics of this module, for the documentation.
pub static LIMIT_METRICS: [&Metric; 1] = [&HITS];

/// Counters of reached limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// [`PARKED_MAX`], [`PARKED_EXCESS_MAX`].
    pub(crate) parked: Counter,
    /// CPU time for queries to upstreams ([`WorkerLimits::cpu`]).
    pub(crate) cpu: Counter,
    /// Connections that were evicted: [`StreamLimits::open_max`], [`StreamLimits::per_address_max`].
    pub(crate) streams: Counter,
    /// [`StreamLimits::buffered_max`].
    pub(crate) buffers: Counter,
    /// [`CallLimits::connections_max`](engine::CallLimits::connections_max), and the limits of the other transports
    /// that have one.
    pub(crate) callers: Counter,
    /// [`EncryptionLimits::connection_rate`](engine::EncryptionLimits::connection_rate).
    pub(crate) rates: Counter,
    /// Connections to HTTP endpoints that were evicted for others.
    pub pages: Counter,
    /// Connections to the control API that were evicted for others.
    pub control: Counter,
    /// Answers that the kernel refused because its buffer was full.
    pub(crate) sends: Counter,
}

impl Limits {
    /// Registers the counters.
    #[must_use]
    pub fn new(registry: &Registry) -> Limits {
        let counter = |limit: &str| registry.counter(&HITS, &[limit]);
        Limits {
            parked: counter("parked_queries"),
            cpu: counter("cpu_time"),
            streams: counter("streams"),
            buffers: counter("stream_buffers"),
            callers: counter("calling_connections"),
            rates: counter("connection_rate"),
            pages: counter("page_connections"),
            control: counter("control_connections"),
            sends: counter("udp_send_buffer"),
        }
    }
}
