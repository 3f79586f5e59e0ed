//! State of the server on one screen.

mod problem;
mod replica;
mod text;
#[cfg(test)]
mod text_tests;

use serde::{Deserialize, Serialize};

pub use problem::{Problem, ProblemCode};
pub use replica::{Replica, difference};

/// State of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Version of the server.
    pub version: String,
    /// Version of CoreDNS whose Corefiles and metrics it has.
    pub compatible_with: String,
    /// Name of the Pod, or of the host outside of Kubernetes.
    pub host: String,
    /// True if `host` is a Pod.
    pub in_pod: bool,
    /// Process ID, in the server's own namespace.
    pub process_id: u32,
    /// Time since the start in seconds.
    pub uptime_seconds: f64,
    /// Restarts by the keeper; `null` without a keeper.
    #[serde(default)]
    pub keeper: Option<Keeper>,
    /// Ability to answer queries.
    pub serving: Serving,
    /// Directives that are not ready.
    pub unready: Vec<String>,
    /// Running configuration.
    pub corefile: Corefile,
    /// Servers of the same Service, this one included; empty outside of a Service.
    #[serde(default)]
    pub replicas: Vec<Replica>,
    /// Clusters whose objects are followed.
    pub clusters: Vec<Cluster>,
    /// Answers to queries.
    pub answers: Answers,
    /// Upstreams of *forward*.
    pub upstreams: Vec<Upstream>,
    /// Probes of *loop*, one for each server block with it.
    #[serde(default)]
    pub loops: Vec<LoopProbe>,
    /// All caches together; `null` without *cache*.
    pub cache: Option<Cache>,
    /// Limits of the server that were reached.
    pub limits: Limits,
    /// Memory and CPU.
    pub resources: Resources,
    /// Problems that need attention, worst first.
    pub problems: Vec<Problem>,
}

/// Exits of earlier servers, as counted by the keeper, the parent process of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keeper {
    /// Number of times that it has started the server again. The last time is the start of this server.
    pub restarts: u64,
    /// Number of them in the hour before this server started, with this start.
    pub restarts_in_hour: u64,
    /// End of the last server, such as `was killed by signal 9 (SIGKILL)`; empty without a restart.
    pub last_exit: String,
}

/// Time in seconds for which a restart is a problem.
const RESTART_SHOWN: f64 = 3600.0;

impl Status {
    /// Describes the last restart, if it was in the last hour.
    #[must_use]
    pub fn restart_text(&self) -> Option<String> {
        let keeper = self.keeper.as_ref().filter(|keeper| keeper.restarts > 0)?;
        let ago = crate::text::duration(self.uptime_seconds);
        (self.uptime_seconds < RESTART_SHOWN).then(|| {
            let more = match keeper.restarts_in_hour {
                0 | 1 => String::new(),
                number => format!("; {number} restarts in an hour"),
            };
            format!("the server {} and started again {ago} ago{more}", keeper.last_exit)
        })
    }
}

/// Ability of a server to answer queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Serving {
    /// All directives are ready.
    Ready,
    /// The server answers, but a directive is not ready.
    NotReady,
    /// The server shuts down.
    Ending,
}

/// Maximum number of warnings in a status.
pub const WARNINGS_MAX: usize = 8;

/// Running configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Corefile {
    /// Number of configurations that this process has loaded, this one included.
    pub generation: u64,
    /// SHA-512 of the configuration, the same as in `coredns_reload_version_info`.
    pub hash: String,
    /// Time since it was loaded in seconds.
    pub age_seconds: f64,
    /// Number of server blocks.
    pub blocks: u64,
    /// Number of warnings.
    pub warnings: u64,
    /// First warnings, each with its file and line; at most [`WARNINGS_MAX`].
    #[serde(default)]
    pub first_warnings: Vec<String>,
    /// Newer configuration that could not be loaded; `null` if the last reload succeeded.
    pub refused: Option<Refused>,
}

/// Configuration that could not be loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// Time since the attempt in seconds.
    pub age_seconds: f64,
    /// Error as in the log.
    pub error: String,
}

