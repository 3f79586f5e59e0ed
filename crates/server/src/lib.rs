//! The server: command line, loading of the Corefile, startup, reload and shutdown. This crate connects all others.
#![allow(clippy::disallowed_methods, reason = "this crate is the edge: it reads files and the environment")]

mod admin;
mod capabilities;
mod check;
pub mod cli;
mod clusters;
mod command_line;
mod compress;
mod configuration;
mod conform;
mod deadlines;
pub mod diagnostics;
mod dry;
mod files;
mod generated_corefile;
mod hook_commands;
mod instance;
mod jobs;
mod lifecycle;
mod local;
mod log;
mod lookup;
mod migrate;
mod modes;
mod process_metrics;
mod profile;
mod rbac;
mod report;
mod run;
mod sockets;
mod startup_gates;
mod version;

pub use check::{CheckOptions, OutputFormat, check};
pub use conform::{ConformanceOptions, conform};
pub use etcd::METRICS as ETCD_METRICS;
pub use generated_corefile::METRICS as KUBE_DNS_METRICS;
pub use kubeapi::METRICS as CLUSTER_METRICS;
pub use log::Format as LogFormat;
pub use migrate::{MigrateOptions, migrate};
pub use modes::kube_dns::kube_dns;
pub use modes::node::{METRICS as NODE_METRICS, node};
pub use net::{LIMIT_METRICS, LOG_METRICS};
pub use process_metrics::PROCESS_METRICS;
pub use run::{ServeOptions, run};
pub use version::{VERSION, version_text};
