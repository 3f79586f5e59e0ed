//! Reload of the Corefile.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{duration, harmless};

/// Result of a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reloaded {
    /// True if the configuration was loaded and serves now.
    pub applied: bool,
    /// Generation that serves now.
    pub generation: u64,
    /// SHA-512 of the configuration that serves now.
    pub hash: String,
    /// Duration of the reload in seconds.
    pub took_seconds: f64,
    /// Reason why the configuration was not loaded; `null` if it was.
    pub error: Option<String>,
}

impl fmt::Display for Reloaded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reloaded { generation, hash, .. } = self;
        let (took, hash) = (duration(self.took_seconds), harmless(hash.get(..4).unwrap_or(hash)));
        match &self.error {
            None => writeln!(out, "✓ generation {generation}, sha {hash}…, loaded in {took}"),
            Some(error) => {
                writeln!(out, "✗ not loaded; generation {generation}, sha {hash}…, still serves")?;
                error.trim_end().lines().try_for_each(|line| writeln!(out, "{}", harmless(line)))
            }
        }
    }
}
