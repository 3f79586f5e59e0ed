//! The mesh as one `istio` block serves it: decides which claim on a host applies to a client, and which records it
//! has.

use std::net::IpAddr;
use std::sync::Arc;

use cluster::mesh::{Claim, Client, Entry, Exports};
use cluster::{ClusterHandle, Index, Mesh};
use engine::Query;
use wire::NameRef;

use super::manifest::Vips;

/// Hosts of a mesh with the options of one `istio` block.
pub(super) struct View {
    pub(super) index: Arc<Index>,
    pub(super) mesh: Arc<Mesh>,
    /// Keeps the watch running while this exists.
    #[allow(dead_code, reason = "held for as long as anybody shows the mesh")]
    pub(super) handle: Arc<dyn ClusterHandle>,
    pub(super) default_addresses: Box<[IpAddr]>,
    pub(super) default_exports: Exports,
    pub(super) vips: Vips,
    pub(super) has_pods: bool,
}

/// Source of a host's records.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// Addresses of the entry.
    Addresses(&'a [IpAddr]),
    /// Addresses from `default_address`, for entries without any.
    Default(&'a [IpAddr]),
    /// Addresses of the endpoints.
    Endpoints(&'a [IpAddr]),
    /// Endpoints that are host names.
    Names(&'a Entry),
    /// DNS: the host resolves to itself.
    Itself,
}

impl View {
    /// Calls `read` with the target of the name for this client, if the name is a host or matches a wildcard host.
    pub(super) fn find<R>(&self, query: &Query, mut read: impl FnMut(Target<'_>) -> R) -> Option<R> {
        let client = self.client(query);
        self.mesh.find(query.key(), |claims| self.best(claims, query.key(), client).map(&mut read))
    }

    /// Returns true if this plugin answers the query from memory.
    pub(super) fn answers(&self, query: &Query) -> bool {
        let is_made_here = |target: Target<'_>| !matches!(target, Target::Itself);
        !self.index.is_synced() || self.find(query, is_made_here).unwrap_or_default()
    }

    /// Returns true if clients with different addresses may get different answers: the client's pod decides which of
    /// the claims on a host are visible, and it is looked up if pods are watched.
    pub(super) fn reads_client(&self, query: &Query) -> bool {
        self.has_pods && self.mesh.find(query.key(), |_| Some(())).is_some()
    }

    fn client(&self, query: &Query) -> Option<Client> {
        let peer = query.peer.address.ip().to_canonical();
        self.has_pods.then(|| self.mesh.client(peer)).flatten()
    }

    /// Returns the target of the first claim that is visible to the client and has one. Claims from the client's own
    /// namespace come first, as in its sidecar. Otherwise the older claim wins.
    fn best<'a>(&'a self, claims: &'a [Claim], name: NameRef<'_>, client: Option<Client>) -> Option<Target<'a>> {
        let shown = || claims.iter().filter(|claim| claim.entry.is_exported_to(client, &self.default_exports));
        let mut beside = shown().filter(|claim| claim.entry.is_beside(client));
        let target = |claim| self.target(claim, name, client);
        beside.find_map(target).or_else(|| shown().find_map(target))
    }

    /// Returns the target of a claim: its addresses if this client gets them, else its endpoints, else DNS.
    fn target<'a>(&'a self, claim: &'a Claim, name: NameRef<'_>, client: Option<Client>) -> Option<Target<'a>> {
        let entry = &*claim.entry;
        let addresses = if claim.addresses.is_empty() {
            Target::Default(&self.default_addresses)
        } else {
            Target::Addresses(&claim.addresses)
        };
        let has_addresses = !claim.addresses.is_empty() || !self.default_addresses.is_empty();
        if has_addresses && self.gives_addresses_to(client) {
            return Some(addresses);
        }
        let is_itself = entry.resolves_itself || entry.names().len() > 0;
        match () {
            () if !entry.endpoints.is_empty() => Some(Target::Endpoints(&entry.endpoints)),
            () if entry.names().any(|endpoint| !endpoint.same(name)) => Some(Target::Names(entry)),
            () if is_itself => Some(Target::Itself),
            () => has_addresses.then_some(addresses),
        }
    }

    fn gives_addresses_to(&self, client: Option<Client>) -> bool {
        match self.vips {
            Vips::All => true,
            Vips::Captured => client.is_some_and(|client| client.is_captured),
            Vips::None => false,
        }
    }
}
