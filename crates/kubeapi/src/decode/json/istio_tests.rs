//! Objects of a mesh, valid and invalid.

use cluster::object::Meta;
use serde_json::json;

use super::*;

/// Decodes an object and formats it for comparison, or returns the error of the decoder.
fn said<'a, O: Read + Deserialize<'a>>(json: &'a str) -> Result<String, String> {
    let read: O = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let object = read.object()?;
    Ok(format!("{object:?}"))
}

/// Checks the result of decoding an object of this kind.
macro_rules! check {
    ($kind:ident, $json:expr, $expected:expr) => {
        let text = $json.to_string();
        let found = said::<$kind<'_>>(&text).unwrap();
        assert_eq!(found, format!("{:?}", Object::$kind($expected)), "{text}");
    };
}

const META: Meta<'static> = Meta { namespace: "shop", name: "pay", version: "7" };

#[test]
fn reads_service_entries() {
    check!(
        ServiceEntry,
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
            "metadata": {
                "namespace": "shop", "name": "pay", "resourceVersion": "7", "uid": "x", "generation": 3,
                "creationTimestamp": "2024-05-06T07:08:09Z", "labels": { "a": "b" }, "managedFields": [{}],
            },
            "spec": {
                "hosts": ["pay.global", "*.pay.global"], "addresses": ["10.0.0.1", "10.1.0.0/16"],
                "ports": [{ "number": 80, "name": "http", "protocol": "HTTP" }], "location": "MESH_INTERNAL",
                "resolution": "STATIC", "exportTo": [".", "b"],
                "endpoints": [
                    { "address": "10.2.0.1", "ports": { "http": 8080 }, "labels": { "x": "y" }, "weight": 2 },
                    { "network": "east" },
                ],
                "workloadSelector": { "labels": { "app": "pay", "tier": "1" } },
            },
            "status": { "addresses": [{ "value": "240.240.0.1", "host": "pay.global" }, { "value": "2001:2::1" }] },
        }),
        object::ServiceEntry {
            meta: META,
            created: "2024-05-06T07:08:09Z",
            hosts: vec!["pay.global", "*.pay.global"],
            addresses: vec!["10.0.0.1", "10.1.0.0/16"],
            allocated: vec![
                Allocated { address: "240.240.0.1", host: "pay.global" },
                Allocated { address: "2001:2::1", host: "" },
            ],
            resolution: "STATIC",
            endpoints: vec!["10.2.0.1", ""],
            selector: Some(vec![("app", "pay"), ("tier", "1")]),
            export_to: vec![".", "b"],
        }
    );
    let metadata = json!({ "namespace": "shop", "name": "pay", "resourceVersion": "7" });
    let bare = || object::ServiceEntry { meta: META, ..object::ServiceEntry::default() };
    check!(ServiceEntry, json!({ "metadata": metadata }), bare());
    check!(
        ServiceEntry,
        json!({
            "metadata": metadata,
            "spec": { "hosts": null, "endpoints": null, "workloadSelector": null, "exportTo": null, "resolution": null },
            "status": null,
        }),
        bare()
    );
    check!(
        ServiceEntry,
        json!({ "metadata": metadata, "spec": { "workloadSelector": {} } }),
        object::ServiceEntry { selector: Some(Vec::new()), ..bare() }
    );
    let mut not_allocated = metadata.clone();
    not_allocated["labels"] = json!({ "networking.istio.io/enable-autoallocate-ip": "false" });
    let status = json!({ "addresses": [{ "value": "240.240.0.1" }] });
    check!(ServiceEntry, json!({ "metadata": not_allocated, "status": status }), bare());
}

#[test]
fn reads_workload_entries_and_pods() {
    check!(
        WorkloadEntry,
        json!({
            "metadata": { "namespace": "shop", "name": "pay", "resourceVersion": "7", "labels": { "app": "meta" } },
            "spec": { "address": "10.9.0.1", "labels": { "app": "spec", "tier": "1" }, "serviceAccount": "x" },
            "status": { "conditions": [{ "type": "Healthy", "status": "False" }] },
        }),
        object::WorkloadEntry {
            meta: META,
            address: "10.9.0.1",
            labels: vec![("app", "spec"), ("tier", "1"), ("app", "meta")],
            unhealthy: true,
        }
    );
    let pod = |annotations, conditions, deleted: Option<&str>| {
        json!({
            "metadata": {
                "namespace": "shop", "name": "pay", "resourceVersion": "7", "labels": { "app": "pay" },
                "annotations": annotations, "deletionTimestamp": deleted,
            },
            "spec": { "hostNetwork": null, "containers": [] },
            "status": { "podIP": "10.1.0.1", "podIPs": [{ "ip": "10.1.0.1" }, { "ip": "fd00::1" }], "conditions": conditions },
        })
    };
    let expected = || object::WorkloadPod {
        meta: META,
        addresses: vec!["10.1.0.1", "fd00::1"],
        labels: vec![("app", "pay")],
        ..object::WorkloadPod::default()
    };
    let ready = json!([{ "type": "Initialized", "status": "False" }, { "type": "Ready", "status": "True" }]);
    let sidecar = json!({ "sidecar.istio.io/status": "{}", "other": "x" });
    let ambient = json!({ "ambient.istio.io/redirection": "enabled" });
    check!(WorkloadPod, pod(json!(null), json!(null), None), expected());
    check!(
        WorkloadPod,
        pod(sidecar, ready.clone(), None),
        object::WorkloadPod { ready: true, captured: true, ..expected() }
    );
    check!(
        WorkloadPod,
        pod(ambient, ready, Some("2024-01-01T00:00:00Z")),
        object::WorkloadPod { captured: true, ..expected() }
    );
    check!(
        WorkloadPod,
        json!({ "metadata": { "name": "p" }, "spec": { "hostNetwork": true }, "status": { "podIP": "10.0.0.1" } }),
        object::WorkloadPod {
            meta: Meta { name: "p", ..Meta::default() },
            addresses: vec!["10.0.0.1"],
            on_host_network: true,
            ..object::WorkloadPod::default()
        }
    );
}

#[test]
fn refuses_fields_of_another_type() {
    for (text, message) in [
        (r#"{"metadata":{},"spec":7}"#, "invalid type: integer `7`"),
        (r#"{"metadata":{},"spec":{"hosts":"a"}}"#, "a list of strings"),
        (r#"{"metadata":{},"spec":{"hosts":[1]}}"#, "a string"),
        (r#"{"metadata":{},"spec":{"workloadSelector":{"labels":["a"]}}}"#, "a map of strings"),
        (r#"{"metadata":{"labels":{"a":1}}}"#, "a string"),
        (r#"{"metadata":{},"status":{"addresses":{}}}"#, "a sequence"),
    ] {
        let found = said::<ServiceEntry<'_>>(text).unwrap_err();
        assert!(found.contains(message), "{text}: {found}");
    }
}
