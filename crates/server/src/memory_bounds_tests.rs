//! Adds up the bounds on the memory of a process with the memory limits of the manifests, as `docs/failure-modes.md`
//! does.

use net::{LOG_QUEUE_MAX, WorkerLimits};

use crate::admin;

const PAGE: &str = include_str!("../../../docs/failure-modes.md");

/// Memory limit of the container in the manifest in place of CoreDNS.
const LIMIT: u64 = 170 << 20;
/// Memory limit of the manifests for a new cluster and for every node.
const LOW_LIMIT: u64 = 128 << 20;
/// Measured: the part of the binary in memory. The kernel can drop it, which makes answers slow.
const BINARY: usize = 18 << 20;
/// Measured on a machine with 64 CPUs: `benches/results/2026-11-26-memory-bounds.md`.
const AT_REST: usize = 10 << 20;
/// Measured: the index of 10,000 Services with 100,000 endpoints.
const INDEX: usize = 10 << 20;
/// Measured: a connection to a page over HTTP.
const PAGE_CONNECTION: usize = 8 << 10;
/// Ring buffers of `tail`, names of clients for `top`, rates of connections. Each has its bound where it is declared.
const WATCHING: usize = 5 << 20;

/// Returns the bounds, in bytes, and last their sum.
fn bounds(limit: u64) -> Vec<(&'static str, usize)> {
    let mut bounds = vec![
        ("the process at rest, with 64 CPUs", AT_REST),
        ("a cluster of 10,000 Services with 100,000 endpoints", INDEX),
        ("a full *cache* of the default capacity", plugins::CACHE_MEMORY),
    ];
    bounds.extend(WorkerLimits::within(Some(limit)).memory());
    bounds.extend([
        ("connections to pages over HTTP", admin::TABLE.open_max * PAGE_CONNECTION),
        ("log lines that wait", LOG_QUEUE_MAX),
        ("what `top`, `tail` and the limits of clients remember", WATCHING),
    ]);
    let sum = bounds.iter().map(|(_, bytes)| bytes).sum();
    bounds.push(("all together", sum));
    bounds
}

#[test]
fn the_bounds_fit_the_memory_limit() {
    for limit in [LIMIT, LOW_LIMIT] {
        let bounds = bounds(limit);
        let sum = bounds.last().map_or(0, |(_, sum)| sum + BINARY) as u64;
        assert!(sum <= limit, "{sum} of {limit} bytes: {bounds:?}");
    }
}

#[test]
fn the_page_has_the_bounds() {
    for (low, usual) in bounds(LOW_LIMIT).into_iter().zip(bounds(LIMIT)) {
        let text = |bytes: usize| format!("{}.{}", bytes >> 20, ((bytes * 10) >> 20) % 10);
        let row = format!("| {} | {} | {} |", usual.0, text(low.1), text(usual.1));
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
