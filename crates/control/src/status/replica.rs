//! Replicas of the server, and whether they serve the same configuration.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::text::harmless;
use crate::text::shown_hash;

/// Server of the same Service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replica {
    /// IP address.
    pub address: String,
    /// Address of its metrics page, if its Corefile has the same port as that of the server that responds.
    pub metrics: String,
    /// True for the server that responds.
    pub own: bool,
    /// SHA-512 of its configuration; `null` if it is not known. The server knows only its own. `portolan status` asks
    /// the others for theirs.
    pub hash: Option<String>,
    /// Reason why the hash of another replica is not known; `null` if it was not asked.
    pub error: Option<String>,
}

/// Describes replicas in one line; the first hash is that of most.
pub(super) fn text(replicas: &[Replica]) -> String {
    let mut by_hash: Vec<(&str, Vec<&str>)> = Vec::new();
    for replica in replicas {
        let Some(hash) = replica.hash.as_deref() else { continue };
        match by_hash.iter_mut().find(|(known, _)| *known == hash) {
            Some((_, addresses)) => addresses.push(&replica.address),
            None => by_hash.push((hash, vec![&replica.address])),
        }
    }
    by_hash.sort_by_key(|(_, addresses)| core::cmp::Reverse(addresses.len()));
    let unknown: Vec<&Replica> = replicas.iter().filter(|replica| replica.hash.is_none()).collect();
    let mark = if by_hash.len() == 1 && unknown.is_empty() { '✓' } else { '✗' };
    let mut text = format!("{mark} {}", replicas.len());
    for (at, (hash, addresses)) in by_hash.iter().enumerate() {
        let _ = write!(text, " · {} with sha {}", addresses.len(), shown_hash(hash));
        if at > 0 {
            let _ = write!(text, " ({})", harmless(&addresses.join(", ")));
        }
    }
    for replica in unknown {
        let reason = replica.error.as_deref().unwrap_or("not asked");
        let _ = write!(text, " · {} unknown: {}", harmless(&replica.address), harmless(reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_replicas_that_differ() {
        let replica = |last: u8, hash: Option<&str>| Replica {
            address: format!("10.244.1.{last}"),
            metrics: format!("10.244.1.{last}:9153"),
            own: last == 1,
            hash: hash.map(str::to_owned),
            error: hash.is_none().then(|| "connection refused".to_owned()),
        };
        let [one, two] = ["5f2c77", "81aa00"].map(Some);
        assert_eq!(text(&[replica(1, one), replica(2, one)]), "✓ 2 · 2 with sha 5f2c…");
        assert_eq!(
            text(&[replica(1, two), replica(2, one), replica(3, one), replica(4, None)]),
            "✗ 4 · 2 with sha 5f2c… · 1 with sha 81aa… (10.244.1.1) · 10.244.1.4 unknown: connection refused"
        );
    }
}
