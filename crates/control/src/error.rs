//! Body of a response with an error status.

use serde::{Deserialize, Serialize};

/// Body of a response with an error status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// Text for people: what is wrong, what was expected and what to do.
    pub error: String,
}
