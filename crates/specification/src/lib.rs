//! Executable specification: two small models of what a server must answer, and all small cases for them.
//!
//! [`zone::answer`] follows RFC 1034 with its updates for a zone file, and [`cluster::answer`] the Kubernetes DNS
//! specification for the objects of a cluster. Each branch of the models names its paragraph ([`Branch`]). The models
//! share no code with the server, and neither do names, records and messages here: a mistake in those of the server
//! would otherwise be in both.
//!
//! [`scope`] makes all zones of a few records and all small clusters, and keeps one case for each way through the
//! model. [`text`] writes the cases down, and `cargo xtask specification` asks servers.
//!
//! ~~~
//! use specification::record::{Data, Question, Record, Type};
//! use specification::{answer::Rcode, zone};
//!
//! let apex = Record::new("example.", Data::Soa);
//! let alias = Record::new("*.example.", Data::Cname("www.example.".to_owned()));
//! let zone = zone::Zone { origin: "example.".to_owned(), records: vec![apex, alias] };
//! let question = Question { name: "a.example.".to_owned(), qtype: Type::Cname };
//! let (answer, branches) = zone::answer(&zone, &question);
//! assert_eq!(answer.rcodes, [Rcode::NoError]);
//! assert_eq!(answer.required, [Record::new("a.example.", Data::Cname("www.example.".to_owned()))]);
//! assert_eq!(branches[0].paragraph(), "RFC 4592 §3.3.3");
//! ~~~

pub mod answer;
mod branch;
pub mod cluster;
pub mod compare;
pub mod extensions;
pub mod message;
pub mod objects;
pub mod record;
pub mod scope;
pub mod text;
pub mod zone;

pub use branch::Branch;
