//! Limits of the network layer, each with its reason. Reaching one is counted.

use std::ops::RangeInclusive;
use std::time::Duration;

use metrics::{Counter, Kind, Metric, Registry};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cpu_budget::CpuLimit;

/// Queries that may wait for upstreams, across all workers, if there is memory for as many. No client gets all of them
/// ([`FairShares`](engine::FairShares)).
const PARKED_MAX: u32 = 6144;
/// The number that always may, whatever the memory.
const PARKED_MIN: u32 = 512;
/// Memory of a parked query among many in bytes, measured: its transaction, its task, the state of its exchange, and
/// what the allocator keeps for the next one.
const PARKED_SIZE: usize = 9 << 10;
/// Part of the memory limit that parked queries may take, and that long ones may take beyond [`PARKED_SIZE`].
const PARKED_SHARE: usize = 16;
const PARKED_EXCESS_SHARE: usize = 32;
/// Bytes that parked queries may hold together beyond [`PARKED_SIZE`] each, if there is memory for as many: long
/// queries over streams, and responses that wait for a part. Queries are rarely longer than a hundred bytes.
const PARKED_EXCESS_MAX: usize = 8 << 20;
/// Weight of the connections that may be open across all workers, if there is memory for as many, and the weight that
/// always may.
const STREAMS_MAX: usize = 8192;
const STREAMS_MIN: usize = 512;
/// Memory of a connection of weight 1 in bytes, measured: an idle one over TCP, with what it may buffer for free in
/// both directions.
const STREAM_SIZE: usize = (3 << 10) + 2 * BUFFERED_FREE;
/// Part of the memory limit that connections may take, and that they may take for buffers.
const STREAMS_SHARE: usize = 8;
const BUFFERED_SHARE: usize = 32;
/// Part of the memory limit that replies of upstreams may take before their queries take them.
const REPLIES_SHARE: usize = 32;
/// Bytes of replies of upstreams that have arrived in part, or that wait for their queries, if there is memory for as
/// many: a hundred of the maximum length.
pub(crate) const REPLIES_MAX: usize = 8 << 20;
/// Bytes of buffers of all connections beyond [`BUFFERED_FREE`] each, if there is memory for as many.
const BUFFERED_MAX: usize = 8 << 20;
/// Parked queries of one worker that keep the room for their response. Among more, a query gives it back while it waits
/// and allocates it again for the answer: this takes a percent of the time of a forwarded query, and half the memory.
pub(crate) const ROOMY_MAX: usize = 64;
/// Transactions that all workers together keep for reuse. A worker needs one for a local answer, and more for queries
/// that it forwards.
pub(crate) const POOLED_MAX: usize = 1024;
/// Memory of a pooled transaction in bytes: with a query and a response of usual length.
const POOLED_SIZE: usize = 8 << 10;
/// Bytes of received datagrams of one address that wait in the kernel, across all workers, as Linux counts them: twice
/// the size that is set. The memory limit of the container includes them.
pub(crate) const KERNEL_BUFFERS_MAX: usize = 16 << 20;
/// Range of the kernel buffers of one socket in bytes: hundreds to thousands of queries. The system may grant less.
pub(crate) const KERNEL_BUFFER: RangeInclusive<usize> = 256 << 10..=4 << 20;
/// Pending answers of one stream. At this number the server stops reading the stream.
pub(crate) const PIPELINE_MAX: usize = 128;
/// Unwritten answer bytes of one stream. At this number the server answers no more of its queries.
pub(crate) const UNWRITTEN_MAX: usize = 64 << 10;
/// Bytes that a connection may buffer in each direction without a reservation. Most queries and answers need less.
pub(crate) const BUFFERED_FREE: usize = 1024;
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
    /// Bytes that these queries may take together beyond a few kilobytes each.
    pub parked_excess_max: usize,
    /// Bytes of replies of upstreams that have arrived in part, or that wait for their queries.
    pub replies_max: usize,
    /// CPU limit of the process at the start, if it has one. [`Workers::cpu_limit`](crate::Workers::cpu_limit) changes
    /// it.
    pub cpu: Option<CpuLimit>,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        WorkerLimits::within(None)
    }
}

