//! The endpoint against the client of quinn-proto, in virtual time over a network that loses, repeats and reorders.
#![allow(clippy::disallowed_methods, reason = "a simulation starts at some instant")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod abuse;
mod doq;
mod http3;
mod limits;
mod network;
mod simulation;