/// Cluster whose objects are followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cluster {
    /// API server, or files.
    pub source: String,
    /// True once all objects were listed.
    pub synced: bool,
    /// True if part of the data comes from the snapshot of an earlier process.
    pub from_snapshot: bool,
    /// Age of the data in seconds: the greatest time since the API server last confirmed a resource with an event, a
    /// bookmark, the end of a list or a consistent read. `null` for files, and until each resource was listed once.
    pub age_seconds: Option<f64>,
    /// Age in seconds from which answers carry an Extended DNS Error (`stale_after`); `null` if they never do.
    #[serde(default)]
    pub stale_after_seconds: Option<f64>,
    /// Number of Services.
    pub services: u64,
    /// Number of endpoint addresses.
    pub endpoints: u64,
    /// Time since the last snapshot in seconds; `null` if none was written.
    pub snapshot_age_seconds: Option<f64>,
    /// Watched resources.
    pub resources: Vec<Resource>,
}

/// Watched resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resource {
    /// Plural name, such as `endpointslices`.
    pub name: String,
    /// Number of objects.
    pub objects: u64,
    /// State of its watches.
    pub state: WatchState,
    /// Time since the API server last confirmed the objects in seconds; `null` if it never did, for files, and for
    /// objects that are assumed because the API server refuses the list.
    pub age_seconds: Option<f64>,
    /// Time since the API server last sent something in seconds; `null` if it never did, and for files.
    #[serde(default)]
    pub silent_seconds: Option<f64>,
    /// Time since the first list was requested in seconds; `null` once it is complete.
    #[serde(default)]
    pub listing_seconds: Option<f64>,
    /// URL of the relay or API server that is used; `null` without relays.
    #[serde(default)]
    pub server: Option<String>,
    /// Time since it is used in seconds; `null` without relays.
    #[serde(default)]
    pub server_seconds: Option<f64>,
    /// Time since the first failure of this outage in seconds; `null` if it works.
    pub failing_seconds: Option<f64>,
    /// Last error of this outage; `null` if it works.
    pub error: Option<String>,
}

/// State of the watches of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    /// The first list is not complete.
    Listing,
    /// Changes arrive.
    Current,
    /// The last attempt failed.
    Failing,
}

/// Answers to queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answers {
    /// Period of these figures in seconds.
    pub window_seconds: f64,
    /// Number of server blocks without *prometheus*, whose queries nothing counts.
    pub uncounted_blocks: u64,
    /// Answers per second; `null` if no server block has *prometheus*.
    pub per_second: Option<f64>,
    /// Answers by response code, most frequent first.
    pub codes: Vec<CodeCount>,
    /// Median latency; `null` without answers in the period.
    pub p50: Option<Latency>,
    /// 99th percentile of the latency; `null` without answers in the period.
    pub p99: Option<Latency>,
    /// Queries since the start that the kernel dropped because a socket buffer was full; `null` if it does not say.
    pub lost: Option<u64>,
}

/// Number of answers with a response code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeCount {
    /// Response code, such as `NXDOMAIN`.
    pub code: String,
    /// Number of answers in the period.
    pub answers: u64,
}

/// Quantile of a latency, as exactly as the buckets of the histogram tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Lower bound in seconds.
    pub above_seconds: f64,
    /// Upper bound in seconds; `null` beyond the last bucket.
    pub at_most_seconds: Option<f64>,
}

/// Upstream of *forward*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Upstream {
    /// Address and port.
    pub address: String,
    /// Transport: `udp`, `tcp`, `tls`, `https` or `quic`.
    pub transport: String,
    /// State.
    pub state: UpstreamState,
    /// Time since it went down in seconds; `null` if it is not down.
    pub down_seconds: Option<f64>,
    /// Error of its last health check; `null` if it was answered or there was none.
    pub error: Option<String>,
    /// Replies in the period of [`Answers::window_seconds`].
    pub replies: u64,
    /// 99th percentile of the time to a reply; `null` without replies in the period.
    pub p99: Option<Latency>,
    /// Exchanges in the same period that failed: no reply in time, a network error, or an invalid reply.
    #[serde(default)]
    pub failures: u64,
    /// Replies in the same period with SERVFAIL or REFUSED, by response code, most first. Health checks do not see
    /// them.
    #[serde(default)]
    pub refusals: Vec<CodeCount>,
    /// Last exchange that failed; `null` if none has failed.
    #[serde(default)]
    pub last_failure: Option<FailedExchange>,
    /// Replies in the same period with an unknown message ID or another question, which may be attempts to forge one.
    #[serde(default)]
    pub unwanted: u64,
}

