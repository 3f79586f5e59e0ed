//! The hosts of a mesh as one stanza shows them: which claim counts for a client, and what it gives.

use std::net::IpAddr;
use std::sync::Arc;

use cluster::mesh::{Claim, Client, Entry, Exports};
use cluster::{Following, Index, Mesh};
use engine::Query;
use wire::NameRef;

use super::config::Vips;

/// The hosts of a mesh, as one stanza shows them.
pub(super) struct View {
    pub(super) index: Arc<Index>,
    pub(super) mesh: Arc<Mesh>,
    /// Keeps the mesh followed.
    #[allow(dead_code, reason = "held for as long as anybody shows the mesh")]
    pub(super) following: Arc<dyn Following>,
    pub(super) default_addresses: Box<[IpAddr]>,
    pub(super) default_exports: Exports,
    pub(super) vips: Vips,
    pub(super) has_pods: bool,
}

/// What a host stands for.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// These addresses, for as long as the entry has them.
    Addresses(&'a [IpAddr]),
    /// The addresses of hosts without.
    Default(&'a [IpAddr]),
    /// Its endpoints, by their addresses.
    Endpoints(&'a [IpAddr]),
    /// Its endpoints, by their names.
    Names(&'a Entry),
    /// What DNS says about the name.
    Itself,
}

impl View {
    /// Shows what a name stands for to the client that asks for it, if it is a host, or falls under one.
    pub(super) fn find<R>(&self, query: &Query, mut read: impl FnMut(Target<'_>) -> R) -> Option<R> {
        let client = self.client(query);
        self.mesh.find(query.key(), |claims| self.best(claims, query.key(), client).map(&mut read))
    }

    /// Whether the answer to a query is made here, from memory.
    pub(super) fn answers(&self, query: &Query) -> bool {
        let is_made_here = |target: Target<'_>| !matches!(target, Target::Itself);
        !self.index.is_synced() || self.find(query, is_made_here).unwrap_or_default()
    }

    fn client(&self, query: &Query) -> Option<Client> {
        let peer = query.path.peer.ip().to_canonical();
        self.has_pods.then(|| self.mesh.client(peer)).flatten()
    }

    /// What the first claim gives that counts for a client and gives anything. Those of its own namespace go before all
    /// others, as for its sidecar; they stand in the order of age.
    fn best<'a>(&'a self, claims: &'a [Claim], name: NameRef<'_>, client: Option<Client>) -> Option<Target<'a>> {
        let shown = || claims.iter().filter(|claim| claim.entry.is_exported_to(client, &self.default_exports));
        let mut beside = shown().filter(|claim| claim.entry.is_beside(client));
        let target = |claim| self.target(claim, name, client);
        beside.find_map(target).or_else(|| shown().find_map(target))
    }

    /// What a claim gives: addresses to those to whom they mean something, then endpoints, then what DNS knows.
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
