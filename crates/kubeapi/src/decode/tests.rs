//! Response bodies, valid and invalid, in both encodings.

use cluster::object::{Endpoint, Port};
use fakeapi::protobuf;
use serde_json::{Value, json};

use super::*;

const BOTH: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

/// Describes a event in a few words.
fn describe(event: &WatchEvent<'_>) -> String {
    match event {
        WatchEvent::Applied { object, trigger, .. } => {
            format!("{} {trigger}", describe_object(object)).trim_end().to_owned()
        }
        WatchEvent::Deleted { namespace, name, version } => format!("deleted {namespace}/{name}@{version}"),
        WatchEvent::Bookmark { version, ends_list } => format!("bookmark {version} {ends_list}"),
        WatchEvent::Refused { code, message } => format!("refused {code} {message}"),
        WatchEvent::Unreadable { unreadable, .. } => describe_unreadable(unreadable),
    }
}

fn describe_item(item: &ListItem<'_>) -> String {
    match item {
        ListItem::Object(object) => describe_object(object),
        ListItem::Unreadable(unreadable) => describe_unreadable(unreadable),
        ListItem::Metadata { version, token, left } => {
            let left = left.map_or_else(String::new, |left| format!("{left} left"));
            format!("list {version} {token} {left}").trim_end().to_owned()
        }
    }
}

fn describe_unreadable(Unreadable { namespace, name, version, reason, .. }: &Unreadable<'_>) -> String {
    format!("{} {namespace}/{name}@{version}", reason.label())
}

fn describe_object(object: &Object<'_>) -> String {
    let meta = object.meta();
    let ports = |ports: &[Port<'_>]| {
        let port = |port: &Port<'_>| format!("{}:{:?}/{}", port.name, port.number.unwrap_or_default(), port.protocol);
        ports.iter().map(port).collect::<Vec<_>>().join(",")
    };
    let endpoint = |endpoint: &Endpoint<'_>| {
        let ready = endpoint.ready.map_or("?", |ready| if ready { "" } else { "!" });
        let kind = if endpoint.is_pod { "pod:" } else { "" };
        format!("{ready}{}#{}~{kind}{}", endpoint.address, endpoint.hostname, endpoint.target)
    };
    let rest = match object {
        Object::Namespace(_) => String::new(),
        Object::Service(service) => {
            let ips = service.cluster_ips.join(",");
            format!("{} {ips} {} {}", service.service_type, service.external_name, ports(&service.ports))
        }
        Object::EndpointSlice(slice) => {
            let endpoints: Vec<String> = slice.endpoints.iter().map(endpoint).collect();
            format!("of {} {:?} {} {}", slice.service, slice.address_type, endpoints.join(","), ports(&slice.ports))
        }
        Object::Pod(pod) => {
            let labels: Vec<String> = pod.labels.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{} {} {} {}", pod.addresses.join("+"), pod.terminating, pod.host_network, labels.join(","))
        }
        Object::Node(node) => format!("{} {}", node.zone, node.region),
        Object::ServiceImport(import) => {
            format!("{} {} {}", import.import_type, import.ips.join(","), ports(&import.ports))
        }
        // Objects of a mesh are tested next to their decoder.
        Object::ServiceEntry(_) | Object::WorkloadEntry(_) | Object::WorkloadPod(_) => String::new(),
    };
    format!("{:?} {}/{}@{} {rest}", object.kind(), meta.namespace, meta.name, meta.version).trim_end().to_owned()
}

/// Decodes a watch of a kind from a body in chunks of `size` bytes.
fn events(encoding: Encoding, kind: Kind, body: &[u8], size: usize) -> Vec<String> {
    let (mut decoder, mut found) = (EventDecoder::new(encoding, kind), Vec::new());
    for bytes in body.chunks(size) {
        if decoder.feed(bytes, &mut |event| found.push(describe(&event))).is_err() {
            found.push("lost".to_owned());
            break;
        }
    }
    if decoder.is_within_an_event() {
        found.push("cut".to_owned());
    }
    found
}

