//! The edge to the Kubernetes API server, and to manifests on disk: what they say becomes events of a [`cluster::World`],
//! and answers are made from its index.
//!
//! [`Subscriber::subscribe`] starts what a [`cluster::Request`] asks for. Lists and watches, and the decoding of what they send,
//! are our own ([`watch`], [`decode`]): an object is decoded from the octets as they come, into borrowed texts, and only
//! what an answer needs is ever kept. Configuration, credentials and TLS are the crate kube's ([`credentials`]).
//! Everything runs on one thread, which must have a tokio runtime and a `LocalSet`; the index is read from any other.
//!
//! Nothing here knows DNS.
#![allow(
    clippy::disallowed_methods,
    reason = "this room is the edge: it reads files and the environment, and asks the time"
)]

mod age;
mod api;
mod config_map;
mod credentials;
pub mod decode;
mod failure;
mod follow;
mod manifests;
mod meter;
mod pace;
mod problem;
mod snapshot;
mod subscribe;
mod target;
mod timing;
mod watch;

pub use config_map::{ConfigMap, Data};
pub use credentials::connect;
pub use failure::causes;
pub use meter::METRICS;
pub use problem::SetupProblem;
pub use subscribe::{Subscriber, Subscription, check};
pub use timing::Timing;

/// Where the lines of the log say that they come from.
const LOG: &str = "plugin/kubernetes";
