//! Cluster described by all manifests together, with the fields and objects that an API server and its controllers add.
//!
//! Namespaces exist if an object is in them. An object without a namespace is in `default`. Services get cluster IPs.
//! Services with a selector get endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster::object::{self, Event, Meta, Object};
use cluster::{Kind, Request, Selector};

use super::allocate::Allocator;
use super::endpoints;
use super::mesh;
use crate::SetupError;
use crate::watch::Sink;
use manifests::Manifest;
use manifests::MeshManifest;
use manifests::{
    AddressType, EndpointSlice, Endpoints, Metadata, Namespace, Pod, PodSpec, SERVICE_NAME, Service, ServiceImport,
    ServicePort, SliceEndpoint, Text,
};

/// Labels on an EndpointSlice with the name of its ServiceImport and the cluster that its endpoints are in.
const COMMON_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// Label that every namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Namespace and name of an object.
pub(crate) type Key = (String, String);

/// Filter for objects.
pub(crate) struct Selection {
    namespaces: Vec<String>,
    labels: Selector,
    namespace_labels: Selector,
}

impl Selection {
    pub(crate) fn new(request: &Request) -> Result<Selection, SetupError> {
        let selector =
            |text: &str| Selector::parse(text).map_err(|error| SetupError::Selector { text: text.to_owned(), error });
        Ok(Selection {
            namespaces: request.namespaces.clone(),
            labels: selector(&request.labels)?,
            namespace_labels: selector(&request.namespace_labels)?,
        })
    }

    fn selects(&self, metadata: &Metadata) -> bool {
        self.sees(&metadata.namespace) && self.labels.matches(|name| metadata.label(name))
    }

    /// As a watch selects ServiceImports: `namespace_labels` applies to their own labels.
    fn selects_import(&self, metadata: &Metadata) -> bool {
        self.sees(&metadata.namespace) && self.namespace_labels.matches(|name| metadata.label(name))
    }

    fn sees(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|seen| seen == namespace)
    }
}

/// Pod of manifests, as far as a question about it needs it.
pub(crate) struct ManifestPod {
    /// Its addresses, and those of endpoints that refer to it.
    pub(crate) addresses: Vec<IpAddr>,
    /// Its `spec`; `None` if only endpoints refer to it.
    pub(crate) spec: Option<PodSpec>,
}

/// Cluster described by manifests. If an object occurs twice, the last one wins.
#[derive(Default)]
pub(crate) struct Cluster {
    namespaces: BTreeMap<String, Namespace>,
    services: BTreeMap<Key, Service>,
    slices: BTreeMap<Key, EndpointSlice>,
    endpoints: BTreeMap<Key, Endpoints>,
    pods: BTreeMap<Key, Pod>,
    imports: BTreeMap<Key, ServiceImport>,
    service_entries: BTreeMap<Key, MeshManifest>,
    workload_entries: BTreeMap<Key, MeshManifest>,
}

impl Cluster {
    pub(crate) fn new<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Cluster {
        let mut cluster = Cluster::default();
        for manifest in manifests {
            cluster.add(manifest.clone());
        }
        cluster.allocate();
        cluster.derive_slices();
        cluster
    }

    /// Returns the addresses of a Pod: its own, and those of endpoints that refer to it.
    fn pod_addresses(&self, namespace: &str, pod: &str) -> Vec<IpAddr> {
        let own = self.pods.get(&(namespace.to_owned(), pod.to_owned()));
        let own =
            own.into_iter().flat_map(|pod| pod.status.pod_ips.iter().map(|ip| &ip.ip).chain([&pod.status.pod_ip]));
        let slices = self.slices.values().filter(|slice| slice.metadata.namespace == namespace);
        let is_it = |endpoint: &&SliceEndpoint| endpoint.target_ref.kind == "Pod" && endpoint.target_ref.name == pod;
        let endpoints = slices.flat_map(|slice| &slice.endpoints).filter(is_it);
        let texts = own.chain(endpoints.flat_map(|endpoint| &endpoint.addresses));
        texts.filter_map(|text| text.text.parse().ok()).collect()
    }

