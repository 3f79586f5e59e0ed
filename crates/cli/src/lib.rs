//! The commands of `portolan` that do not serve DNS: they check Corefiles, ask running servers, diagnose and migrate.
#![allow(clippy::disallowed_methods, reason = "a command reads files and asks servers")]

mod all_error;
pub mod check;
mod client;
pub(crate) mod command_error;
pub mod commands;
pub mod conform;
mod coredns;
pub mod diagnostics;
mod dns_client;
mod doctor;
pub mod migrate;
mod rbac;
mod report;
