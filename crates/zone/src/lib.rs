//! Zones: records as text and octets, master files (RFC 1035 §5), zones in memory and what they say about a name.
//!
//! Nothing here reads files, asks the time or sends anything: texts come in, records and answers go out. Text of any
//! kind is read within bounds and never panics; what is wrong is told with its line and column.

pub mod text;
