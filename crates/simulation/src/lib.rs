//! Simulation of the whole answer path in virtual time: a server with its plugins and its client for the API server, a
//! cluster that changes, API servers and upstreams that fail, and clients whose answers are compared with a model.
//!
//! Everything that happens depends on a seed: [`run`] repeats it. The code of the server is that of production, from
//! the responses of the API server (`kubeapi`, `listwatch`, `cluster`) to the answers of the chain (*kubernetes*,
//! *cache*, *forward*), and to the messages on their way to the upstreams (`upstream`). Simulated are:
//!
//! - the API servers (`api`) with their storage (`store`), whose objects change (`objects`);
//! - the upstreams and the network to them (`network`), with names outside of the cluster (`outside`);
//! - the machine with its clock (`process`), on which a process crashes and another one starts;
//! - the clients (`questions`).
//!
//! `mirror` keeps what the API server has delivered. That is the view that the server must have, no more and no less.
//! Each answer for a name of the cluster is compared with the model of that view (`specification`, `check`).
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "for tests: a panic reports the seed that fails"
)]

mod api;
mod check;
mod counts;
mod mirror;
mod network;
mod objects;
mod outside;
mod process;
mod questions;
mod random;
mod schedule;
mod store;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

pub use counts::Counts;
use schedule::Schedule;

thread_local! {
    /// Messages of the panics on this thread, while a seed runs.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Invariants that were broken on this thread, which is counted without debug assertions.
    static BROKEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs the simulation with a seed, and returns the counts of events.
///
/// # Errors
/// Returns the first violation: a wrong answer, a wrong request to the API server, or a broken invariant.
pub fn run(seed: u64) -> Result<Counts, String> {
    /// Number of runs of this process.
    static RUNS: AtomicU64 = AtomicU64::new(0);
    keep_problems();
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("portolan-simulation-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    PANICS.set(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(|| Schedule::new(seed, folder.join("snapshot")).run()));
    let _ = std::fs::remove_dir_all(&folder);
    // A panic in a task does not end the run.
    let panics = PANICS.take().unwrap_or_default().into_iter();
    let broken = BROKEN.take().into_iter().map(|place| format!("broken invariant: {place}"));
    let problem = panics.chain(broken).next();
    match (outcome, problem) {
        (Ok(counts), None) => Ok(counts),
        (_, problem) => Err(problem.unwrap_or_default()),
    }
}

/// Keeps the messages of panics in place of printing them, and broken invariants, while a seed runs.
fn keep_problems() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        host::invariant::observe(Box::new(|place| {
            BROKEN.with_borrow_mut(|broken| broken.push(format!("{place}: {}", place.what())));
        }));
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|kept| match kept {
                Some(kept) => kept.push(panic.to_string()),
                None => print(panic),
            });
        }));
    });
}

#[cfg(test)]
mod tests;
