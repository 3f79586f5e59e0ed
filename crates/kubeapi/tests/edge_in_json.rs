//! Tests of lists, watches and faults from `edge`, with a server without protobuf.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    dead_code,
    reason = "tests: they write files, wait, and panic on failure; the fixture has parts for other tests"
)]

#[path = "edge/faults.rs"]
mod faults;
#[path = "edge/log.rs"]
mod log;
#[path = "edge/omitted.rs"]
mod omitted;
#[path = "edge/support.rs"]
mod support;
#[path = "edge/watch.rs"]
mod watch;

const JSON_ONLY: bool = true;
