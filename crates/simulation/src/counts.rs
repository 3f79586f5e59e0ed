//! Numbers of what has happened in a simulation.

use core::fmt;

/// Kinds of what can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    ClusterQuery,
    OutsideQuery,
    Failure,
    Limited,
    Change,
    Reload,
    Crash,
    Snapshot,
    Restoration,
    Sleep,
    List,
    Page,
    Watch,
    Event,
    Expired,
    Ahead,
    Refused,
    Broken,
    Omitted,
    Missed,
    Deaf,
}

const NAMES: [&str; 21] = [
    "queries for the cluster",
    "queries for other names",
    "failures",
    "refused queries",
    "changes",
    "reloads",
    "crashes",
    "snapshots served",
    "restored backups",
    "sleeps",
    "lists",
    "pages",
    "watches",
    "events",
    "expired positions",
    "lists from servers that lag",
    "refused requests",
    "broken responses",
    "events left out",
    "numbers of objects that differ",
    "watches that stay silent",
];

/// Numbers of what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; NAMES.len()]);

impl Counts {
    pub(crate) fn count(&mut self, what: What) {
        self.0[what as usize] += 1;
    }

    /// Returns true if this has happened.
    pub(crate) const fn has(&self, what: What) -> bool {
        self.0[what as usize] > 0
    }

    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, number)| *sum += number);
    }

    /// Returns what has not happened.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        NAMES.into_iter().zip(self.0).filter(|(_, number)| *number == 0).map(|(name, _)| name).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = NAMES.iter().zip(self.0).map(|(name, number)| format!("{number} {name}")).collect();
        f.write_str(&texts.join(", "))
    }
}
