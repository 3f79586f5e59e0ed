//! Search paths, and detection of queries from clients that use one.

use core::str;
use std::sync::Arc;

use engine::Query;
use wire::{Name, NameRef};

use super::manifest::Clients;
use crate::shared::cluster_view::Exposed;

/// Maximum number of domains in a search list: the limit that Kubernetes sets for a Pod (`MaxDNSSearchPaths`).
const SEARCH_MAX: usize = 32;
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
    fn base(&self, query: &Query) -> Option<usize> {
        let key = query.key();
        let zone = self.exposed.zones.names().get(self.exposed.zones.find(key)?)?;
        let before = key.labels().count() - zone.as_ref().labels().count();
        let base = before.checked_sub(NAMESPACE_LABELS).filter(|base| *base > 0)?;
        let mut labels = key.labels().skip(base);
        let (namespace, svc) = (labels.next()?, labels.next()?);
        let is_searched = svc == b"svc"
            && self.exposed.shows(namespace)
            && match self.clients {
                Clients::Pods => self.exposed.index.pod_exists(namespace, query.peer.address.ip().to_canonical()),
                Clients::Any => self.looks_foreign(key, base, namespace),
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

/// Parses the search list of a resolv.conf(5) file: the domains on the last line that starts with `search` or `domain`.
/// Invalid names are skipped.
pub(super) fn search_list(bytes: &[u8]) -> Vec<Name> {
    let domains = bytes.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let mut words = str::from_utf8(line).ok()?.split_whitespace();
        matches!(words.next(), Some("search" | "domain")).then_some(words)
    });
    let names = domains.into_iter().flatten().filter_map(|domain| Name::from_text(domain).ok());
    names.take(SEARCH_MAX).map(Name::into_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_search_lists_like_resolvers() {
        let many = format!("search {}", "a.test ".repeat(SEARCH_MAX + 1));
        for (text, list) in [
            ("", ""),
            ("nameserver 192.0.2.1\n", ""),
            ("search A.test b.test.\nnameserver 192.0.2.1\n", "a.test. b.test."),
            ("search a.test\ndomain b.test\n", "b.test."),
            ("domain b.test\n search a..b c.test", "c.test."),
            (&many, "a.test. ".repeat(SEARCH_MAX).trim_end()),
        ] {
            let found: Vec<_> = search_list(text.as_bytes()).iter().map(Name::to_string).collect();
            assert_eq!(found.join(" "), list, "{text}");
        }
    }
}
