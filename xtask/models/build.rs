//! Copies the code of the server that threads share, with the types of loom in place of those of `std`.
//!
//! Each replacement must occur in the source. If the source changes, the build fails here, and the model is looked at
//! again.

use std::path::Path;
use std::{env, fs};

/// Pairs of a text and what replaces it.
type Replacements = &'static [(&'static str, &'static str)];

const RCU: Replacements = &[
    ("use std::sync::{Arc, Mutex, PoisonError};", "use loom::sync::Mutex;\nuse std::sync::{Arc, PoisonError};"),
    ("use arc_swap::ArcSwap;", "use crate::swap::ArcSwap;"),
    ("mod packed;\nmod sorted;\n", ""),
    // Not random: loom repeats each schedule, in which the order of the entries must not differ.
    ("pub type Seed = foldhash::quality::RandomState;", "pub type Seed = foldhash::quality::FixedState;"),
    ("pub use packed::{Keyed, Packed};\npub use sorted::{Edit, Entries, Pages, Reading, Sorted};\n", ""),
];

const PACKED: Replacements = &[
    ("use std::sync::{Arc, Mutex, PoisonError};", "use loom::sync::Mutex;\nuse std::sync::{Arc, PoisonError};"),
    ("use arc_swap::ArcSwap;", "use crate::swap::ArcSwap;"),
    ("use crate::Seed;", "use crate::rcu::Seed;"),
];

const SORTED: Replacements = &[
    (
        "use std::sync::{Arc, Mutex, MutexGuard, PoisonError};",
        "use loom::sync::{Mutex, MutexGuard};\nuse std::sync::{Arc, PoisonError};",
    ),
    ("use arc_swap::{ArcSwap, Guard};", "use crate::swap::{ArcSwap, Guard};"),
];

// One shard of one place, and one kibibyte.
const STORE: Replacements = &[
    ("use core::sync::atomic::{AtomicUsize, Ordering};", "use loom::sync::atomic::{AtomicUsize, Ordering};"),
    (
        "use engine::Instant;\nuse host::invariant::holds;\nuse rcu::Shards;",
        "use crate::host::Instant;\nuse crate::host::invariant::holds;\nuse crate::rcu::Shards;",
    ),
    (
        "const SHARDS_MIN: usize = 256;\nconst SHARDS_MAX: usize = 1 << 16;",
        "const SHARDS_MIN: usize = 1;\nconst SHARDS_MAX: usize = 1;",
    ),
    ("const SHARE_MIN: usize = 4;", "const SHARE_MIN: usize = 1;"),
];

// Two places, and records of two words.
const RING: Replacements = &[
    (
        "use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};",
        "use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};",
    ),
    ("use host::invariant::holds;", "use crate::host::invariant::holds;"),
    ("use host::Instant;", "use crate::host::Instant;"),
    ("const CAPACITY_MIN: usize = 128;", "const CAPACITY_MIN: usize = 2;"),
    ("const RESERVED_PART: u64 = 4;", "const RESERVED_PART: u64 = 1;"),
];

const SINGLEFLIGHT: Replacements = &[
    ("use std::sync::{Arc, Mutex};", "use loom::sync::Mutex;\nuse std::sync::Arc;"),
    // Its seed must not be random: loom repeats each schedule.
    ("use foldhash::fast::RandomState;", "use crate::host::RandomState;"),
    ("use crate::ids::BlockId;", "use crate::stubs::BlockId;"),
    ("use crate::label_values::LabelValues;", "use crate::stubs::LabelValues;"),
    ("use crate::query::Query;", "use crate::stubs::Query;"),
    ("use crate::trail::Asked;", "use crate::stubs::Asked;"),
    ("use crate::verdict::Resolved;", "use crate::stubs::Resolved;"),
    ("use host::Instant;", "use crate::host::Instant;"),
    ("use host::invariant::{Expected as _, holds};", "use crate::host::invariant::{Expected as _, holds};"),
    ("use host::planted::{Bug, is_planted};", "use crate::host::planted::{Bug, is_planted};"),
    // A lock of loom is never poisoned.
    ("self.key.is_some() || self.singleflight.waiting.is_poisoned()", "self.key.is_some()"),
];

