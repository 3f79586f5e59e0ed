//! Snapshot of an index as bytes, so that a process can serve names while its API server is unreachable.
//!
//! A snapshot holds what answers need, not the objects: slices and pods have no names in it, nothing has a version, and
//! endpoints that are not ready are left out. [`read`] turns it back into objects, which the reducer applies with the
//! same checks as those from an API server. Slices and pods get names that no real object can have, so the first
//! complete list of a kind sweeps what came only from the snapshot.
//!
//! The caller decides where to store the bytes, and detects damage.

use serde::{Deserialize, Serialize};

use crate::columns::{Address, Addresses};
use crate::object::{self, AddressType, Meta, Object};
use crate::port::Port;
use crate::service::{External, Service, ServiceKind};
use crate::slice::Slice;
use crate::{Index, Kind};

/// Cluster IP of a headless Service, as in the API.
const HEADLESS: &str = "None";

/// One entry of a snapshot.
#[derive(Deserialize, Serialize)]
struct Record {
    /// True if it belongs to a ClusterSet Service.
    common: bool,
    namespace: String,
    name: String,
    content: RecordContent,
}

#[derive(Deserialize, Serialize)]
enum RecordContent {
    Namespace,
    Service(ServiceRecord),
    Slice(SliceRecord),
    /// A pod; the record's `name` is its IP address.
    Pod,
}

