//! Builders for objects.

use serde_json::{Value, json};

/// Builds an object of a kind from its other fields. `metadata` in `rest` is merged with name and namespace.
///
/// # Panics
/// Panics if `rest` is not an object.
#[must_use]
pub fn object(kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let api_version = match kind {
        "EndpointSlice" => "discovery.k8s.io/v1",
        "ServiceImport" => "multicluster.x-k8s.io/v1alpha1",
        "ServiceEntry" | "WorkloadEntry" => "networking.istio.io/v1",
        "Deployment" | "DaemonSet" => "apps/v1",
        "PodDisruptionBudget" => "policy/v1",
        "NetworkPolicy" => "networking.k8s.io/v1",
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

/// Builds a Namespace.
#[must_use]
pub fn namespace(name: &str) -> Value {
    object("Namespace", "", name, json!({}))
}

/// Builds a Service with a cluster IP and the port `http` (80/TCP).
#[must_use]
pub fn service(namespace: &str, name: &str, ip: &str) -> Value {
    let ports = json!([{ "name": "http", "port": 80, "protocol": "TCP" }]);
    object(
        "Service",
        namespace,
        name,
        json!({ "spec": { "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": ports } }),
    )
}

/// Builds the EndpointSlice of a Service, with ready IPv4 endpoints on port 8080.
#[must_use]
pub fn slice(namespace: &str, service: &str, addresses: &[&str]) -> Value {
    let endpoints: Vec<Value> = addresses.iter().map(|address| json!({ "addresses": [address] })).collect();
    let ports = json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]);
    object(
        "EndpointSlice",
        namespace,
        &format!("{service}-1"),
        json!({
            "metadata": { "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
        }),
    )
}

/// Builds a ServiceEntry with one host, one address and resolution `DNS`.
#[must_use]
pub fn service_entry(namespace: &str, name: &str, host: &str, address: &str) -> Value {
    let spec = json!({ "hosts": [host], "addresses": [address], "resolution": "DNS" });
    object("ServiceEntry", namespace, name, json!({ "spec": spec }))
}