    /// Returns the Pods with an address: by themselves, or else by endpoints that refer to them.
    pub(crate) fn pods_at(&self, address: IpAddr) -> Vec<(Key, ManifestPod)> {
        let has_it = |text: &Text| text.text.parse() == Ok(address);
        let own = self
            .pods
            .iter()
            .filter(|(_, pod)| has_it(&pod.status.pod_ip) || pod.status.pod_ips.iter().any(|ip| has_it(&ip.ip)));
        let mut keys: Vec<Key> = own.map(|(key, _)| key.clone()).collect();
        if keys.is_empty() {
            let slices = self.slices.values().flat_map(|slice| slice.endpoints.iter().map(move |one| (slice, one)));
            let of_pod = slices.filter(|(_, one)| one.target_ref.kind == "Pod" && one.addresses.iter().any(has_it));
            keys.extend(of_pod.map(|(slice, one)| (slice.metadata.namespace.clone(), one.target_ref.name.clone())));
            keys.sort_unstable();
            keys.dedup();
        }
        keys.into_iter().map(|key| (key.clone(), self.pod(&key.0, &key.1))).collect()
    }

    /// Returns what is known of a Pod.
    pub(crate) fn pod(&self, namespace: &str, pod: &str) -> ManifestPod {
        ManifestPod { addresses: self.pod_addresses(namespace, pod), spec: self.pod_spec(namespace, pod).cloned() }
    }

    /// Returns the `spec` of a Pod.
    fn pod_spec(&self, namespace: &str, pod: &str) -> Option<&PodSpec> {
        self.pods.get(&(namespace.to_owned(), pod.to_owned())).map(|pod| &pod.spec)
    }

    /// Applies all objects that `selection` selects to the sinks of their kinds, as a complete list.
    pub(crate) fn apply_to(&self, sinks: &[Sink], selection: &Selection) {
        for sink in sinks {
            sink.apply(&Event::Listing);
            match sink.kind {
                Kind::Namespace => self.apply_namespaces(sink, selection),
                Kind::Service => each(&self.services, selection, |service| apply(sink, service_object(service))),
                Kind::EndpointSlice => {
                    each(&self.slices, selection, |slice| apply(sink, slice_object(slice, SERVICE_NAME)));
                }
                Kind::ServiceImport => {
                    let imports = self.imports.values().filter(|import| selection.selects_import(&import.metadata));
                    imports.for_each(|import| apply(sink, import_object(import)));
                }
                Kind::ImportedSlice => each(&self.slices, selection, |slice| {
                    if slice.metadata.label(COMMON_SERVICE_NAME).is_some() {
                        apply(sink, slice_object(slice, COMMON_SERVICE_NAME));
                    }
                }),
                Kind::Pod => each(&self.pods, selection, |pod| apply_pod(sink, pod)),
                Kind::ServiceEntry => each(&self.service_entries, selection, |entry| mesh::apply(entry, sink)),
                Kind::WorkloadEntry => each(&self.workload_entries, selection, |entry| mesh::apply(entry, sink)),
                Kind::WorkloadPod => each(&self.pods, selection, |pod| {
                    if is_live(pod) {
                        mesh::apply_pod(sink, pod);
                    }
                }),
                // Nodes are watched for the region and zone of a cluster. A cluster that only exists in manifests has
                // none.
                Kind::Node => {}
            }
            sink.apply(&Event::Listed);
        }
    }

    fn add(&mut self, manifest: Manifest) {
        match manifest {
            Manifest::Namespace(mut namespace) => {
                let name = namespace.metadata.name.clone();
                namespace.metadata.labels.insert(NAMESPACE_NAME.to_owned(), name.clone());
                self.namespaces.insert(name, namespace);
            }
            Manifest::Service(mut service) => {
                self.place(&mut service.metadata);
                self.services.insert(service.metadata.key(), service);
            }
            Manifest::EndpointSlice(mut slice) => {
                self.place(&mut slice.metadata);
                self.slices.insert(slice.metadata.key(), slice);
            }
            Manifest::Endpoints(mut endpoints) => {
                self.place(&mut endpoints.metadata);
                self.endpoints.insert(endpoints.metadata.key(), endpoints);
            }
            Manifest::Pod(mut pod) => {
                self.place(&mut pod.metadata);
                self.pods.insert(pod.metadata.key(), pod);
            }
            Manifest::ServiceImport(mut import) => {
                self.place(&mut import.metadata);
                self.imports.insert(import.metadata.key(), import);
            }
            Manifest::Mesh(mut manifest) => {
                self.place(&mut manifest.metadata);
                let of_kind = match manifest.kind {
                    Kind::WorkloadEntry => &mut self.workload_entries,
                    _ => &mut self.service_entries,
                };
                of_kind.insert(manifest.metadata.key(), manifest);
            }
        }
    }

