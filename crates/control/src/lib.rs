//! Control API of a running server: its endpoints, the types of requests and responses, and the texts that commands
//! print for people.
//!
//! `portolan status` and the other commands are thin clients of this API: HTTP/1.1 and JSON over a Unix socket. The
//! crate has no I/O and no clock. Plugins fill its types, the crate `inspect` serves them, and the commands of the
//! crate `cli` print them.
//!
//! # Adding an endpoint
//!
//! 1. A module here with the types of the request and the response, and the text for people.
//! 2. A variant of [`Endpoint`] with its [`Route`]. The compiler then asks for the next step.
//! 3. A handler in `inspect::endpoints`.
//! 4. A command in `cli::commands`, which requests the endpoint and prints the result.
//! 5. The schemas of its types in `openapi.rs`. `cargo xtask gen` writes `docs/openapi.json`.
//!
//! # Conventions
//!
//! Ages and durations are seconds as numbers. A value that the server does not know is `null`, and the text says why.
//! A field may be added in `v1`; none is renamed or removed.

pub mod cache;
pub mod doctor;
mod endpoint;
mod error;
pub mod explain;
pub mod log;
#[cfg(feature = "schema")]
mod openapi;
pub mod query;
pub mod ready;
pub mod reload;
pub mod requests;
pub mod shadow;
pub mod socket;
pub mod status;
pub mod tail;
pub mod text;
pub mod top;

pub use endpoint::{Endpoint, Method, Parameter, Route, RouteError};
pub use error::ErrorBody;
#[cfg(feature = "schema")]
pub use openapi::document;

/// Exit codes of the commands.
pub mod exit {
    /// No trouble.
    pub const FINE: u8 = 0;
    /// The server reports trouble.
    pub const TROUBLE: u8 = 1;
    /// The server could not be asked.
    pub const NOT_ASKED: u8 = 2;
    /// No trouble was found, but something that matters could not be looked at.
    pub const INCOMPLETE: u8 = 3;
}
