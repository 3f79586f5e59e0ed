//! Compact form of an EndpointSlice: the addresses of its ready endpoints, and hostnames where they have one. An IPv4
//! endpoint without a hostname takes four bytes. Endpoints that are not ready are kept apart, for explanations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

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

/// Addresses of a slice, by its address type.
#[derive(Debug, PartialEq, Eq)]
pub enum Addresses {
    /// `IPv4`.
    V4(Box<[Ipv4Addr]>),
    /// `IPv6`.
    V6(Box<[Ipv6Addr]>),
    /// `FQDN`: host names, as written in the object.
    Names(Box<[Box<str>]>),
}

/// Address of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// An IP address.
    Ip(IpAddr),
    /// A host name, in a slice of type `FQDN`.
    Name(&'a str),
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
            // Unreachable: every endpoint of type `FQDN` gets a label when the slice is built.
            (None, Address::Name(_)) => &[],
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

impl Addresses {
    pub(crate) fn len(&self) -> usize {
        match self {
            Addresses::V4(list) => list.len(),
            Addresses::V6(list) => list.len(),
            Addresses::Names(list) => list.len(),
        }
    }

    /// Returns the address at a position, which must exist.
    pub(crate) fn get(&self, at: usize) -> Address<'_> {
        match self {
            Addresses::V4(list) => Address::Ip(list[at].into()),
            Addresses::V6(list) => Address::Ip(list[at].into()),
            Addresses::Names(list) => Address::Name(&list[at]),
        }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4().contains(&v4),
            IpAddr::V6(v6) => self.v6().contains(&v6),
        }
    }

    /// Returns the IP addresses.
    pub(crate) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.v4().iter().copied().map(IpAddr::from).chain(self.v6().iter().copied().map(IpAddr::from))
    }

    fn v4(&self) -> &[Ipv4Addr] {
        if let Addresses::V4(list) = self { list } else { &[] }
    }

    fn v6(&self) -> &[Ipv6Addr] {
        if let Addresses::V6(list) = self { list } else { &[] }
    }
}

fn positions<A: PartialEq>(list: &[A], wanted: A) -> impl Iterator<Item = usize> {
    list.iter().enumerate().filter(move |(_, address)| **address == wanted).map(|(at, _)| at)
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
        let number = self.numbers.get(at).copied().unwrap_or(u16::MAX);
        self.names.get(usize::from(number)).map_or("", |name| name)
    }
}

/// Labels of all endpoints, concatenated. An endpoint without a label of its own has an empty one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Labels {
    text: Box<[u8]>,
    ends: Box<[u32]>,
}

impl Labels {
    /// Joins the labels of all endpoints, empty for those without one. Returns `None` if all are empty.
    pub(crate) fn join<S: AsRef<str>>(labels: &[S]) -> Option<Box<Labels>> {
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(labels.len()));
        for label in labels {
            text.extend_from_slice(label.as_ref().as_bytes());
            ends.push(u32::try_from(text.len()).ok()?);
        }
        (!text.is_empty()).then(|| Box::new(Labels { text: text.into(), ends: ends.into() }))
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        let label = self.text.get(start as usize..*self.ends.get(at)? as usize)?;
        (!label.is_empty()).then_some(label)
    }

    fn positions(&self, wanted: &[u8]) -> impl Iterator<Item = usize> {
        (0..self.ends.len()).filter(move |&at| self.get(at) == Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_joined_labels_by_position_and_by_text() {
        assert_eq!(Labels::join::<&str>(&[]), None);
        assert_eq!(Labels::join(&["", ""]), None);
        let labels = Labels::join(&["w0", "", "", "web-1", ""]).unwrap();
        let read: Vec<_> = (0..6).map(|at| labels.get(at)).collect();
        assert_eq!(read, [Some(&b"w0"[..]), None, None, Some(b"web-1"), None, None]);
        let at = |label: &[u8]| labels.positions(label).collect::<Vec<_>>();
        assert_eq!((at(b"w0"), at(b"web-1"), at(b"0web"), at(b"")), (vec![0], vec![3], vec![], vec![]));
    }
}
