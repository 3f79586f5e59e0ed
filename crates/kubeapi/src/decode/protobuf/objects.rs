//! Objects, with only the fields that answers need. If a field occurs twice, which no server sends, the last one wins.

use cluster::Kind;
use cluster::object::{Endpoint, EndpointSlice, Meta, Node, Object, Pod, Port, Service};

use super::ProtobufError;
use super::fields::{Fields, Value};
use crate::decode::{POD, address_type};

/// Maximum number of entries of a repeated field: 1,000 endpoints with 100 addresses each, the most that the API server
/// accepts in an EndpointSlice.
const ENTRIES_MAX: usize = 100_000;

/// Field numbers: `ready` of EndpointConditions, `kind` and `name` of ObjectReference, `podIP` and `podIPs` of
/// PodStatus.
const READY: u64 = 1;
const TARGET_KIND: u64 = 1;
const TARGET_NAME: u64 = 3;
const POD_IP: u64 = 6;
const POD_IPS: u64 = 12;
/// Field number of `hostNetwork` in PodSpec.
const HOST_NETWORK: u64 = 11;

/// Decodes an object of a kind, with the trigger time of its last change.
pub(super) fn object(kind: Kind, bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    match kind {
        Kind::Namespace => namespace(bytes),
        Kind::Service => service(bytes),
        Kind::EndpointSlice | Kind::ImportedSlice => slice(kind, bytes),
        Kind::Pod => pod(bytes),
        Kind::Node => node(bytes),
        Kind::ServiceImport | Kind::ServiceEntry | Kind::WorkloadEntry => {
            Err(ProtobufError::Shape("a resource that was defined in the cluster has no protobuf"))
        }
        Kind::WorkloadPod => Err(ProtobufError::Shape("the pods of a mesh are asked for in JSON")),
    }
}

/// Decodes code and message of a metav1.Status.
pub(super) fn status(bytes: &[u8]) -> Result<(u16, &str), ProtobufError> {
    let (mut code, mut message) = (0, "");
    for field in Fields::of(bytes) {
        match field? {
            (3, value) => message = value.text()?,
            (6, value) => code = value.short()?,
            _ => {}
        }
    }
    Ok((code, message))
}

/// Decodes resource version, continue token and remaining item count of a metav1.ListMeta.
pub(super) fn list_metadata(bytes: &[u8]) -> Result<(&str, &str, Option<u64>), ProtobufError> {
    let (mut version, mut token, mut left) = ("", "", None);
    for field in Fields::of(bytes) {
        match field? {
            (2, value) => version = value.text()?,
            (3, value) => token = value.text()?,
            (4, value) => left = Some(value.number()?),
            _ => {}
        }
    }
    Ok((version, token, left))
}

/// metav1.ObjectMeta.
#[derive(Default)]
pub(super) struct Metadata<'a> {
    pub(super) meta: Meta<'a>,
    /// True on the bookmark at the end of a streaming list.
    pub(super) ends_list: bool,
    service: &'a str,
    common_service: &'a str,
    source_cluster: &'a str,
    zone: &'a str,
    region: &'a str,
    trigger: &'a str,
    terminating: bool,
    /// All labels, if they are wanted.
    labels: Option<Vec<(&'a str, &'a str)>>,
}