/// Decodes a list of a kind from a body in chunks of `size` bytes.
fn items(encoding: Encoding, kind: Kind, body: &[u8], size: usize) -> Vec<String> {
    let (mut decoder, mut found) = (ListDecoder::new(encoding, kind), Vec::new());
    for bytes in body.chunks(size) {
        if decoder.feed(bytes, &mut |item| found.push(describe_item(&item))).is_err() {
            found.push("lost".to_owned());
            break;
        }
    }
    if !decoder.is_complete() {
        found.push("cut".to_owned());
    }
    found
}

/// Decodes an event, which is given in JSON, from this encoding.
fn event(encoding: Encoding, kind: Kind, line: &str) -> String {
    let body = match (encoding, serde_json::from_str::<Value>(line)) {
        (Encoding::Json, _) => format!("{line}\n").into_bytes(),
        (Encoding::Protobuf, Ok(event)) => {
            protobuf::event(name_of(kind), event["type"].as_str().unwrap_or_default(), &event["object"])
        }
        (Encoding::Protobuf, Err(_)) => protobuf::frame(line.as_bytes()),
    };
    events(encoding, kind, &body, 1000).join("; ")
}

fn list_of(encoding: Encoding, kind: Kind, metadata: &Value, objects: &[&Value]) -> Vec<u8> {
    match encoding {
        Encoding::Json => json!({ "metadata": metadata, "items": objects }).to_string().into_bytes(),
        Encoding::Protobuf => protobuf::list(name_of(kind), "v1", metadata, objects),
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Namespace => "Namespace",
        Kind::Service => "Service",
        Kind::EndpointSlice | Kind::ImportedSlice => "EndpointSlice",
        Kind::Pod => "Pod",
        Kind::ServiceImport => "ServiceImport",
        Kind::ServiceEntry => "ServiceEntry",
        Kind::WorkloadEntry => "WorkloadEntry",
        Kind::WorkloadPod => "Pod",
        Kind::Node => "Node",
    }
}

