//! Live queries: the lines of `GET /v1/events`, and their formats.
//!
//! The response is a stream of JSON objects, one per line. Each has one key, which is the name of the [`Line`].

mod text;

use serde::{Deserialize, Serialize};

pub use text::Format;

/// Maximum number of streams at the same time.
pub const STREAMS_MAX: usize = 4;
/// Maximum number of streams over TCP at the same time. The others are reserved for the Unix socket, whose user cannot
/// end those of others.
pub const TCP_STREAMS_MAX: usize = 2;
/// Maximum duration of a stream in seconds.
pub const SECONDS_MAX: u64 = 3600;
/// Number of failures that the server keeps.
pub const FAILURES_KEPT: usize = 1024;
/// Number of queries per second that a stream shows at most. Beyond it, the server shows a sample.
pub const SHOWN_PER_SECOND_MAX: u32 = 20_000;

/// Line of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A query and its answer.
    Query(Box<Event>),
    /// The lines that follow are a sample.
    Sampled(Sampled),
    /// Queries that were selected are missing here, because they came faster than the client reads or the server
    /// copies.
    LeftOut(LeftOut),
    /// The stream ends.
    Ended(Ended),
}

/// Query and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Time of arrival in RFC 3339.
    pub time: String,
    /// Client.
    pub client: Client,
    /// Transport: `udp`, `tcp`, `grpc`, `quic`, `https` or `https3`.
    pub transport: String,
    /// Name in the query. Empty if the message could not be read.
    pub name: String,
    /// Record type in the query; `null` if the message could not be read.
    pub qtype: Option<String>,
    /// Response code; `null` if the client got no response.
    pub rcode: Option<String>,
    /// Plugin that answered or failed.
    pub plugin: Option<String>,
    /// Zone of that plugin, or of the server block if the plugin has none of its own.
    pub zone: Option<String>,
    /// Number of records in the answer section.
    pub answers: u64,
    /// True if the response was truncated.
    pub truncated: bool,
    /// Time from the arrival to the response, in seconds.
    pub took_seconds: f64,
    /// Extended DNS Error (RFC 8914).
    pub ede: Option<u64>,
    /// Text of that error, as clients get it. A long text is cut off; `null` if there is no room for it beside a long
    /// name.
    #[serde(default)]
    pub ede_text: Option<String>,
    /// Upstream that was asked last for this query.
    pub upstream: Option<String>,
    /// Number of attempts at upstreams for this query, at most 15. It is more than one if one failed, or if an alias
    /// led to another name.
    #[serde(default)]
    pub upstream_attempts: u64,
    /// True if *rewrite* changed the question.
    #[serde(default)]
    pub rewritten: bool,
}

/// Client of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// IP address.
    pub address: String,
    /// Port.
    pub port: u16,
    /// Kind of client that has the address.
    pub kind: ClientKind,
    /// Namespace of the pod.
    pub namespace: Option<String>,
    /// Name of the pod.
    pub pod: Option<String>,
    /// Service that the pod is a ready endpoint of, if the name of the pod is unknown.
    pub service: Option<String>,
}

/// Knowledge about the address of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// Pod that has the address alone.
    Pod,
    /// Node: several pods have the address, or one that uses the network of its node.
    Node,
    /// Host on which the server runs.
    Host,
    /// Address of no pod, although all pods are known: a client outside of the cluster, or one behind source NAT.
    Outside,
    /// The server itself or `portolan doctor`: the query is a probe.
    Probe,
    /// Address of no pod that the server knows.
    #[default]
    Unknown,
}

/// Notice that only a sample is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampled {
    /// One of this number of queries is shown, on average; 1 means that all are shown again.
    pub one_of: u64,
    /// Number of queries per second that the filter selects; `null` if the client asked for the sample.
    pub per_second: Option<f64>,
}

/// Notice that lines are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Number of lines.
    pub lines: u64,
}

/// Notice that the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// Duration of the stream in seconds.
    pub after_seconds: u64,
}
