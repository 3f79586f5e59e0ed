//! Replicas of the server, and whether they serve the same configuration.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Problem, ProblemCode};
use crate::text::{harmless, shown_hash};

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

/// Returns the problem of replicas that serve different configurations, from their names and hashes.
#[must_use]
pub fn difference<'a>(served: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Problem> {
    let by_hash = by_hash(&mut served.into_iter());
    if by_hash.len() < 2 {
        return None;
    }
    let parts =
        by_hash.iter().map(|(hash, names)| format!("sha {} on {}", shown_hash(hash), harmless(&names.join(", "))));
    let parts: Vec<String> = parts.collect();
    let text = format!("the replicas serve different configurations: {}", parts.join("; "));
    Some(Problem::new(ProblemCode::ReplicasDiffer, text))
}

/// Returns the addresses and hashes of the replicas whose hash is known.
pub(super) fn known(replicas: &[Replica]) -> impl Iterator<Item = (&str, &str)> {
    replicas.iter().filter_map(|replica| Some((replica.address.as_str(), replica.hash.as_deref()?)))
}

/// Groups names by the hash of what they serve. The first group is the largest.
fn by_hash<'a>(served: &mut dyn Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut by_hash: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, hash) in served {
        match by_hash.iter_mut().find(|(known, _)| *known == hash) {
            Some((_, names)) => names.push(name),
            None => by_hash.push((hash, vec![name])),
        }
    }
    by_hash.sort_by_key(|(_, names)| core::cmp::Reverse(names.len()));
    by_hash
}

/// Describes replicas in one line; the first hash is that of most.
pub(super) fn text(replicas: &[Replica]) -> String {
    let by_hash = by_hash(&mut known(replicas));
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
        let problem = |replicas: &[Replica]| difference(known(replicas));
        assert_eq!(problem(&[replica(1, one), replica(2, one), replica(3, None)]), None);
        assert_eq!(
            problem(&[replica(1, two), replica(2, one), replica(3, one)]).map(|problem| problem.text).as_deref(),
            Some(
                "the replicas serve different configurations: sha 5f2c… on 10.244.1.2, 10.244.1.3; \
                 sha 81aa… on 10.244.1.1"
            )
        );
        assert_eq!(text(&[replica(1, one), replica(2, one)]), "✓ 2 · 2 with sha 5f2c…");
        assert_eq!(
            text(&[replica(1, two), replica(2, one), replica(3, one), replica(4, None)]),
            "✗ 4 · 2 with sha 5f2c… · 1 with sha 81aa… (10.244.1.1) · 10.244.1.4 unknown: connection refused"
        );
    }
}
