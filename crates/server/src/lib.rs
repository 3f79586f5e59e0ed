//! The daemon: startup, reload and shutdown, the modes that replace kube-dns and NodeLocal DNSCache, pages for metrics.
#![allow(clippy::disallowed_methods, reason = "this crate is the edge: it reads files and the environment")]

mod admin;
mod command_line;
mod compress;
mod generated_corefile;
mod hook_commands;
mod instance;
mod jobs;
mod kept;
mod lifecycle;
#[cfg(test)]
mod memory_bounds_tests;
pub mod modes;
mod own_queries;
mod privileges;
mod process_limits;
mod run;
mod serve_error;
mod sockets;

pub use generated_corefile::METRICS as KUBE_DNS_METRICS;
pub use instance::BUILD_METRICS;
pub use kept::METRICS as KEEPER_METRICS;
pub use run::{ServeOptions, run};