#[test]
fn reads_the_fields_that_answers_need() {
    for (kind, object, expected) in [
        (
            Kind::Namespace,
            json!({
                "metadata": { "name": "a", "resourceVersion": "7", "labels": { "x": "y" } },
                "spec": { "finalizers": [] },
            }),
            "Namespace /a@7",
        ),
        (
            Kind::Service,
            json!({
                "kind": "Service",
                "metadata": {
                    "namespace": "a", "name": "web", "resourceVersion": "8", "managedFields": [{ "x": [1, {}] }],
                },
                "spec": {
                    "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"],
                    "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": "web" }, { "port": 53 }],
                    "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 10800 } },
                },
                "status": { "loadBalancer": {} },
            }),
            "Service a/web@8 ClusterIP 10.96.0.1,fd00::1  http:80/TCP,:53/",
        ),
        (
            Kind::Service,
            json!({ "metadata": { "namespace": "a", "name": "old" }, "spec": { "clusterIP": "None", "ports": null } }),
            "Service a/old@  None",
        ),
        (
            Kind::Service,
            json!({
                "metadata": { "namespace": "a", "name": "ext" },
                "spec": { "type": "ExternalName", "externalName": "www.example.com" },
            }),
            "Service a/ext@ ExternalName  www.example.com",
        ),
        (
            Kind::EndpointSlice,
            json!({
                "metadata": {
                    "namespace": "a", "name": "web-1", "resourceVersion": "9",
                    "labels": { "kubernetes.io/service-name": "web", "app": "x" },
                    "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05Z" },
                },
                "addressType": "IPv4",
                "endpoints": [
                    {
                        "addresses": ["10.1.0.5", "10.1.0.6"], "conditions": { "ready": true, "serving": true },
                        "hostname": "w0", "nodeName": "n", "targetRef": { "kind": "Pod", "name": "p" },
                    },
                    { "addresses": ["10.1.0.7"], "conditions": { "ready": false }, "targetRef": null },
                    { "addresses": ["10.1.0.8"], "conditions": {}, "targetRef": { "kind": "Node", "name": "n" } },
                    { "addresses": [] },
                    { "addresses": ["10.1.0.9"], "conditions": null, "hostname": null },
                ],
                "ports": [{ "name": "", "port": null, "protocol": "UDP" }],
            }),
            "EndpointSlice a/web-1@9 of web Ipv4 \
             10.1.0.5#w0~pod:p,10.1.0.6#w0~pod:p,!10.1.0.7#~,?10.1.0.8#~n,?10.1.0.9#~ :0/UDP \
             2026-01-02T03:04:05Z",
        ),
        (
            Kind::EndpointSlice,
            json!({
                "metadata": { "namespace": "a", "name": "e" },
                "addressType": "FQDN", "endpoints": null, "ports": null,
            }),
            "EndpointSlice a/e@ of  Fqdn",
        ),
        (
            Kind::Pod,
            json!({
                "metadata": { "namespace": "a", "name": "p", "deletionTimestamp": "x" },
                "status": { "podIP": "10.1.0.5" },
            }),
            "Pod a/p@ 10.1.0.5 true false",
        ),
        (
            Kind::Pod,
            json!({
                "metadata": { "namespace": "a", "name": "p" },
                "status": { "podIP": "10.1.0.5", "podIPs": [{ "ip": "10.1.0.5" }, { "ip": "fd00::5" }] },
            }),
            "Pod a/p@ 10.1.0.5+fd00::5 false false",
        ),
        (
            Kind::Pod,
            json!({ "metadata": { "namespace": "a", "name": "p" }, "status": { "podIP": "10.1.0.5", "podIPs": [] } }),
            "Pod a/p@ 10.1.0.5 false false",
        ),
        (Kind::Pod, json!({ "metadata": { "namespace": "a", "name": "p" }, "spec": {} }), "Pod a/p@  false false"),
        (
            Kind::Pod,
            json!({ "metadata": { "namespace": "a", "name": "p" }, "spec": { "hostNetwork": true } }),
            "Pod a/p@  false true",
        ),
        (
            Kind::Pod,
            json!({ "metadata": {
                "namespace": "a", "name": "p", "labels": { "app": "web", "example.org/tier": "" },
            } }),
            "Pod a/p@  false false app:web,example.org/tier:",
        ),
        (Kind::Pod, json!({ "metadata": { "namespace": "a", "name": "p", "labels": null } }), "Pod a/p@  false false"),
        (
            Kind::Node,
            json!({ "metadata": { "name": "n", "labels": {
                "topology.kubernetes.io/zone": "eu-1a", "failure-domain.beta.kubernetes.io/zone": "old",
                "failure-domain.beta.kubernetes.io/region": "eu-1",
            } }, "status": { "images": [] } }),
            "Node /n@ eu-1a eu-1",
        ),
        (Kind::Node, json!({ "metadata": { "name": "n" } }), "Node /n@"),
    ] {
        let line = json!({ "type": "ADDED", "object": object }).to_string();
        let metadata = json!({ "resourceVersion": "9" });
        for encoding in BOTH {
            assert_eq!(event(encoding, kind, &line), expected, "{encoding:?}");
            let list = list_of(encoding, kind, &metadata, &[&object]);
            // Only events have the time of their trigger.
            let item = expected.strip_suffix(" 2026-01-02T03:04:05Z").unwrap_or(expected);
            for size in [1, 7, list.len()] {
                let mut found = items(encoding, kind, &list, size);
                found.sort_unstable_by_key(|event| event.starts_with("list"));
                assert_eq!(found, [item, "list 9"], "{encoding:?}");
            }
        }
    }
}

