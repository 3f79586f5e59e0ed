//! Memory use of a cluster's state, and allocations per answer.
//!
//! The goals for the whole process are 32 MiB with 10,000 Services and 100,000 endpoints, and 80 MiB with 250,000
//! endpoints and 150,000 pods. Reducer and index may use the fraction given below. Reading the index must not allocate.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use cluster::object::{AddressType, Endpoint, EndpointSlice, Event, Meta, Object, Pod, Port, Service};
use cluster::{Index, Kind, Reducer, Spec};

#[test]
fn cluster_state_fits_the_memory_goal_and_answers_do_not_allocate() {
    // A single test, because the counters would include allocations of a second one running in parallel.
    for (endpoints, pods, goal_mebibytes) in [(100_000, 0, 8), (250_000, 150_000, 32)] {
        let used = bytes(&Size { endpoints, pods, ..Size::default() });
        println!("{endpoints} endpoints and {pods} pods: {} KiB", used >> 10);
        assert!(used < goal_mebibytes << 20, "{endpoints} endpoints and {pods} pods use {} KiB", used >> 10);
    }
    let used = bytes(&Size { endpoints: 100_000, not_ready: true, ..Size::default() });
    println!("100000 endpoints that are not ready: {} KiB", used >> 10);
    assert!(used < NOT_READY_GOAL, "100,000 endpoints that are not ready use {} KiB", used >> 10);
    let with_pods = |pods, names| bytes(&Size { endpoints: 100_000, pods, names, ..Size::default() });
    let none = with_pods(0, true);
    for pods in PODS {
        let (addresses, names) = (with_pods(pods, false), with_pods(pods, true));
        let per_pod = |used: usize| used / pods as usize;
        let (total, added) = (per_pod(addresses - none), per_pod(names - addresses));
        println!("{pods} pods: {total} bytes each with the address only, {added} more with the name");
        assert!(added <= NAME_GOAL, "the name of one of {pods} pods takes {added} bytes");
        let labelled =
            bytes(&Size { endpoints: 100_000, pods, names: true, labels: &["app", "tier"], ..Size::default() });
        let added = per_pod(labelled - addresses);
        println!("{pods} pods: {added} more with the name and two labels");
        assert!(added <= LABELS_GOAL, "the name and two labels of one of {pods} pods take {added} bytes");
    }
}

/// Numbers of pods for the measurement of names. The size of a hash table jumps between 100,000 and 150,000.
const PODS: [u32; 4] = [60_000, 100_000, 115_000, 150_000];
/// Number of pods of a ReplicaSet, which share most of their names.
const REPLICAS: u32 = 10;
/// Bytes that the name of a pod may take.
const NAME_GOAL: usize = 48;
/// Bytes that the name and two labels of a pod may take.
const LABELS_GOAL: usize = 64;

/// Bytes of a cluster with 100,000 endpoints, none of which is ready. Their names take more than their addresses do in
/// a healthy cluster.
const NOT_READY_GOAL: usize = 12 << 20;

const SERVICES: u32 = 10_000;
const NAMESPACES: u32 = 200;

#[derive(Clone, Copy, Default)]
struct Size {
    endpoints: u32,
    /// True if no endpoint is ready.
    not_ready: bool,
    pods: u32,
    /// True to keep the names of pods.
    names: bool,
    /// Labels to keep of pods.
    labels: &'static [&'static str],
}

/// Builds a cluster and returns the live memory in bytes, including the rounding of an allocator.
fn bytes(size: &Size) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    let spec = Spec::new(&[Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod], &[]);
    let (mut reducer, index) = Reducer::new(&Spec {
        pod_names: size.names,
        pod_labels: size.labels.iter().map(|key| (*key).into()).collect(),
        ..spec
    });
    for number in 0..NAMESPACES {
        let name = namespace_of(number);
        apply(&mut reducer, 0, Object::Namespace(Meta { name: &name, ..meta("", "1") }));
    }
    for number in 0..SERVICES {
        add_service(&mut reducer, number);
        add_slice(&mut reducer, number, size);
    }
    for number in 0..size.pods {
        let (namespace, name, address) =
            (namespace_of(number / REPLICAS), pod_of(number), pod_address(number).to_string());
        let meta = Meta { name: &name, ..meta(&namespace, "1") };
        let app = service_of(number / REPLICAS);
        let labels = vec![("app", app.as_str()), ("pod-template-hash", "7d9f8b6c5"), ("tier", "backend")];
        apply(&mut reducer, 3, Object::Pod(Pod { meta, addresses: vec![&address], labels, ..Pod::default() }));
    }
    let used = LIVE.load(Ordering::Relaxed) - before;
    check(&index, size);
    used
}

