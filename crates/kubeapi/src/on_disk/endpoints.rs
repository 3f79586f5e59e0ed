//! EndpointSlices for Services without any in the manifests, derived from Endpoints objects or from the Pods that a
//! Service selects, as the controllers of a cluster do.

use std::collections::BTreeMap;
use std::net::IpAddr;

use manifests::{
    AddressType, EndpointPort, EndpointSlice, Endpoints, Metadata, Pod, SERVICE_NAME, Service, ServicePort,
    SliceConditions, SliceEndpoint, Subset, SubsetAddress, TargetPort, TargetRef,
};

/// Returns the slices of an Endpoints object, one for each subset and address family.
pub(crate) fn of_endpoints(endpoints: &Endpoints) -> Vec<EndpointSlice> {
    let metadata = &endpoints.metadata;
    let slices = endpoints.subsets.iter().flat_map(|subset| {
        [AddressType::Ipv4, AddressType::Ipv6].into_iter().filter_map(|family| of_subset(subset, family))
    });
    slices.enumerate().map(|(at, slice)| named(slice, metadata, at)).collect()
}

/// Returns the slices of a Service with a selector, one for each address family and set of ports.
pub(crate) fn of_pods<'a>(service: &Service, pods: impl Iterator<Item = &'a Pod>) -> Vec<EndpointSlice> {
    let mut slices: BTreeMap<(bool, Vec<EndpointPort>), Vec<SliceEndpoint>> = BTreeMap::new();
    for pod in pods.filter(|pod| is_selected(service, pod)) {
        let ports: Vec<EndpointPort> = service.spec.ports.iter().filter_map(|port| port_of(port, pod)).collect();
        for address in addresses(pod).filter(|address| has_family(service, *address)) {
            let key = (address.is_ipv6(), ports.clone());
            slices.entry(key).or_default().push(endpoint(service, pod, address));
        }
    }
    let slices = slices.into_iter().map(|((is_ipv6, ports), endpoints)| EndpointSlice {
        address_type: if is_ipv6 { AddressType::Ipv6 } else { AddressType::Ipv4 },
        endpoints,
        ports,
        metadata: Metadata::default(),
    });
    slices.enumerate().map(|(at, slice)| named(slice, &service.metadata, at)).collect()
}

/// Puts a slice into the namespace of its Service and copies the labels. The name only has to be unique.
fn named(slice: EndpointSlice, service: &Metadata, at: usize) -> EndpointSlice {
    let mut labels = service.labels.clone();
    labels.insert(SERVICE_NAME.to_owned(), service.name.clone());
    let name = format!("{}/{at}", service.name);
    EndpointSlice {
        metadata: Metadata { name, namespace: service.namespace.clone(), labels, ..Metadata::default() },
        ..slice
    }
}

fn of_subset(subset: &Subset, family: AddressType) -> Option<EndpointSlice> {
    let of_family = |addresses: &[SubsetAddress], ready: bool| -> Vec<SliceEndpoint> {
        let addresses =
            addresses.iter().filter(|address| address.ip.text.contains(':') == (family == AddressType::Ipv6));
        addresses.map(|address| subset_endpoint(address, ready)).collect()
    };
    let mut endpoints = of_family(&subset.addresses, true);
    endpoints.extend(of_family(&subset.not_ready_addresses, false));
    let ports = subset.ports.clone();
    (!endpoints.is_empty()).then(|| EndpointSlice {
        address_type: family,
        endpoints,
        ports,
        ..EndpointSlice::default()
    })
}

fn subset_endpoint(address: &SubsetAddress, ready: bool) -> SliceEndpoint {
    SliceEndpoint {
        addresses: vec![address.ip.clone()],
        conditions: SliceConditions { ready: Some(ready) },
        hostname: address.hostname.clone(),
        target_ref: address.target_ref.clone(),
        zone: String::new(),
    }
}

fn is_selected(service: &Service, pod: &Pod) -> bool {
    let selects = |(label, value): (&String, &String)| pod.metadata.labels.get(label) == Some(value);
    !service.spec.selector.is_empty()
        && pod.metadata.namespace == service.metadata.namespace
        && service.spec.selector.iter().all(selects)
        && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
        && (pod.metadata.deletion_timestamp.is_none() || service.spec.publish_not_ready_addresses)
}

fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    pod.status.addresses().into_iter().filter_map(|text| text.parse().ok())
}

/// Returns true if a Service has the family of an address. A Service without families or cluster IPs has both.
fn has_family(service: &Service, address: IpAddr) -> bool {
    let spec = &service.spec;
    let is_said = |said: &mut dyn Iterator<Item = bool>| {
        let said: Vec<bool> = said.collect();
        said.is_empty() || said.contains(&address.is_ipv6())
    };
    let given = spec.cluster_ips.iter().chain([&spec.cluster_ip]).filter_map(|ip| ip.text.parse::<IpAddr>().ok());
    if spec.ip_families.is_empty() {
        is_said(&mut given.map(|address| address.is_ipv6()))
    } else {
        is_said(&mut spec.ip_families.iter().map(|family| family == "IPv6"))
    }
}

/// Maps a port of a Service to the port of a Pod. Returns `None` if the Pod has no port of that name.
fn port_of(port: &ServicePort, pod: &Pod) -> Option<EndpointPort> {
    let number = match &port.target_port {
        None | Some(TargetPort::Number(0)) => port.port?,
        Some(TargetPort::Number(number)) => *number,
        Some(TargetPort::Name(name)) => {
            let mut ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
            ports.find(|own| own.name == *name && own.protocol == port.protocol)?.container_port?
        }
    };
    Some(EndpointPort { name: port.name.clone(), protocol: port.protocol.clone(), port: Some(number) })
}

fn endpoint(service: &Service, pod: &Pod, address: IpAddr) -> SliceEndpoint {
    // As in a cluster, a Pod has a name of its own below the Service only if its `subdomain` names the Service.
    let is_named = pod.spec.subdomain == service.metadata.name;
    SliceEndpoint {
        addresses: vec![address.to_string().into()],
        conditions: SliceConditions { ready: Some(pod.is_ready() || service.spec.publish_not_ready_addresses) },
        hostname: if is_named { pod.spec.hostname.clone() } else { String::new() },
        target_ref: TargetRef { kind: "Pod".to_owned(), name: pod.metadata.name.clone() },
        zone: String::new(),
    }
}
