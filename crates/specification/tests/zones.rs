//! All small zones: their number, the branches that they reach, and their text.

use std::collections::BTreeSet;
use std::time::Instant;

use specification::{Branch, scope, text};

#[test]
fn small_zones_reach_each_branch() {
    let max = std::env::var("N").map_or(3, |n| n.parse().unwrap());
    let start = Instant::now();
    let blocks = scope::zones(max);
    println!("{:?} {}", start.elapsed(), blocks.len());
    let cases = blocks.iter().flat_map(|block| &block.cases);
    println!("cases {}", cases.clone().count());
    let reached: BTreeSet<Branch> = cases.flat_map(|case| case.branches.iter().copied()).collect();
    let missed: Vec<_> = Branch::ALL.iter().filter(|branch| !reached.contains(branch)).collect();
    let text: String = blocks.iter().map(text::block).collect();
    std::fs::write("/tmp/zones.txt", &text).unwrap();
    println!("{} bytes {missed:?}", text.len());
}
