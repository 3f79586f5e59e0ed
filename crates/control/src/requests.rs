//! Queries that wait for an upstream.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{count, counted, duration, harmless};

/// Age in seconds from which an exchange counts as slow: most upstreams answer in a tenth of it.
pub const SLOW_SECONDS: f64 = 1.0;

/// Exchanges with upstreams that are in flight. Identical queries share one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Number of exchanges in flight.
    pub exchanges: u64,
    /// Number of those that are slow.
    pub slow: u64,
    /// Oldest exchanges, oldest first.
    pub oldest: Vec<Exchange>,
}

/// Exchange with an upstream that is in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exchange {
    /// Name in the query.
    pub name: String,
    /// Record type in the query.
    pub qtype: String,
    /// Plugin that waits.
    pub plugin: String,
    /// Time since it began in seconds.
    pub age_seconds: f64,
    /// True if it is older than a second.
    pub slow: bool,
    /// Address of the client that asked first.
    pub client: String,
    /// Upstream that is being asked; `null` if the plugin does not say.
    #[serde(default)]
    pub upstream: Option<String>,
    /// Number of queries that wait for it.
    pub waiting: u64,
}

impl fmt::Display for Requests {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exchanges == 0 {
            return writeln!(out, "no query waits for an upstream");
        }
        writeln!(out, "{} in flight, {} slow", counted(self.exchanges, "exchange"), count(self.slow))?;
        for exchange in &self.oldest {
            let Exchange { qtype, plugin, waiting, .. } = exchange;
            let mark = if exchange.slow { '‼' } else { ' ' };
            let (age, name) = (duration(exchange.age_seconds), harmless(&exchange.name));
            let others = waiting.saturating_sub(1);
            let more = if others == 0 { String::new() } else { format!(" and {} more", count(others)) };
            let [qtype, plugin, client] = [qtype, plugin, &exchange.client].map(|text| harmless(text));
            let upstream = exchange.upstream.as_deref().map_or(String::new(), |text| format!(" {}", harmless(text)));
            writeln!(out, "{mark} {age:>8}  {qtype:<5} {name}  {plugin}{upstream}  {client}{more}")?;
        }
        match self.exchanges.saturating_sub(self.oldest.len() as u64) {
            0 => Ok(()),
            more => writeln!(out, "  … and {} younger ones", count(more)),
        }
    }
}
