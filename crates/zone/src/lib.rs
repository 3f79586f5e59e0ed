//! Zones: records as text and octets, master files (RFC 1035 §5), zones in memory and what they say about a name.
//!
//! Nothing here reads files, asks the time or sends anything: texts come in, records and answers go out. Text of any
//! kind is read within bounds and never panics; what is wrong is told with its file, line and column.

mod answer;
mod build;
mod canonical;
mod differences;
pub mod dnssec;
mod find;
mod generate;
mod incoming;
mod keys;
mod master;
mod order;
mod store;
pub mod text;

pub use answer::{Question, Reply};
pub use build::{Builder, Unfit};
pub use differences::Differences;
pub use find::Found;
pub use incoming::{Broken, Incoming};
pub use master::{LoadError, Loaded, Read, Trouble, load};
pub use order::{Owner, Standing};
pub use store::{Node, RecordSet, Soa, Zone};
