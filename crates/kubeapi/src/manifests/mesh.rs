//! Istio objects in manifests. They are kept as JSON and decoded like a response of the API server. An invalid object
//! is thus skipped alone and does not invalidate its file.

use cluster::Kind;
use cluster::mesh::object;
use cluster::object::{Event, Object};
use serde::Deserialize;
use serde_json::Value;

use super::model::{Metadata, Pod};
use crate::decode;
use crate::watch::Sink;

/// Object of a mesh.
#[derive(Clone, Debug)]
pub(crate) struct MeshManifest {
    pub(crate) kind: Kind,
    pub(crate) metadata: Metadata,
    json: String,
}

impl MeshManifest {
    /// Takes an object as the file has it, and fills in the namespace.
    ///
    /// # Errors
    /// Invalid metadata.
    pub(crate) fn new(kind: Kind, mut object: Value) -> Result<MeshManifest, serde_json::Error> {
        let mut metadata = Metadata::deserialize(object.get("metadata").unwrap_or(&Value::Null))?;
        if metadata.namespace.is_empty() {
            "default".clone_into(&mut metadata.namespace);
        }
        if let Some(fields) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            fields.insert("namespace".to_owned(), metadata.namespace.as_str().into());
            // Authors of manifests do not maintain the version, so an unchanged one must not hide a change.
            fields.remove("resourceVersion");
        }
        Ok(MeshManifest { kind, metadata, json: object.to_string() })
    }

    /// Decodes the object and applies it to a sink.
    pub(crate) fn apply_to(&self, sink: &Sink) {
        decode::item(self.kind, self.json.as_bytes(), &mut |decoded| match decoded {
            Ok((object, _)) => drop(sink.apply(&Event::Applied(object))),
            Err(unreadable) => sink.unreadable(&unreadable),
        });
    }
}

/// Applies a Pod as a workload of a mesh to a sink. Manifests cannot say that the mesh captures its traffic.
pub(crate) fn apply_pod(sink: &Sink, pod: &Pod) {
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
