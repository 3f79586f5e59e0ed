//! View into a comparison with another server, for people who replace that server.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use wire::{EdeCode, Rcode, Type};

/// Comparison of the answers of a server block with those of another server.
pub trait InspectShadow: Send + Sync {
    /// Returns the results since the comparison began.
    fn results(&self) -> InspectedShadow;
}

/// Results of a comparison.
#[derive(Clone, Debug)]
pub struct InspectedShadow {
    /// Other server.
    pub to: SocketAddr,
    /// Server block for people: its addresses and zones.
    pub block: String,
    /// Time of the first result since 1970; `None` without a result.
    pub since_1970: Option<Duration>,
    /// Counts of results.
    pub counts: ShadowCounts,
    /// Differences by zone, type and response codes, the most frequent first.
    pub groups: Vec<ShadowGroup>,
    /// Number of differences that have no group, because the table was full.
    pub ungrouped: u64,
}

/// Counts of the results of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowCounts {
    /// Equal answers.
    pub same: u64,
    /// Answers with known differences only.
    pub known: u64,
    /// Answers with other differences.
    pub different: u64,
    /// Queries that the other server did not answer in time.
    pub timeout: u64,
    /// Queries that could not be sent, or whose reply cannot be read.
    pub error: u64,
    /// Queries that found the queue full.
    pub dropped: u64,
    /// Queries that are not compared: zone transfers, large messages, and those of the other server itself.
    pub skipped: u64,
}

/// Differences of the same kind.
#[derive(Clone, Debug)]
pub struct ShadowGroup {
    /// Longest zone of the configuration that contains the names.
    pub zone: String,
    /// Type in the questions.
    pub qtype: Type,
    /// Response code of the other server.
    pub theirs: Rcode,
    /// Response code of this server.
    pub ours: Rcode,
    /// Code and section in `docs/differences.md` of a known difference.
    pub known: Option<(&'static str, &'static str)>,
    /// Number of differences.
    pub count: u64,
    /// First differences, oldest first.
    pub examples: Vec<ShadowExample>,
}

/// Query with different answers.
#[derive(Clone, Debug)]
pub struct ShadowExample {
    /// Time of the query since 1970.
    pub since_1970: Duration,
    /// Name in the question.
    pub name: String,
    /// Client.
    pub client: IpAddr,
    /// Parts that differ, such as `rcode` or `answer`.
    pub differs: Vec<&'static str>,
    /// Answer of the other server.
    pub theirs: ShadowAnswer,
    /// Answer of this server.
    pub ours: ShadowAnswer,
}

/// Answer in brief.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShadowAnswer {
    /// Response code.
    pub rcode: Rcode,
    /// Flags that are set, in lower case.
    pub flags: Vec<&'static str>,
    /// First records of the answer section in presentation format.
    pub answer: Vec<String>,
    /// First records of the authority section in presentation format.
    pub authority: Vec<String>,
    /// Number of further records in both sections.
    pub more: usize,
    /// Extended DNS Error with its text.
    pub ede: Option<(EdeCode, String)>,
}
