//! TLS, gRPC framing, byte streams and PROXY headers on tokio, files with a bound, and the monotonic clock.
//!
//! The crate implements what DNS sockets (`net`) and the clients of etcd and the Kubernetes API have in common. It does
//! not know DNS messages, worker threads or connection pools.
#![allow(clippy::disallowed_methods, reason = "this crate is at the edge: it opens sockets and asks the time")]

pub mod byte_streams;
mod clock;
mod error_text;
pub mod files;
pub mod grpc;
pub mod http_client;
mod key_log;
pub mod proxy;
pub mod request_body;
pub mod server_stream;
pub mod spare;
mod tickets;
pub mod tls;
mod validity;
mod verifier;

pub use clock::MonotonicClock;
pub use error_text::{error_text, root_cause, tls_error_text};
pub use host::tls::TlsError;
pub use validity::validity;
