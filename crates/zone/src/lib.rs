//! DNS zones: records in presentation format, zone files (RFC 1035 §5), zones in memory and answers from them.
//!
//! - [`text`] parses and prints single records.
//! - [`load`] reads a zone file into a [`Zone`].
//! - [`Incoming`] and [`Differences`] build a [`Zone`] from the messages of an AXFR or IXFR response.
//! - [`Zone::answer`] writes the answer to a question into a message.
//! - [`update`] applies UPDATE messages to a zone, and keeps its changes in a journal.
//!
//! The crate does no I/O and reads no clock: the caller passes in file contents and messages. Parsers bound their input
//! and never panic. Errors carry the file, line and column.
//!
//! ```
//! use wire::{Class, Header, MessageBuf, Name, Rcode, Section, Type};
//! use zone::{Question, load};
//!
//! let file = b"$TTL 60\n@ SOA ns host 1 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.1\n";
//! let origin = Name::from_text("example.org.").unwrap();
//! let loaded = load(origin.as_ref(), "db.example.org".as_ref(), &mut |_| Ok(file.to_vec())).unwrap();
//!
//! let name = Name::from_text("ns.example.org.").unwrap();
//! let mut message = MessageBuf::new();
//! message.start(Header::default(), Some((name.as_ref(), Type::A, Class::IN)));
//! let question = Question { name: name.as_ref(), qtype: Type::A, dnssec_ok: false };
//! let reply = loaded.zone.answer(question, &mut message).unwrap();
//! assert_eq!(reply.rcode, Rcode::NOERROR);
//! assert_eq!(message.section(Section::Answer).count(), 1);
//! ```

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
mod mistakes;
mod order;
mod store;
pub mod text;
mod transfer;
pub mod update;

pub use answer::{Question, Reply};
pub use build::{Builder, Limits, ZoneError};
pub use differences::Differences;
pub use find::Lookup;
pub use incoming::Incoming;
pub use master::{LoadError, LoadErrorKind, Loaded, Read, load, load_within};
pub use mistakes::{Mistake, MistakeKind};
pub use order::{Authority, Owner};
pub use store::{Node, RecordSet, Soa, Zone};
pub use transfer::TransferError;
