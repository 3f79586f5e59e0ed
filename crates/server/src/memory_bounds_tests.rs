//! Adds up the bounds on the memory of a process with the memory limit of the manifests, as `docs/failure-modes.md`
//! does.

use net::{LOG_QUEUE_MAX, WorkerLimits};

use crate::admin;

const PAGE: &str = include_str!("../../../docs/failure-modes.md");

/// Memory limit of the container in the manifests.
const LIMIT: u64 = 170 << 20;
/// What the bounds may add up to.
const SUM_MAX: usize = 128 << 20;
/// Measured on a machine with 64 CPUs: `benches/results/2026-11-26-memory-bounds.md`.
const AT_REST: usize = 10 << 20;
/// Measured: the index of 10,000 Services with 100,000 endpoints.
const INDEX: usize = 10 << 20;
/// Measured: a connection to a page over HTTP.
const PAGE_CONNECTION: usize = 8 << 10;
/// Ring buffers of `tail`, names of clients for `top`, rates of connections. Each has its bound where it is declared.
const WATCHING: usize = 5 << 20;

#[test]
fn the_bounds_fit_the_memory_limit() {
    let workers = WorkerLimits::within(Some(LIMIT)).memory();
    let mut bounds = vec![
        ("the process at rest, with 64 CPUs", AT_REST),
        ("a cluster of 10,000 Services with 100,000 endpoints", INDEX),
        ("a full *cache* of the default capacity", plugins::CACHE_MEMORY),
    ];
    bounds.extend(workers);
    bounds.extend([
        ("connections to pages over HTTP", admin::TABLE.open_max * PAGE_CONNECTION),
        ("log lines that wait", LOG_QUEUE_MAX),
        ("what `top`, `tail` and the limits of clients remember", WATCHING),
    ]);
    let sum: usize = bounds.iter().map(|(_, bytes)| bytes).sum();
    assert!(sum <= SUM_MAX, "{sum} bytes: {bounds:?}");
    bounds.push(("all together", sum));
    for (what, bytes) in bounds {
        let row = format!("| {what} | {}.{} |", bytes >> 20, ((bytes * 10) >> 20) % 10);
        assert!(PAGE.contains(&row), "docs/failure-modes.md misses: {row}");
    }
}

#[test]
fn limits_grow_with_the_memory() {
    let [small, usual, large] = [Some(64 << 20), Some(LIMIT), None].map(WorkerLimits::within);
    let sum = |limits: WorkerLimits| limits.memory().iter().map(|(_, bytes)| bytes).sum::<usize>();
    assert!(sum(small) < sum(usual) && sum(usual) < sum(large));
    assert!(small.parked_max >= 512 && small.streams.open_max >= 512);
}
