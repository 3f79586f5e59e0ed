//! Endpoints of a slice that are not ready. They are in no answer and in no look-up by address: explanations show
//! them, since the reason why a name has no records is often that its pods are not ready.

use crate::dashed;
use crate::slice::{Address, Addresses, Labels};

/// Maximum number of endpoints that are kept of a slice. An explanation shows fewer; the others are kept so that an
/// endpoint can be found by its label, which matters for StatefulSets. With names of 40 bytes, 16 take 900 bytes. Of
/// 100,000 endpoints in 10,000 slices, none of which is ready, they take 3.4 MiB more than if all were ready.
pub(crate) const NOT_READY_MAX: usize = 16;

/// Endpoints of a slice that are not ready.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    /// Number of all of them.
    pub(crate) total: u32,
    /// Addresses of the first ones, at most [`NOT_READY_MAX`], in the order of the object.
    pub(crate) addresses: Addresses,
    /// Names of their pods, or else their hostnames.
    pub(crate) pods: Option<Box<Labels>>,
    /// Labels below the Service that are not derived from their addresses.
    pub(crate) labels: Option<Box<Labels>>,
}

/// Endpoint that is not ready.
#[derive(Clone, Copy, Debug)]
pub struct NotReadyEndpoint<'a> {
    list: &'a NotReady,
    at: usize,
}

impl NotReady {
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = NotReadyEndpoint<'_>> {
        (0..self.addresses.len()).map(|at| NotReadyEndpoint { list: self, at })
    }
}

impl<'a> NotReadyEndpoint<'a> {
    /// Returns the address.
    #[must_use]
    pub fn address(self) -> Address<'a> {
        self.list.addresses.get(self.at)
    }

    /// Returns the name of the pod (`targetRef`), or else the hostname; `None` if the endpoint has neither.
    #[must_use]
    pub fn pod(self) -> Option<&'a str> {
        text(&self.list.pods, self.at)
    }

    /// Returns true if the endpoint would have this label below its Service. The label must be in lower case.
    #[must_use]
    pub fn is_called(self, label: &[u8]) -> bool {
        match (text(&self.list.labels, self.at), self.address()) {
            (Some(own), _) => own.as_bytes() == label,
            (None, Address::Ip(ip)) => dashed::read_endpoint(label) == Some(ip),
            (None, Address::Name(_)) => false,
        }
    }
}

fn text(labels: &Option<Box<Labels>>, at: usize) -> Option<&str> {
    // The labels were joined from texts.
    str::from_utf8(labels.as_ref()?.get(at)?).ok()
}
