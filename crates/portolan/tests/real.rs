//! Tests beside real components: API servers, clients and proxies. A test without its program is skipped with a
//! message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod real_api;
mod real_clients;
mod real_deploy;
mod real_kubectl;
mod real_proxies;
mod support;
