//! Addresses of the cluster DNS: those of the Services that Pods ask for names.

use std::net::IpAddr;

use cluster::{Index, Service};
use process::clusters::Followed;

/// Port of DNS.
const DNS_PORT: u16 = 53;
/// Service that kubelets usually know as the cluster DNS: namespace and name.
const USUAL: (&str, &str) = ("kube-system", "kube-dns");

/// Returns true for a Service with the port of DNS.
pub(crate) fn serves_dns(service: &Service) -> bool {
    service.ports.iter().any(|port| port.number == Some(DNS_PORT))
}

/// Returns the cluster addresses of the usual Service of the cluster DNS, and of those that a server with these
/// addresses is an endpoint of.
pub(crate) fn addresses(clusters: &Followed, own: &[IpAddr]) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = clusters.all().iter().flat_map(|cluster| in_index(&cluster.index, own)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn in_index(index: &Index, own: &[IpAddr]) -> Vec<IpAddr> {
    let (namespace, name) = USUAL;
    let usual = index.service(namespace.as_bytes(), name.as_bytes(), |service| service.cluster_ips().to_vec());
    let mut found = usual.unwrap_or_default();
    for address in own {
        index.services_of_endpoint(*address, |service, _| {
            if serves_dns(service) {
                found.extend(service.cluster_ips());
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use cluster::scenario::Stage;
    use cluster::{Kind, Spec};

    use super::*;

    #[test]
    fn finds_the_usual_service_and_the_own_ones() {
        let mut stage = Stage::new(&Spec::new(&[Kind::Service, Kind::EndpointSlice], &[]));
        stage.play(
            "svc kube-system/kube-dns@1 ips=10.96.0.10 ports=dns:53/UDP
             svc dns/own@1 ips=10.96.0.11 ports=dns:53/UDP
             svc dns/metrics@1 ips=10.96.0.12 ports=metrics:9153/TCP
             slice dns/o@1 of=own v4=10.244.0.5 ports=dns:53/UDP
             slice dns/m@1 of=metrics v4=10.244.0.5 ports=metrics:9153/TCP",
        );
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(in_index(&stage.index, &[ip("10.244.0.5")]), [ip("10.96.0.10"), ip("10.96.0.11")]);
        assert_eq!(in_index(&stage.index, &[]), [ip("10.96.0.10")]);
    }
}
