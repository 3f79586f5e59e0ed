//! Client for etcd that keeps a copy of its keys up to date: lists and watches feed a [`skydns::Reducer`], and queries
//! are answered from its index.
//!
//! [`Edge`] implements [`skydns::Stores`]. It uses etcd's API v3 over gRPC, with one connection of its own to one
//! member at a time, so that it notices when the connection breaks. All tasks run on one thread, which needs a tokio
//! runtime and a `LocalSet`. Any thread can read the index.
//!
//! This crate has no DNS code and does not interpret the keys.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate does I/O: it opens connections and reads files and the clock"
)]

mod client;
mod connection;
mod endpoint;
mod error;
mod follow;
mod meter;
mod proto;
mod timing;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use host::FollowError;
use host::boxed;
use metrics::Registry;
use skydns::{Index, Reducer, Request, StoreHandle, Stores};
use tokio::task::AbortHandle;

use endpoint::Endpoint;
use follow::Follower;
use meter::Meter;

pub use error::StoreError;
pub use meter::METRICS;
pub use timing::Timing;

/// Target of the log lines, which shows the plugin that they belong to.
const LOG: &str = "plugin/etcd";

/// Follows stores on the current thread, which must run a [`LocalSet`](tokio::task::LocalSet).
pub struct Edge {
    meter: Rc<Meter>,
    timing: Rc<Timing>,
    stores: RefCell<Vec<Weak<FollowedStore>>>,
}

/// Store that is kept up to date. Its task ends when the last holder drops it.
struct FollowedStore {
    request: Request,
    index: Arc<Index>,
    task: AbortHandle,
}

impl Edge {
    /// Creates a client with the default timing that counts in `registry`.
    #[must_use]
    pub fn new(registry: &Arc<Registry>) -> Edge {
        Edge::with_timing(registry, Timing::default())
    }

    /// Creates a client with custom timing.
    #[must_use]
    pub fn with_timing(registry: &Arc<Registry>, timing: Timing) -> Edge {
        Edge { meter: Rc::new(Meter::new(registry)), timing: Rc::new(timing), stores: RefCell::default() }
    }
}

impl Stores for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn StoreHandle>, FollowError> {
        let request = request.canonical();
        self.stores.borrow_mut().retain(|stores| stores.strong_count() > 0);
        let same = |stores: &Weak<FollowedStore>| stores.upgrade().filter(|stores| stores.request == request);
        if let Some(stores) = self.stores.borrow().iter().find_map(same) {
            return Ok(stores);
        }
        let endpoints = endpoints(&request).map_err(FollowError::new)?;
        let (reducer, index) = Reducer::new(&request);
        let follower = Follower::new(request.clone(), endpoints, reducer, &self.timing, &self.meter);
        let task = tokio::task::spawn_local(boxed(follower.run())).abort_handle();
        let followed = Arc::new(FollowedStore { request, index, task });
        self.stores.borrow_mut().push(Arc::downgrade(&followed));
        Ok(followed)
    }
}

/// Checks a request as far as possible without a connection: the endpoints, and the TLS files.
///
/// # Errors
/// A problem that does not go away without a change of configuration.
pub fn check(request: &Request) -> Result<(), StoreError> {
    endpoints(request).map(drop)
}

fn endpoints(request: &Request) -> Result<Vec<Endpoint>, StoreError> {
    let endpoints = request.endpoints.iter().map(|text| Endpoint::read(text, request.tls.is_some()));
    let endpoints: Vec<Endpoint> = endpoints.collect::<Result<_, _>>()?;
    if request.tls.is_some() || endpoints.iter().any(|endpoint| endpoint.has_tls) {
        connection::config(request.tls.as_ref())?;
    }
    Ok(endpoints)
}

impl StoreHandle for FollowedStore {
    fn index(&self) -> &Arc<Index> {
        &self.index
    }
}

impl Drop for FollowedStore {
    fn drop(&mut self) {
        self.task.abort();
    }
}
