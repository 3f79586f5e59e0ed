//! Tests against a fake API server with injected faults, and against files. They cover every state and every fault.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests: they write files, wait, and panic on failure"
)]

mod age;
mod config_map;
mod credentials;
mod encoding;
mod faults;
mod log;
mod manifests;
mod mesh;
mod omitted;
mod rate_limit;
mod relays;
mod scope;
mod snapshot;
mod support;
mod watch;

/// True if the servers of these tests have no protobuf. See `edge_in_json.rs`.
const JSON_ONLY: bool = false;
