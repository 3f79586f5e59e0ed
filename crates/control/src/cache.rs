//! Cached responses: look them up, remove them.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{count, counted, duration, harmless};

/// Cached responses for a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cached {
    /// Name.
    pub name: String,
    /// Number of caches that were searched: one per server block with *cache*.
    pub caches: u64,
    /// Entries.
    pub entries: Vec<Entry>,
    /// True if there are more entries than a response holds.
    pub truncated: bool,
}

/// Cached response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Server block: its addresses and zones.
    pub block: String,
    /// Record type of the question.
    pub qtype: String,
    /// Response code.
    pub rcode: String,
    /// True for a denial: NXDOMAIN, no record of the type, or a failure.
    pub denial: bool,
    /// True if the question had the flag DO.
    pub dnssec_ok: bool,
    /// True if the question had the flag CD.
    pub checking_disabled: bool,
    /// TTL when it was stored, in seconds.
    pub ttl: u32,
    /// Time since it was stored, in seconds.
    pub age_seconds: f64,
    /// True if it has expired and may only be served stale.
    pub expired: bool,
    /// Size in bytes.
    pub bytes: u64,
    /// Records in presentation format, with the TTL that is left.
    pub records: Vec<String>,
}

/// Request to remove cached responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlushRequest {
    /// Range of the responses to remove.
    pub scope: Scope,
    /// Domain name; required unless the scope is `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Range of the cached responses to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Responses of all types for one name.
    Name,
    /// Responses for a name and for all names below it.
    Below,
    /// All responses.
    All,
}

/// Result of removing cached responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flushed {
    /// Number of removed entries.
    pub removed: u64,
    /// Number of caches that were searched: one per server block with *cache*.
    pub caches: u64,
}

impl fmt::Display for Cached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = harmless(&self.name);
        match (self.caches, self.entries.len()) {
            (0, _) => return writeln!(out, "no server block has `cache`"),
            (1, 0) => return writeln!(out, "{name} is not in the cache"),
            (caches, 0) => return writeln!(out, "{name} is in none of {}", counted(caches, "cache")),
            _ => {}
        }
        for entry in &self.entries {
            entry.write(&name, out)?;
        }
        if self.truncated { writeln!(out, "… and more") } else { Ok(()) }
    }
}

impl Entry {
    fn write(&self, name: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = f64::from(self.ttl) - self.age_seconds;
        let age = duration(self.age_seconds);
        let life = match self.expired {
            false => format!("stored {age} ago, {} left", duration(left.max(0.0))),
            true => format!("stored {age} ago, expired {} ago", duration(-left.min(0.0))),
        };
        let flags = [(self.dnssec_ok, " DO"), (self.checking_disabled, " CD")];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
        let [qtype, rcode, block] = [&self.qtype, &self.rcode, &self.block].map(|text| harmless(text));
        writeln!(out, "{name}  {qtype}{flags}  {rcode}  {life} · {} bytes · {block}", count(self.bytes))?;
        self.records.iter().try_for_each(|record| writeln!(out, "  {}", harmless(record)))
    }
}

impl fmt::Display for Flushed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.caches {
            0 => writeln!(out, "no server block has `cache`"),
            caches => writeln!(out, "removed {} from {}", entries(self.removed), counted(caches, "cache")),
        }
    }
}

fn entries(number: u64) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{} entries", count(number)) }
}
