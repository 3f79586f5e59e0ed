//! A complete server in one process, without sockets and in virtual time, and a scenario language to test it.
//!
//! [`Server`] assembles the same parts as the binary, with a clock that only the test advances ([`VirtualTime`]),
//! fake upstreams that answer from tables ([`Upstreams`]) and files in memory ([`World`]). [`run_directory`] runs
//! scenario files (`*.scn`), whose syntax is documented in the module `scenario`.
//!
//! Sockets (except those of [`ports`]), threads, the order of the real plugins and the API server of a cluster are
//! outside of this crate: the caller passes the list of plugins and may add statements with an [`Extension`].
#![allow(clippy::disallowed_methods, reason = "this crate is at the edge: it reads scenario files")]

mod byte_streams;
mod collector;
mod executor;
mod io;
mod message;
pub mod ports;
mod random;
mod record;
mod scenario;
mod server;
mod time;
mod tls;
pub mod toys;
mod upstream;
mod world;

pub use byte_streams::Peer;
pub use collector::{FrameReader, dnstap_line};
pub use executor::{Executor, Task};
pub use io::{LOCAL, Network, Site, VirtualIo};
pub use message::{Parsed, Question};
pub use random::SplitMix64;
pub use record::{Record, RecordError};
pub use scenario::{
    Extension, Line, MakeExtension, Problem, Stage, Statement, Words, run_directories, run_directory, run_text,
};
pub use server::{Arrival, CLIENT, LoadError, Outcome, Server, Ticket};
pub use time::VirtualTime;
pub use tls::PretendedTls;
pub use upstream::{Answer, Asked, Entry, Names, Reaction, Upstreams};
pub use world::World;

/// Decodes hexadecimal digits, ignoring whitespace.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len().is_multiple_of(2) { digits.chunks(2).map(pair).collect() } else { None }
}