impl<'a> Metadata<'a> {
    /// Decodes the metadata of an object. The rest of the object may be invalid.
    pub(super) fn of(object: &'a [u8]) -> Result<Metadata<'a>, ProtobufError> {
        let mut metadata = Metadata::default();
        for field in Fields::of(object) {
            match field {
                Ok((1, value)) => metadata.read(value.as_bytes()?)?,
                Ok(_) => {}
                // The metadata come first, so an error after them does not matter.
                Err(_) if !metadata.meta.name.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(metadata)
    }

    /// Decodes the metadata of an object. The rest of the object must be well-formed.
    fn alone(object: &'a [u8]) -> Result<Metadata<'a>, ProtobufError> {
        let mut metadata = Metadata::default();
        for field in Fields::of(object) {
            if let (1, value) = field? {
                metadata.read(value.as_bytes()?)?;
            }
        }
        Ok(metadata)
    }

    fn read(&mut self, bytes: &'a [u8]) -> Result<(), ProtobufError> {
        for field in Fields::of(bytes) {
            match field? {
                (1, value) => self.meta.name = value.text()?,
                (3, value) => self.meta.namespace = value.text()?,
                (6, value) => self.meta.version = value.text()?,
                (9, _) => self.terminating = true,
                (11, value) => self.label(value.as_bytes()?)?,
                (12, value) => self.annotation(value.as_bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn label(&mut self, entry: &'a [u8]) -> Result<(), ProtobufError> {
        let (key, value) = key_and_value(entry)?;
        if let Some(labels) = &mut self.labels {
            return push(labels, (text(key)?, text(value)?));
        }
        match key {
            b"kubernetes.io/service-name" => self.service = text(value)?,
            b"multicluster.kubernetes.io/service-name" => self.common_service = text(value)?,
            b"multicluster.kubernetes.io/source-cluster" => self.source_cluster = text(value)?,
            b"topology.kubernetes.io/zone" => self.zone = text(value)?,
            b"topology.kubernetes.io/region" => self.region = text(value)?,
            // Names of these labels before Kubernetes 1.17.
            b"failure-domain.beta.kubernetes.io/zone" if self.zone.is_empty() => self.zone = text(value)?,
            b"failure-domain.beta.kubernetes.io/region" if self.region.is_empty() => self.region = text(value)?,
            _ => {}
        }
        Ok(())
    }

    fn annotation(&mut self, entry: &'a [u8]) -> Result<(), ProtobufError> {
        let (key, value) = key_and_value(entry)?;
        match key {
            b"endpoints.kubernetes.io/last-change-trigger-time" => self.trigger = text(value)?,
            b"k8s.io/initial-events-end" => self.ends_list = value == b"true",
            _ => {}
        }
        Ok(())
    }
}

/// Decodes an entry of a map.
fn key_and_value(entry: &[u8]) -> Result<(&[u8], &[u8]), ProtobufError> {
    let (mut key, mut content) = (&b""[..], &b""[..]);
    for field in Fields::of(entry) {
        match field? {
            (1, value) => key = value.as_bytes()?,
            (2, value) => content = value.as_bytes()?,
            _ => {}
        }
    }
    Ok((key, content))
}

fn text(bytes: &[u8]) -> Result<&str, ProtobufError> {
    Value::Bytes(bytes).text()
}

/// Appends to a list, up to [`ENTRIES_MAX`].
fn push<T>(list: &mut Vec<T>, entry: T) -> Result<(), ProtobufError> {
    if list.len() >= ENTRIES_MAX {
        return Err(ProtobufError::TooMany);
    }
    list.push(entry);
    Ok(())
}

/// core/v1 Namespace.
fn namespace(bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    let metadata = Metadata::alone(bytes)?;
    Ok((Object::Namespace(metadata.meta), metadata.trigger))
}

/// core/v1 Node.
fn node(bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    let Metadata { meta, zone, region, trigger, .. } = Metadata::alone(bytes)?;
    Ok((Object::Node(Node { meta, zone, region }), trigger))
}

/// core/v1 Service.
fn service(bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    let (mut service, mut metadata) = (Service::default(), Metadata::default());
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => metadata.read(value.as_bytes()?)?,
            (2, value) => service_spec(value.as_bytes()?, &mut service)?,
            (3, value) => service_status(value.as_bytes()?, &mut service)?,
            _ => {}
        }
    }
    service.meta = metadata.meta;
    Ok((Object::Service(service), metadata.trigger))
}

fn service_spec<'a>(bytes: &'a [u8], service: &mut Service<'a>) -> Result<(), ProtobufError> {
    let mut cluster_ip = "";
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => push(&mut service.ports, port(value.as_bytes()?)?)?,
            (3, value) => cluster_ip = value.text()?,
            (4, value) => service.service_type = value.text()?,
            (5, value) => push(&mut service.external, value.text()?)?,
            (10, value) => service.external_name = value.text()?,
            (18, value) => push(&mut service.cluster_ips, value.text()?)?,
            _ => {}
        }
    }
    if service.cluster_ips.is_empty() {
        service.cluster_ips.push(cluster_ip);
    }
    Ok(())
}

fn service_status<'a>(bytes: &'a [u8], service: &mut Service<'a>) -> Result<(), ProtobufError> {
    for field in Fields::of(bytes) {
        if let (1, balancer) = field? {
            for field in Fields::of(balancer.as_bytes()?) {
                if let (1, entry) = field? {
                    let ingress = ingress(entry.as_bytes()?)?;
                    if !ingress.is_empty() {
                        push(&mut service.external, ingress)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Decodes an entry of a load balancer: its IP address, or else its host name.
fn ingress(bytes: &[u8]) -> Result<&str, ProtobufError> {
    let (mut ip, mut hostname) = ("", "");
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => ip = value.text()?,
            (2, value) => hostname = value.text()?,
            _ => {}
        }
    }
    Ok(if ip.is_empty() { hostname } else { ip })
}

/// Decodes a port of a Service or an EndpointSlice. The fields that we read have the same numbers in both.
fn port(bytes: &[u8]) -> Result<Port<'_>, ProtobufError> {
    let mut port = Port::default();
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => port.name = value.text()?,
            (2, value) => port.protocol = value.text()?,
            (3, value) => port.number = Some(value.short()?),
            _ => {}
        }
    }
    Ok(port)
}

/// discovery.k8s.io/v1 EndpointSlice.
fn slice(kind: Kind, bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    let (mut metadata, mut address, mut ports) = (Metadata::default(), "", Vec::new());
    let mut endpoints = Vec::with_capacity(Fields::of(bytes).count_of(2).min(ENTRIES_MAX));
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => metadata.read(value.as_bytes()?)?,
            (2, value) => endpoint(value.as_bytes()?, &mut endpoints)?,
            (3, value) => push(&mut ports, port(value.as_bytes()?)?)?,
            (4, value) => address = value.text()?,
            _ => {}
        }
    }
    let address_type = address_type(address).map_err(ProtobufError::Shape)?;
    let (service, source_cluster) = match kind {
        Kind::ImportedSlice => (metadata.common_service, metadata.source_cluster),
        _ => (metadata.service, ""),
    };
    let slice = EndpointSlice { meta: metadata.meta, service, source_cluster, address_type, endpoints, ports };
    Ok((Object::EndpointSlice(slice), metadata.trigger))
}

/// Decodes an endpoint and appends it once for each of its addresses.
fn endpoint<'a>(bytes: &'a [u8], endpoints: &mut Vec<Endpoint<'a>>) -> Result<(), ProtobufError> {
    let (begin, mut endpoint) = (endpoints.len(), Endpoint::default());
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => push(endpoints, Endpoint { address: value.text()?, ..Endpoint::default() })?,
            (2, value) => endpoint.ready = value.field(READY)?.map(Value::number).transpose()?.map(|ready| ready != 0),
            (3, value) => endpoint.hostname = value.text()?,
            (4, value) => {
                endpoint.target = value.field(TARGET_NAME)?.map_or(Ok(""), Value::text)?;
                endpoint.is_pod = value.field(TARGET_KIND)?.map_or(Ok(""), Value::text)? == POD;
            }
            (7, value) => endpoint.zone = value.text()?,
            _ => {}
        }
    }
    for one in endpoints.get_mut(begin..).unwrap_or_default() {
        *one = Endpoint { address: one.address, ..endpoint };
    }
    Ok(())
}

