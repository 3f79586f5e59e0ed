//! What Linux offers and no library does: batches of datagrams, a profiler of the own process, and netlink messages.
//!
//! The `unsafe` code of system calls and signal handlers is here, so that a review of it has one place.

pub mod datagrams;
pub mod net;
pub mod sampler;
