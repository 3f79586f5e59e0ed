//! System calls that no library offers: batches of datagrams, a profiler of the own process, netlink messages,
//! signals that a descriptor queues, and descriptors from the parent.
//!
//! The `unsafe` code of system calls and signal handlers is here, so that a review of it has one place.

pub mod datagrams;
pub mod inherited;
pub mod net;
pub mod process;
pub mod sampler;
pub mod signals;