/// Probe of *loop* for forwarding loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopProbe {
    /// Zone of the server block.
    pub zone: String,
    /// Time since the last probe in seconds; `null` before the first one.
    pub age_seconds: Option<f64>,
    /// True if the last probe had a response in time.
    pub answered: bool,
    /// Time since the loop was found in seconds; `null` without a loop.
    pub looping_seconds: Option<f64>,
}

impl LoopProbe {
    /// Returns true if the last probe shows that queries do not come back.
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        self.answered && self.looping_seconds.is_none()
    }
}

/// Exchange with an upstream that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedExchange {
    /// Time since then in seconds.
    pub age_seconds: f64,
    /// Error.
    pub error: String,
    /// True if it was over TCP after a truncated answer over UDP.
    #[serde(default)]
    pub over_tcp: bool,
}

/// Failed exchanges of an upstream from which it is in trouble: fewer happen in a healthy network.
const FAILURES_MIN: u64 = 3;
/// Replies without a query from which somebody may be guessing message IDs. Ports that are used again soon after a slow
/// reply bring fewer.
const UNWANTED_MIN: u64 = 100;
/// Share of failed exchanges in percent from which an upstream is in trouble.
const FAILURES_PERCENT: u64 = 5;

impl Upstream {
    /// Returns a key by which upstreams in trouble come first.
    #[must_use]
    pub fn rank(&self) -> (UpstreamState, bool) {
        (self.state, !(self.is_failing() || self.is_refusing() || self.is_forged()))
    }

    /// Returns true if it loses many queries, or the only ones, although it may answer its health checks.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        let all = self.replies.saturating_add(self.failures);
        let are_many =
            self.failures >= FAILURES_MIN && self.failures.saturating_mul(100) >= all.saturating_mul(FAILURES_PERCENT);
        are_many || self.failures > 0 && self.replies == 0
    }

    /// Returns true if many of its replies, or the only ones, leave clients without an answer.
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        let refusals: u64 = self.refusals.iter().map(|code| code.answers).sum();
        let percent = refusals.saturating_mul(100) / self.replies.max(1);
        refusals >= FAILURES_MIN && percent >= FAILURES_PERCENT || refusals > 0 && refusals == self.replies
    }

    /// Returns true if many replies match no query.
    #[must_use]
    pub const fn is_forged(&self) -> bool {
        self.unwanted >= UNWANTED_MIN
    }

    /// Returns true if no exchange in the period says how it is: no query was sent to it.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.replies == 0 && self.failures == 0
    }
}

/// State of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UpstreamState {
    /// Its health checks fail.
    Down,
    /// An exchange failed, and it has not answered a health check since.
    Suspected,
    /// No exchange and no health check has failed since the last success.
    Up,
}

/// All caches together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// Number of entries.
    pub entries: u64,
    /// Maximum number of entries.
    pub capacity: u64,
    /// Hits in the period of [`Answers::window_seconds`].
    pub hits: u64,
    /// Misses in the same period.
    pub misses: u64,
    /// Expired entries served in the same period.
    pub stale: u64,
}

/// Limits of the server that were reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Period in seconds.
    pub window_seconds: f64,
    /// Limits that were reached in the period.
    pub reached: Vec<LimitHits>,
}

/// Number of times that a limit was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitHits {
    /// Name of the limit, as in `portolan_limit_hits_total`. Those of plugins have metrics of their own.
    pub limit: String,
    /// Number of times.
    pub hits: u64,
}

/// Memory and CPU of the process, and the limits of its cgroup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resources {
    /// Resident memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory limit of the cgroup in bytes; `null` if it has no limit.
    pub memory_limit_bytes: Option<u64>,
    /// CPUs in use, on average over the period of [`Answers::window_seconds`].
    pub cpus: Option<f64>,
    /// CPU limit of the cgroup; `null` if it has no limit.
    pub cpu_limit: Option<f64>,
    /// Share of the cgroup's periods in which it was throttled, over the same period; `null` without a CPU limit.
    pub throttled_share: Option<f64>,
}

impl Status {
    /// Adds the problem of replicas that serve different configurations, if their hashes are known and differ.
    pub fn compare_replicas(&mut self) {
        self.problems.extend(difference(replica::known(&self.replicas)));
    }

    /// Returns true if there is no problem.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.serving == Serving::Ready && self.problems.is_empty()
    }
}
