//! Bodies as the API server sends them, and as it never would.

use cluster::object::{Endpoint, Port};
use serde_json::json;

use super::*;

/// A piece in few words.
fn describe(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Applied { object, trigger } => format!("{} {trigger}", describe_object(object)).trim_end().to_owned(),
        Piece::Deleted { namespace, name, version } => format!("deleted {namespace}/{name}@{version}"),
        Piece::Bookmark { version, ends_list } => format!("bookmark {version} {ends_list}"),
        Piece::Refused { code, message } => format!("refused {code} {message}"),
        Piece::Unreadable { namespace, name, version, reason, .. } => {
            format!("{} {namespace}/{name}@{version}", reason.label())
        }
        Piece::List { version, token } => format!("list {version} {token}").trim_end().to_owned(),
    }
}

fn describe_object(object: &Object<'_>) -> String {
    let meta = object.meta();
    let ports = |ports: &[Port<'_>]| {
        let port = |port: &Port<'_>| format!("{}:{:?}/{}", port.name, port.number.unwrap_or_default(), port.protocol);
        ports.iter().map(port).collect::<Vec<_>>().join(",")
    };
    let endpoint = |endpoint: &Endpoint<'_>| {
        let ready = endpoint.ready.map_or("?", |ready| if ready { "" } else { "!" });
        format!("{ready}{}#{}~{}", endpoint.address, endpoint.hostname, endpoint.target)
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
        Object::Pod(pod) => format!("{} {}", pod.address, pod.terminating),
        Object::Node(node) => format!("{} {}", node.zone, node.region),
        Object::ServiceImport(import) => {
            format!("{} {} {}", import.import_type, import.ips.join(","), ports(&import.ports))
        }
        // Those of a mesh are looked at beside their decoder.
        Object::ServiceEntry(_) | Object::WorkloadEntry(_) | Object::WorkloadPod(_) => String::new(),
    };
    format!("{:?} {}/{}@{} {rest}", object.kind(), meta.namespace, meta.name, meta.version).trim_end().to_owned()
}

/// What a watch of a kind makes of a body that comes in pieces of so many octets.
fn events(kind: Kind, body: &[u8], size: usize) -> Vec<String> {
    let (mut decoder, mut found) = (EventDecoder::new(Encoding::Json, kind), Vec::new());
    for octets in body.chunks(size) {
        decoder.feed(octets, &mut |piece| found.push(describe(&piece)));
    }
    found
}

fn event(kind: Kind, line: &str) -> String {
    events(kind, format!("{line}\n").as_bytes(), 1000).join("; ")
}

#[test]
fn objects_are_read_with_what_an_answer_needs() {
    for (kind, object, expected) in [
        (
            Kind::Namespace,
            json!({ "metadata": { "name": "a", "resourceVersion": "7", "labels": { "x": "y" } }, "spec": { "finalizers": [] } }),
            "Namespace /a@7",
        ),
        (
            Kind::Service,
            json!({
                "kind": "Service",
                "metadata": { "namespace": "a", "name": "web", "resourceVersion": "8", "managedFields": [{ "x": [1, {}] }] },
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
                    { "addresses": ["10.1.0.8"], "conditions": {} },
                    { "addresses": [] },
                    { "addresses": ["10.1.0.9"], "conditions": null, "hostname": null },
                ],
                "ports": [{ "name": "", "port": null, "protocol": "UDP" }],
            }),
            "EndpointSlice a/web-1@9 of web Ipv4 10.1.0.5#w0~p,10.1.0.6#w0~p,!10.1.0.7#~,?10.1.0.8#~,?10.1.0.9#~ :0/UDP \
             2026-01-02T03:04:05Z",
        ),
        (
            Kind::EndpointSlice,
            json!({ "metadata": { "namespace": "a", "name": "e" }, "addressType": "FQDN", "endpoints": null, "ports": null }),
            "EndpointSlice a/e@ of  Fqdn",
        ),
        (
            Kind::Pod,
            json!({ "metadata": { "namespace": "a", "name": "p", "deletionTimestamp": "x" }, "status": { "podIP": "10.1.0.5" } }),
            "Pod a/p@ 10.1.0.5 true",
        ),
        (Kind::Pod, json!({ "metadata": { "namespace": "a", "name": "p" }, "spec": {} }), "Pod a/p@  false"),
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
        assert_eq!(event(kind, &line), expected);
        let list = json!({ "metadata": { "resourceVersion": "9" }, "items": [object] }).to_string();
        let (mut decoder, mut found) = (ListDecoder::new(Encoding::Json, kind), Vec::new());
        decoder.feed(list.as_bytes(), &mut |piece| found.push(describe(&piece)));
        assert!(decoder.is_complete());
        assert!(found.contains(&expected.to_owned()) && found.contains(&"list 9".to_owned()), "{found:?}");
    }
}

