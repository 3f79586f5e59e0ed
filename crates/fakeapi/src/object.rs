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
        "ServiceEntry" | "WorkloadEntry" => "networking.istio.io/v1",
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

/// A Namespace.
#[must_use]
pub fn namespace(name: &str) -> Value {
    object("Namespace", "", name, json!({}))
}

/// A Service with a cluster IP and the port `http`, 80.
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

/// The EndpointSlice of a Service, of ready IPv4 endpoints on port 8080.
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

/// A ServiceEntry of one host with one address, found by DNS.
#[must_use]
pub fn service_entry(namespace: &str, name: &str, host: &str, address: &str) -> Value {
    let spec = json!({ "hosts": [host], "addresses": [address], "resolution": "DNS" });
    object("ServiceEntry", namespace, name, json!({ "spec": spec }))
}
