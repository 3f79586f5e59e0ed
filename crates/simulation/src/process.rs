//! Process under test: the plugins of the server with a Corefile, and the client for the API server. It can crash, and
//! another one starts from what it left.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{ClusterHandle, Clusters, Index, Request};
use engine::Instant;
use host::FollowError;
use kube::Client;
use kubeapi::{Subscriber, Subscription, Timing};
use plugins::LocalAddresses;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use testkit::{Arrival, Server, Ticket, VirtualTime};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::api::Api;
use crate::network::Net;
use crate::random::Generator;

thread_local! {
    /// API server and random numbers of the simulation on this thread, for functions without state.
    static CURRENT: RefCell<Option<(Api, Generator)>> = const { RefCell::new(None) };
    /// Begin of the time of the runtime.
    static BEGIN: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

/// Addresses of the upstreams.
pub(crate) const UPSTREAMS: [&str; 2] = ["192.0.2.1:53", "192.0.2.2:53"];

/// Property of *forward* that limits the queries that wait for upstreams.
const MAX_CONCURRENT: &str = "max_concurrent 3";

/// Growth of the snapshot in bytes from which it is compacted. It is small, so that compaction also happens within
/// lists.
const GROWTH: u64 = 512;

/// Address of the machine.
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));

/// Options of a Corefile.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) cache: Option<CacheOptions>,
    pub(crate) forward: Vec<&'static str>,
    pub(crate) has_snapshot: bool,
    pub(crate) stale_after: bool,
}

/// Options of *cache*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheOptions {
    pub(crate) stale: Option<&'static str>,
    pub(crate) prefetches: bool,
}

impl Options {
    pub(crate) fn random(random: &mut Generator) -> Options {
        let stale = random.pick(&[None, None, Some("1h"), Some("30s"), Some("1h verify 1s")]);
        let cache = CacheOptions { stale, prefetches: random.is(30) };
        let properties = [
            "policy sequential",
            "prefer_udp",
            "force_tcp",
            "use_caps_for_id",
            "send_cookie",
            "ask_all",
            MAX_CONCURRENT,
        ];
        Options {
            cache: Some(cache).filter(|_| random.is(80)),
            forward: properties.into_iter().filter(|_| random.is(20)).collect(),
            has_snapshot: random.is(30),
            stale_after: random.is(30),
        }
    }

    /// Returns true if few queries may wait for upstreams at once.
    pub(crate) fn limits_queries(&self) -> bool {
        self.forward.contains(&MAX_CONCURRENT)
    }

    /// Returns the time for which expired answers are served.
    pub(crate) fn stale(&self) -> Duration {
        match self.cache.and_then(|cache| cache.stale) {
            None => Duration::ZERO,
            Some("30s") => Duration::from_secs(30),
            Some(_) => Duration::from_secs(3600),
        }
    }

    fn corefile(&self, snapshot: &Path) -> String {
        let mut text = ".:53 {\n kubernetes cluster.local in-addr.arpa ip6.arpa {\n".to_owned();
        text.push_str("  endpoint http://api.invalid:6443\n  pods insecure\n");
        if self.has_snapshot {
            text.push_str(&format!("  snapshot {}\n", snapshot.display()));
        }
        if self.stale_after {
            text.push_str("  stale_after 40s\n");
        }
        text.push_str(" }\n");
        if let Some(CacheOptions { stale, prefetches }) = self.cache {
            text.push_str(" cache 300 {\n  servfail 1s\n");
            stale.into_iter().for_each(|stale| text.push_str(&format!("  serve_stale {stale}\n")));
            if prefetches {
                text.push_str("  prefetch 2 10s 50%\n");
            }
            text.push_str(" }\n");
        }
        text.push_str(&format!(" forward . {} {} {{\n", UPSTREAMS[0], UPSTREAMS[1]));
        self.forward.iter().for_each(|property| text.push_str(&format!("  {property}\n")));
        text.push_str(" }\n}\n");
        text
    }
}

/// Gives the plugins the client for the API server, as the server does.
struct Edge {
    subscriber: Subscriber,
    given: Rc<RefCell<Option<Arc<Subscription>>>>,
}

struct Handle(Arc<Subscription>);

impl Clusters for Edge {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let subscription = self.subscriber.subscribe(request).map_err(FollowError::new)?;
        *self.given.borrow_mut() = Some(Arc::clone(&subscription));
        Ok(Arc::new(Handle(subscription)))
    }
}

impl ClusterHandle for Handle {
    fn index(&self) -> &Arc<Index> {
        &self.0.index
    }
}

