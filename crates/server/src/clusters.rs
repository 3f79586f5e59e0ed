//! Clusters to follow: what the edge to Kubernetes has, as the plugins ask for it.

use std::rc::Rc;
use std::sync::Arc;

use cluster::{Clusters, Following, Index, Request};
use engine::metrics::Registry;
use kubeapi::{Subscriber, Subscription};

/// Follows clusters on the thread that calls this, which must run in a `LocalSet`.
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