#[test]
fn every_line_of_a_watch_becomes_a_piece() {
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
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "bookmark 6 true",
        ),
        (
            r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","message":"old","code":410}}"#,
            "refused 410 old",
        ),
        (r#"{"type":"ERROR","object":{}}"#, "refused 0 "),
        // What cannot be read is named as well as can be.
        (
            r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"7"},"spec":{"ports":[{"port":"x"}]}}}"#,
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
        assert_eq!(event(Kind::Service, line).trim(), expected.trim(), "{line}");
    }
    let slice = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"addressType":"IPX"}}"#;
    assert_eq!(event(Kind::EndpointSlice, slice), "shape /a@");
    // A Status has a text where a Pod has an object.
    let status = r#"{"type":"ERROR","object":{"status":"Failure","code":410,"message":"old"}}"#;
    assert_eq!(event(Kind::Pod, status), "refused 410 old");
    assert_eq!(
        events(Kind::Service, b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\"}}}\n", 99),
        ["syntax /@"]
    );
}

#[test]
fn a_watch_is_read_however_it_comes() {
    let line = |name: &str| json!({ "type": "ADDED", "object": { "metadata": { "name": name } } }).to_string();
    let body = format!("{}\n{}\n\n{}\n{}", line("a"), line("b"), line("c"), line("not complete"));
    for size in 1..=body.len() {
        assert_eq!(events(Kind::Namespace, body.as_bytes(), size), ["Namespace /a@", "Namespace /b@", "Namespace /c@"]);
    }
}

#[test]
fn lists_say_where_they_go_on() {
    for (list, expected, complete) in [
        (r#"{"metadata":{"resourceVersion":"9","continue":"x/y"},"items":null}"#, &["list 9 x/y"][..], true),
        (
            r#"{"items":[{"metadata":{"name":"a"}},{"metadata":7}],"metadata":{}}"#,
            &["Service /a@", "shape /@", "list"],
            true,
        ),
        (
            r#"{"metadata":{"resourceVersion":9},"items":[{"metadata":{"name":"a"},"spec":7}]}"#,
            &["shape /@", "shape /a@"],
            true,
        ),
        (r#"{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata""#, &["list", "Service /a@"], false),
    ] {
        let (mut decoder, mut found) = (ListDecoder::new(Encoding::Json, Kind::Service), Vec::new());
        decoder.feed(list.as_bytes(), &mut |piece| found.push(describe(&piece).trim_end().to_owned()));
        assert_eq!(
            (found.iter().map(String::as_str).collect::<Vec<_>>(), decoder.is_complete()),
            (expected.to_vec(), complete)
        );
    }
}

#[test]
fn an_object_that_is_too_long_is_passed_over() {
    let long = json!({ "type": "ADDED", "object": { "metadata": { "name": "x".repeat(OBJECT_MAX) } } });
    let short = json!({ "type": "ADDED", "object": { "metadata": { "name": "a" } } });
    let body = format!("{long}\n{short}\n");
    assert_eq!(events(Kind::Namespace, body.as_bytes(), 1 << 16), ["too_long /@", "Namespace /a@"]);
}

/// Any octets give pieces or none, never a panic.
#[test]
fn octets_at_random_do_no_harm() {
    let line =
        r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"a"},"endpoints":[{"addresses":["1"]}]}}"#;
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let mut octets = format!("{line}\n").into_bytes();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(state >> 33).unwrap() % octets.len();
            octets[at] = state.to_le_bytes()[2];
        }
        for kind in [Kind::Service, Kind::EndpointSlice] {
            events(kind, &octets, 37);
            ListDecoder::new(Encoding::Json, kind).feed(&octets, &mut |_| {});
        }
    }
}

#[test]
fn the_encoding_is_what_the_server_says() {
    assert_eq!(Encoding::of("application/json"), Some(Encoding::Json));
    assert_eq!(Encoding::of("Application/JSON; charset=utf-8"), Some(Encoding::Json));
    for other in ["", "text/html", "application/vnd.kubernetes.protobuf", "application/jsonp"] {
        assert_eq!(Encoding::of(other), None, "{other}");
    }
}
