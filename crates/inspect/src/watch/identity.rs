//! Pods of addresses: all with `identity pods`, else those in the EndpointSlices that the server watches anyway.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use config::setup::{InspectedPod, Inspection};
use control::tail::{Client, ClientKind};

use super::super::refusal::Refusal;

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
    /// Returns the identity of who sends probes: this server or `portolan doctor`.
    pub(super) fn of_probe() -> Identity {
        Identity { kind: ClientKind::Probe, ..Identity::default() }
    }

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
    let kind = |kind| Identity { kind, ..Identity::default() };
    let mut pods: Vec<InspectedPod> = Vec::new();
    for pod in inspection.clusters.iter().flat_map(|cluster| cluster.pods_at(address)) {
        // Several server blocks may serve the same cluster.
        if !pods.iter().any(|known| known.namespace == pod.namespace) {
            pods.push(pod);
        }
    }
    let knows_all = !inspection.clusters.is_empty() && inspection.clusters.iter().all(|cluster| cluster.knows_pods());
    match (pods.pop(), pods.is_empty()) {
        (None, _) if address.is_loopback() => kind(ClientKind::Host),
        (None, _) if knows_all => kind(ClientKind::Outside),
        (None, _) => Identity::default(),
        (Some(InspectedPod { namespace, name, service, on_host_network: false }), true) => {
            Identity { kind: ClientKind::Pod, namespace: Some(namespace), pod: name, service }
        }
        // Pods of two namespaces share the address only if both use the network of their node.
        (Some(_), _) => kind(ClientKind::Node),
    }
}

/// Pods whose queries are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) namespace: String,
    /// Name of a pod, or of a Service that pods are endpoints of.
    pub(crate) pod: Option<String>,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use config::setup::InspectCluster;
    use wire::Name;

    use super::*;

    /// Cluster with one pod, and one on the network of its node.
    struct OneCluster {
        knows_pods: bool,
    }

    impl InspectCluster for OneCluster {
        fn zones(&self) -> &[Name] {
            &[]
        }

        fn has_namespace(&self, _: &str) -> bool {
            true
        }

        fn pods_at(&self, address: IpAddr) -> Vec<InspectedPod> {
            let pod = |on_host_network| InspectedPod {
                namespace: "shop".to_owned(),
                name: Some("web".to_owned()),
                service: None,
                on_host_network,
            };
            match address.to_string().as_str() {
                "10.1.0.1" => vec![pod(false)],
                "10.0.0.1" => vec![pod(true)],
                _ => Vec::new(),
            }
        }

        fn knows_pods(&self) -> bool {
            self.knows_pods
        }

        fn addresses_of_pod(&self, _: &str, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }

        fn addresses_of(&self, _: &str, _: Option<&str>) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    #[test]
    fn says_what_an_address_without_a_pod_of_its_own_can_be() {
        let identity = |address: &str, clusters: &[bool]| {
            let clusters = clusters
                .iter()
                .map(|knows_pods| -> Arc<dyn InspectCluster> { Arc::new(OneCluster { knows_pods: *knows_pods }) });
            let inspection = Inspection { clusters: clusters.collect(), ..Inspection::default() };
            identify(address.parse().expect("an address"), &inspection).client_text(address)
        };
        for (address, clusters, expected) in [
            ("10.1.0.1", &[true][..], "shop/web"),
            // Two server blocks with the same cluster.
            ("10.1.0.1", &[true, true], "shop/web"),
            ("10.0.0.1", &[true], "10.0.0.1 (node)"),
            ("10.9.9.9", &[true], "10.9.9.9 (no pod)"),
            ("10.9.9.9", &[true, false], "10.9.9.9"),
            ("10.9.9.9", &[], "10.9.9.9"),
            ("127.0.0.1", &[true], "127.0.0.1 (host)"),
        ] {
            assert_eq!(identity(address, clusters), expected, "{address} {clusters:?}");
        }
    }
}
