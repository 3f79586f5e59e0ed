//! A whole server in one process, without sockets and in virtual time, and scenarios that drive it.
//!
//! [`Server`] is what the binary puts together, with a clock that only the test moves ([`VirtualTime`]), upstreams that
//! answer from tables ([`Upstreams`]) and files in memory ([`World`]). [`run_directory`] runs scenario files (`*.scn`);
//! how they are written is said there. What is not here: sockets, threads, the order of the real plugins (the caller
//! gives the list), the API server of a cluster (an [`Extension`] of the caller).
#![allow(clippy::disallowed_methods, reason = "this room is an edge: it reads scenario files")]

mod collector;
mod executor;
mod message;
mod octets;
mod outside;
mod record;
mod scenario;
mod server;
mod time;
mod tls;
pub mod toys;
mod upstream;
mod world;

pub use collector::{FrameReader, dnstap_line};
pub use executor::{Executor, Task};
pub use message::{Parsed, Question};
pub use octets::Peer;
pub use outside::{LOCAL, Site, VirtualOutside};
pub use record::{Record, RecordError};
pub use scenario::{Extension, Line, MakeExtension, Problem, Stage, Statement, Words, run_directory, run_text};
pub use server::{Arrival, CLIENT, Outcome, Server, Ticket};
pub use time::VirtualTime;
pub use tls::PretendedTls;
pub use upstream::{Answer, Asked, Entry, Names, Reaction, Upstreams};
pub use world::World;

/// The octets that hexadecimal digits stand for; blanks between them do not matter.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|octet| !octet.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len().is_multiple_of(2) { digits.chunks(2).map(pair).collect() } else { None }
}
