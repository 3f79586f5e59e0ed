//! Search paths, and detection of queries from clients that use one.

use std::sync::Arc;

use engine::Query;
use wire::{Name, NameRef};

use super::manifest::Clients;
use crate::shared::cluster_view::Exposed;

/// Number of labels in `NAMESPACE.svc`.
const NAMESPACE_LABELS: usize = 2;

/// Domains that clients append to a name, in order.
pub(super) enum SearchPath {
    /// The same list for all clients.
    Fixed(Vec<Name>),
    /// The list that the kubelet writes for a Pod: `NAMESPACE.svc.ZONE`, `svc.ZONE`, `ZONE`, the domains of the node,
    /// and the root.
    Cluster(ClusterPath),
}

/// Search path of a cluster's Pods.
pub(super) struct ClusterPath {
    pub(super) exposed: Arc<Exposed>,
    pub(super) clients: Clients,
    /// Domains of the node, followed by the root.
    pub(super) node: Vec<Name>,
}

impl SearchPath {
    /// Returns the number of labels of the name before the client appended the first domain of its path, or `None` if
    /// the query name does not end with that domain.
    pub(super) fn base(&self, query: &Query) -> Option<usize> {
        match self {
            SearchPath::Fixed(domains) => {
                let first = domains.first()?;
                query.key().prefix_len(first.as_ref())?;
                let labels = query.key().labels().count() - first.as_ref().labels().count();
                (labels > 0).then_some(labels)
            }
            SearchPath::Cluster(path) => path.base(query),
        }
    }

    /// Returns true if it depends on the client's address whether the path applies: the client has to be a pod of the
    /// namespace in the name.
    pub(super) fn reads_client(&self, query: &Query) -> bool {
        match self {
            SearchPath::Cluster(path @ ClusterPath { clients: Clients::Pods, .. }) => {
                path.searched_namespace(query.key()).is_some()
            }
            SearchPath::Cluster(_) | SearchPath::Fixed(_) => false,
        }
    }

    /// Returns the name that a client would query at a position of its path, starting at 0, or `None` after the end.
    /// Skips positions whose name would be too long.
    pub(super) fn name_at(&self, query: &Query, base: usize, position: &mut usize) -> Option<Name> {
        loop {
            let domain = self.domain_at(query, base, *position)?;
            if let Some(name) = with_domain(query.name(), base, domain) {
                return Some(name);
            }
            *position += 1;
        }
    }

    fn domain_at<'a>(&'a self, query: &'a Query, base: usize, position: usize) -> Option<NameRef<'a>> {
        match self {
            SearchPath::Fixed(domains) => domains.get(position).map(Name::as_ref),
            SearchPath::Cluster(_) if position <= NAMESPACE_LABELS => query.name().ancestors().nth(base + position),
            SearchPath::Cluster(path) => path.node.get(position - NAMESPACE_LABELS - 1).map(Name::as_ref),
        }
    }

    /// Returns the name that must not be a top-level domain for the search to be safe: the namespace. `None` if clients
    /// are verified to be in their namespace, which makes the check unnecessary.
    pub(super) fn doubtful(&self, query: &Query, base: usize) -> Option<Name> {
        let SearchPath::Cluster(ClusterPath { clients: Clients::Any, .. }) = self else { return None };
        let mut name = Name::root();
        name.push_label(query.key().labels().nth(base)?).ok()?;
        Some(name)
    }
}

impl ClusterPath {
    /// Returns the number of labels before the first domain of the search path, and the namespace in that domain.
    fn searched_namespace<'a>(&self, key: NameRef<'a>) -> Option<(usize, &'a [u8])> {
        let zone = self.exposed.zones.names().get(self.exposed.zones.find(key)?)?;
        let before = key.labels().count() - zone.as_ref().labels().count();
        let base = before.checked_sub(NAMESPACE_LABELS).filter(|base| *base > 0)?;
        let mut labels = key.labels().skip(base);
        let (namespace, svc) = (labels.next()?, labels.next()?);
        (svc == b"svc" && self.exposed.shows(namespace)).then_some((base, namespace))
    }

    fn base(&self, query: &Query) -> Option<usize> {
        let (base, namespace) = self.searched_namespace(query.key())?;
        let is_searched = match self.clients {
            Clients::Pods => self.exposed.index.pod_exists(namespace, query.peer.address.ip().to_canonical()),
            Clients::Any => self.looks_foreign(query.key(), base, namespace),
        };
        is_searched.then_some(base)
    }

    /// Returns true if a name is unlikely to belong to its namespace: it has a dot, is not below a Service there and
    /// does not have the form `_PORT._PROTOCOL`.
    fn looks_foreign(&self, key: NameRef<'_>, base: usize, namespace: &[u8]) -> bool {
        let Some(service) = key.labels().nth(base - 1).filter(|_| base > 1) else { return false };
        let is_of_port = key.labels().next().is_some_and(|label| label.starts_with(b"_"));
        !is_of_port && self.exposed.index.service(namespace, service, |_| ()).is_none()
    }
}

/// Returns the first `base` labels of a name followed by a domain, or `None` if that is too long.
fn with_domain(name: NameRef<'_>, base: usize, domain: NameRef<'_>) -> Option<Name> {
    let mut changed = Name::root();
    name.labels().take(base).try_for_each(|label| changed.push_label(label)).ok()?;
    changed.append(domain).ok()?;
    Some(changed)
}
