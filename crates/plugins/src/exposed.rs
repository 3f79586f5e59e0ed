//! The cluster of a server block, as its `kubernetes` stanza shows it: what that plugin offers to those above it, so that
//! they watch nothing themselves and agree with it on what exists.

use std::net::IpAddr;
use std::sync::Arc;

use cluster::{Clusters, Following, Index, Kind, Request, Source};
use engine::{Failure, Response, Zones};
use wire::{EdeCode, NameRef};

/// A cluster, as one stanza shows it; offered as `Arc<Exposed>`.
pub(crate) struct Exposed {
    /// What answers are made from.
    pub(crate) index: Arc<Index>,
    /// Keeps the cluster followed.
    #[allow(dead_code, reason = "held for as long as anybody shows the cluster")]
    following: Arc<dyn Following>,
    /// The forward zones in which this cluster's own names are.
    pub(crate) zones: Zones,
    /// Whether pods are watched.
    pub(crate) has_pods: bool,
    /// Where its objects come from.
    pub(crate) source: Source,
    /// The addresses of this machine, without loopback.
    pub(crate) local_addresses: Arc<[IpAddr]>,
    /// The only namespaces that exist; all if empty.
    namespaces: Box<[Box<[u8]>]>,
}

impl Exposed {
    /// Begins to follow a cluster.
    ///
    /// # Errors
    /// In words, if that cannot even begin.
    pub(crate) fn follow(
        clusters: &dyn Clusters,
        request: &Request,
        zones: Zones,
        local_addresses: Arc<[IpAddr]>,
    ) -> Result<Exposed, String> {
        let following = clusters.follow(request)?;
        Ok(Exposed {
            index: Arc::clone(following.index()),
            following,
            zones,
            has_pods: request.pods,
            source: request.source.clone(),
            local_addresses,
            namespaces: request.namespaces.iter().map(|name| name.as_bytes().into()).collect(),
        })
    }

    /// Whether a namespace exists, as far as the stanza shows it.
    pub(crate) fn shows(&self, namespace: &[u8]) -> bool {
        let listed = self.namespaces.is_empty() || self.namespaces.iter().any(|listed| **listed == *namespace);
        listed && self.index.namespace_exists(namespace)
    }

    /// Says of an answer that it is made from what an earlier process knew, and whether it is (RFC 8914 §4.4, §4.20).
    pub(crate) fn mark_remembered(&self, denies: bool, response: &mut Response) -> bool {
        let is_remembered = self.index.is_remembered();
        if is_remembered {
            let code = if denies { EdeCode::STALE_NXDOMAIN } else { EdeCode::STALE_ANSWER };
            response.set_ede(code, "the API server has not been asked yet");
        }
        is_remembered
    }
}

/// Whether a zone is of reverse names.
pub(crate) fn is_reverse(zone: NameRef<'_>) -> bool {
    const TREES: [&[u8]; 2] = [b"\x07in-addr\x04arpa\0", b"\x03ip6\x04arpa\0"];
    TREES.iter().any(|tree| NameRef::from_octets(tree).is_ok_and(|tree| zone.is_within(tree)))
}

/// SERVFAIL for a name that depends on objects that are not listed yet; it says which.
pub(crate) fn not_ready(index: &Index) -> Failure {
    // Texts that need no allocation: clients ask again and again until the cluster is known.
    let text = match index.unlisted().next() {
        Some(Kind::Namespace) => "Namespaces not listed yet",
        Some(Kind::Service) => "Services not listed yet",
        Some(Kind::EndpointSlice) => "EndpointSlices not listed yet",
        Some(Kind::Pod) => "Pods not listed yet",
        Some(Kind::ServiceImport | Kind::ImportedSlice) => "ServiceImports not listed yet",
        Some(Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod) => {
            "the hosts of the mesh are not listed yet"
        }
        Some(Kind::Node) => "Nodes not listed yet",
        None => "not every namespace is listed yet",
    };
    Failure::servfail(EdeCode::NOT_READY, text).with_public_cause()
}
