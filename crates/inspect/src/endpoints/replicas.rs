//! Replicas: the endpoints of the Service that this server is part of.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ::cluster::{Address, Endpoint, Index, Service};
use control::status::Replica;
use corefile::NoFiles;

use super::super::Loaded;
use crate::dns_service::serves_dns;
use crate::replica::{METRICS_PORT, REPLICAS_MAX, port_of};
use process::clusters::Followed;

/// Returns the ready servers of the Service that this server is part of, in the order of their addresses.
pub(super) fn replicas(clusters: &Followed, loaded: &Loaded) -> Vec<Replica> {
    let own = process::local::addresses().0;
    let clusters = clusters.all();
    let found = clusters.iter().find_map(|cluster| own.iter().find_map(|address| addresses(&cluster.index, *address)));
    let port = metrics_port(loaded);
    let replica = |address: IpAddr| {
        let own = own.contains(&address);
        Replica {
            address: address.to_string(),
            metrics: SocketAddr::new(address, port).to_string(),
            own,
            hash: own.then(|| loaded.hash.clone()),
            error: None,
        }
    };
    found.unwrap_or_default().into_iter().map(replica).collect()
}

/// Returns the addresses of the DNS Service with this endpoint, of the same family; `None` without such a Service.
fn addresses(index: &Index, own: IpAddr) -> Option<Vec<IpAddr>> {
    let mut found = None;
    index.services_of_endpoint(own, |service, _| {
        // The same Pods can have a headless Service for their metrics.
        if found.is_none() && serves_dns(service) {
            found = Some(ips(service, own));
        }
    });
    found
}

fn ips(service: &Service, own: IpAddr) -> Vec<IpAddr> {
    let ip = |endpoint: Endpoint<'_>| match endpoint.address() {
        Address::Ip(ip) if ip.is_ipv4() == own.is_ipv4() => Some(ip),
        _ => None,
    };
    let mut ips: Vec<IpAddr> = service.endpoints().filter_map(ip).collect();
    ips.sort_unstable();
    ips.dedup();
    ips.truncate(REPLICAS_MAX);
    ips
}

/// Returns the port of *prometheus* in the Corefile that serves.
fn metrics_port(loaded: &Loaded) -> u16 {
    let of_file = |(name, text): &(String, String)| {
        let written = corefile::parse(Path::new(name), text.clone(), &NoFiles).corefile;
        let directives = written.blocks.iter().flat_map(|block| &block.directives);
        port_of(directives.filter(|directive| directive.name.text == "prometheus"))
    };
    loaded.files.iter().find_map(of_file).unwrap_or(METRICS_PORT)
}

#[cfg(test)]
mod tests {
    use ::cluster::scenario::Stage;
    use ::cluster::{Kind, Spec};

    use super::*;

    #[test]
    fn finds_the_endpoints_of_the_own_dns_service() {
        let mut stage = Stage::new(&Spec::new(&[Kind::Service, Kind::EndpointSlice], &[]));
        stage.play(
            "svc system/metrics@1 ips=None ports=metrics:9153/TCP
             slice system/m@1 of=metrics v4=10.244.0.5,10.244.1.7 ports=metrics:9153/TCP
             svc system/dns@1 ips=10.96.0.10 ports=dns:53/UDP
             slice system/d@1 of=dns v4=10.244.1.7,10.244.0.5,10.244.2.9 ports=dns:53/UDP
             slice system/e@1 of=dns v6=fd00::5 ports=dns:53/UDP",
        );
        let [own, other] = [[10, 244, 0, 5], [10, 244, 9, 9]].map(IpAddr::from);
        let found = addresses(&stage.index, own).expect("the Service");
        assert_eq!(found, [[10, 244, 0, 5], [10, 244, 1, 7], [10, 244, 2, 9]].map(IpAddr::from));
        assert_eq!(addresses(&stage.index, other), None);
    }

    #[test]
    fn reads_the_port_of_the_metrics_page() {
        for (text, port) in
            [(". {\n    prometheus 0.0.0.0:9253\n}", 9253), (". {\n    prometheus\n}", 9153), ("", 9153)]
        {
            let loaded = Loaded { files: vec![("Corefile".to_owned(), text.to_owned())], ..Loaded::default() };
            assert_eq!(metrics_port(&loaded), port, "{text}");
        }
    }
}
