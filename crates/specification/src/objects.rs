//! Objects of a cluster as JSON, for an API server or for manifests.

use std::net::IpAddr;

use crate::cluster::{Cluster, Endpoint, Kind, Port, Service, State};

/// Returns the objects of a cluster: Namespaces, Services and EndpointSlices.
#[must_use]
pub fn json(cluster: &Cluster) -> Vec<String> {
    let namespaces =
        cluster.namespaces.iter().map(|name| object("v1", "Namespace", &format!(r#""name":"{name}""#), ""));
    let mut objects: Vec<String> = namespaces.collect();
    for service in &cluster.services {
        objects.push(service_object(service));
        objects.extend([true, false].into_iter().filter_map(|is_v4| slice(service, is_v4)));
    }
    objects
}

/// Returns the Endpoints of a cluster as JSON, for servers that do not know EndpointSlices. They have the addresses of
/// one family, that of the cluster IP or of the first endpoint, and no endpoint that terminates.
#[must_use]
pub fn endpoints(cluster: &Cluster) -> Vec<String> {
    cluster.services.iter().filter_map(endpoints_object).collect()
}

fn endpoints_object(service: &Service) -> Option<String> {
    let first = match &service.kind {
        Kind::ClusterIp(all) => all.first().copied(),
        Kind::Headless | Kind::ExternalName(_) => service.endpoints.first().map(|endpoint| endpoint.address),
    }?;
    let addresses = |states: [State; 2]| {
        let own = service.endpoints.iter().filter(|endpoint| endpoint.address.is_ipv4() == first.is_ipv4());
        let own = own.filter(|endpoint| states.contains(&endpoint.state));
        list(own.map(|Endpoint { address, hostname, .. }| format!(r#"{{"ip":"{address}"{}}}"#, hostname_of(*hostname))))
    };
    let (ready, other) = (addresses([State::Ready, State::Unknown]), addresses([State::NotReady; 2]));
    let metadata = format!(r#""name":"{}","namespace":"{}""#, service.name, service.namespace);
    let ports = ports(service);
    let subset = format!(r#"{{"addresses":{ready},"notReadyAddresses":{other},"ports":{ports}}}"#);
    Some(object("v1", "Endpoints", &metadata, &format!(r#","subsets":[{subset}]"#)))
}

fn object(version: &str, kind: &str, metadata: &str, rest: &str) -> String {
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{{metadata}}}{rest}}}"#)
}

fn service_object(service: &Service) -> String {
    let addresses = |all: &[IpAddr]| list(all.iter().map(|address| format!(r#""{address}""#)));
    let kind = match &service.kind {
        Kind::ClusterIp(all) => {
            // Without it, an API server refuses two addresses.
            let policy = if all.len() > 1 { r#","ipFamilyPolicy":"RequireDualStack""# } else { "" };
            format!(r#""type":"ClusterIP","clusterIP":"{}","clusterIPs":{}{policy}"#, all[0], addresses(all))
        }
        Kind::Headless => r#""type":"ClusterIP","clusterIP":"None","clusterIPs":["None"]"#.to_owned(),
        Kind::ExternalName(target) => format!(r#""type":"ExternalName","externalName":"{target}""#),
    };
    let metadata = format!(r#""name":"{}","namespace":"{}""#, service.name, service.namespace);
    object("v1", "Service", &metadata, &format!(r#","spec":{{{kind},"ports":{}}}"#, ports(service)))
}

fn ports(service: &Service) -> String {
    list(service.ports.iter().map(|Port { name, protocol, number }| {
        let protocol = protocol.to_ascii_uppercase();
        format!(r#"{{"name":"{name}","port":{number},"protocol":"{protocol}"}}"#)
    }))
}

/// Returns the slice with the endpoints of a family, if there are any.
fn slice(service: &Service, is_v4: bool) -> Option<String> {
    let mut own = service.endpoints.iter().filter(|endpoint| endpoint.address.is_ipv4() == is_v4).peekable();
    own.peek()?;
    let (family, name) = if is_v4 { ("IPv4", "v4") } else { ("IPv6", "v6") };
    let Service { name: service_name, namespace, .. } = service;
    let labels = format!(r#"{{"kubernetes.io/service-name":"{service_name}"}}"#);
    let metadata = format!(r#""name":"{service_name}-{name}","namespace":"{namespace}","labels":{labels}"#);
    let endpoints = list(own.map(endpoint));
    let rest = format!(r#","addressType":"{family}","endpoints":{endpoints},"ports":{}"#, ports(service));
    Some(object("discovery.k8s.io/v1", "EndpointSlice", &metadata, &rest))
}

fn endpoint(Endpoint { address, hostname, state }: &Endpoint) -> String {
    let conditions = match state {
        State::Ready => r#""ready":true,"serving":true,"terminating":false"#,
        State::Unknown => "",
        State::NotReady => r#""ready":false,"serving":false,"terminating":false"#,
        State::Terminating => r#""ready":false,"serving":true,"terminating":true"#,
    };
    let hostname = hostname_of(*hostname);
    format!(r#"{{"addresses":["{address}"]{hostname},"conditions":{{{conditions}}}}}"#)
}

fn hostname_of(hostname: Option<&str>) -> String {
    hostname.map_or_else(String::new, |hostname| format!(r#","hostname":"{hostname}""#))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}
