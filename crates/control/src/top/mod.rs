//! Largest groups of queries: `GET /v1/top`.

mod text;

use serde::{Deserialize, Serialize};

pub use text::{Cell, Column, columns};

/// Maximum number of rows.
pub const ROWS_MAX: usize = 200;
/// Number of rows without the parameter `rows`.
pub const ROWS_DEFAULT: usize = 20;

/// Property by which queries are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Pod of the client, or its address.
    #[default]
    Pod,
    /// Namespace of the client.
    Ns,
    /// Name in the query.
    Name,
    /// Zone of the plugin that answered.
    Zone,
    /// Response code.
    Rcode,
    /// Upstream that was asked last.
    Upstream,
    /// Pod of the client, with most queries without a useful answer first.
    Waste,
    /// Domain of the name: its last two labels, or three below a domain such as `co.uk`.
    Domain,
}

impl By {
    /// All groupings, in the order of the keys 1 to 8.
    pub const ALL: [By; 8] = [By::Pod, By::Ns, By::Name, By::Zone, By::Rcode, By::Upstream, By::Waste, By::Domain];

    /// Name on the command line and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            By::Pod => "pod",
            By::Ns => "ns",
            By::Name => "name",
            By::Zone => "zone",
            By::Rcode => "rcode",
            By::Upstream => "upstream",
            By::Waste => "waste",
            By::Domain => "domain",
        }
    }
}

/// Period that the numbers are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Window {
    /// About ten seconds.
    #[serde(rename = "10s")]
    Short,
    /// About a minute.
    #[default]
    #[serde(rename = "1m")]
    Medium,
    /// About ten minutes.
    #[serde(rename = "10m")]
    Long,
}

impl Window {
    /// All windows.
    pub const ALL: [Window; 3] = [Window::Short, Window::Medium, Window::Long];

    /// Name on the command line and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Window::Short => "10s",
            Window::Medium => "1m",
            Window::Long => "10m",
        }
    }
}

/// Largest groups of queries in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Top {
    /// Host or pod of the server.
    pub host: String,
    /// Grouping.
    pub by: By,
    /// Window.
    pub window: Window,
    /// Period that the numbers cover, in seconds: between one and two windows, or the time since the start.
    pub covered_seconds: f64,
    /// One of this number of queries in the window was counted, on average, rounded up; 1 means that all were.
    pub sampled_one_of: u64,
    /// All queries.
    pub total: Counts,
    /// Number of answers with REFUSED.
    #[serde(default)]
    pub refused: u64,
    /// Number of queries that the plugin *cache* answered.
    pub from_cache: u64,
    /// Number of distinct names in the queries that are counted, with a standard error of 3 %.
    #[serde(default)]
    pub names: u64,
    /// Number of distinct clients in the queries that are counted, with the same error.
    #[serde(default)]
    pub clients: u64,
    /// Number of groups that are followed at the same time. The counts of rows are exact while there are no more; see
    /// `error` of a row.
    pub groups_max: u64,
    /// Largest groups, largest first.
    pub rows: Vec<Row>,
}

/// Group of queries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Group.
    pub key: String,
    /// Number of clients that it combines, if their pods have no known names.
    pub clients: u64,
    /// Numbers.
    pub counts: Counts,
    /// Number of queries that the group may have had in addition to those in `counts`, before it was followed.
    pub error: u64,
    /// Name that its clients ask for most, for groups of clients.
    pub top_name: Option<String>,
}

/// Numbers about a group of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Number of queries.
    pub queries: u64,
    /// Queries per second.
    pub per_second: f64,
    /// Number of answers with NXDOMAIN.
    pub nxdomain: u64,
    /// Number of answers with SERVFAIL.
    pub servfail: u64,
    /// Number of useful answers: NOERROR with records.
    pub useful: u64,
    /// Queries per useful answer; `null` without one.
    pub waste: Option<f64>,
    /// Bound of the duration of 99 % of the queries, in seconds. It is at most twice too large.
    pub p99_seconds: Option<f64>,
}
