//! All small clusters: their number and the branches that they reach.

use std::collections::BTreeSet;
use std::time::Instant;

use specification::{Branch, scope};

#[test]
fn small_clusters_reach_each_branch() {
    let start = Instant::now();
    let blocks = scope::clusters();
    println!("{:?} {}", start.elapsed(), blocks.len());
    let cases: Vec<_> = blocks.iter().zip(0..).flat_map(|(block, number)| block.numbered(number).1).collect();
    println!("cases {}", cases.len());
    let mut reached: BTreeSet<Branch> = cases.iter().flat_map(|case| case.branches.iter().copied()).collect();
    reached.extend(scope::absent());
    let missed: Vec<_> = Branch::ALL.iter().filter(|branch| !reached.contains(branch)).collect();
    println!("{missed:?}");
}
