//! DNS wire format (RFC 1035 §4): borrowed views over packets, names on the stack, a message builder with one reused
//! buffer, name compression and EDNS.
//!
//! Reading does not allocate. The crate does no I/O, reads no clock and gives answers no meaning. Input from the
//! network never causes a panic: every read is bounds-checked and returns an error.
//!
//! - [`Request`] decodes a query in one pass.
//! - [`Message`] is a view over any message.
//! - [`Reply`] is the reply of another server, which keeps what parsing has found.
//! - [`MessageBuf`] builds a message.
//!
//! ```
//! use wire::{Class, Header, Message, MessageBuf, Name, Owner, Section, Type};
//!
//! let name = Name::from_text("example.org.").unwrap();
//! let mut buffer = MessageBuf::new();
//! buffer.start(Header::default(), Some((name.as_ref(), Type::A, Class::IN)));
//! buffer.push_a(Section::Answer, Owner::Question, 300, [192, 0, 2, 1].into());
//! let packet = buffer.finish(None, std::iter::empty());
//!
//! let message = Message::parse(packet).unwrap();
//! let record = message.records().next().unwrap();
//! assert_eq!((record.rtype(), record.ttl(), record.rdata()), (Type::A, 300, &[192, 0, 2, 1][..]));
//! ```

mod build;
mod code;
mod compress;
mod edns;
mod form;
mod header;
mod message;
mod name;
mod reply;
mod request;
mod reverse;

pub use build::{MessageBuf, Owner, RdataWriter};
pub use code::{Class, Opcode, Rcode, Type};
pub use edns::{EdeCode, OPT_FIXED_LEN, Opt, OptionCode, options};
pub use header::{Flags, HEADER_LEN, Header};
pub use message::{Mark, Message, MessageError, Record, Records, Section, question_end};
pub use name::{LABEL_MAX, Labels, NAME_MAX, Name, NameError, NameRef};
pub use reply::Reply;
pub use request::{Malformed, Request};
pub use reverse::{address_of, is_above_addresses, reverse_name};
