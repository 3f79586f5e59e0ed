//! Records in etcd as SkyDNS writes them: a key is a name, its labels in reverse, and its value a record in JSON.
//!
//! [`Mirror`] is the one writer: it takes what etcd lists and what its watches say, and keeps an [`Index`] up to it, which
//! answers are made from. What a name has there is said by [`View::select`]: everything below it, as SkyDNS has it.
//!
//! Nothing here speaks to etcd, knows the time, or makes DNS records of what is found.

mod index;
mod key;
mod lease;
mod mirror;
mod record;
mod request;
#[cfg(any(test, feature = "scenario"))]
pub mod scenario;
mod select;

pub use index::{Counts, Index, View};
pub use key::name_of;
pub use lease::Lease;
pub use mirror::{Event, Mirror, Pair};
pub use record::{Host, LeaseBounds, Meaning, Record, Refusal};
pub use request::{Credentials, Following, Range, Request, Stores, Tls};
pub use select::{Listed, Selection, Sought, VISITED_MAX};
