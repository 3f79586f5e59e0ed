//! Pods of addresses, as far as the EndpointSlices that the server watches anyway show them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use config::setup::{InspectedPod, Inspection};
use control::tail::{Client, ClientKind};

use super::super::answer::Refusal;

/// Maximum number of remembered clients: more than a node has pods.
const KEPT_MAX: usize = 4096;
/// Time for which a client is remembered. Addresses of pods are not used again within seconds.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// Maximum number of addresses that a filter by namespace or pod may select.
const ADDRESSES_MAX: usize = 50_000;

/// Remembered clients.
#[derive(Default)]
pub(super) struct Identities {
    known: HashMap<IpAddr, (Instant, Identity)>,
}

/// Pod, namespace and Service of an address, as far as the server knows them.
#[derive(Clone, Default)]
pub(super) struct Identity {
    pub(super) kind: ClientKind,
    pub(super) namespace: Option<String>,
    pub(super) pod: Option<String>,
    pub(super) service: Option<String>,
}

impl Identities {
    /// Returns the identity of an address.
    pub(super) fn of(&mut self, address: IpAddr, inspection: &Inspection) -> &Identity {
        let now = Instant::now();
        if self.known.len() >= KEPT_MAX {
            self.known.clear();
        }
        let (since, identity) = self.known.entry(address).or_insert_with(|| (now, identify(address, inspection)));
        if now.duration_since(*since) > KEPT_FOR {
            (*since, *identity) = (now, identify(address, inspection));
        }
        identity
    }
}

impl Identity {
    /// Describes a client with this identity: its pod, or its address with its namespace and Service.
    pub(super) fn client_text(&self, address: &str) -> String {
        let Identity { kind, namespace, pod, service } = self.clone();
        Client { address: address.to_owned(), port: 0, kind, namespace, pod, service }.text()
    }

    /// Returns the client with this identity.
    pub(super) fn client(&self, address: IpAddr, port: u16) -> Client {
        let Identity { kind, namespace, pod, service } = self.clone();
        Client { address: address.to_string(), port, kind, namespace, pod, service }
    }
}

fn identify(address: IpAddr, inspection: &Inspection) -> Identity {
    let mut pods = inspection.clusters.iter().flat_map(|cluster| cluster.pods_at(address));
    match (pods.next(), pods.next()) {
        (None, _) if address.is_loopback() => Identity { kind: ClientKind::Host, ..Identity::default() },
        (None, _) => Identity::default(),
        (Some(InspectedPod { namespace, name, service }), None) => {
            Identity { kind: ClientKind::Pod, namespace: Some(namespace), pod: name, service }
        }
        // Pods of two namespaces share the address only if both use the network of their node.
        (Some(_), Some(_)) => Identity { kind: ClientKind::Node, ..Identity::default() },
    }
}

/// Pods whose queries are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) struct Selection {
    pub(in crate::control) namespace: String,
    /// Name of a pod, or of a Service that pods are endpoints of.
    pub(in crate::control) pod: Option<String>,
}

impl Selection {
    /// Returns the addresses of the pods.
    ///
    /// # Errors
    /// No cluster is served, or there are too many addresses.
    pub(super) fn addresses(&self, inspection: &Inspection) -> Result<Vec<IpAddr>, Refusal> {
        if inspection.clusters.is_empty() {
            let message = "no server block has *kubernetes*, so pods are unknown; use a filter by client address";
            return Err(Refusal::invalid(message));
        }
        let of = |cluster: &std::sync::Arc<dyn config::setup::InspectCluster>| {
            cluster.addresses_of(&self.namespace, self.pod.as_deref())
        };
        let addresses: Vec<IpAddr> = inspection.clusters.iter().flat_map(of).collect();
        if addresses.len() > ADDRESSES_MAX {
            let message = format!(
                "{} addresses match; the maximum is {ADDRESSES_MAX}. Name a pod, or use a filter by client network",
                addresses.len()
            );
            return Err(Refusal::invalid(message));
        }
        Ok(addresses)
    }
}
