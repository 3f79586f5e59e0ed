//! DNS over QUIC (RFC 9250) and DNS over HTTP/3 (RFC 8484 over RFC 9114), without sockets and clocks.
//!
//! An [`Endpoint`] serves one listening address on one thread. Its owner does the I/O:
//!
//! 1. [`Endpoint::handle_datagram`] takes a datagram, [`Endpoint::handle_timeout`] the passing of time.
//! 2. [`Endpoint::poll_event`] returns the queries in them, which are answered by [`Endpoint::respond`], at once or
//!    later.
//! 3. [`Endpoint::poll_transmit`] returns the datagrams to send, and [`Endpoint::poll_timeout`] the time of the next
//!    step.
//!
//! A [`Client`] is a connection to an upstream over one of the two protocols, driven in the same way.
//!
//! quinn-proto implements QUIC. This crate adds the framing of the two protocols, the limits ([`Settings`] and the
//! constants in `limits.rs`), and the assignment of packets to threads ([`owner`]). [`Admission`] connects it to the
//! limits of the process.

mod account;
mod assembly;
mod client;
mod connection;
pub mod doq;
mod endpoint;
mod event;
pub mod h3;
mod keys;
mod limits;
mod protocol;
mod steering;
mod stream;
mod tokens;

pub use account::{Account, Admission};
pub use client::{Asking, Client, ClientEvent, CloseReason, Code, NoStreamError, OpenError, Rejection, Upstream};
pub use endpoint::{Config, Endpoint};
pub use event::{Event, Limit, QueryKey, Route};
pub use keys::Keys;
pub use limits::Settings;
pub use protocol::Protocol;
pub use quinn_proto::{StdSystemTime, TimeSource, crypto::rustls::NoInitialCipherSuite};
pub use steering::{LONG_HEADER, LONG_OFFSET, Place, SHORT_OFFSET, owner};
