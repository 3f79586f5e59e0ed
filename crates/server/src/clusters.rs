//! Adapter from the trait [`Clusters`], which plugins use, to the Kubernetes client.

use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Following, Index, Request};
use kubeapi::{Subscriber, Subscription};
use metrics::Registry;

/// Returns the client for clusters. Its watches run as local tasks, so each call needs a `LocalSet`.
pub(crate) fn clusters(registry: &Arc<Registry>) -> Rc<dyn Clusters> {
    Rc::new(Edge(Subscriber::new(registry)))
}

struct Edge(Subscriber);

impl Clusters for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String> {
        let subscription = self.0.subscribe(request).map_err(|problem| problem.to_string())?;
        Ok(Arc::new(Followed(subscription)))
    }
}

struct Followed(Arc<Subscription>);

impl Following for Followed {
    fn index(&self) -> &Arc<Index> {
        &self.0.index
    }
}