#[test]
fn decodes_valid_and_invalid_watch_events() {
    for (line, expected) in [
        (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#, "Service /a@"),
        (r#"{"object":{"metadata":{"name":"a"}},"type":"ADDED"}"#, "Service /a@"),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"\u0061\u002d\u0062"}}}"#, "Service /a-b@"),
        (
            r#"{"type":"DELETED","object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"5"}}}"#,
            "deleted n/a@5",
        ),
        (r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}"#, "bookmark 6 false"),
        (
            concat!(
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6","#,
                r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#
            ),
            "bookmark 6 true",
        ),
        (
            concat!(
                r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","#,
                r#""message":"old","code":410}}"#
            ),
            "refused 410 old",
        ),
        (r#"{"type":"ERROR","object":{}}"#, "refused 0 "),
        // Errors name the object where possible.
        (
            concat!(
                r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"7"},"#,
                r#""spec":{"ports":[{"port":"x"}]}}}"#
            ),
            "shape n/a@7",
        ),
        (r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"a"},"spec":"x"}}"#, "shape n/a@"),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"ports":[{"port":65536}]}}}"#, "shape /a@"),
        (
            r#"{"type":"DELETED","object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"8"},"spec":"x"}}"#,
            "deleted n/a@8",
        ),
        (r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#, "shape /@"),
        (r#"{"type":"ADDED","object":{"metadata":{"namespace":"n"}}}"#, "unnamed n/@"),
        (r#"{"type":"ADDED","object":{}}"#, "unnamed /@"),
        (r#"{"type":"ADDED","object":7}"#, "shape /@"),
        (r#"{"type":"ADDED"}"#, "shape /@"),
        (r#"{"type":"RENAMED","object":{"metadata":{"name":"a"}}}"#, "event /a@"),
        (r#"{}"#, "shape /@"),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}"#, "syntax /@"),
        ("<html>", "syntax /@"),
        ("", ""),
        ("  \r", ""),
    ] {
        assert_eq!(event(Encoding::Json, Kind::Service, line).trim(), expected.trim(), "{line}");
        let in_protobuf = match line {
            // In protobuf, this is a message with invalid content, or without fields.
            r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"a"},"spec":"x"}}"# => "syntax n/a@",
            r#"{"type":"ADDED","object":7}"# => "unnamed /@",
            // An empty frame is an event without fields.
            "" => "shape /@",
            "  \r" => "syntax /@",
            _ => expected,
        };
        assert_eq!(event(Encoding::Protobuf, Kind::Service, line).trim(), in_protobuf.trim(), "{line}");
    }
    let slice = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"addressType":"IPX"}}"#;
    // The `status` of a Status is a string, that of a Pod an object.
    let status = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"message":"old"}}"#;
    for encoding in BOTH {
        assert_eq!(event(encoding, Kind::EndpointSlice, slice), "shape /a@");
        assert_eq!(event(encoding, Kind::Pod, status), "refused 410 old");
    }
    let not_utf8 = b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\"}}}\n";
    assert_eq!(events(Encoding::Json, Kind::Service, not_utf8, 99), ["syntax /@"]);
}

#[test]
fn decodes_a_watch_for_every_chunk_size() {
    let object = |name: &str| json!({ "type": "ADDED", "object": { "metadata": { "name": name } } });
    let expected = ["Namespace /a@", "Namespace /b@", "Namespace /c@", "cut"];
    let lines = format!("{}\n{}\n\n{}\n{}", object("a"), object("b"), object("c"), object("not complete"));
    let frame = |name: &str| protobuf::event("Namespace", "ADDED", &object(name)["object"]);
    let frames = [frame("a"), frame("b"), frame("c"), frame("not complete")[..20].to_vec()].concat();
    for (encoding, body) in [(Encoding::Json, lines.into_bytes()), (Encoding::Protobuf, frames)] {
        for size in 1..=body.len() {
            assert_eq!(events(encoding, Kind::Namespace, &body, size), expected, "{encoding:?}");
        }
    }
}

