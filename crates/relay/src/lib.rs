//! Relay of Kubernetes lists and watches, without I/O: nodes read the cluster from a few relays in place of the API
//! server, with the same requests, the same resource versions and the same errors.
//!
//! [`Relay`] keeps the objects of each kind as bytes: as the API server sent them, and stripped to the fields of a
//! profile ([`strip()`]). Changes are gathered in ticks, which subscribers share: a tick is encoded and compressed once
//! per form. A subscriber is a [`Cursor`] in the history of a kind. It has no queue, so that a slow one costs nothing.
//!
//! The caller passes the time, moves the bytes, and wakes subscribers when [`Relay::advance`] says so.
//!
//! ```
//! use host::Instant;
//! use relay::{Headers, Kind, Next, Refusal, Relay, Request};
//!
//! let now = Instant::START;
//! let mut relay = Relay::new(&[Kind::Service]);
//! let request = Request::parse("/api/v1/services", "watch=1&resourceVersion=7", Headers::default()).unwrap();
//! assert!(matches!(relay.watch(&request, now), Err(Refusal::NotReady)));
//! relay.begin_list(Kind::Service);
//! relay.end_list(Kind::Service, 7, now);
//! let mut cursor = relay.watch(&request, now).unwrap();
//! assert_eq!(relay.next(&mut cursor, now), Next::Wait);
//! ```

mod collection;
mod cursor;
mod discovery;
mod earlier;
mod encode;
mod gzip;
mod history;
mod initial;
mod object;
mod relay;
mod request;
mod selector;
#[cfg(test)]
mod simulation;
mod status;
mod strip;
mod table;
#[cfg(test)]
mod tests;
pub mod token;
mod wire;

pub use collection::{
    BOOKMARK_INTERVAL, FRESH, GATHER, GATHER_MAX, GATHER_PER_SUBSCRIBER, LIST_SHARED, LISTS_KEPT_MAX, News,
};
pub use cursor::{BEHIND_MAX, Cursor, INITIAL_MAX, Next};
pub use discovery::discovery;
pub use earlier::{EARLIER_GATHER, EARLIER_MAX, Earlier};
pub use encode::{Encoding, EventType, Form};
pub use history::{HISTORY_AGE_MAX, HISTORY_BYTES_MAX};
pub use object::{Key, ObjectError, Stored};
pub use relay::{KindState, Relay};
pub use request::{Headers, PODS_PROFILE, PROFILE, PROFILE_HEADER, Request};
pub use selector::{Filter, REQUIREMENTS_MAX, SelectorError};
pub use status::Refusal;
pub use strip::{strip, to_json};
pub use table::Kind;
pub use wire::WireError;
