//! Tests of the server with a client that knows only HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use super::*;

/// A response that is read line by line.
struct Response {
    reader: BufReader<TcpStream>,
    status: String,
}

impl Response {
    fn to(api: &FakeApi, path: &str) -> Response {
        Response::after(api, "GET", path, "")
    }

    /// Sends a request with a body and returns the response.
    fn after(api: &FakeApi, method: &str, path: &str, body: &str) -> Response {
        let address = api.url().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close");
        write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        Response { reader, status: status.trim_end().to_owned() }
    }

    /// Returns the next line of JSON, skipping headers and chunk sizes. Returns `None` at the end.
    fn json(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with('{') {
                return Some(serde_json::from_str(line.trim_end()).unwrap());
            }
        }
    }
}

fn service(name: &str, labels: &Value) -> Value {
    object("Service", "alpha", name, json!({ "metadata": { "labels": labels }, "spec": {} }))
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn event(line: Option<Value>) -> String {
    let line = line.expect("the response has ended");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&line["type"]), text(&line["object"]["metadata"]["name"])).trim_end().to_owned()
}

const STREAM: &str = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[test]
fn serves_lists_in_pages_until_a_compaction() {
    let api = FakeApi::start();
    api.put_all(["a", "b", "c", "d"].map(|name| service(name, &json!({}))));
    api.put(object("Service", "beta", "z", json!({})));
    let first = Response::to(&api, "/api/v1/namespaces/alpha/services?limit=3&resourceVersion=0").json().unwrap();
    assert_eq!(names(&first), ["a", "b", "c"]);
    let token = first["metadata"]["continue"].as_str().unwrap().replace('|', "%7C").replace('/', "%2F");
    let rest = format!("/api/v1/namespaces/alpha/services?limit=3&continue={token}");
    // A watch from the version of the list sees changes made after its first page.
    api.put(service("a", &json!({ "new": "yes" })));
    let last = Response::to(&api, &rest).json().unwrap();
    assert_eq!(names(&last), ["d"]);
    assert_eq!(last["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    api.compact();
    assert_eq!(Response::to(&api, &rest).status, "HTTP/1.1 410 Gone");
    let all = Response::to(&api, "/api/v1/services").json().unwrap();
    assert_eq!((names(&all), all["metadata"].get("continue")), (vec!["a", "b", "c", "d", "z"], None));
    assert_eq!(Response::to(&api, "/apis/discovery.k8s.io/v1/services").status, "HTTP/1.1 404 Not Found");
}

#[test]
fn lists_the_objects_as_of_a_version() {
    let api = FakeApi::start();
    let version = api.put_all(["a", "b", "c"].map(|name| service(name, &json!({}))));
    let mut watch = Response::to(&api, &format!("/api/v1/services?watch=1&resourceVersion={version}"));
    api.delete_unseen("services", "alpha", "a");
    api.put_unseen(service("d", &json!({})));
    api.put(service("e", &json!({})));
    assert_eq!(event(watch.json()), "ADDED e");
    for (version, first, left) in
        [(version, "a", 2), (version + 1, "b", 1), (version + 2, "b", 2), (version + 3, "b", 3)]
    {
        let path = format!("/api/v1/services?limit=1&resourceVersion={version}&resourceVersionMatch=Exact");
        let list = Response::to(&api, &path).json().unwrap();
        let metadata = (&list["metadata"]["resourceVersion"], &list["metadata"]["remainingItemCount"]);
        assert_eq!((names(&list), metadata), (vec![first], (&version.to_string().into(), &left.into())));
    }
    api.compact();
    let path = format!("/api/v1/services?limit=1&resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(Response::to(&api, &path).status, "HTTP/1.1 410 Gone");
}

#[test]
fn sends_watches_only_selected_objects() {
    let api = FakeApi::start();
    api.put_all([service("web", &json!({ "dns": "yes" })), service("other", &json!({ "dns": "no" }))]);
    let mut watch = Response::to(&api, &format!("/api/v1/services?{STREAM}&labelSelector=dns%3Dyes"));
    assert_eq!(event(watch.json()), "ADDED web");
    let mark = watch.json().unwrap();
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    api.put(service("web", &json!({ "dns": "no" })));
    api.put(service("other", &json!({ "dns": "yes" })));
    api.bookmark();
    api.inject("services", "{\"type\":\"NONSENSE\"}");
    api.delete("services", "alpha", "other");
    let seen: Vec<_> = (0..5).map(|_| event(watch.json())).collect();
    assert_eq!(seen, ["DELETED web", "ADDED other", "BOOKMARK", "NONSENSE", "DELETED other"]);
    api.drop_connections();
    assert_eq!(watch.json(), None);
}

#[test]
fn applies_field_selectors() {
    let api = FakeApi::start();
    for (name, phase) in [("runs", "Running"), ("failed", "Failed")] {
        api.put(object("Pod", "alpha", name, json!({ "status": { "phase": phase } })));
    }
    let list = |query: &str| Response::to(&api, &format!("/api/v1/pods?fieldSelector={query}")).json().unwrap();
    assert_eq!(names(&list("status.phase!%3DFailed")), ["runs"]);
    assert_eq!(names(&list("metadata.name%3Dfailed,metadata.namespace%3Dalpha")), ["failed"]);
}

#[test]
fn continues_a_watch_from_a_version_until_it_is_compacted() {
    let api = FakeApi::start();
    let version = api.put(service("web", &json!({})));
    api.put(service("late", &json!({})));
    let path = format!("/api/v1/services?watch=1&resourceVersion={version}");
    assert_eq!(event(Response::to(&api, &path).json()), "ADDED late");
    api.compact();
    assert_eq!(Response::to(&api, &path).json().unwrap()["object"]["code"], 410);
}

#[test]
fn injects_the_ordered_faults() {
    let api = FakeApi::start();
    api.put(service("web", &json!({})));
    api.script("services", [Some(Fault::Status(429, Some(7)))]);
    assert_eq!(Response::to(&api, "/api/v1/services").status, "HTTP/1.1 429 Too Many Requests");
    assert_eq!(Response::to(&api, "/api/v1/services").status, "HTTP/1.1 200 OK");
    api.fault("services", Fault::NoStreamingLists);
    assert_eq!(Response::to(&api, &format!("/api/v1/services?{STREAM}")).status, "HTTP/1.1 422 Unprocessable Entity");
    api.fault("services", Fault::Cut(20));
    let mut cut = Response::to(&api, "/api/v1/services");
    let mut text = String::new();
    while cut.reader.read_line(&mut text).unwrap_or(0) > 0 {}
    assert!(text.ends_with("14\r\n{\"apiVersion\":\"v1\",\"\r\n"), "{text:?}");
    api.require_token("secret");
    api.heal("services");
    assert_eq!(Response::to(&api, "/api/v1/services").status, "HTTP/1.1 401 Unauthorized");
    api.wait_seen("five requests", |seen| seen.len() == 5);
}

#[test]
fn creates_replaces_and_deletes_objects_over_http() {
    let api = FakeApi::start();
    let write = |method: &str, path: &str, body: &Value| {
        let mut response = Response::after(&api, method, path, &body.to_string());
        let code: u16 = response.status.split(' ').nth(1).unwrap().parse().unwrap();
        (code, response.json().unwrap_or_default())
    };
    let services = "/api/v1/namespaces/alpha/services";
    let web = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": {
        "ipFamilyPolicy": "PreferDualStack", "ports": [{ "port": 80 }] } });
    assert_eq!(write("POST", services, &web).0, 404, "its namespace is not there");
    assert_eq!(write("POST", "/api/v1/namespaces", &namespace("alpha")).0, 201);
    let (code, created) = write("POST", services, &web);
    assert_eq!((code, &created["spec"]["ports"][0]["protocol"]), (201, &json!("TCP")));
    assert_eq!(created["spec"]["clusterIPs"].as_array().unwrap().len(), 2);
    assert_eq!(write("POST", services, &web).0, 409);
    let one = format!("{services}/web");
    let mut changed = write("GET", &one, &json!({})).1;
    assert_eq!(changed, created);
    changed["spec"] = json!({ "type": "ExternalName", "externalName": "example.com" });
    let (code, external) = write("PUT", &one, &changed);
    assert_eq!(
        (code, &external["spec"]["clusterIP"], &external["metadata"]["uid"]),
        (200, &Value::Null, &created["metadata"]["uid"])
    );
    assert_eq!(write("PUT", &one, &changed).0, 409, "the resource version is old");
    assert_eq!(write("PUT", &format!("{services}/db"), &changed).0, 404);
    assert_eq!(write("PATCH", &one, &changed).0, 405);
    assert_eq!(write("DELETE", "/api/v1/namespaces/alpha", &json!({})).0, 200);
    assert!(api.get("services", "alpha", "web").is_none());
    assert_eq!(write("DELETE", "/api/v1/namespaces/alpha", &json!({})).0, 404);
}

