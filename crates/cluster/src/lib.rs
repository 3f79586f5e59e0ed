//! The Kubernetes world as a pure reducer: events of watches go in ([`object`]), an index that answers are made from
//! comes out ([`Index`]).
//!
//! [`World`] is the one writer. It remembers what it must to understand the next event: which objects exist, in which
//! version, and what of the index is theirs; names are remembered as 64-bit keyed hashes. [`Index`] is what the answer
//! threads share: services with their endpoints, the services of each address, namespaces, pods. It is read without
//! locks while it is written, and an endpoint change costs its slice and its service, not the cluster.
//!
//! [`Mesh`] is the hosts of a service mesh, another world beside that of the cluster's own services.
//!
//! [`Selector`] is the language of label selectors, for those who check options and for those who select objects
//! themselves.
//!
//! Nothing here knows the API server, JSON, zones, or DNS messages; the time is a parameter.

mod addresses;
pub mod dashed;
mod index;
mod intern;
mod ip;
mod kinds;
pub mod mesh;
mod meta;
pub mod object;
mod port;
#[cfg(test)]
mod random_tests;
mod records;
mod request;
#[cfg(any(test, feature = "scenario"))]
pub mod scenario;
mod selector;
mod service;
mod slice;
pub mod snapshot;
mod spec;
mod watches;
mod world;

pub use index::{Counts, Index, Place};
pub use mesh::Mesh;
pub use port::Port;
pub use records::Change;
pub use request::{About, Clusters, Following, Pace, Request, Source, Tls};
pub use selector::{Selector, SelectorError};
pub use service::{External, Service, ServiceKind};
pub use slice::{Address, Addresses, Endpoint, Slice};
pub use spec::{Kind, Kinds, Spec, Watch};
pub use world::World;
