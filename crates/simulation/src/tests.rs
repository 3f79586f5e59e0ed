//! Seeds of the usual test, of the long one, and of planted bugs.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};

use crate::{Counts, run};

/// Number of seeds of the usual test. The long one takes its seeds from the environment.
const SEEDS: u64 = 500;

#[test]
fn answers_are_right_while_servers_fail() {
    check(1..=SEEDS, processors());
}

/// A seed that fails can only be looked at if it fails again.
#[test]
fn a_seed_repeats_what_has_happened() {
    for seed in 1..=3 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// Runs on one thread: `cargo xtask simulate` starts a process for each processor.
#[test]
#[ignore = "the long form of the test above, which `cargo xtask simulate` runs"]
fn many_seeds() {
    check(wanted(), 1);
}

fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Returns the seeds that the environment names.
fn wanted() -> RangeInclusive<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let from = number("SCHEDULES_FROM").unwrap_or(1);
    from..=from + number("SCHEDULES").unwrap_or(SEEDS).max(1) - 1
}

/// Runs seeds on this many threads, which take the next seed from each other.
fn run_all(seeds: RangeInclusive<u64>, threads: usize) -> (Counts, Vec<(u64, String)>) {
    let next = AtomicU64::new(*seeds.start());
    let work = || {
        let (mut all, mut failed) = (Counts::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return (all, failed);
            }
            match run(seed) {
                Ok(counts) => all.add(&counts),
                Err(problem) => failed.push((seed, problem)),
            }
        }
    };
    scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut all, mut failed) = (Counts::default(), Vec::new());
        for thread in threads {
            let (counts, problems) = thread.join().expect("a panic in a seed is kept");
            all.add(&counts);
            failed.extend(problems);
        }
        failed.sort();
        (all, failed)
    })
}

fn check(seeds: RangeInclusive<u64>, threads: usize) {
    let (all, failed) = run_all(seeds.clone(), threads);
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

/// Prints a table: for each bug the first seed that finds it, and how.
#[cfg(feature = "planted")]
#[test]
#[ignore = "`cargo xtask simulate --planted` runs it"]
fn finds_the_planted_bugs() {
    use std::sync::atomic::AtomicUsize;

    use host::planted::{Bug, plant};

    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(bug) = Bug::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            // On this thread alone.
            plant(Some(*bug));
            let first = (1..=PLANTED_MAX).find_map(|seed| Some((seed, run(seed).err()?)));
            plant(None);
            found.push((*bug as usize, first));
        }
        found
    };
    let mut found: Vec<_> = scope(|scope| {
        let threads: Vec<_> = (0..processors()).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a panic in a seed is kept")).collect()
    });
    found.sort();
    let mut missed = Vec::new();
    println!("| bug | first seed that finds it | how |\n|---|---|---|");
    for (bug, first) in found {
        let bug = Bug::ALL[bug];
        match first {
            Some((seed, problem)) => println!("| {bug:?} | {seed} | {} |", summary(&problem)),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Returns the line of a problem that says what is wrong.
#[cfg(feature = "planted")]
fn summary(problem: &str) -> &str {
    problem.lines().find(|line| !line.starts_with("panicked at")).unwrap_or_default()
}
