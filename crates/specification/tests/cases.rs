//! All cases of small zones and clusters: their number, the branches that they reach, and their text.

use std::collections::BTreeSet;

use specification::scope::{self, Case};
use specification::{Branch, text};

/// Maximum number of records in the zones here. `cargo xtask specification` has four.
const RECORDS_MAX: usize = 3;
/// Least number of cases of each model.
const CASES_MIN: usize = 10_000;
/// Number of zones and their cases, number of clusters and their cases, and hash of their text. A change of a model
/// changes them: run this test, and see by `cargo xtask specification --write` that the change is the intended one.
const PINNED: (usize, usize, usize, usize, u64) = (1_585, 99_952, 513, 38_980, 6_451_762_748_288_207_699);

#[test]
fn the_cases_of_small_zones_and_clusters_reach_each_branch() {
    let zones = scope::zones(RECORDS_MAX);
    let blocks = scope::clusters();
    let clusters: Vec<_> = blocks.iter().zip(0..).map(|(block, number)| block.numbered(number)).collect();
    let of_zones: Vec<&Case> = zones.iter().flat_map(|block| &block.cases).collect();
    let of_clusters: Vec<&Case> = clusters.iter().flat_map(|(_, cases)| cases).collect();
    let reached = of_zones.iter().chain(&of_clusters).flat_map(|case| &case.branches).copied();
    let reached: BTreeSet<Branch> = reached.chain(scope::absent()).collect();
    let missed: Vec<_> = Branch::ALL.iter().filter(|branch| !reached.contains(branch)).collect();
    assert!(missed.is_empty(), "no case reaches {missed:?}");
    assert!(of_zones.len() >= CASES_MIN && of_clusters.len() >= CASES_MIN);

    let mut all: String = zones.iter().map(text::block).collect();
    for (cluster, cases) in &clusters {
        all.push_str(&text::cluster(cluster));
        all.extend(cases.iter().map(text::case));
    }
    let counts = (zones.len(), of_zones.len(), clusters.len(), of_clusters.len(), hash(all.as_bytes()));
    assert_eq!(counts, PINNED);
}

/// FNV-1a, with 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