/// Returns objects with many fields that answers do not need, like real ones.
fn rich_objects() -> Vec<(Kind, Value)> {
    let metadata = |namespace: &str, name: &str| {
        json!({
            "namespace": namespace, "name": name, "generateName": format!("{name}-"), "resourceVersion": "123456789",
            "uid": "0b8a1c8e-2ab5-4e6c-8b4c-3e0a1f2d9c77", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {
                "app": "web", "kubernetes.io/service-name": "web", "tier": "",
                "multicluster.kubernetes.io/service-name": "shared",
                "multicluster.kubernetes.io/source-cluster": "east",
            },
            "annotations": {
                "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05Z", "note": "größer",
            },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u", "controller": true,
            }],
            "finalizers": ["a.example/b"],
            "managedFields": [{
                "manager": "kubectl", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:app": {} } } },
            }],
        })
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata("shop", "web"),
        "spec": {
            "type": "LoadBalancer", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"],
            "externalIPs": ["192.0.2.1", "192.0.2.2"], "sessionAffinity": "None", "selector": { "app": "web" },
            "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack", "internalTrafficPolicy": "Cluster",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_000, "publishNotReadyAddresses": true,
            "ports": [
                { "name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "nodePort": 31_000 },
                { "name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353, "appProtocol": "dns" },
            ],
        },
        "status": { "loadBalancer": { "ingress": [
            { "ip": "192.0.2.3", "hostname": "not.asked", "ipMode": "VIP" }, { "hostname": "lb.example.com" }, {},
        ] } },
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata("shop", "web-abcde"),
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.1.0.5", "10.1.0.6"], "hostname": "web-0", "nodeName": "node-1", "zone": "west-1a",
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "targetRef": { "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u" },
                "hints": { "forZones": [{ "name": "west-1a" }] },
            },
            { "addresses": ["10.1.0.7"], "conditions": { "ready": false, "serving": true, "terminating": true } },
            { "addresses": ["10.1.0.8"], "conditions": {} },
            { "addresses": [] },
        ],
        "ports": [
            { "name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http" },
            { "name": "", "protocol": "UDP" },
        ],
    });
    let mut ending = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata("shop", "web-0"),
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "c", "image": "registry.example/web:1", "env": [{ "name": "A", "value": "1" }] }],
        },
        "status": {
            "phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.5",
            "podIPs": [{ "ip": "10.1.0.5" }, { "ip": "fd00::5" }],
        },
    });
    let pod = ending.clone();
    ending["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
    let mut fqdn = slice.clone();
    fqdn["addressType"] = "FQDN".into();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": metadata("", "shop"),
        "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
    });
    vec![
        (Kind::Namespace, namespace),
        (Kind::Service, service),
        (Kind::EndpointSlice, slice.clone()),
        (Kind::EndpointSlice, fqdn),
        (Kind::ImportedSlice, slice),
        (Kind::Pod, pod),
        (Kind::Pod, ending),
    ]
}

#[test]
fn both_encodings_yield_the_same_objects() {
    let events = |encoding, kind, what: &str, object: &Value| {
        let body = match encoding {
            Encoding::Json => format!("{}\n", json!({ "type": what, "object": object })).into_bytes(),
            Encoding::Protobuf => protobuf::event(name_of(kind), what, object),
        };
        let (mut decoder, mut found) = (EventDecoder::new(encoding, kind), Vec::new());
        decoder.feed(&body, &mut |event| found.push(format!("{event:?}"))).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        found.concat()
    };
    for (kind, object) in rich_objects() {
        for what in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "DANCED"] {
            let in_json = events(Encoding::Json, kind, what, &object);
            assert_eq!(events(Encoding::Protobuf, kind, what, &object), in_json);
            let begin = if matches!(what, "ADDED" | "MODIFIED") { "Applied" } else { "" };
            assert!(in_json.starts_with(begin), "{in_json}");
        }
    }
}

#[test]
fn tells_new_objects_from_changed_ones() {
    for encoding in BOTH {
        for (what, spec, expected) in [
            ("ADDED", json!({}), Some(true)),
            ("MODIFIED", json!({}), Some(false)),
            ("ADDED", json!({ "ports": [{ "port": 65536 }] }), Some(true)),
            ("MODIFIED", json!({ "ports": [{ "port": 65536 }] }), Some(false)),
            ("DELETED", json!({}), None),
        ] {
            let object = json!({ "metadata": { "name": "a" }, "spec": spec });
            let body = match encoding {
                Encoding::Json => format!("{}\n", json!({ "type": what, "object": object })).into_bytes(),
                Encoding::Protobuf => protobuf::event("Service", what, &object),
            };
            let mut found = Vec::new();
            let mut decoder = EventDecoder::new(encoding, Kind::Service);
            decoder
                .feed(&body, &mut |event| {
                    found.push(match event {
                        WatchEvent::Applied { is_new, .. } | WatchEvent::Unreadable { is_new, .. } => Some(is_new),
                        _ => None,
                    });
                })
                .unwrap();
            assert_eq!(found, [expected], "{what} {object}");
        }
    }
}