    /// Fills in the namespace of an object, and creates the namespace if needed.
    fn place(&mut self, metadata: &mut Metadata) {
        if metadata.namespace.is_empty() {
            "default".clone_into(&mut metadata.namespace);
        }
        if !self.namespaces.contains_key(&metadata.namespace) {
            let name = metadata.namespace.clone();
            let namespace = Namespace { metadata: Metadata { name, ..Metadata::default() } };
            self.add(Manifest::Namespace(namespace));
        }
    }

    /// Allocates cluster IPs for Services without one.
    fn allocate(&mut self) {
        let mut allocator = Allocator::default();
        for service in self.services.values() {
            let spec = &service.spec;
            let written = spec.cluster_ips.iter().chain([&spec.cluster_ip]).filter_map(|ip| ip.text.parse().ok());
            written.for_each(|address| allocator.take(address));
        }
        for ((namespace, name), service) in &mut self.services {
            let spec = &mut service.spec;
            if spec.cluster_ips.is_empty() && !spec.cluster_ip.text.is_empty() {
                spec.cluster_ips.push(spec.cluster_ip.clone());
            }
            let has_one = spec.cluster_ips.iter().any(|ip| !ip.text.is_empty());
            if has_one || spec.service_type == "ExternalName" {
                continue;
            }
            let Some((v4, v6)) = allocator.give(namespace, name) else { continue };
            let families = families(&spec.ip_families, &spec.ip_family_policy);
            let address = |is_ipv6: &bool| if *is_ipv6 { IpAddr::from(v6) } else { IpAddr::from(v4) };
            let text = |address: IpAddr| Text::from(address.to_string());
            spec.cluster_ips = families.iter().map(address).map(text).collect();
        }
    }

    /// Derives slices for Services without one.
    fn derive_slices(&mut self) {
        let of_service = |slice: &EndpointSlice| {
            let metadata = &slice.metadata;
            metadata.label(SERVICE_NAME).map(|service| (metadata.namespace.clone(), service.to_owned()))
        };
        let written: BTreeSet<Key> = host::sorting::set(self.slices.values().filter_map(of_service));
        let given = self.endpoints.iter().filter(|(key, _)| !written.contains(*key));
        let given = given.flat_map(|(key, given)| {
            // Copy the labels of the Service to its slices, so that a selector matches both or neither.
            let labels = self.services.get(key).map_or(&given.metadata.labels, |service| &service.metadata.labels);
            let metadata = Metadata { labels: labels.clone(), ..given.metadata.clone() };
            endpoints::of_endpoints(&Endpoints { metadata, ..given.clone() })
        });
        let bare = self.services.iter().filter(|(key, service)| {
            service.spec.service_type != "ExternalName" && !written.contains(*key) && !self.endpoints.contains_key(*key)
        });
        let selected = bare.flat_map(|(_, service)| endpoints::of_pods(service, self.pods.values()));
        let derived: Vec<EndpointSlice> = given.chain(selected).collect();
        self.slices.extend(derived.into_iter().map(|slice| (slice.metadata.key(), slice)));
    }

    fn apply_namespaces(&self, sink: &Sink, selection: &Selection) {
        for (name, Namespace { metadata }) in &self.namespaces {
            if selection.sees(name) && selection.namespace_labels.matches(|label| metadata.label(label)) {
                apply(sink, Object::Namespace(Meta { namespace: "", name, version: "" }));
            }
        }
    }
}

