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

pub use counts::Counts;
use schedule::Schedule;

thread_local! {
    /// Messages of the panics on this thread, while a seed runs.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs the simulation with a seed, and returns what has happened.
///
/// # Errors
/// What was wrong: an answer, a request to the API server, or a broken invariant.
pub fn run(seed: u64) -> Result<Counts, String> {
    keep_panics();
    let folder = std::env::temp_dir().join(format!("portolan-simulation-{}-{seed}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let before = broken_invariants();
    PANICS.set(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(|| Schedule::new(seed, folder.join("snapshot")).run()));
    let _ = std::fs::remove_dir_all(&folder);
    let messages = PANICS.take().unwrap_or_default();
    let counts = outcome.map_err(|_| messages.into_iter().next().unwrap_or_default())?;
    // Without debug assertions, broken invariants are counted.
    if broken_invariants() > before { Err(invariant_texts()) } else { Ok(counts) }
}

/// Keeps the messages of panics in place of printing them, while a seed runs.
fn keep_panics() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|kept| match kept {
                Some(kept) => kept.push(panic.to_string()),
                None => print(panic),
            });
        }));
    });
}

fn broken_invariants() -> u64 {
    host::invariant::places().map(host::invariant::Place::count).sum()
}

fn invariant_texts() -> String {
    let texts: Vec<&str> = host::invariant::places().map(host::invariant::Place::what).collect();
    format!("broken invariants: {}", texts.join(", "))
}

#[cfg(test)]
mod tests;
