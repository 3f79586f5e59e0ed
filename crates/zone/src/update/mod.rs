//! Dynamic updates of a zone (RFC 2136), as a pure state machine: a zone and a request → a newer zone or a response
//! code.
//!
//! - [`UpdateRequest`] is a parsed UPDATE message.
//! - [`Draft`] is a version of a zone that is being changed. [`Draft::apply`] applies a request completely or not at
//!   all, and returns the net [`Change`]. [`Draft::build`] makes a [`Zone`](crate::Zone) of the draft, once for many
//!   requests.
//! - [`Change`] is what a journal keeps and what an incremental transfer sends ([`ChangeWriter`]).
//! - [`journal`] is the file format in which a zone with its changes survives the process.
//!
//! The module does not know keys: the caller judges each update record ([`Draft::apply`]). It does no I/O.

mod apply;
mod bbolt;
mod change;
mod checksum;
mod draft;
mod error;
pub mod journal;
mod request;
mod seed;
mod types;

pub use change::{Change, ChangeWriter};
pub use draft::{Applied, Draft, UpdateLimits, records_len};
pub use error::UpdateError;
pub use request::{MalformedUpdate, UpdateRecord, UpdateRequest};
pub use seed::{InvalidSeed, check_seed};
pub use types::{is_grantable, is_unsupported};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