#[derive(Deserialize, Serialize)]
struct ServiceRecord {
    /// Same values as in the object: `None` means headless.
    ips: Vec<String>,
    external_name: String,
    ports: Vec<PortRecord>,
    external: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct PortRecord {
    name: String,
    protocol: String,
    number: Option<u16>,
}

#[derive(Deserialize, Serialize)]
struct SliceRecord {
    family: Family,
    cluster: String,
    endpoints: Vec<EndpointRecord>,
    ports: Vec<PortRecord>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
enum Family {
    V4,
    V6,
    Names,
}

#[derive(Deserialize, Serialize)]
struct EndpointRecord {
    address: String,
    label: String,
    zone: String,
}

/// Error: the bytes are not a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a snapshot of an index")]
pub struct SnapshotError;

/// Appends the contents of an index to a buffer.
pub fn write(index: &Index, bytes: &mut Vec<u8>) {
    write_index(index, false, bytes);
    if let Some(common) = index.clusterset() {
        write_index(common, true, bytes);
    }
}

fn write_index(index: &Index, common: bool, bytes: &mut Vec<u8>) {
    let mut put = |namespace: &str, name: &str, content| {
        let record = Record { common, namespace: namespace.to_owned(), name: name.to_owned(), content };
        // Serializing into a `Vec` cannot fail.
        if let Ok(longer) = postcard::to_extend(&record, core::mem::take(bytes)) {
            *bytes = longer;
        }
    };
    index.for_each_namespace(|name| put("", name, RecordContent::Namespace));
    index.for_each_entry(|service| {
        if service.is_declared() {
            put(&service.namespace, &service.name, RecordContent::Service(service_record(service)));
        }
        // Also those of an entry without a Service: each kind has its own watch, and the one of Services may be late.
        for slice in &service.slices {
            put(&service.namespace, &service.name, RecordContent::Slice(slice_record(slice)));
        }
    });
    index.for_each_pod(|namespace, address| put(namespace, &address.to_string(), RecordContent::Pod));
}

fn service_record(service: &Service) -> ServiceRecord {
    let (ips, external_name) = match &service.kind {
        ServiceKind::ClusterIp(ips) => (ips.iter().map(ToString::to_string).collect(), ""),
        ServiceKind::ExternalName(name) => (Vec::new(), &**name),
        ServiceKind::Headless | ServiceKind::Undeclared => (vec![HEADLESS.to_owned()], ""),
    };
    let external = service.external.iter().map(|external| match external {
        External::Ip(ip) => ip.to_string(),
        External::Host(host) => host.to_string(),
    });
    ServiceRecord {
        ips,
        external_name: external_name.to_owned(),
        ports: port_records(&service.ports),
        external: external.collect(),
    }
}

fn slice_record(slice: &Slice) -> SliceRecord {
    let endpoints = slice.endpoints().map(|endpoint| EndpointRecord {
        address: match endpoint.address() {
            Address::Ip(ip) => ip.to_string(),
            Address::Name(name) => name.to_owned(),
        },
        label: String::from_utf8_lossy(endpoint.own_label().unwrap_or_default()).into_owned(),
        zone: endpoint.zone().to_owned(),
    });
    SliceRecord {
        family: match slice.addresses {
            Addresses::V4(_) => Family::V4,
            Addresses::V6(_) => Family::V6,
            Addresses::Names(_) => Family::Names,
        },
        cluster: slice.cluster.as_deref().unwrap_or_default().to_owned(),
        endpoints: endpoints.collect(),
        ports: port_records(&slice.ports),
    }
}

/// Converts ports, without the placeholder of a Service or slice that has none.
fn port_records(ports: &[Port]) -> Vec<PortRecord> {
    let given = ports.iter().filter(|port| port.number.is_some() || !port.name.is_empty() || !port.protocol.is_empty());
    given
        .map(|port| PortRecord {
            name: port.name.to_string(),
            protocol: port.protocol.to_string(),
            number: port.number,
        })
        .collect()
}

/// Calls `each` with every object in a snapshot and the kind of watch that covers it.
///
/// # Errors
/// Fails at the first byte sequence that [`write()`] cannot have written. Objects before it have been passed to `each`.
pub fn read(mut bytes: &[u8], mut each: impl FnMut(Kind, Object<'_>)) -> Result<(), SnapshotError> {
    let mut number = 0_u64;
    while !bytes.is_empty() {
        let (record, rest) = postcard::take_from_bytes::<Record>(bytes).map_err(|_| SnapshotError)?;
        bytes = rest;
        number += 1;
        hand_out(&record, number, &mut each);
    }
    Ok(())
}

fn hand_out(record: &Record, number: u64, each: &mut impl FnMut(Kind, Object<'_>)) {
    let Record { common, namespace, name, content } = record;
    // Unlike this one, the name of a real object contains no space.
    let nameless = format!(" {number}");
    let meta = |name| Meta { namespace, name, version: "" };
    match content {
        RecordContent::Namespace => each(Kind::Namespace, Object::Namespace(meta(name))),
        RecordContent::Service(service) if *common => each(Kind::ServiceImport, import_object(meta(name), service)),
        RecordContent::Service(service) => each(Kind::Service, service_object(meta(name), service)),
        RecordContent::Slice(slice) => {
            let kind = if *common { Kind::ImportedSlice } else { Kind::EndpointSlice };
            each(kind, slice_object(meta(&nameless), name, slice));
        }
        RecordContent::Pod => {
            // Without a name, it has no entry among the named pods.
            let meta = meta(&nameless);
            each(Kind::Pod, Object::Pod(object::Pod { meta, addresses: vec![name], ..object::Pod::default() }));
        }
    }
}

fn service_object<'a>(meta: Meta<'a>, service: &'a ServiceRecord) -> Object<'a> {
    Object::Service(object::Service {
        meta,
        service_type: if service.external_name.is_empty() { "ClusterIP" } else { "ExternalName" },
        cluster_ips: service.ips.iter().map(String::as_str).collect(),
        external_name: &service.external_name,
        ports: ports(&service.ports),
        external: service.external.iter().map(String::as_str).collect(),
    })
}

fn import_object<'a>(meta: Meta<'a>, service: &'a ServiceRecord) -> Object<'a> {
    let is_headless = service.ips.first().is_some_and(|ip| ip == HEADLESS);
    Object::ServiceImport(object::ServiceImport {
        meta,
        import_type: if is_headless { "Headless" } else { "ClusterSetIP" },
        ips: if is_headless { Vec::new() } else { service.ips.iter().map(String::as_str).collect() },
        ports: ports(&service.ports),
    })
}

fn slice_object<'a>(meta: Meta<'a>, service: &'a str, slice: &'a SliceRecord) -> Object<'a> {
    let endpoint = |endpoint: &'a EndpointRecord| object::Endpoint {
        address: &endpoint.address,
        ready: Some(true),
        hostname: &endpoint.label,
        target: "",
        is_pod: false,
        zone: &endpoint.zone,
    };
    Object::EndpointSlice(object::EndpointSlice {
        meta,
        service,
        source_cluster: &slice.cluster,
        address_type: match slice.family {
            Family::V4 => AddressType::Ipv4,
            Family::V6 => AddressType::Ipv6,
            Family::Names => AddressType::Fqdn,
        },
        endpoints: slice.endpoints.iter().map(endpoint).collect(),
        ports: ports(&slice.ports),
    })
}

fn ports(ports: &[PortRecord]) -> Vec<object::Port<'_>> {
    let each = ports.iter();
    each.map(|port| object::Port { name: &port.name, protocol: &port.protocol, number: port.number }).collect()
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
