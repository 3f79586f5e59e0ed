//! The edge to etcd: what it lists and what its watches say becomes events of a [`skydns::Mirror`], and answers are made from
//! that one's index.
//!
//! [`Edge`] is a [`skydns::Stores`]. It speaks API v3 by gRPC over connections of its own: one to one member at a time, so
//! that it knows when that breaks. Everything runs on one thread, which must have a tokio runtime and a `LocalSet`; the
//! index is read from any other.
//!
//! Nothing here knows DNS, nor what the keys mean.
#![allow(
    clippy::disallowed_methods,
    reason = "this room is the edge: it opens connections, reads files and asks the time"
)]

mod client;
mod connection;
mod endpoint;
mod failure;
mod follow;
mod health;
mod meter;
mod proto;
mod sent;
mod timing;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use engine::metrics::Registry;
use skydns::{Following, Index, Mirror, Request, Stores};
use tokio::task::AbortHandle;

use endpoint::Endpoint;
use follow::Follower;
use meter::Meter;

pub use meter::METRICS;
pub use timing::Timing;

/// Where the lines of the log say that they come from.
const LOG: &str = "plugin/etcd";

/// Follows stores on the thread that asks for it, which must run in a [`LocalSet`](tokio::task::LocalSet).
pub struct Edge {
    meter: Rc<Meter>,
    timing: Rc<Timing>,
    given: RefCell<Vec<Weak<Followed>>>,
}

/// A store that is followed. Once the last holder drops it, that ends.
struct Followed {
    request: Request,
    index: Arc<Index>,
    task: AbortHandle,
}

impl Edge {
    /// Counts in this registry.
    #[must_use]
    pub fn new(registry: &Arc<Registry>) -> Edge {
        Edge::with_timing(registry, Timing::default())
    }

    /// With other times than the usual ones.
    #[must_use]
    pub fn with_timing(registry: &Arc<Registry>, timing: Timing) -> Edge {
        Edge { meter: Rc::new(Meter::new(registry)), timing: Rc::new(timing), given: RefCell::default() }
    }
}

impl Stores for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String> {
        let request = request.canonical();
        self.given.borrow_mut().retain(|given| given.strong_count() > 0);
        let same = |given: &Weak<Followed>| given.upgrade().filter(|given| given.request == request);
        if let Some(given) = self.given.borrow().iter().find_map(same) {
            return Ok(given);
        }
        let endpoints = endpoints(&request)?;
        let (mirror, index) = Mirror::new(&request);
        let follower = Follower::new(request.clone(), endpoints, mirror, &self.timing, &self.meter);
        let task = tokio::task::spawn_local(follower.run()).abort_handle();
        let followed = Arc::new(Followed { request, index, task });
        self.given.borrow_mut().push(Arc::downgrade(&followed));
        Ok(followed)
    }
}

/// Whether a store could be followed: the addresses of its members can be read, and the files of its TLS.
///
/// # Errors
/// In words, what can never become right by itself.
pub fn check(request: &Request) -> Result<(), String> {
    endpoints(request).map(drop)
}

fn endpoints(request: &Request) -> Result<Vec<Endpoint>, String> {
    let endpoints = request.endpoints.iter().map(|text| Endpoint::read(text, request.tls.is_some()));
    let endpoints: Vec<Endpoint> = endpoints.collect::<Result<_, _>>()?;
    if request.tls.is_some() || endpoints.iter().any(|endpoint| endpoint.has_tls) {
        connection::config(request.tls.as_ref())?;
    }
    Ok(endpoints)
}

impl Following for Followed {
    fn index(&self) -> &Arc<Index> {
        &self.index
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}
