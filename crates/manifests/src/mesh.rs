//! Istio objects in manifests. They are kept as JSON and decoded like a response of the API server. An invalid object
//! is thus skipped alone and does not invalidate its file.

use cluster::Kind;
use serde::Deserialize;
use serde_json::Value;

use crate::model::Metadata;

/// Object of a mesh.
#[derive(Clone, Debug)]
pub struct MeshManifest {
    pub kind: Kind,
    pub metadata: Metadata,
    /// The object as JSON, with its namespace and without a version.
    pub json: String,
}

impl MeshManifest {
    /// Takes an object as the file has it, and fills in the namespace.
    ///
    /// # Errors
    /// Invalid metadata.
    pub fn new(kind: Kind, mut object: Value) -> Result<MeshManifest, serde_json::Error> {
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
}