/// Decodes the addresses in a core/v1 PodStatus: `podIPs`, or `podIP` alone if that list is empty.
fn pod_addresses(status: &[u8]) -> Result<Vec<&str>, ProtobufError> {
    const IP: u64 = 1;
    let (mut all, mut single) = (Vec::new(), "");
    for field in Fields::of(status) {
        match field? {
            (POD_IP, value) => single = value.text()?,
            (POD_IPS, value) if all.len() < ENTRIES_MAX => all.push(value.field(IP)?.map_or(Ok(""), Value::text)?),
            _ => {}
        }
    }
    if all.is_empty() && !single.is_empty() {
        all.push(single);
    }
    Ok(all)
}

/// core/v1 Pod.
fn pod(bytes: &[u8]) -> Result<(Object<'_>, &str), ProtobufError> {
    let labels = Some(Vec::new());
    let (mut metadata, mut host_network) = (Metadata { labels, ..Metadata::default() }, false);
    let mut addresses = Vec::new();
    for field in Fields::of(bytes) {
        match field? {
            (1, value) => metadata.read(value.as_bytes()?)?,
            (2, value) => host_network = value.field(HOST_NETWORK)?.map_or(Ok(0), Value::number)? != 0,
            (3, value) => addresses = pod_addresses(value.as_bytes()?)?,
            _ => {}
        }
    }
    let Metadata { meta, terminating, labels, .. } = metadata;
    let pod = Pod { meta, addresses, terminating, host_network, labels: labels.unwrap_or_default() };
    Ok((Object::Pod(pod), ""))
}