/// Returns the address families of a Service, `true` for IPv6.
fn families(written: &[String], policy: &str) -> Vec<bool> {
    let mut families: Vec<bool> = written.iter().map(|family| family == "IPv6").collect();
    if families.is_empty() {
        families.push(false);
    }
    if families.len() == 1 && matches!(policy, "PreferDualStack" | "RequireDualStack") {
        families.push(!families[0]);
    }
    families
}

/// Object with metadata.
trait HasMetadata {
    fn metadata(&self) -> &Metadata;
}

macro_rules! has_metadata {
    ($($kind:ident)*) => {
        $(impl HasMetadata for $kind {
            fn metadata(&self) -> &Metadata {
                &self.metadata
            }
        })*
    };
}

has_metadata!(Service EndpointSlice Pod MeshManifest);

fn each<T: HasMetadata>(objects: &BTreeMap<Key, T>, selection: &Selection, apply: impl Fn(&T)) {
    objects.values().filter(|object| selection.selects(object.metadata())).for_each(apply);
}

fn apply(sink: &Sink, object: Object<'_>) {
    sink.apply(&Event::Applied(object));
}

fn service_object(service: &Service) -> Object<'_> {
    let spec = &service.spec;
    Object::Service(object::Service {
        meta: service.metadata.meta(),
        service_type: &spec.service_type,
        cluster_ips: spec.cluster_ips.iter().map(|ip| ip.text.as_str()).collect(),
        external_name: &spec.external_name,
        ports: service_ports(&spec.ports),
        external: service.external().collect(),
    })
}

fn import_object(import: &ServiceImport) -> Object<'_> {
    let spec = &import.spec;
    Object::ServiceImport(object::ServiceImport {
        meta: import.metadata.meta(),
        import_type: &spec.import_type,
        ips: spec.ips.iter().map(String::as_str).collect(),
        ports: service_ports(&spec.ports),
    })
}

fn service_ports(ports: &[ServicePort]) -> Vec<object::Port<'_>> {
    let each = ports.iter();
    each.map(|port| object::Port { name: &port.name, protocol: &port.protocol.0, number: port.port }).collect()
}

/// Converts a slice. `label` is the label with the name of its Service or ServiceImport.
fn slice_object<'a>(slice: &'a EndpointSlice, label: &str) -> Object<'a> {
    Object::EndpointSlice(object::EndpointSlice {
        meta: slice.metadata.meta(),
        service: slice.metadata.label(label).unwrap_or_default(),
        source_cluster: slice.metadata.label(SOURCE_CLUSTER).unwrap_or_default(),
        address_type: match slice.address_type {
            AddressType::Ipv4 => object::AddressType::Ipv4,
            AddressType::Ipv6 => object::AddressType::Ipv6,
            AddressType::Fqdn => object::AddressType::Fqdn,
        },
        endpoints: slice.endpoints.iter().flat_map(slice_endpoints).collect(),
        ports: slice
            .ports
            .iter()
            .map(|port| object::Port { name: &port.name, protocol: &port.protocol.0, number: port.port })
            .collect(),
    })
}

fn slice_endpoints(endpoint: &SliceEndpoint) -> impl Iterator<Item = object::Endpoint<'_>> {
    endpoint.addresses.iter().map(|address| object::Endpoint {
        address: &address.text,
        ready: endpoint.conditions.ready,
        hostname: &endpoint.hostname,
        target: &endpoint.target_ref.name,
        is_pod: endpoint.target_ref.kind == "Pod",
        zone: &endpoint.zone,
    })
}

/// Returns true if the Pod has not ended. Watches of an API server leave out ended Pods too.
fn is_live(pod: &Pod) -> bool {
    !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed" | "Unknown")
}

fn apply_pod(sink: &Sink, pod: &Pod) {
    if !is_live(pod) {
        return;
    }
    apply(
        sink,
        Object::Pod(object::Pod {
            meta: pod.metadata.meta(),
            addresses: pod.status.addresses(),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            host_network: pod.spec.host_network == Some(true),
            labels: pod.metadata.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        }),
    );
}
