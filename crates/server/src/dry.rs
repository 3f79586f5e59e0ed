//! A configuration built as if it were to be served, with nothing to serve it: files are read, nobody is asked.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Following, Index, Request, World};
use corefile::Diagnostic;
use engine::metrics::Registry;
use engine::setup::{Carried, Warned};
use engine::{Plan, Surroundings};
use plugins::HostLookup;

use crate::capabilities::capabilities;
use crate::files::Disk;

/// What was found on the way.
pub(crate) struct Found {
    /// What is asked of clusters.
    pub(crate) requests: Vec<Request>,
    /// What directives would go on without.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Builds it; with `looks_at_clusters` the files are read too that say where clusters are.
///
/// # Errors
/// What would end the start.
pub(crate) fn build(plan: Plan, looks_at_clusters: bool) -> Result<Found, Box<Diagnostic>> {
    let recorder = Rc::new(Recorder { requests: RefCell::default(), looks_at_clusters });
    let registry = Registry::new();
    let mut process = capabilities(&registry);
    process.provide(Rc::clone(&recorder) as Rc<dyn Clusters>);
    process.provide(Rc::new(Unasked) as Rc<dyn skydns::Stores>);
    process.provide(Arc::new(Nowhere) as Arc<dyn HostLookup>);
    let surroundings =
        Surroundings { registry: &registry, files: &Disk, process: &process, carried: Carried::default() };
    let built = plan.build(surroundings)?;
    Ok(Found {
        requests: recorder.requests.take(),
        warnings: built.needs.warnings.iter().map(Warned::diagnostic).collect(),
    })
}

/// Notes what is asked for and follows nothing.
struct Recorder {
    requests: RefCell<Vec<Request>>,
    looks_at_clusters: bool,
}

impl Clusters for Recorder {
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String> {
        if self.looks_at_clusters {
            kubeapi::check(request).map_err(|problem| problem.to_string())?;
        }
        self.requests.borrow_mut().push(request.canonical());
        let (_, index) = World::new(&request.watches());
        Ok(Arc::new(Unfollowed(index)))
    }
}

struct Unfollowed(Arc<Index>);

impl Following for Unfollowed {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}

/// Stores that nobody asks.
struct Unasked;

impl skydns::Stores for Unasked {
    fn follow(&self, request: &skydns::Request) -> Result<Arc<dyn skydns::Following>, String> {
        etcd::check(request)?;
        let (_, index) = skydns::Mirror::new(&request.canonical());
        Ok(Arc::new(Empty(index)))
    }
}

struct Empty(Arc<skydns::Index>);

impl skydns::Following for Empty {
    fn index(&self) -> &Arc<skydns::Index> {
        &self.0
    }
}

/// Looks nothing up: where upstreams are does not matter here.
struct Nowhere;

impl HostLookup for Nowhere {
    fn lookup(&self, _: &str, _: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}
