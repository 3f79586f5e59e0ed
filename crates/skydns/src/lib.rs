//! SkyDNS records in etcd: a key encodes a name with its labels in reverse order, and its value is a record in JSON.
//!
//! [`Reducer`] is the single writer. It takes lists and watch events of the store and updates an [`Index`], which the
//! DNS workers read. [`View::select`] returns the records of a name: everything below it, as in SkyDNS.
//!
//! The crate does not talk to etcd, takes the time as a parameter, and leaves it to the caller to turn records into
//! DNS records.

mod index;
mod key;
mod lease;
mod record;
mod reducer;
mod request;
#[cfg(any(test, feature = "scenario"))]
pub mod scenario;
mod select;

pub use index::{Counts, Index, View};
pub use key::name_of;
pub use lease::Lease;
pub use record::{Host, LeaseBounds, Record, RecordError, RecordFilter, RecordRole};
pub use reducer::{Event, Pair, Reducer};
pub use request::{Credentials, Range, Request, StoreHandle, Stores, Tls};
pub use select::{KeyedRecord, Selection};
