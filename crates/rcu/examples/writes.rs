//! Benchmark of a table with as many writes as reads: `cargo run --release -p portolan-rcu --example writes`.
//!
//! Threads look up entries in a table of a million. Half of the entries are missing and replace another entry of their
//! shard, like in the cache at its capacity. Prints the time per operation of one thread, by number of shards and
//! threads.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures")]

use std::sync::Arc;
use std::time::Instant;

use rcu::{Entry, Seed, Shards};

const ENTRIES: u64 = 1_000_000;
const OPERATIONS: u64 = 20_000;

struct Number(u64);

impl Entry for Number {
    fn hash(&self, seed: &Seed) -> u64 {
        use std::hash::BuildHasher;
        seed.hash_one(self.0)
    }
}

/// Looks up numbers, half of which are in the table, and inserts the others.
fn work(table: &Shards<Arc<Number>>, first: u64) {
    for step in 0..OPERATIONS {
        let number = if step % 2 == 0 { step * 7919 % ENTRIES } else { first + step };
        let hash = table.hash(&number);
        if table.read(hash, |entry| entry.0 == number, |_| ()).is_none() {
            table.insert(Arc::new(Number(number)));
            let mut victim = None;
            table.for_each_beside(hash, |entry| {
                if entry.0 != number {
                    victim = Some(Arc::clone(entry));
                }
            });
            if let Some(victim) = victim {
                table.remove(table.hash(&victim.0), |entry| Arc::ptr_eq(entry, &victim));
            }
        }
    }
}

fn main() {
    for shards in [256, 32_768] {
        let table = Shards::new(shards);
        // Filled before it is shared: each insert copies a shard.
        (0..ENTRIES).for_each(|number| table.insert(Arc::new(Number(number))));
        for threads in [1, 2, 4] {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let table = &table;
                    scope.spawn(move || work(table, ENTRIES * (thread + 2) * (threads + 1)));
                }
            });
            let each = start.elapsed().as_nanos() / u128::from(OPERATIONS);
            println!("{shards} shards, {threads} threads: {each} ns per operation of one thread");
        }
    }
}