impl WorkerLimits {
    /// Returns the limits for a process that may use this many bytes of memory, or any number of them.
    ///
    /// Clients get parts of the memory limit that leave room for the cluster, the caches and a new configuration:
    /// `docs/failure-modes.md` adds them up.
    #[must_use]
    pub fn within(memory: Option<u64>) -> WorkerLimits {
        let memory = memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        let parked_max = u32::try_from(memory / PARKED_SHARE / PARKED_SIZE).unwrap_or(u32::MAX);
        WorkerLimits {
            streams: StreamLimits {
                open_max: (memory / STREAMS_SHARE / STREAM_SIZE).clamp(STREAMS_MIN, STREAMS_MAX),
                buffered_max: (memory / BUFFERED_SHARE).min(BUFFERED_MAX),
                ..StreamLimits::default()
            },
            parked_max: parked_max.clamp(PARKED_MIN, PARKED_MAX),
            parked_excess_max: (memory / PARKED_EXCESS_SHARE).min(PARKED_EXCESS_MAX),
            replies_max: (memory / REPLIES_SHARE).min(REPLIES_MAX),
            cpu: None,
        }
    }

    /// Returns what clients can make the workers use at most, each with its number of bytes.
    #[must_use]
    pub const fn memory(&self) -> [(&'static str, usize); 7] {
        [
            ("queries that wait for upstreams", self.parked_max as usize * PARKED_SIZE),
            ("long ones among them", self.parked_excess_max),
            ("replies of upstreams that wait for them", self.replies_max),
            ("pooled transactions", POOLED_MAX * POOLED_SIZE),
            ("client connections", self.streams.open_max * STREAM_SIZE),
            ("their long queries and unread answers", self.streams.buffered_max),
            ("datagrams of one address in the kernel", KERNEL_BUFFERS_MAX),
        ]
    }
}

/// Limits for client streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Maximum weight of the open connections across all workers. One over TCP has the weight 1.
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
        StreamLimits { open_max: STREAMS_MAX, per_address_max: 2048, buffered_max: BUFFERED_MAX, read, idle, write }
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
    /// [`WorkerLimits::parked_max`], [`WorkerLimits::parked_excess_max`].
    pub(crate) parked: Counter,
    /// [`WorkerLimits::replies_max`], and replies that wait for their queries.
    pub(crate) replies: Counter,
    /// CPU time for queries to upstreams ([`WorkerLimits::cpu`]).
    pub(crate) cpu: Counter,
    /// Connections that were evicted: [`StreamLimits::open_max`], [`StreamLimits::per_address_max`].
    pub(crate) streams: Counter,
    /// Connections that could not be accepted at once, usually for lack of descriptors.
    pub(crate) descriptors: Counter,
    /// [`StreamLimits::buffered_max`].
    pub(crate) buffers: Counter,
    /// [`CallLimits::connections_max`](engine::CallLimits::connections_max), and the limits of the other transports
    /// that have one.
    pub(crate) callers: Counter,
    /// [`EncryptionLimits::connection_rate`](engine::EncryptionLimits::connection_rate).
    pub(crate) rates: Counter,
    /// Zones that were refused because they are too large: `max_records`, `max_bytes`, and the memory that is left.
    pub zones: Counter,
    /// Bodies of refused requests that were longer than
    /// [`DISCARDED_MAX`](transport::request_body::DISCARDED_MAX).
    pub bodies: Counter,
    /// CPU profiles that did not fit into the memory that is left.
    pub profiles: Counter,
    /// Responses of the control API that were too long.
    pub control_responses: Counter,
    /// Requests to the control API that took longer than the server allows itself.
    pub control_time: Counter,
    /// Questions to an API server or a kubelet about the client of an explanation that had no response in time.
    pub pod_lookup_time: Counter,
    /// Connections to HTTP endpoints that were evicted for others.
    pub pages: Counter,
    /// Connections to the control API that were evicted for others.
    pub control: Counter,
    /// Answers that the kernel refused because its buffer was full.
    pub(crate) sends: Counter,
    /// PROXY protocol headers with longer TLVs than [`TLVS_MAX`](transport::proxy::TLVS_MAX).
    pub(crate) proxy_tlvs: Counter,
}

impl Limits {
    /// Registers the counters.
    #[must_use]
    pub fn new(registry: &Registry) -> Limits {
        let counter = |limit: &str| registry.counter(&HITS, &[limit]);
        Limits {
            parked: counter("parked_queries"),
            replies: counter("upstream_replies"),
            cpu: counter("cpu_time"),
            streams: counter("streams"),
            descriptors: counter("descriptors"),
            buffers: counter("stream_buffers"),
            callers: counter("calling_connections"),
            rates: counter("connection_rate"),
            zones: counter("zone_size"),
            bodies: counter("request_bodies"),
            profiles: counter("profile_memory"),
            control_responses: counter("control_responses"),
            control_time: counter("control_time"),
            pod_lookup_time: counter("pod_lookup_time"),
            pages: counter("page_connections"),
            control: counter("control_connections"),
            sends: counter("udp_send_buffer"),
            proxy_tlvs: counter("proxy_tlvs"),
        }
    }
}