const LOG: Replacements = &[
    (
        "use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};",
        "use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};",
    ),
    (
        "use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};",
        "use loom::sync::{Condvar, Mutex, MutexGuard};\nuse std::sync::PoisonError;",
    ),
    (
        "use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};",
        "use crate::host::{StoppedClock as Instant, SystemTime, UNIX_EPOCH};\nuse std::time::Duration;",
    ),
    ("use engine::log::{EventBuffer, Level, Source};", "use crate::stubs::{EventBuffer, Level, Source};"),
    ("use host::invariant::holds;", "use crate::host::invariant::holds;"),
    ("use metrics::{Kind, Metric, Registry};", "use crate::stubs::{Kind, Metric, Registry};"),
    (
        "    static QUEUE: LazyLock<LogQueue> = LazyLock::new(|| LogQueue::new(LOG_QUEUE_MAX));\n    &QUEUE\n",
        "    unimplemented!(\"a model has a queue of its own\")\n",
    ),
];

const FILES: &[(&str, &str, Replacements)] = &[
    ("crates/rcu/src/lib.rs", "rcu.rs", RCU),
    ("crates/rcu/src/packed.rs", "packed.rs", PACKED),
    ("crates/rcu/src/sorted.rs", "sorted.rs", SORTED),
    ("crates/common-plugins/src/plugins/cache/store.rs", "store.rs", STORE),
    ("crates/engine/src/tap/reasons.rs", "reasons.rs", &[]),
    ("crates/engine/src/tap/ring.rs", "ring.rs", RING),
    ("crates/engine/src/singleflight.rs", "singleflight.rs", SINGLEFLIGHT),
    ("crates/net/src/log.rs", "log.rs", LOG),
];

/// Gives the place of a record back to the worker before the record is read.
const READ_EARLY: &str =
    "self.read.store(read.wrapping_add(1), Ordering::Release);\n        let words = core::array::from_fn(|at|";

/// Faults that a model must find: the name, the file, and the replacement. The environment variable `MODELS_FAULT`
/// names the one that is planted.
const FAULTS: &[(&str, &str, (&str, &str))] = &[
    (
        "shard-without-lock",
        "rcu.rs",
        ("let _turn = lock.lock()", "drop(lock.lock()); let _turn = Ok::<_, PoisonError<()>>(())"),
    ),
    (
        "packed-without-lock",
        "packed.rs",
        ("let _turn = self.writing.lock()", "let _turn = Ok::<_, PoisonError<()>>(())"),
    ),
    (
        "evicted-twice",
        "store.rs",
        ("let Some(gone) = gone else { return Some(0) };", "let gone = gone.unwrap_or(victim);"),
    ),
    (
        "counted-twice",
        "store.rs",
        ("let Some(gone) = gone else { return Some(0) };", "let Some(gone) = gone else { return Some(1) };"),
    ),
    ("lost-wake-up", "singleflight.rs", ("is_planted(Bug::LostWakeUp)", "true")),
    (
        "leader-keeps-waiters",
        "singleflight.rs",
        ("drop(self.take_waiters());", "core::mem::forget(self.take_waiters());"),
    ),
    ("log-without-notice", "log.rs", ("        if wake {\n            self.filled.notify_one();\n        }\n", "")),
    ("flush-does-not-wait", "log.rs", ("while state.ending || state.is_writing ||", "while state.ending ||")),
    (
        "ring-written-relaxed",
        "ring.rs",
        (
            "wrapping_add(1), Ordering::Release);\n    }\n\n    fn lose",
            "wrapping_add(1), Ordering::Relaxed);\n    }\n\n    fn lose",
        ),
    ),
    ("ring-read-early", "ring.rs", ("let words = core::array::from_fn(|at|", READ_EARLY)),
];

fn main() {
    println!("cargo::rerun-if-env-changed=MODELS_FAULT");
    let planted = env::var("MODELS_FAULT").ok();
    let planted = planted.map(|name| FAULTS.iter().find(|fault| fault.0 == name).expect("a fault of the list"));
    let root = Path::new("../..");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for (from, to, replacements) in FILES {
        let path = root.join(from);
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).expect("a file of the server");
        // Without the tests, which need the whole crate, and the documentation of the module, which `include!` refuses.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with("//!"));
        let mut text: String = lines.flat_map(|line| [line, "\n"]).collect();
        for (old, new) in *replacements {
            assert!(text.contains(old), "{from} has changed: it has no `{old}`");
            text = text.replace(old, new);
        }
        if let Some((name, _, (old, new))) = planted.filter(|fault| fault.1 == *to) {
            assert!(text.contains(old), "{from} has changed: the fault {name} needs `{old}`");
            text = text.replace(old, new);
        }
        fs::write(Path::new(&out).join(to), text).expect("cargo made the folder");
    }
}
