//! Seeds of the usual test, of the long one, and of planted bugs.

use std::ops::RangeInclusive;

use crate::{Counts, run};

/// Number of seeds of the usual test. The long one takes its seeds from the environment.
const SEEDS: u64 = 60;

#[test]
fn answers_are_right_while_servers_fail() {
    check(1..=SEEDS);
}

#[test]
#[ignore = "the long form of the test above, which `cargo xtask simulate` runs"]
fn many_seeds() {
    check(wanted());
}

/// Returns the seeds that the environment names.
fn wanted() -> RangeInclusive<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let from = number("SCHEDULES_FROM").unwrap_or(1);
    from..=from + number("SCHEDULES").unwrap_or(SEEDS).max(1) - 1
}

fn check(seeds: RangeInclusive<u64>) {
    let mut all = Counts::default();
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        match run(seed) {
            Ok(counts) => all.add(&counts),
            Err(problem) => failed.push((seed, problem)),
        }
    }
    let seeds = seeds.count();
    let first: Vec<String> = failed.iter().take(3).map(|(seed, problem)| format!("seed {seed}: {problem}")).collect();
    assert!(failed.is_empty(), "{} of {seeds} seeds have failed\n{}", failed.len(), first.join("\n\n"));
    println!("{seeds} seeds: {all}");
    // Each fault was there: a simulation that avoids one would prove nothing.
    if seeds >= 50 {
        let missing = all.missing();
        assert!(missing.is_empty(), "nothing of: {}", missing.join(", "));
    }
}

/// Number of seeds within which each planted bug is found.
#[cfg(feature = "planted")]
const PLANTED_MAX: u64 = 2000;

#[cfg(feature = "planted")]
#[test]
#[ignore = "`cargo xtask simulate --planted` runs it"]
fn finds_the_planted_bugs() {
    use host::planted::{Bug, plant};

    let mut missed = Vec::new();
    for bug in Bug::ALL {
        plant(Some(bug));
        let found = (1..=PLANTED_MAX).find_map(|seed| Some((seed, run(seed).err()?)));
        plant(None);
        match found {
            Some((seed, problem)) => println!("{bug:?}: seed {seed}: {}", problem.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
