//! Facts of the server for `portolan doctor`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::status::Status;

/// Facts of the server for `portolan doctor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerFacts {
    /// State of the server.
    pub status: Status,
    /// Files of the Corefile that serves, the main one first.
    pub files: Vec<CorefileText>,
    /// Queries since the start, by record type, as *prometheus* counts them.
    pub queries_by_type: BTreeMap<String, u64>,
    /// Clients with most queries of the last minute, as `portolan top` shows them.
    pub clients: Vec<ClientCount>,
}

/// Queries of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCount {
    /// Pod, or address of a client whose pod is not known.
    pub client: String,
    /// Number of queries.
    pub queries: u64,
}

/// File of a Corefile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CorefileText {
    /// Path, in the file system of the server.
    pub name: String,
    /// Text, with `[removed]` in place of secrets.
    pub text: String,
}
