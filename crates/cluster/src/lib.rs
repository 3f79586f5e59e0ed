//! State of a Kubernetes cluster in memory, kept up to date from watch events and read by the DNS workers without
//! locks.
//!
//! [`Reducer`] is the single writer. It takes watch events ([`object::Event`]) and updates an [`Index`]. For each
//! object it stores what it needs to interpret the next event: a 64-bit keyed hash of the namespace and name, a hash
//! of the resource version, and the object's part of the index.
//!
//! [`Index`] is what the workers read: Services with their endpoints, Services by IP address, namespaces and pods. An
//! endpoint change costs one slice and one Service, not the whole cluster.
//!
//! [`Mesh`] holds the hosts of a service mesh (Istio). It is separate from the cluster's own Services.
//!
//! [`Selector`] parses and evaluates label selectors, both for option checks and for sources that filter objects
//! themselves.
//!
//! [`Request`] says which objects of which cluster a DNS zone needs, and [`Clusters`] provides them.
//!
//! # Example
//!
//! A watch of Services and one of EndpointSlices list their objects. Afterwards, a change reaches the readers of the
//! index at once.
//!
//! ```
//! use cluster::object::{AddressType, Endpoint, EndpointSlice, Event, Meta, Object, Service};
//! use cluster::{Kind, Reducer, Spec};
//!
//! let spec = Spec::new(&[Kind::Service, Kind::EndpointSlice], &[]);
//! let (services, slices) = (0, 1);
//! assert_eq!(spec.watches[slices].kind, Kind::EndpointSlice);
//! let (mut reducer, index) = Reducer::new(&spec);
//! let meta = |name| Meta { namespace: "shop", name, version: "" };
//! let web = Service {
//!     meta: meta("web"),
//!     service_type: "ClusterIP",
//!     cluster_ips: vec!["10.96.0.11"],
//!     external_name: "",
//!     ports: Vec::new(),
//!     external: Vec::new(),
//! };
//! let slice = |address| EndpointSlice {
//!     meta: meta("web-1"),
//!     service: "web",
//!     source_cluster: "",
//!     address_type: AddressType::Ipv4,
//!     endpoints: vec![Endpoint { address, ready: Some(true), ..Endpoint::default() }],
//!     ports: Vec::new(),
//! };
//! let mut apply = |watch, event: Event<'_>| reducer.apply(watch, &event, 0);
//! for (watch, object) in [(services, Object::Service(web)), (slices, Object::EndpointSlice(slice("10.1.0.5")))] {
//!     apply(watch, Event::Listing);
//!     apply(watch, Event::Applied(object));
//!     apply(watch, Event::Listed);
//! }
//! assert!(index.is_synced());
//!
//! let has_endpoint = |address| index.service(b"shop", b"web", |web| web.endpoints_at(address).next().is_some());
//! let [old, new] = ["10.1.0.5", "10.1.0.6"].map(|address| address.parse().unwrap());
//! assert_eq!(has_endpoint(old), Some(true));
//! apply(slices, Event::Applied(Object::EndpointSlice(slice("10.1.0.6"))));
//! assert_eq!((has_endpoint(old), has_endpoint(new)), (Some(false), Some(true)));
//!
//! let cluster_ip = "10.96.0.11".parse().unwrap();
//! assert_eq!(index.service_of_cluster_ip(cluster_ip, |web| Some(web.has_endpoints())), Some(true));
//! apply(services, Event::Deleted { namespace: "shop", name: "web" });
//! assert_eq!(index.service_of_cluster_ip(cluster_ip, |web| Some(web.has_endpoints())), None);
//! ```
//!
//! The crate does no I/O: it knows nothing of the API server, JSON, zones or DNS messages, and takes the time as a
//! parameter.

mod addresses;
mod columns;
pub mod dashed;
mod index;
mod intern;
mod ip;
mod kinds;
pub mod mesh;
mod not_ready;
pub mod object;
mod pod_addresses;
mod pod_names;
mod port;
#[cfg(test)]
mod random_tests;
mod records;
mod reducer;
mod request;
mod restore;
#[cfg(any(test, feature = "scenario"))]
pub mod scenario;
mod selector;
mod service;
mod slice;
pub mod snapshot;
mod spec;
mod watches;

pub use columns::{Address, Addresses};
pub use index::{Counts, Index, Location};
pub use mesh::Mesh;
pub use not_ready::NotReadyEndpoint;
pub use pod_names::NamedPod;
pub use port::Port;
pub use records::Change;
pub use reducer::Reducer;
pub use request::{ClusterHandle, Clusters, Purpose, RateLimit, Relays, Request, Source, Tls};
pub use restore::{Restore, Resumable};
pub use selector::{Selector, SelectorError};
pub use service::{External, Service, ServiceKind};
pub use slice::{Endpoint, Slice};
pub use spec::{Kind, Kinds, Spec, Watch};
