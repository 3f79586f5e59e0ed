//! Kubernetes manifests as text → objects: YAML with several documents, JSON, and lists in both; likely mistakes too.
//!
//! The crate opens no file. It is apart from `kubeapi` because parsers of many types take long to compile.

#![allow(missing_docs, reason = "fields have the names and the meaning of the Kubernetes API")]

mod fields;
mod kinds;
mod mesh;
mod mistakes;
mod model;
mod parse;
mod port;

pub use mesh::MeshManifest;
pub use model::{
    AddressType, Container, ContainerPort, DnsConfig, DnsOption, EndpointPort, EndpointSlice, Endpoints, Head,
    ImportSpec, Ingress, LoadBalancer, Metadata, Namespace, Pod, PodCondition, PodIp, PodSpec, PodStatus, Protocol,
    SERVICE_NAME, Service, ServiceImport, ServicePort, ServiceSpec, ServiceStatus, SliceConditions, SliceEndpoint,
    Subset, SubsetAddress, TargetRef, Text,
};
pub use parse::{Findings, Manifest, ManifestError, Parsed, json, yaml};
pub use port::TargetPort;
