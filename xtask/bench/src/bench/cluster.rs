//! Cluster for benchmarks: a fake API server with many Services.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fakeapi::FakeApi;
use serde_json::{Value, json};

use super::asker::Asker;
use xtask::Failed;

/// Timeout for a server to learn the whole cluster.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of measured changes.
const UPDATES: u16 = 500;

/// Size of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) services: usize,
    /// Number of endpoints of each Service.
    pub(crate) endpoints: usize,
    pub(crate) pods: usize,
}

/// Cluster with its API server.
pub(crate) struct Cluster {
    pub(crate) api: FakeApi,
    pub(crate) shape: Shape,
    follows_pods: bool,
}

impl Cluster {
    /// Starts an API server. `follows_pods` is true if the Corefile makes servers watch Pods.
    pub(crate) fn start(shape: Shape, follows_pods: bool) -> Cluster {
        let api = FakeApi::start();
        api.put_all((0..50).map(namespace));
        api.put_all((0..shape.services).flat_map(|number| [service(number), slice(number, shape.endpoints)]));
        api.put_all((0..shape.pods).map(|number| pod(number, address(40, number))));
        Cluster { api, shape, follows_pods }
    }

    /// Replaces the endpoints of a headless Service by one with this address.
    pub(crate) fn change(&self, number: usize, address: [u8; 4]) {
        let mut changed = slice(number, 0);
        changed["endpoints"] = json!([endpoint(address, number, 0)]);
        self.api.put(changed);
    }

    /// Sets the cluster IP of a Service.
    pub(crate) fn give(&self, number: usize, [a, b, c, d]: [u8; 4]) {
        let ip = format!("{a}.{b}.{c}.{d}");
        let mut changed = service(number);
        (changed["spec"]["clusterIP"], changed["spec"]["clusterIPs"]) = (json!(ip), json!([ip]));
        self.api.put(changed);
    }

    /// Measures how long the API server alone takes to send its lists to a client that does not decode them.
    pub(crate) fn time_to_send(&self) -> Result<Duration, Failed> {
        let address = self.api.url().trim_start_matches("http://").to_owned();
        let started = Instant::now();
        let readers: Vec<_> = LISTS
            .iter()
            .map(|path| {
                let address = address.clone();
                std::thread::spawn(move || read_list(&address, path))
            })
            .collect();
        for reader in readers {
            let read = reader.join().map_err(|_| "a reader of a list panicked".to_owned())?;
            read.map_err(|error| format!("a list cannot be read: {error}"))?;
        }
        Ok(started.elapsed())
    }

    /// Waits until a server knows the whole cluster, and returns the time since `started`. Only requests after the
    /// first `seen` ones count.
    ///
    /// An object that is changed after a list started is delivered after that list. So this changes one object of each
    /// resource to an address that ends in `mark`, and waits until the server answers with it.
    pub(crate) fn wait_until_known(
        &self,
        port: u16,
        seen: usize,
        mark: u8,
        started: Instant,
    ) -> Result<Duration, Failed> {
        self.api.wait_seen("lists of all resources", |all| {
            let lists = all[seen..].iter().filter(|seen| matches!(seen.parameter("resourceVersion"), "" | "0"));
            let listed: BTreeSet<&str> = lists.map(|seen| seen.resource.as_str()).collect();
            self.resources().iter().all(|resource| listed.contains(resource))
        });
        let address = [203, 0, 113, mark];
        let (service, headless) = (10 * usize::from(mark), self.headless(usize::from(mark)));
        self.give(service, address);
        self.change(headless, address);
        let mut names = vec![service_name(service), service_name(headless)];
        if self.follows_pods {
            self.api.put(pod(0, address));
            names.push(format!("203-0-113-{mark}.perf-0.pod.cluster.local."));
        }
        let asker = Asker::new(port)?;
        while !names.iter().all(|name| asker.address(name) == Some(address)) {
            if started.elapsed() > READY_TIMEOUT {
                return Err(format!("the server does not know the whole cluster after {READY_TIMEOUT:?}"));
            }
        }
        Ok(started.elapsed())
    }

    /// Returns the resources that a server with the Corefile of the benchmark lists.
    pub(crate) fn resources(&self) -> &'static [&'static str] {
        let all = &["namespaces", "services", "endpointslices", "pods"];
        if self.follows_pods { all } else { &all[..3] }
    }

    /// Measures the time from a change of an endpoint in the API server until the server answers with it.
    pub(crate) fn time_updates(&self, port: u16) -> Result<Updates, Failed> {
        let asker = Asker::new(port)?;
        let mut times = Vec::new();
        for update in 0..UPDATES {
            let number = self.headless(usize::from(update));
            let [high, low] = update.to_be_bytes();
            let address = [203, 0, high, low];
            self.change(number, address);
            let acknowledged = Instant::now();
            let name = service_name(number);
            while asker.address(&name) != Some(address) {
                if acknowledged.elapsed() > Duration::from_secs(5) {
                    return Err(format!("the server does not answer with the change of {name} within 5 s"));
                }
            }
            times.push(acknowledged.elapsed());
        }
        Ok(Updates::of(times))
    }

    /// Returns the number of a headless Service, a different one for each `at` up to their count.
    pub(crate) fn headless(&self, at: usize) -> usize {
        9 + 10 * (at % (self.shape.services / 10).max(1))
    }
}