/// Runtime and clock, which outlive a process.
pub(crate) struct Machine {
    runtime: Runtime,
    begin: tokio::time::Instant,
    time: VirtualTime,
    net: Rc<Net>,
    snapshot: PathBuf,
}

/// Process that serves.
pub(crate) struct Process {
    local: LocalSet,
    server: Server,
    given: Rc<RefCell<Option<Arc<Subscription>>>>,
}

impl Machine {
    /// Creates a machine. `snapshot` is the path of the snapshot.
    pub(crate) fn new(api: &Api, random: &mut Generator, snapshot: PathBuf) -> Machine {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let begin = runtime.block_on(async { tokio::time::Instant::now() });
        CURRENT.set(Some((api.clone(), random.fork())));
        BEGIN.set(Some(begin));
        let time = VirtualTime::new();
        let net = Net::new(&time, random);
        Machine { runtime, begin, time, net, snapshot }
    }

    /// Starts a process.
    pub(crate) fn start(&self, options: &Options, seed: u64) -> Process {
        let local = LocalSet::new();
        let mut server = Server::at(plugins::DIRECTIVES, self.time.clone(), seed);
        server.io.set_network(Rc::clone(&self.net) as Rc<dyn testkit::Network>);
        let timing =
            Timing { clock, random: numbers, client: Some(client), snapshot_growth: GROWTH, ..Timing::default() };
        let given = Rc::default();
        let subscriber = Subscriber::with_timing(&server.registry, timing);
        let clusters: Rc<dyn Clusters> = Rc::new(Edge { subscriber, given: Rc::clone(&given) });
        server.process.provide(clusters);
        server.process.provide(LocalAddresses(Arc::from([OWN])));
        let mut process = Process { local, server, given };
        self.load(&mut process, options);
        process
    }

    /// Loads a Corefile.
    pub(crate) fn load(&self, process: &mut Process, options: &Options) {
        let text = options.corefile(&self.snapshot);
        let Process { local, server, .. } = process;
        let (_runtime, _tasks) = (self.runtime.enter(), local.enter());
        let loaded = server.load(&text);
        assert!(loaded.is_ok(), "{loaded:?}\n{text}");
    }

    /// Lets time pass: first for the client of the API server, then for queries.
    pub(crate) fn pass_until(&self, process: &mut Process, at: Instant) {
        let until = self.begin + at.since(Instant::START);
        let Process { local, server, .. } = process;
        self.runtime.block_on(local.run_until(async move { tokio::time::sleep_until(until).await }));
        let _runtime = self.runtime.enter();
        server.pass(at.since(server.now()));
    }

    /// Lets the machine sleep: time passes, and nothing runs.
    pub(crate) fn sleep(&self, process: &mut Process, span: Duration) {
        self.runtime.block_on(async move { tokio::time::advance(span).await });
        let at = process.server.now() + span;
        self.pass_until(process, at);
    }

    /// Ends a process at once, as a crash does, and starts another one in its place.
    pub(crate) fn restart(&self, process: &mut Process, options: &Options, seed: u64) {
        {
            let _runtime = self.runtime.enter();
            process.given.take();
            process.server.end();
            process.local = LocalSet::new();
        }
        *process = self.start(options, seed);
    }

    pub(crate) fn now(&self) -> Instant {
        engine::Clock::now(&self.time)
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }
}

impl Process {
    /// Sends a query.
    pub(crate) fn ask(&mut self, packet: &[u8], arrival: Arrival) -> Ticket {
        self.server.ask(packet, arrival)
    }

    /// Returns true if the process answers from the snapshot of an earlier one.
    pub(crate) fn is_remembered(&self) -> bool {
        self.given.borrow().as_ref().is_some_and(|given| given.index.is_remembered())
    }

    /// Returns true if all changes are in a snapshot that another process can use.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.given.borrow().as_ref().is_some_and(|given| given.health.snapshot_age().is_some())
    }

    /// Returns the last lines of the log.
    pub(crate) fn log(&self) -> Vec<String> {
        self.server.io.log_lines()
    }
}

/// Returns the addresses of the upstreams.
pub(crate) fn upstreams() -> [SocketAddr; 2] {
    UPSTREAMS.map(|address| address.parse().expect("an address"))
}

fn clock() -> Instant {
    let begin = BEGIN.get().expect("a machine on this thread");
    Instant::START + tokio::time::Instant::now().duration_since(begin)
}

fn numbers() -> StdRng {
    CURRENT.with_borrow_mut(|current| {
        let (_, random) = current.as_mut().expect("a machine on this thread");
        StdRng::seed_from_u64(random.next())
    })
}

fn client(_: &str) -> Client {
    CURRENT.with_borrow(|current| current.as_ref().expect("a machine on this thread").0.client())
}
