//! Code of the server that threads share, under all schedules and memory orders that [loom](https://docs.rs/loom) has.
//!
//! `build.rs` copies the files of the server and puts the locks, condition variables and atomic numbers of loom in
//! place of those of `std`. Constants become small, so that a few operations reach each bound. The modules here stand
//! in for what the files use besides. loom runs each test below with each order of the operations on shared memory that
//! makes a difference, and finds deadlocks, too. `docs/proof.md` says what is covered, and what is not.
//!
//! ```sh
//! LOOM_MAX_PREEMPTIONS=3 cargo test --release --lib --manifest-path xtask/models/Cargo.toml --target-dir target/models
//! ```
//!
//! `MODELS_FAULT=lost-wake-up` before it plants a fault, which a model must find. `build.rs` has their names.
#![allow(dead_code, missing_docs, unused_imports, reason = "copied files, of which a model uses a part")]

pub mod host;
pub mod stubs;
pub mod swap;

pub mod rcu {
    include!(concat!(env!("OUT_DIR"), "/rcu.rs"));

    pub mod packed {
        include!(concat!(env!("OUT_DIR"), "/packed.rs"));
    }

    pub mod sorted {
        include!(concat!(env!("OUT_DIR"), "/sorted.rs"));
    }

    #[cfg(test)]
    mod models;
}

pub mod cache {
    pub mod entry;

    pub mod store {
        include!(concat!(env!("OUT_DIR"), "/store.rs"));

        #[cfg(test)]
        mod models;
    }
}

pub mod tap {
    pub mod reasons {
        include!(concat!(env!("OUT_DIR"), "/reasons.rs"));
    }

    pub mod record;

    pub mod ring {
        include!(concat!(env!("OUT_DIR"), "/ring.rs"));

        #[cfg(test)]
        mod models;
    }
}

pub mod singleflight {
    include!(concat!(env!("OUT_DIR"), "/singleflight.rs"));

    #[cfg(test)]
    mod models;
}

pub mod log {
    include!(concat!(env!("OUT_DIR"), "/log.rs"));

    #[cfg(test)]
    mod models;
}
