//! Istio objects in manifests, applied to a sink.

use cluster::mesh::object;
use cluster::object::{Event, Object};
use manifests::{MeshManifest, Pod};

use crate::decode;
use crate::watch::Sink;

/// Decodes an object and applies it to a sink.
pub(super) fn apply(manifest: &MeshManifest, sink: &Sink) {
    decode::item(manifest.kind, manifest.json.as_bytes(), &mut |decoded| match decoded {
        Ok((object, _)) => drop(sink.apply(&Event::Applied(object))),
        Err(unreadable) => sink.unreadable(&unreadable, None),
    });
}

/// Applies a Pod as a workload of a mesh to a sink. Manifests cannot say that the mesh captures its traffic.
pub fn apply_pod(sink: &Sink, pod: &Pod) {
    let status = &pod.status;
    let labels = pod.metadata.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    sink.apply(&Event::Applied(Object::WorkloadPod(object::WorkloadPod {
        meta: pod.metadata.meta(),
        addresses: status.addresses(),
        labels: labels.collect(),
        ready: pod.is_ready() && pod.metadata.deletion_timestamp.is_none(),
        on_host_network: false,
        captured: false,
    })));
}
