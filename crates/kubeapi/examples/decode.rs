//! Measures the cost of decoding objects in JSON and protobuf: `cargo run --release -p portolan-kubeapi --example
//! decode`.
//!
//! Lists arrive in chunks, like from a connection. The time is that of the fastest round.
#![allow(
    unsafe_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a measurement: it counts allocations and prints the result"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cluster::Kind;
use fakeapi::protobuf;
use kubeapi::decode::{Encoding, ListDecoder, ListItem};
use serde_json::{Value, json};

/// Chunk size in bytes.
const PIECE: usize = 16 * 1024;
const ROUNDS: usize = 30;

fn main() {
    println!(
        "| objects | encoding | bytes each | µs each | allocations each | bytes allocated each | bytes held at most |"
    );
    println!("|---|---|---|---|---|---|---|");
    let of = |count: usize, make: fn(usize) -> Value| (0..count).map(make).collect::<Vec<_>>();
    measure("10,000 slices of 3 endpoints", Kind::EndpointSlice, &of(10_000, |number| slice(number, 3)));
    measure("1,000 slices of 100 endpoints", Kind::EndpointSlice, &of(1000, |number| slice(number, 100)));
    measure("10,000 Services", Kind::Service, &of(10_000, service));
    measure("10,000 Pods", Kind::Pod, &of(10_000, pod));
}

fn measure(what: &str, kind: Kind, objects: &[Value]) {
    let metadata = json!({ "resourceVersion": "9" });
    let items: Vec<&Value> = objects.iter().collect();
    let name = objects[0]["kind"].as_str().unwrap();
    let in_json = json!({ "metadata": metadata, "items": items }).to_string().into_bytes();
    for (encoding, body) in
        [(Encoding::Json, in_json), (Encoding::Protobuf, protobuf::list(name, "v1", &metadata, &items))]
    {
        let rounds: Vec<Cost> = (0..ROUNDS).map(|_| cost(encoding, kind, &body, objects.len())).collect();
        let time = rounds.iter().map(|cost| cost.time).min().unwrap();
        let each = |sum: usize| sum as f64 / objects.len() as f64;
        println!(
            "| {what} | {encoding:?} | {:.0} | {:.2} | {:.1} | {:.0} | {} |",
            each(body.len()),
            time.as_secs_f64() * 1e6 / objects.len() as f64,
            each(rounds[0].allocations),
            each(rounds[0].allocated),
            rounds[0].most,
        );
    }
}

struct Cost {
    time: Duration,
    allocations: usize,
    allocated: usize,
    most: usize,
}

fn cost(encoding: Encoding, kind: Kind, body: &[u8], count: usize) -> Cost {
    let (live, allocations, allocated) =
        (LIVE.load(Ordering::Relaxed), ALLOCATIONS.load(Ordering::Relaxed), ALLOCATED.load(Ordering::Relaxed));
    MOST.store(live, Ordering::Relaxed);
    let begin = Instant::now();
    let (mut decoder, mut read) = (ListDecoder::new(encoding, kind), 0);
    for bytes in body.chunks(PIECE) {
        decoder.feed(bytes, &mut |item| read += usize::from(matches!(item, ListItem::Object(_)))).unwrap();
    }
    let time = begin.elapsed();
    assert!(read == count && decoder.is_complete(), "{read} of {count}");
    Cost {
        time,
        allocations: ALLOCATIONS.load(Ordering::Relaxed) - allocations,
        allocated: ALLOCATED.load(Ordering::Relaxed) - allocated,
        most: MOST.load(Ordering::Relaxed) - live,
    }
}

/// Builds metadata like those of a real object, with the fields that controllers and the API server add.
fn metadata(number: usize, name: &str, manager: &str) -> Value {
    json!({
        "name": name, "namespace": format!("ns-{}", number % 50), "generateName": format!("svc-{number}-"),
        "uid": format!("0d7b2c1e-7d0e-4d54-9d5c-{number:012}"), "resourceVersion": (1_000_000 + number).to_string(),
        "generation": 7, "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {
            "kubernetes.io/service-name": format!("svc-{number}"), "app.kubernetes.io/name": format!("app-{number}"),
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
        "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05Z" },
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "Service", "name": format!("svc-{number}"), "controller": true,
            "uid": format!("1d7b2c1e-7d0e-4d54-9d5c-{number:012}"), "blockOwnerDeletion": true,
        }],
        "managedFields": [{
            "manager": manager, "operation": "Update", "apiVersion": "discovery.k8s.io/v1",
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:addressType": {}, "f:endpoints": {}, "f:ports": {}, "f:metadata": {
                "f:annotations": { ".": {}, "f:endpoints.kubernetes.io/last-change-trigger-time": {} },
                "f:generateName": {}, "f:labels": { ".": {}, "f:app.kubernetes.io/name": {},
                "f:endpointslice.kubernetes.io/managed-by": {}, "f:kubernetes.io/service-name": {} },
                "f:ownerReferences": { ".": {}, "k:{\"uid\":\"1d7b2c1e-7d0e-4d54-9d5c-000000000000\"}": {} } } },
        }],
    })
}

fn slice(number: usize, endpoints: usize) -> Value {
    let endpoint = |place: usize| {
        let at = number * endpoints + place;
        json!({
            "addresses": [format!("10.{}.{}.{}", at / 62_500 % 250, at / 250 % 250, at % 250)],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": format!("node-{}", at % 5000), "zone": "eu-west-1a",
            "targetRef": {
                "kind": "Pod", "namespace": format!("ns-{}", number % 50), "name": format!("app-{number}-7d9c5b6f4-{place:05}"),
                "uid": format!("2d7b2c1e-7d0e-4d54-9d5c-{at:012}"),
            },
        })
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": metadata(number, &format!("svc-{number}-abcde"), "kube-controller-manager"),
        "endpoints": (0..endpoints).map(endpoint).collect::<Vec<_>>(),
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }, { "name": "metrics", "port": 9090, "protocol": "TCP" }],
    })
}

fn service(number: usize) -> Value {
    let ip = format!("10.96.{}.{}", number / 250, number % 250);
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(number, &format!("svc-{number}"), "helm"),
        "spec": {
            "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "selector": { "app": format!("app-{number}") },
            "ports": [
                { "name": "http", "port": 80, "protocol": "TCP", "targetPort": "http" },
                { "name": "metrics", "port": 9090, "protocol": "TCP", "targetPort": 9090 },
            ],
            "sessionAffinity": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
        },
        "status": { "loadBalancer": {} },
    })
}

fn pod(number: usize) -> Value {
    let ip = format!("10.{}.{}.{}", number / 62_500, number / 250 % 250, number % 250);
    let env: Vec<Value> =
        (0..10).map(|at| json!({ "name": format!("SETTING_{at}"), "value": "v".repeat(20) })).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata(number, &format!("app-{number}-7d9c5b6f4-x"), "kubelet"),
        "spec": {
            "nodeName": format!("node-{}", number % 5000), "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "containers": [{ "name": "app", "image": "registry.example/app:1.2.3", "env": env, "imagePullPolicy": "Always" }],
        },
        "status": { "phase": "Running", "hostIP": "10.0.0.1", "podIP": ip, "podIPs": [{ "ip": ip }], "qosClass": "Burstable" },
    })
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is forwarded to the system allocator unchanged. The counters do not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