#[test]
fn lists_yield_version_and_continue_token() {
    for (list, expected) in [
        (
            r#"{"metadata":{"resourceVersion":"9","continue":"x","remainingItemCount":7},"items":[]}"#,
            &["list 9 x 7 left"][..],
        ),
        (r#"{"metadata":{"resourceVersion":"9","continue":"x/y"},"items":null}"#, &["list 9 x/y"]),
        (r#"{"items":[{"metadata":{"name":"a"}},{"metadata":7}],"metadata":{}}"#, &["Service /a@", "shape /@", "list"]),
        (
            r#"{"metadata":{"resourceVersion":9},"items":[{"metadata":{"name":"a"},"spec":7}]}"#,
            &["shape /@", "shape /a@"],
        ),
        (r#"{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata""#, &["list", "Service /a@", "cut"]),
    ] {
        assert_eq!(items(Encoding::Json, Kind::Service, list.as_bytes(), 1000), expected);
        let Ok(list) = serde_json::from_str::<Value>(list) else { continue };
        let objects: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        let list = list_of(Encoding::Protobuf, Kind::Service, &list["metadata"], &objects);
        let mut found = items(Encoding::Protobuf, Kind::Service, &list, 1000);
        // In protobuf, the metadata come first.
        found.sort_unstable_by_key(|event| expected.iter().position(|expected| expected == event));
        assert_eq!(found, expected);
    }
}

#[test]
fn skips_an_object_that_is_too_long() {
    let (long, short) =
        (json!({ "metadata": { "name": "x".repeat(OBJECT_MAX) } }), json!({ "metadata": { "name": "a" } }));
    for encoding in BOTH {
        let body = match encoding {
            Encoding::Json => {
                [&long, &short].map(|object| format!("{}\n", json!({ "type": "ADDED", "object": object })).into_bytes())
            }
            Encoding::Protobuf => [&long, &short].map(|object| protobuf::event("Namespace", "ADDED", object)),
        };
        assert_eq!(events(encoding, Kind::Namespace, &body.concat(), 1 << 16), ["too_long /@", "Namespace /a@"]);
        let mut list = items(
            encoding,
            Kind::Namespace,
            &list_of(encoding, Kind::Namespace, &json!({}), &[&long, &short]),
            1 << 16,
        );
        list.sort_unstable_by_key(|event| event == "list");
        assert_eq!(list, ["too_long /@", "Namespace /a@", "list"]);
    }
}

/// Decoding a body with one random byte must not panic.
#[test]
fn does_not_panic_on_corrupted_bytes() {
    let mut random = 7_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    for (kind, object) in rich_objects() {
        for encoding in BOTH {
            let event = match encoding {
                Encoding::Json => format!("{}\n", json!({ "type": "ADDED", "object": object })).into_bytes(),
                Encoding::Protobuf => protobuf::event(name_of(kind), "ADDED", &object),
            };
            let list = list_of(encoding, kind, &json!({}), &[&object, &object]);
            for _ in 0..300 {
                let [mut event, mut list] = [event.clone(), list.clone()];
                for bytes in [&mut event, &mut list] {
                    let at = usize::try_from(next()).unwrap() % bytes.len();
                    bytes[at] = next().to_le_bytes()[0];
                }
                events(encoding, kind, &event, 37);
                items(encoding, kind, &list, 37);
            }
        }
    }
}

#[test]
fn content_type_selects_the_encoding() {
    assert_eq!(Encoding::of("application/json"), Some(Encoding::Json));
    assert_eq!(Encoding::of("Application/JSON; charset=utf-8"), Some(Encoding::Json));
    assert_eq!(Encoding::of("application/vnd.kubernetes.protobuf"), Some(Encoding::Protobuf));
    assert_eq!(Encoding::of("application/vnd.kubernetes.protobuf;stream=watch"), Some(Encoding::Protobuf));
    for other in ["", "text/html", "application/protobuf", "application/jsonp"] {
        assert_eq!(Encoding::of(other), None, "{other}");
    }
}
