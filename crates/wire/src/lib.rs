//! DNS messages as bytes (RFC 1035 §4): borrowed views over packets, names on the stack, a builder that writes
//! into one reused buffer, EDNS, truncation.
//!
//! Nothing here allocates while reading; the builder reuses its buffer. Nothing here knows sockets, clocks or
//! what an answer means. Bytes from the network never panic: every read is checked and says what was wrong.

mod build;
mod code;
mod compress;
mod edns;
mod header;
mod message;
mod name;
mod request;
mod reverse;

pub use build::{Mark, MessageBuf, Owner, RdataWriter, Section};
pub use code::{Class, Opcode, Rcode, Type};
pub use edns::{EdeCode, OPT_FIXED_LEN, Opt, OptionCode, options};
pub use header::{Flags, HEADER_LEN, Header};
pub use message::{Message, MessageError, Record, Records, question_end};
pub use name::{LABEL_MAX, Labels, NAME_MAX, Name, NameError, NameRef};
pub use request::{Malformed, Request};
pub use reverse::{address_of, is_above_addresses, reverse_name};