fn apply(reducer: &mut Reducer, watch: usize, object: Object<'_>) {
    reducer.apply(watch, &Event::Applied(object), 1);
}

fn add_service(reducer: &mut Reducer, number: u32) {
    let (namespace, name) = (namespace_of(number), service_of(number));
    let address = Ipv4Addr::from(0x0a60_0000 + number).to_string();
    let meta = Meta { name: &name, ..meta(&namespace, "12345") };
    let ports = vec![Port { name: "http", protocol: "TCP", number: Some(80) }];
    let service = Service {
        meta,
        service_type: "ClusterIP",
        cluster_ips: vec![&address],
        external_name: "",
        ports,
        external: Vec::new(),
    };
    apply(reducer, 1, Object::Service(service));
}

fn add_slice(reducer: &mut Reducer, number: u32, size: &Size) {
    let (namespace, service, count) = (namespace_of(number), service_of(number), size.endpoints / SERVICES);
    let pods = (number * count..(number + 1) * count).map(|pod| (pod_address(pod).to_string(), pod_of(pod)));
    let pods: Vec<(String, String)> = pods.collect();
    let ready = Some(!size.not_ready);
    let endpoint = |(address, pod)| Endpoint { address, ready, target: pod, is_pod: true, ..Endpoint::default() };
    let endpoints = pods.iter().map(|(address, pod)| (address.as_str(), pod.as_str())).map(endpoint);
    let slice = EndpointSlice {
        meta: Meta { name: &format!("{service}-x7k2p"), ..meta(&namespace, "12346") },
        service: &service,
        source_cluster: "",
        address_type: AddressType::Ipv4,
        endpoints: endpoints.collect(),
        ports: vec![Port { name: "http", protocol: "TCP", number: Some(8080) }],
    };
    apply(reducer, 2, Object::EndpointSlice(slice));
}

fn check(index: &Index, size: &Size) {
    let counts = index.counts();
    assert_eq!((counts.services, counts.endpoint_slices, counts.pods), (SERVICES, SERVICES, size.pods));
    let (mut ready, mut not_ready) = (0, 0);
    index.for_each_service(|service| {
        ready += service.endpoints().count();
        not_ready += service.not_ready_count();
    });
    let all = size.endpoints as usize;
    assert_eq!((ready, not_ready), if size.not_ready { (0, all) } else { (all, 0) });
    if size.not_ready {
        return;
    }
    // The first round includes one-time allocations of the thread. The second shows those of the answers.
    assert_eq!(answers(index), 5);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    assert_eq!(answers(index), 5);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before, "an answer allocated");
}

/// Asks every kind of question once and counts the results.
fn answers(index: &Index) -> usize {
    let mut found = usize::from(index.namespace_exists(b"team-7-prod"));
    let address = pod_address(77);
    index.service(b"team-7-prod", b"checkout-backend-7", |service| found += service.cluster_ips().len());
    found += index.service_of_cluster_ip(Ipv4Addr::new(10, 96, 0, 7).into(), |_| Some(1)).unwrap_or(0);
    index.services_of_endpoint(address.into(), |service, endpoint| {
        let mut buffer = [0; 63];
        let label = endpoint.label(&mut buffer);
        found += 1 + service.endpoints_called(label).count();
    });
    found + usize::from(index.pod_exists(b"no-such-namespace", address.into()))
}

fn meta<'a>(namespace: &'a str, version: &'a str) -> Meta<'a> {
    Meta { namespace, name: "", version }
}

fn namespace_of(number: u32) -> String {
    format!("team-{}-prod", number % NAMESPACES)
}

fn service_of(number: u32) -> String {
    format!("checkout-backend-{number}")
}

fn pod_of(number: u32) -> String {
    format!("checkout-backend-{}-7d9f8b6c5-{:05}", number / REPLICAS, number % 100_000)
}

fn pod_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a80_0000 + number)
}

/// Counts allocations and live bytes. Each block includes an 8-byte header and is rounded up to 16 bytes, as in
/// glibc.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

fn chunk(layout: Layout) -> usize {
    (layout.size() + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call goes to the system allocator as it is; the counter does not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(chunk(layout), Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(chunk(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
