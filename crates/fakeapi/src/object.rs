//! Objects from few words.

use serde_json::{Value, json};

/// An object of a kind with what `rest` says of it; `metadata` there is added to name and namespace.
///
/// # Panics
/// If `rest` is not an object.
#[must_use]
pub fn object(kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let api_version = match kind {
        "EndpointSlice" => "discovery.k8s.io/v1",
        "ServiceImport" => "multicluster.x-k8s.io/v1alpha1",
        _ => "v1",
    };
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let Value::Object(rest) = rest else { panic!("{rest} is not an object") };
    for (key, value) in rest {
        match (key.as_str(), value) {
            ("metadata", Value::Object(more)) => object["metadata"].as_object_mut().unwrap().extend(more),
            (_, value) => object[key] = value,
        }
    }
    object
}
