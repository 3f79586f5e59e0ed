//! Adapter from the trait [`Clusters`], which plugins use, to the Kubernetes client.

use std::rc::Rc;
use std::sync::Arc;

use cluster::{ClusterHandle, Clusters, FollowError, Index, Request};
use kubeapi::{Subscriber, Subscription};
use metrics::Registry;

/// Returns the client for clusters. Its watches run as local tasks, so each call needs a `LocalSet`.
pub(crate) fn clusters(registry: &Arc<Registry>) -> Rc<dyn Clusters> {
    Rc::new(Edge(Subscriber::new(registry)))
}

struct Edge(Subscriber);

impl Clusters for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let subscription = self.0.subscribe(request).map_err(FollowError::new)?;
        Ok(Arc::new(Handle(subscription)))
    }
}

struct Handle(Arc<Subscription>);

impl ClusterHandle for Handle {
    fn index(&self) -> &Arc<Index> {
        &self.0.index
    }
}
