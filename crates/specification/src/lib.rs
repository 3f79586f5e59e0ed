//! Executable specification: two small models of what a server must answer, and all small cases for them.
//!
//! [`zone::answer`] follows RFC 1034 with its updates for a zone file. Each branch of the models names its paragraph
//! ([`Branch`]). The models share no code with the server, and neither do names, records and messages here: a mistake in
//! those of the server would otherwise be in both.
//!
//! [`scope`] makes all zones of a few records, and keeps one case for each way through the model.

pub mod answer;
mod branch;
pub mod cluster;
pub mod compare;
pub mod message;
pub mod record;
pub mod scope;
pub mod text;
pub mod zone;

pub use branch::Branch;