/// Returns the DNS name of a Service.
pub(crate) fn service_name(number: usize) -> String {
    format!("svc-{number}.perf-{}.svc.cluster.local.", number % 50)
}

/// Paths that a server with the Corefile of the benchmark lists.
const LISTS: [&str; 3] = ["/api/v1/namespaces", "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"];
/// Annotation in the bookmark at the end of a streaming list.
const LIST_END: &[u8] = b"k8s.io/initial-events-end";

/// Reads a streaming list to its end.
fn read_list(address: &str, path: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    write!(stream, "GET {path}?{query} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut buffer = vec![0; 1 << 16];
    let mut kept = 0;
    loop {
        let length = stream.read(&mut buffer[kept..])?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let filled = kept + length;
        if buffer[..filled].windows(LIST_END.len()).any(|part| part == LIST_END) {
            return Ok(());
        }
        // The annotation may span two reads.
        kept = filled.min(LIST_END.len());
        buffer.copy_within(filled - kept..filled, 0);
    }
}

/// Delays of changes.
pub(crate) struct Updates {
    pub(crate) count: usize,
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) all: Duration,
}

impl Updates {
    /// Computes the percentiles. `times` must not be empty.
    pub(crate) fn of(mut times: Vec<Duration>) -> Updates {
        times.sort_unstable();
        let at = |thousandths: usize| times[(times.len() - 1) * thousandths / 1000];
        Updates { count: times.len(), half: at(500), most: at(990), all: at(1000) }
    }
}

impl fmt::Display for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Updates { count, half, most, all } = self;
        write!(
            f,
            "time from a change of an endpoint in the API server until it is answered: {half:.2?} (p50), {most:.2?} (p99), {all:.2?} (maximum); {count} changes"
        )
    }
}

/// Returns kubeadm's Corefile, with another upstream and API server.
pub(crate) fn kubeadm_corefile(pods_verified: bool) -> String {
    let pods = if pods_verified { "verified" } else { "insecure" };
    format!(
        ".:{{PORT}} {{
    errors
    health 127.0.0.1:0 {{
        lameduck 5s
    }}
    ready 127.0.0.1:0
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        endpoint {{API}}
        pods {pods}
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus 127.0.0.1:0
    forward . 127.0.0.1:{{UPSTREAM}} {{
        max_concurrent 1000
    }}
    cache 30 {{
        disable success cluster.local
        disable denial cluster.local
    }}
    loop
    reload
    loadbalance
}}
"
    )
}

fn namespace(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("perf-{number}")}})
}

fn metadata(number: usize, name: &str) -> Value {
    json!({"namespace": format!("perf-{}", number % 50), "name": name, "labels": {"app": format!("app-{number}")}})
}

fn ports() -> Value {
    json!([{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "https", "port": 443, "protocol": "TCP"}])
}

fn service(number: usize) -> Value {
    let ip = if number % 10 == 9 {
        "None".to_owned()
    } else {
        format!("10.{}.{}.{}", 100 + number / 60_000, number / 250 % 250, number % 250 + 1)
    };
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(number, &format!("svc-{number}")),
        "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": ports()},
    })
}

fn slice(number: usize, endpoints: usize) -> Value {
    let mut metadata = metadata(number, &format!("svc-{number}-abcde"));
    metadata["labels"] = json!({"kubernetes.io/service-name": format!("svc-{number}")});
    let endpoints: Vec<Value> =
        (0..endpoints).map(|place| endpoint(address(20, number * endpoints + place), number, place)).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "ports": ports(),
        "endpoints": endpoints,
    })
}

fn endpoint([a, b, c, d]: [u8; 4], number: usize, place: usize) -> Value {
    json!({
        "addresses": [format!("{a}.{b}.{c}.{d}")],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "nodeName": format!("node-{}", number % 500),
        "targetRef": {"kind": "Pod", "name": format!("app-{number}-7d9c5b6f4-{place:05}"), "uid": format!("0d7b2c1e-7d0e-4d54-9d5c-{number:06}{place:06}")},
    })
}

/// Returns the address with this number, counted from 172.`first`.0.1.
fn address(first: usize, number: usize) -> [u8; 4] {
    let byte = |value: usize| u8::try_from(value).unwrap_or(u8::MAX);
    [172, byte(first + number / 62_500), byte(number / 250 % 250), byte(number % 250 + 1)]
}

fn pod(number: usize, [a, b, c, d]: [u8; 4]) -> Value {
    let ip = format!("{a}.{b}.{c}.{d}");
    let mut metadata = metadata(number, &format!("app-{number}-7d9c5b6f4-x"));
    metadata["labels"]["pod-template-hash"] = json!("7d9c5b6f4");
    let container =
        json!({"name": "c", "image": "registry/app:v1", "env": [{"name": "KEY", "value": "v".repeat(200)}]});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": format!("node-{}", number % 500), "containers": [container]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]},
    })
}
