//! Client for the Kubernetes API server, and reader for manifests on disk. Both feed a [`cluster::Reducer`], and
//! queries are answered from its index.
//!
//! [`Subscriber::subscribe`] starts the lists and watches of a [`cluster::Request`]. This crate implements list, watch
//! (`watch`) and decoding ([`decode`]) itself. The decoder reads objects from the response bytes as they arrive,
//! borrows strings from them, and keeps only the fields that answers need. The crate kube loads the configuration
//! and provides credentials and TLS (`credentials`).
//!
//! All tasks run on one thread, which needs a tokio runtime and a `LocalSet`. Any thread can read the index.
//!
//! This crate has no DNS code.
#![allow(clippy::disallowed_methods, reason = "this crate does I/O: it reads files, the environment and the clock")]

mod age;
mod announce;
mod api;
mod authorities;
mod body;
mod causes;
mod config_map;
mod credentials;
pub mod decode;
mod error;
mod failure;
mod follow;
pub mod gzip;
mod health;
mod kubeconfig;
mod locate;
mod meter;
mod on_disk;
mod rate_limit;
mod raw;
mod reader;
mod servers;
mod snapshot;
mod subscribe;
mod target;
mod timing;
mod watch;

pub use causes::causes;
pub use config_map::{ConfigMap, Data, ReadError};
pub use credentials::connect;
pub use error::{ClientError, SetupError};
pub use health::{ResourceHealth, ViewHealth};
pub use locate::{
    DnsPolicy, KubeletError, LocateError, LocatedPod, PodResolver, UnreadError, locate_address, locate_pod, pods_in,
};
pub use meter::METRICS;
pub use raw::{RawClient, RawError, RawResponse};
pub use reader::{Document, Reader};
pub use subscribe::{Subscriber, Subscription, check};
pub use target::percent_encode;
pub use timing::Timing;

/// Target of the log lines, which shows the plugin that they belong to.
const LOG: &str = "plugin/kubernetes";
