//! What a process of Portolan has: limits, files, log and capabilities, and the way from a Corefile on disk to a plan.
//!
//! The daemon, the inspection of a running server and the commands have this in common.
#![allow(clippy::disallowed_methods, reason = "this crate is at the edge: it reads files and the environment")]

pub mod capabilities;
pub mod cgroup;
pub mod clusters;
pub mod configuration;
pub mod deadlines;
pub mod dry;
pub mod files;
pub mod http_listener;
pub mod http_server;
pub mod internal_errors;
pub mod limit_hits;
pub mod local;
pub mod log;
pub mod lookup;
pub mod process_metrics;
pub mod profile;
pub mod secrets;
pub mod startup_gates;
pub mod version;
pub(crate) mod zone_storage;
