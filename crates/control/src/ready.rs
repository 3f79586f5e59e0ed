//! Readiness of the server, for probes.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::status::Serving;
use crate::text::harmless;

/// Answer to the question if the server serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// Ability to answer queries.
    pub serving: Serving,
    /// Directives that are not ready.
    pub unready: Vec<String>,
    /// Number of worker threads.
    pub workers: u64,
    /// Number of worker threads that do not respond.
    pub stuck: u64,
}

impl Readiness {
    /// Returns true if queries should be sent to this server.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.serving == Serving::Ready && self.stuck == 0
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Readiness { serving, unready, workers, stuck } = self;
        if self.is_ready() {
            return writeln!(out, "✓ ready");
        }
        if *stuck > 0 {
            writeln!(out, "✗ {stuck} of {workers} worker threads do not respond")?;
        }
        match serving {
            Serving::Ready => Ok(()),
            Serving::NotReady => writeln!(out, "✗ not ready: {}", harmless(&unready.join(", "))),
            Serving::Ending => writeln!(out, "✗ shuts down"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_not_ready() {
        let readiness = |serving, unready: &[&str], stuck| {
            let unready = unready.iter().map(|name| (*name).to_owned()).collect();
            Readiness { serving, unready, workers: 2, stuck }
        };
        for (readiness, is_ready, text) in [
            (readiness(Serving::Ready, &[], 0), true, "✓ ready\n"),
            (readiness(Serving::NotReady, &["kubernetes", "etcd"], 0), false, "✗ not ready: kubernetes, etcd\n"),
            (readiness(Serving::Ready, &[], 1), false, "✗ 1 of 2 worker threads do not respond\n"),
            (readiness(Serving::Ending, &[], 0), false, "✗ shuts down\n"),
        ] {
            assert_eq!((readiness.is_ready(), readiness.to_string()), (is_ready, text.to_owned()));
        }
    }
}
