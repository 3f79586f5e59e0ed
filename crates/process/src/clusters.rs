//! Adapter from the trait [`Clusters`], which plugins use, to the Kubernetes client, and the list of the clusters that
//! are followed.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cluster::{ClusterHandle, Clusters, Index, Request, Source};
use host::FollowError;
use host::mask::masked_urls;
use kubeapi::{ResourceHealth, Subscriber, Subscription};
use metrics::Registry;

/// Returns the client for clusters, which adds them to a list. Its watches run as local tasks, so each call needs a
/// `LocalSet`.
pub fn clusters(registry: &Arc<Registry>, followed: &Arc<Followed>) -> Rc<dyn Clusters> {
    Rc::new(Edge { subscriber: Subscriber::new(registry), followed: Arc::clone(followed) })
}

/// Clusters that are followed. Any thread may read the list.
#[derive(Default)]
pub struct Followed(Mutex<Vec<Weak<Subscription>>>);

/// State of a cluster that is followed.
pub struct FollowedCluster {
    /// URL of the API server, or the paths of manifests.
    pub source: String,
    /// Index of its objects.
    pub index: Arc<Index>,
    /// Number of endpoint addresses.
    pub endpoints: u64,
    /// Health of its lists and watches.
    pub resources: Vec<ResourceHealth>,
    /// Age of the view: the greatest time since the API server last confirmed a kind. `None` before
    /// the first list.
    pub view_age: Option<Duration>,
    /// Age of the view from which answers are marked as stale, if they are.
    pub stale_after: Option<Duration>,
    /// Age of the snapshot that is served until the API server answers.
    pub snapshot_age: Option<Duration>,
}

impl Followed {
    /// Returns the state of all clusters.
    pub fn all(&self) -> Vec<FollowedCluster> {
        let subscriptions: Vec<Arc<Subscription>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        subscriptions.iter().map(|subscription| state_of(subscription)).collect()
    }

    /// Returns the sources of all clusters.
    pub fn sources(&self) -> Vec<Source> {
        let mut sources = Vec::new();
        for subscription in self.lock().iter().filter_map(Weak::upgrade) {
            if !sources.contains(&subscription.request.source) {
                sources.push(subscription.request.source.clone());
            }
        }
        sources
    }

    fn add(&self, subscription: &Arc<Subscription>) {
        let mut known = self.lock();
        known.retain(|known| known.strong_count() > 0);
        let added = Arc::downgrade(subscription);
        if !known.iter().any(|known| known.ptr_eq(&added)) {
            known.push(added);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Subscription>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state_of(subscription: &Subscription) -> FollowedCluster {
    let Subscription { index, health, source, .. } = subscription;
    let mut endpoints = 0;
    index.for_each_service(|service| endpoints += service.endpoints().count() as u64);
    FollowedCluster {
        source: masked_urls(source),
        index: Arc::clone(index),
        endpoints,
        resources: resources(subscription),
        view_age: health.oldest().map(|(_, age)| age),
        stale_after: subscription.request.stale_after,
        snapshot_age: health.snapshot_age(),
    }
}

/// Returns the health of the watches, with URLs without secrets.
fn resources(subscription: &Subscription) -> Vec<ResourceHealth> {
    let mut resources = subscription.health.resources(&subscription.index);
    for (url, _) in resources.iter_mut().filter_map(|resource| resource.server.as_mut()) {
        *url = masked_urls(url);
    }
    resources
}

struct Edge {
    subscriber: Subscriber,
    followed: Arc<Followed>,
}

impl Clusters for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let subscription = self.subscriber.subscribe(request).map_err(FollowError::new)?;
        self.followed.add(&subscription);
        Ok(Arc::new(Handle(subscription)))
    }
}

struct Handle(Arc<Subscription>);

impl ClusterHandle for Handle {
    fn index(&self) -> &Arc<Index> {
        &self.0.index
    }
}
