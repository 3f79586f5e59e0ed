//! Parts of the servers over HTTP: idle time, buffer reservations, shutdown, and the call into the engine.
//!
//! [`grpc`](crate::grpc) and [`https`](crate::https) decide about requests. hyper implements HTTP.

mod activity;
mod answer;
mod connection;
mod query;
mod stream;

pub(crate) use activity::{Activity, OpenRequest};
pub(crate) use answer::AnswerBody;
pub(crate) use connection::{PING_EVERY, PING_TIMEOUT, serve_until_closed, serve_until_quiet, wait_for_request};
pub(crate) use query::NoAnswer;
pub(crate) use stream::WatchedStream;

/// Maximum length of the headers of one request in bytes. DNS needs hardly any.
pub(crate) const HEADERS_MAX: u32 = 16 << 10;
/// Maximum number of answer bytes that one request may have unwritten.
pub(crate) const UNWRITTEN_MAX: usize = 64 << 10;
/// Memory that an open request needs besides its message, in hyper and here, in bytes.
pub(crate) const REQUEST_COST: usize = 2 << 10;
