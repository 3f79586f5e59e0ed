//! Columns of a slice: the addresses and the labels of its endpoints, by position.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use host::invariant::Expected as _;

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

    pub(crate) fn v4(&self) -> &[Ipv4Addr] {
        if let Addresses::V4(list) = self { list } else { &[] }
    }

    pub(crate) fn v6(&self) -> &[Ipv6Addr] {
        if let Addresses::V6(list) = self { list } else { &[] }
    }
}

/// Returns the positions of an entry.
pub(crate) fn positions<A: PartialEq>(list: &[A], wanted: A) -> impl Iterator<Item = usize> {
    list.iter().enumerate().filter(move |(_, address)| **address == wanted).map(|(at, _)| at)
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
            ends.push(u32::try_from(text.len()).ok().expected("the labels of a slice have less than 4 GiB")?);
        }
        debug_assert!(ends.is_sorted(), "each label begins where the one before ends");
        (!text.is_empty()).then(|| Box::new(Labels { text: text.into(), ends: ends.into() }))
    }

    /// Returns the number of endpoints.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        let label = self.text.get(start as usize..*self.ends.get(at)? as usize)?;
        (!label.is_empty()).then_some(label)
    }

    pub(crate) fn positions(&self, wanted: &[u8]) -> impl Iterator<Item = usize> {
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
