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

/// Maximum number of entries of one host whose addresses are merged, to bound the time of a query.
const MERGED_MAX: usize = 16;

/// Source of a host's records.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// Addresses of the entry, and of other entries with the same host.
    Addresses(Addresses<'a>),
    /// Addresses from `default_address`, for entries without any.
    Default(Addresses<'a>),
    /// Addresses of the endpoints.
    Endpoints(Addresses<'a>),
    /// Endpoints that are host names.
    Names(&'a Entry),
    /// DNS: the host resolves to itself.
    Itself,
}

/// Addresses of a host: a list, and those of further claims that the client sees.
#[derive(Clone, Copy)]
pub(super) struct Addresses<'a> {
    list: &'a [IpAddr],
    others: &'a [Claim],
    filter: ClaimFilter<'a>,
}

/// Selects the claims that a client sees.
#[derive(Clone, Copy)]
struct ClaimFilter<'a> {
    client: Option<Client>,
    exports: &'a Exports,
    /// True to select only claims from the client's own namespace.
    only_beside: bool,
}

impl ClaimFilter<'_> {
    fn shows(&self, claim: &Claim) -> bool {
        let is_near = !self.only_beside || claim.entry.is_beside(self.client);
        is_near && claim.entry.is_exported_to(self.client, self.exports)
    }
}

impl<'a> Addresses<'a> {
    /// Returns each address once.
    pub(super) fn iter(self) -> impl Iterator<Item = IpAddr> + 'a {
        let others = self.others.iter().enumerate().filter(move |(_, claim)| self.filter.shows(claim));
        let is_known = move |at: usize, ip: &IpAddr| {
            let earlier = self.others.iter().take(at).filter(|claim| self.filter.shows(claim));
            self.list.contains(ip) || earlier.into_iter().any(|claim| claim.addresses.contains(ip))
        };
        let merged = others.flat_map(|(at, claim)| claim.addresses.iter().map(move |ip| (at, *ip)));
        let merged = merged.filter(move |(at, ip)| !is_known(*at, ip)).map(|(_, ip)| ip);
        self.list.iter().copied().chain(merged)
    }
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
    /// namespace come first, as in its sidecar. Otherwise the older claim wins. The addresses of later claims are added
    /// to its own, as in a sidecar's table of names.
    fn best<'a>(&'a self, claims: &'a [Claim], name: NameRef<'_>, client: Option<Client>) -> Option<Target<'a>> {
        let exports = &self.default_exports;
        let first = |only_beside| {
            let filter = ClaimFilter { client, exports, only_beside };
            let mut shown = claims.iter().enumerate().filter(|(_, claim)| filter.shows(claim));
            shown.find_map(|(at, _)| self.target(claims.get(at..)?, name, filter))
        };
        client.and_then(|_| first(true)).or_else(|| first(false))
    }

    /// Returns the target of the first claim: its addresses if this client gets them, else its endpoints, else DNS.
    fn target<'a>(&'a self, claims: &'a [Claim], name: NameRef<'_>, filter: ClaimFilter<'a>) -> Option<Target<'a>> {
        let (claim, later) = claims.split_first()?;
        let (entry, client) = (&*claim.entry, filter.client);
        let alone = |list: &'a [IpAddr]| Addresses { list, others: &[], filter };
        let addresses = if claim.addresses.is_empty() {
            Target::Default(alone(&self.default_addresses))
        } else {
            let others = later.get(..MERGED_MAX).unwrap_or(later);
            Target::Addresses(Addresses { list: &claim.addresses, others, filter })
        };
        let has_addresses = !claim.addresses.is_empty() || !self.default_addresses.is_empty();
        if has_addresses && self.gives_addresses_to(client) {
            return Some(addresses);
        }
        let is_itself = entry.resolves_itself || entry.names().len() > 0;
        match () {
            () if !entry.endpoints.is_empty() => Some(Target::Endpoints(alone(&entry.endpoints))),
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
