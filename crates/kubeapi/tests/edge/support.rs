//! Test fixture: a subscription that runs on its own thread.

use std::fs;
use std::net::IpAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Address, Index, Request, Service, ServiceKind, Source};
use fakeapi::FakeApi;
use kubeapi::{Subscriber, Subscription, Timing};
use metrics::Registry;
use tokio::sync::oneshot;

use crate::log::Log;

/// Maximum time that a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Subscription on its own thread.
pub struct Edge {
    pub index: Arc<Index>,
    registry: Arc<Registry>,
    log: Log,
    held: Mutex<Option<Arc<Subscription>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Edge {
    pub fn start(request: &Request) -> Edge {
        Edge::start_with(request, quick())
    }

    pub fn start_with(request: &Request, timing: Timing) -> Edge {
        let (registry, log) = (Registry::new(), Log::new(false));
        let (given, subscribed) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (for_thread, request, thread_log) = (Arc::clone(&registry), request.clone(), log.clone());
        let thread = thread::spawn(move || {
            let _logged = tracing::subscriber::set_default(thread_log);
            on_a_local_set(async move {
                let subscriber = Subscriber::with_timing(&for_thread, timing);
                given.send(subscriber.subscribe(&request).unwrap()).unwrap();
                let _ = stopped.await;
            });
        });
        let subscription = subscribed.recv().unwrap();
        let (index, held) = (Arc::clone(&subscription.index), Mutex::new(Some(subscription)));
        Edge { index, registry, log, held, stop: Some(stop), thread: Some(thread) }
    }

    /// Drops the subscription. The thread continues.
    pub fn unsubscribe(&self) {
        self.held.lock().unwrap().take();
    }

    /// Waits for a condition, and panics after [`PATIENCE`].
    pub fn wait(&self, what: &str, condition: impl Fn(&Index) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(&self.index) {
            assert!(Instant::now() < deadline, "{what} does not happen\n{:#?}\n{}", self.log.lines(), self.metrics());
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn wait_synced(&self) {
        self.wait("the first sync", Index::is_synced);
    }

    /// Waits until [`describe`] returns this for a Service, or until it is `none` (absent).
    pub fn wait_service(&self, path: &str, expected: &str) {
        self.wait(&format!("{path} = {expected} (is {})", self.service(path)), |_| self.service(path) == expected);
    }

    pub fn service(&self, path: &str) -> String {
        let (namespace, name) = path.split_once('/').unwrap();
        self.index.service(namespace.as_bytes(), name.as_bytes(), describe).unwrap_or_else(|| "none".to_owned())
    }

    pub fn has_namespace(&self, name: &str) -> bool {
        self.index.namespace_exists(name.as_bytes())
    }

    /// Waits until a metric has at least this value.
    pub fn wait_metric(&self, series: &str, least: f64) {
        self.wait(series, |_| self.metric(series) >= least);
    }

    /// Returns the value of a metric, or 0 if it is absent.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Failed lists and watches, of all resources and reasons.
    pub fn watch_failures(&self) -> f64 {
        let text = self.metrics();
        let failures = text.lines().filter(|line| line.starts_with("portolan_kubernetes_watch_failures_total{"));
        failures.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    pub fn metrics(&self) -> String {
        self.registry.render()
    }

    /// Waits for a log line with this prefix.
    pub fn wait_log(&self, begin: &str) {
        self.wait(&format!("a line '{begin}…'"), |_| self.logged(begin) > 0);
    }

    pub fn lines(&self) -> Vec<String> {
        self.log.lines()
    }

    /// Returns the number of log lines with this prefix.
    pub fn logged(&self, begin: &str) -> usize {
        self.log.lines().iter().filter(|line| line.starts_with(begin)).count()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            assert!(thread::panicking() || outcome.is_ok(), "the API client panicked");
        }
    }
}

/// Empty folder for a test, deleted on drop.
pub struct Folder(PathBuf);

pub fn folder(test: &str) -> Folder {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    Folder(folder)
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a future on a `LocalSet`, which [`Subscriber::subscribe`] needs.
pub fn on_a_local_set(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(future));
}

/// Returns short timeouts. Those that a busy machine could exceed stay long.
pub fn quick() -> Timing {
    Timing {
        pause_min: Duration::from_millis(5),
        pause_max: Duration::from_millis(40),
        client_min: Duration::ZERO,
        watch_min: Duration::from_millis(20),
        forbidden: Duration::from_millis(50),
        absent: Duration::from_millis(50),
        poll: Duration::from_millis(10),
        snapshot: Duration::from_millis(10),
        ..Timing::default()
    }
}

/// Starts an API server with the encoding of this test program.
pub fn empty() -> FakeApi {
    let api = FakeApi::start();
    if crate::JSON_ONLY {
        api.json_only();
    }
    api
}

/// Starts an API server with the objects of [`FakeApi::put_shop`].
pub fn shop() -> FakeApi {
    let api = empty();
    api.put_shop();
    api
}

pub fn request(api: &FakeApi) -> Request {
    Request::new(Source::Endpoint { url: api.url().to_owned(), tls: None })
}

/// Service of [`shop`] in the format of [`describe`].
pub const WEB: &str = "10.96.0.11 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]";

/// Describes a Service: `10.96.0.11 http:80/TCP [w0=10.1.0.5 http:8080/TCP]`, with sorted slices.
pub fn describe(service: &Service) -> String {
    let kind = match &service.kind {
        ServiceKind::ClusterIp(ips) => ips.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(","),
        ServiceKind::ExternalName(name) => format!("-> {name}"),
        kind => format!("{kind:?}"),
    };
    let mut slices: Vec<String> = service.slices.iter().map(|slice| describe_slice(slice)).collect();
    slices.sort_unstable();
    format!("{kind} {}{}", ports(&service.ports), slices.concat())
}

fn describe_slice(slice: &cluster::Slice) -> String {
    let endpoints = slice.endpoints().map(|endpoint| {
        let address = match endpoint.address() {
            Address::Ip(ip) => ip.to_string(),
            Address::Name(name) => name.to_owned(),
        };
        let label = String::from_utf8(endpoint.label(&mut [0; 63]).to_vec()).unwrap();
        let is_of_address = label == address.replace(['.', ':'], "-");
        if is_of_address { format!("{address} ") } else { format!("{label}={address} ") }
    });
    format!(" [{}{}]", endpoints.collect::<String>(), ports(&slice.ports))
}

fn ports(ports: &[cluster::Port]) -> String {
    let port = |port: &cluster::Port| {
        let number = port.number.map_or("-".to_owned(), |number| number.to_string());
        format!("{}:{number}/{}", port.name, port.protocol)
    };
    ports.iter().map(port).collect::<Vec<_>>().join(",")
}
