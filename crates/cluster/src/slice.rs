//! Compact form of an EndpointSlice: the addresses of its ready endpoints, and hostnames where they have one. An IPv4
//! endpoint without a hostname takes four bytes. Endpoints that are not ready are kept apart, for explanations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use host::invariant::{Expected as _, broken, holds};

use crate::columns::{Address, Addresses, Labels, positions};
use crate::dashed::{self, LabelBuffer};
use crate::not_ready::{NotReady, NotReadyEndpoint};
use crate::port::Port;

/// Ready endpoints of one EndpointSlice.
#[derive(Debug, PartialEq, Eq)]
pub struct Slice {
    pub(crate) key: u64,
    /// Ports of every endpoint, at least one: a slice without ports has one without name, protocol and number.
    pub ports: Arc<[Port]>,
    /// Addresses of the endpoints, in the order of the object.
    pub addresses: Addresses,
    pub(crate) labels: Option<Box<Labels>>,
    pub(crate) zones: Option<Box<Zones>>,
    pub(crate) not_ready: Option<Box<NotReady>>,
    /// Source cluster of an imported slice, in lower case.
    pub cluster: Option<Arc<str>>,
}

/// One address of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// Slice that contains it.
    pub slice: &'a Slice,
    at: usize,
}

impl Slice {
    /// Returns the endpoints, in the order of the object.
    pub fn endpoints(&self) -> impl Iterator<Item = Endpoint<'_>> {
        (0..self.len()).map(|at| Endpoint { slice: self, at })
    }

    /// Returns the endpoints at an address.
    pub(crate) fn endpoints_at(&self, address: IpAddr) -> impl Iterator<Item = Endpoint<'_>> {
        let (v4, v6) = match address {
            IpAddr::V4(v4) => (positions(self.addresses.v4(), v4), positions(&[], Ipv6Addr::UNSPECIFIED)),
            IpAddr::V6(v6) => (positions(&[], Ipv4Addr::UNSPECIFIED), positions(self.addresses.v6(), v6)),
        };
        v4.chain(v6).map(|at| Endpoint { slice: self, at })
    }

    /// Returns the endpoints with this label. `address` is the IP address that the label encodes, if any.
    pub(crate) fn endpoints_called<'a>(
        &'a self,
        label: &'a [u8],
        address: Option<IpAddr>,
    ) -> impl Iterator<Item = Endpoint<'a>> {
        let own = self.labels.iter().flat_map(|labels| labels.positions(label));
        let by_address = address.into_iter().flat_map(|address| self.endpoints_at(address));
        own.map(|at| Endpoint { slice: self, at }).chain(by_address.filter(|endpoint| endpoint.own_label().is_none()))
    }

    /// Returns the number of ready endpoints.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the first endpoints that are not ready.
    pub fn not_ready(&self) -> impl Iterator<Item = NotReadyEndpoint<'_>> {
        self.not_ready.as_deref().into_iter().flat_map(NotReady::endpoints)
    }

    /// Checks a slice that was just built.
    pub(crate) fn check(&self) {
        let len = self.len();
        holds(!self.ports.is_empty(), "a slice has a port, or one without a number");
        holds(self.labels.as_ref().is_none_or(|labels| labels.len() == len), "each endpoint has a place for its label");
        if let Some(zones) = &self.zones {
            holds(zones.numbers.len() == len, "each endpoint has a zone");
            holds((1..=len).contains(&zones.names.len()), "each zone is one of an endpoint");
            let is_known = |number: &u16| usize::from(*number) < zones.names.len();
            debug_assert!(zones.numbers.iter().all(is_known), "the zone of an endpoint is in the list of zones");
        }
        let is_named =
            |endpoint: Endpoint<'_>| matches!(endpoint.address(), Address::Ip(_)) || endpoint.own_label().is_some();
        debug_assert!(self.endpoints().all(is_named), "an endpoint with a name has a label");
    }

    /// Returns true if answers are the same with both slices: they differ at most in endpoints that are not ready.
    pub(crate) fn answers_like(&self, other: &Slice) -> bool {
        let Slice { key, ports, addresses, labels, zones, not_ready: _, cluster } = self;
        *key == other.key
            && *ports == other.ports
            && *addresses == other.addresses
            && *labels == other.labels
            && *zones == other.zones
            && *cluster == other.cluster
    }

    /// Returns true if no endpoint is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> Endpoint<'a> {
    /// Returns the address.
    #[must_use]
    pub fn address(self) -> Address<'a> {
        self.slice.addresses.get(self.at)
    }

    /// Returns the label of the endpoint below its Service: the hostname; or else the pod's name, if the spec asks
    /// for it (it may contain dots); or else the address with dashes.
    #[must_use]
    pub fn label<'b>(self, buffer: &'b mut LabelBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match (self.own_label(), self.address()) {
            (Some(own), _) => own,
            (None, Address::Ip(address)) => dashed::write_endpoint(address, buffer),
            // Every endpoint of type `FQDN` gets a label when the slice is built.
            (None, Address::Name(_)) => {
                broken("an endpoint with a name has a label");
                &[]
            }
        }
    }

    /// Returns the topology zone in lower case. Empty if the endpoint has none or zones are not kept.
    #[must_use]
    pub fn zone(self) -> &'a str {
        self.slice.zones.as_ref().map_or("", |zones| zones.get(self.at))
    }

    /// Returns the label if it is not derived from the address.
    #[must_use]
    pub fn own_label(self) -> Option<&'a [u8]> {
        self.slice.labels.as_ref()?.get(self.at)
    }
}

/// Topology zones of the endpoints of a slice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Zones {
    /// Distinct zones, in lower case.
    pub(crate) names: Arc<[Arc<str>]>,
    /// Position of each endpoint's zone in `names`.
    pub(crate) numbers: Box<[u16]>,
}

impl Zones {
    fn get(&self, at: usize) -> &str {
        let number = self.numbers.get(at).copied().expected("the zone of an endpoint");
        let name = number.and_then(|number| self.names.get(usize::from(number)).expected("the name of a zone"));
        name.map_or("", |name| name)
    }
}