#[test]
fn keeps_the_cluster_ip_of_a_service() {
    let api = FakeApi::with_shop();
    let mut web = api.get("services", "shop", "web").unwrap();
    web["spec"]["clusterIP"] = "10.96.0.99".into();
    let path = "/api/v1/namespaces/shop/services/web";
    assert!(Response::after(&api, "PUT", path, &web.to_string()).status.contains("422"));
    web["spec"]["clusterIP"] = Value::Null;
    let mut replaced = Response::after(&api, "PUT", path, &web.to_string());
    assert_eq!(replaced.json().unwrap()["spec"]["clusterIP"], "10.96.0.11");
}

#[test]
fn counts_open_watches_by_resource() {
    let api = FakeApi::start();
    let mut first = Response::to(&api, "/api/v1/services?watch=1&resourceVersion=0");
    let second = Response::to(&api, "/api/v1/services?watch=1&resourceVersion=0");
    assert_eq!((api.watches("services"), api.watches("pods")), (2, 0));
    drop(second);
    api.wait("the end of a connection", |state| state.connections.len() == 1);
    api.put(service("a", &json!({})));
    assert_eq!(event(first.json()), "ADDED a");
    // The events of both watches are sent by one thread, in any order.
    api.put(service("b", &json!({})));
    assert_eq!(event(first.json()), "ADDED b");
    assert_eq!(api.watches("services"), 1);
}
