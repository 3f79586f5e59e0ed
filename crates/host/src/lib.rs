//! Values and interfaces that a process needs besides DNS: time, invariants, texts of I/O errors, the error for a
//! source that cannot be followed, TLS configurations, byte streams.
//!
//! The crate does no I/O and reads no clock. Crates at the edge implement its traits ([`Clock`], [`tls::TlsMaker`],
//! [`streams::ByteStream`]); the clients of etcd and the Kubernetes API need these types but no DNS engine.

use core::future::Future;
use core::pin::Pin;

pub mod errors;
mod follow;
pub mod invariant;
pub mod mask;
pub mod planted;
pub mod sorting;
pub mod streams;
pub mod time;
pub mod tls;

pub use follow::FollowError;
pub use time::{Clock, Instant};

/// Future that stays on the thread of its worker; it need not be `Send`.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Boxes a future, for a task that starts seldom: the program then has one type of task for all, and each further one
/// would add 2 KB.
pub fn boxed<T>(future: impl Future<Output = T> + 'static) -> LocalFuture<'static, T> {
    Box::pin(future)
}
