//! Fake API server for benchmarks: `serve [SERVICES]`. Each Service has a slice with ten endpoints; there are 50
//! namespaces.
//!
//! Prints its URL and then executes commands from standard input, one per line: `gone` compacts the history and
//! breaks all connections, so that clients list again; `pages` rejects streaming lists; `drop` breaks connections;
//! `down` and `up` stop and resume serving; `change` changes one slice.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example")]

use fakeapi::{FakeApi, Fault, object};
use serde_json::{Value, json};

fn main() {
    let services = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let api = FakeApi::start();
    api.put_all((0..50).map(|number| object("Namespace", "", &format!("perf-{number}"), json!({}))));
    api.put_all((0..services).map(service));
    api.put_all((0..services).map(|number| slice(number, 0)));
    println!("{}", api.url());
    let mut changes = 0;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "gone" => {
                api.down();
                api.compact();
                api.up();
            }
            "pages" => {
                for resource in ["namespaces", "services", "endpointslices"] {
                    api.fault(resource, Fault::NoStreamingLists);
                }
            }
            "drop" => api.drop_connections(),
            "down" => api.down(),
            "up" => api.up(),
            "change" => {
                changes += 1;
                api.put(slice(0, changes));
            }
            other => println!("{other}?"),
        }
    }
}

fn service(number: u32) -> Value {
    let ip = format!("10.100.{}.{}", number / 250, number % 250);
    let ports = json!([{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 }]);
    let spec = json!({ "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": ports });
    object("Service", &format!("perf-{}", number % 50), &format!("svc-{number}"), json!({ "spec": spec }))
}

fn slice(number: u32, generation: u32) -> Value {
    let endpoint = |at: u32| {
        let host = number * 10 + at;
        let address = format!("172.{}.{}.{}", 20 + host / 62_500 + generation, host / 250 % 250, host % 250 + 1);
        json!({
            "addresses": [address], "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": format!("node-{}", host % 500),
            "targetRef": { "kind": "Pod", "name": format!("app-{number}-7d9c5b6f4-{at:05}"), "uid": format!("{host:036}") },
        })
    };
    let rest = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": format!("svc-{number}") } },
        "addressType": "IPv4",
        "endpoints": (0..10).map(endpoint).collect::<Vec<_>>(),
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    object("EndpointSlice", &format!("perf-{}", number % 50), &format!("svc-{number}-abcde"), rest)
}
