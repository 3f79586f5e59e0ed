//! Heap allocations on the hot path: Services, negative answers, cache hits and REFUSED must not allocate.
//!
//! An allocator counts the allocations of the thread while queries pass through the whole engine, from the received
//! packet to the encoded response, with the plugin chain of kubeadm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::Clusters;
use cluster::scenario::Script;
use config::setup::{Capabilities, FileStamp, Files, ReloadState};
use config::{BuildContext, Planning};
use corefile::NoFiles;
use engine::{Clock, Generation, Instant, ListenerId, PeerInfo, Progress, Resolved, Transaction, Worker};
use metrics::Registry;
use plugins::LocalAddresses;
use skydns::Stores;
use wire::{Class, Flags, Header, Message, MessageBuf, Name, Opt, Owner, Rcode, Reply, Section, Type};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[allow(unsafe_code, reason = "an allocator is unsafe by its nature; this one only counts and passes on")]
// SAFETY: passes all calls to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: as the caller promises to the system's allocator.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the same promise.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as the caller promises to the system's allocator.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the same promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const COREFILE: &str = "cluster.local in-addr.arpa example.org {
    errors
    kubernetes cluster.local in-addr.arpa {
        pods insecure
        fallthrough in-addr.arpa
        ttl 30
    }
    prometheus
    forward . 192.0.2.53
    cache 30
    loop
    loadbalance
}
";

/// Corefile with *autopath* and *k8s_external*.
const SEARCHING: &str = "
. {
    k8s_external example.org in-addr.arpa
    kubernetes cluster.local
    autopath @kubernetes {
        clients any
    }
    cache 30
    forward . 192.0.2.53
}
";

/// Corefile with *istio* before a forwarder.
const MESH: &str = "
. {
    cache 30
    istio {
        pods
        vips captured
        fallthrough example.org
    }
    whoami
}
";

/// Returns a cluster with one ClusterIP Service and one headless Service.
fn small_cluster() -> Script {
    let script = Script::default();
    script.play("ns shop");
    script.play("svc shop/web ips=10.96.0.1 ports=http:80/TCP outside=192.0.2.9");
    script.play("svc shop/db ips=None ports=http:80/TCP");
    script.play("slice shop/db-1 of=db v4=10.1.0.1,10.1.0.2,10.1.0.3 ports=http:80/TCP");
    script.play(
        "entry shop/pay hosts=pay.global,*.pay.global addresses=240.240.0.1 resolution=STATIC endpoints=10.1.0.9",
    );
    script.play("entry bank/own hosts=own.global addresses=240.240.0.2 resolution=DNS exports=.");
    script.play("meshpod shop/client ip=::1 captured");
    script
}

/// Returns etcd records of every type, in the format of SkyDNS.
fn small_store() -> skydns::scenario::Script {
    let script = skydns::scenario::Script::default();
    let many: Vec<String> = (0..64).map(|at| format!(r#"/skydns/test/many/n{at} {{"host":"10.0.0.{at}"}}"#)).collect();
    script.play(&many.iter().map(String::as_str).collect::<Vec<_>>());
    script.play(&[
        r#"/skydns/test/web/1 {"host":"10.0.1.1","port":80,"mail":true}"#,
        r#"/skydns/test/web/2 {"host":"2001:db8::1","port":80,"group":"one"}"#,
        r#"/skydns/test/web/3 {"host":"alias.test","text":"text"}"#,
        r#"/skydns/test/one @7 {"host":"10.0.1.2"}"#,
        r#"/skydns/test/alias {"host":"one.test"}"#,
        r#"/skydns/test/dns/ns/a {"host":"10.0.1.3"}"#,
        "/skydns/arpa/in-addr/10/0/1/1 {\"host\":\"web.test\"}",
    ]);
    script
}

struct NoDisk;

impl Files for NoDisk {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn stamp(&self, _: &Path) -> io::Result<FileStamp> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn replace(&self, _: &Path, _: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn append(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::from_nanos(5_000_000_000)
    }

    fn since_1970(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }
}

struct Server {
    generation: Generation,
    worker: Worker,
    transaction: Box<Transaction>,
}

impl Server {
    fn new(corefile: &str) -> Server {
        let parsed = corefile::parse(Path::new("Corefile"), corefile.to_owned(), &NoFiles);
        let mut problems = parsed.diagnostics;
        let planning =
            Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &|_| None, memory: None };
        let plan = config::plan(&parsed.corefile, &planning, &mut problems).expect("the Corefile is right");
        let registry = Registry::new();
        let mut process = Capabilities::default();
        let clusters: Rc<dyn Clusters> = Rc::new(small_cluster());
        process.provide(clusters);
        let stores: Rc<dyn Stores> = Rc::new(small_store());
        process.provide(stores);
        process.provide(LocalAddresses(Arc::from([])));
        let reload_state = ReloadState::default();
        let context = BuildContext { registry: &registry, files: &NoDisk, process: &process, reload_state };
        let built = plan.build(context).expect("it can be built");
        let mut worker = Worker::new(&registry, Box::new(Stopped), 7);
        Server { generation: built.generation, transaction: worker.take_transaction(), worker }
    }

    /// Processes a query. Returns the response code, or `None` if the query waits for an upstream.
    fn ask(&mut self, packet: &[u8]) -> Option<Rcode> {
        self.transaction.query.packet.clear();
        self.transaction.query.packet.extend_from_slice(packet);
        self.transaction.query.peer = PeerInfo::default();
        self.transaction.query.received = Stopped.now();
        if self.generation.receive(ListenerId(0), &mut self.transaction, &mut self.worker) == Progress::Waiting {
            return None;
        }
        let Transaction { query, response, .. } = &mut *self.transaction;
        response.finish(query);
        let rcode = response.rcode();
        self.worker.take_log(|events| net::log_queue().push(events));
        Some(rcode)
    }

    /// Sends each query twice, and panics if the second one allocates or has another response code than expected.
    fn answers_without_allocating(&mut self, cases: &[(&str, Vec<u8>, Rcode)]) {
        for (what, packet, rcode) in cases {
            // Buffers grow to the largest answer once, and a thread's first read of a table prepares the next ones.
            assert_eq!(self.ask(packet), Some(*rcode), "{what}");
            let before = ALLOCATIONS.with(Cell::get);
            assert_eq!(self.ask(packet), Some(*rcode), "{what}");
            assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0, "{what} allocates");
        }
    }
}

fn query(name: &str, qtype: Type, qclass: Class) -> Vec<u8> {
    let header = Header { id: 7, flags: Flags::default().with_recursion_desired(true), ..Header::default() };
    let mut message = MessageBuf::new();
    message.start(header, Some((Name::from_text(name).unwrap().as_ref(), qtype, qclass)));
    let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    message.finish(Some(opt), std::iter::empty()).to_vec()
}

/// Returns an upstream's response to `www.example.org. A`.
fn reply() -> Vec<u8> {
    let mut message = MessageBuf::new();
    let name = Name::from_text("www.example.org.").unwrap();
    let flags = Flags::default().with_response(true).with_recursion_available(true);
    message.start(Header { flags, ..Header::default() }, Some((name.as_ref(), Type::A, Class::IN)));
    message.push_a(Section::Answer, Owner::Question, 300, [192, 0, 2, 80].into());
    message.push_a(Section::Answer, Owner::Question, 300, [192, 0, 2, 81].into());
    let bytes = message.finish(None, std::iter::empty()).to_vec();
    assert!(Message::parse(&bytes).is_ok());
    bytes
}

#[test]
fn answers_known_names_without_allocating() {
    let mut server = Server::new(COREFILE);
    let external = query("www.example.org.", Type::A, Class::IN);
    assert_eq!(server.ask(&external), None, "nothing is cached yet");
    let progress = server.generation.resume(
        &mut server.transaction,
        &Resolved::Reply(Reply::parse(reply()).unwrap()),
        &mut server.worker,
    );
    assert_eq!(progress, Progress::Answered);

    let cases = [
        ("a service", query("web.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("its missing family", query("web.shop.svc.cluster.local.", Type::AAAA, Class::IN), Rcode::NOERROR),
        ("a port", query("_http._tcp.web.shop.svc.cluster.local.", Type::SRV, Class::IN), Rcode::NOERROR),
        ("a headless service", query("db.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("its ports", query("_http._tcp.db.shop.svc.cluster.local.", Type::SRV, Class::IN), Rcode::NOERROR),
        ("an endpoint", query("10-1-0-2.db.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("a pod", query("10-1-0-2.shop.pod.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("an address", query("1.0.96.10.in-addr.arpa.", Type::PTR, Class::IN), Rcode::NOERROR),
        ("a search path miss", query("www.example.org.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NXDOMAIN),
        ("a cached answer", external, Rcode::NOERROR),
        ("a zone of others", query("example.com.", Type::A, Class::IN), Rcode::REFUSED),
        ("malformed", vec![0; 12], Rcode::FORMERR),
    ];
    server.answers_without_allocating(&cases);
}

#[test]
fn answers_logged_queries_without_allocating() {
    let mut server = Server::new(&COREFILE.replace("errors", "errors\n    log"));
    server.answers_without_allocating(&[
        ("a service", query("web.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("no service", query("lost.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NXDOMAIN),
    ]);
    let mut events = engine::log::EventBuffer::new(net::LOG_QUEUE_MAX);
    net::log_queue().take(&mut events, Some(Duration::ZERO));
    let logged = events.events().filter(|event| event.to_string().contains(".shop.svc.cluster.local. udp")).count();
    assert_eq!(logged, 4, "each query is logged");
}

#[test]
fn answers_outside_the_sample_of_shadow_without_allocating() {
    let mut server = Server::new(&COREFILE.replace("errors", "errors\n    shadow 192.0.2.10 {\n sample 1/1000000\n }"));
    server.answers_without_allocating(&[
        ("a service", query("web.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NOERROR),
        ("no service", query("lost.shop.svc.cluster.local.", Type::A, Class::IN), Rcode::NXDOMAIN),
    ]);
}

#[test]
fn answers_with_autopath_without_allocating() {
    let mut server = Server::new(SEARCHING);
    let name = |name: &str, qtype| query(name, qtype, Class::IN);
    server.answers_without_allocating(&[
        ("a service", name("web.shop.svc.cluster.local.", Type::A), Rcode::NOERROR),
        ("its missing family", name("web.shop.svc.cluster.local.", Type::AAAA), Rcode::NOERROR),
        ("an endpoint that is not there", name("db-9.db.shop.svc.cluster.local.", Type::A), Rcode::NXDOMAIN),
        ("no service", name("lost.shop.svc.cluster.local.", Type::A), Rcode::NXDOMAIN),
        ("a service from outside", name("web.shop.example.org.", Type::A), Rcode::NOERROR),
        ("its address", name("9.2.0.192.in-addr.arpa.", Type::PTR), Rcode::NOERROR),
        ("one without an address there", name("db.shop.example.org.", Type::A), Rcode::NXDOMAIN),
    ]);
}

#[test]
fn answers_mesh_hosts_without_allocating() {
    let mut server = Server::new(MESH);
    let cases = [
        ("a host", "pay.global.", Type::A, Rcode::NOERROR),
        ("its missing family", "pay.global.", Type::AAAA, Rcode::NOERROR),
        ("a type that it does not have", "pay.global.", Type::TXT, Rcode::NOERROR),
        ("a wildcard", "a.b.pay.global.", Type::A, Rcode::NOERROR),
        ("a name above hosts", "global.", Type::A, Rcode::NOERROR),
        ("a host that is not shown", "own.global.", Type::A, Rcode::NXDOMAIN),
        ("no host", "a.very.long.name.of.no.host.global.", Type::A, Rcode::NXDOMAIN),
        ("a name of others", "www.example.org.", Type::A, Rcode::NOERROR),
    ];
    let ask = |(what, name, qtype, rcode)| (what, query(name, qtype, Class::IN), rcode);
    server.answers_without_allocating(&cases.map(ask));
}

#[test]
fn answers_etcd_records_without_allocating() {
    let mut server = Server::new("test in-addr.arpa {\n    cache\n    etcd\n}\n");
    let cases = [
        ("a record", "one.test.", Type::A, Rcode::NOERROR),
        ("its missing family", "one.test.", Type::AAAA, Rcode::NOERROR),
        ("several records", "web.test.", Type::A, Rcode::NOERROR),
        ("many records", "many.test.", Type::A, Rcode::NOERROR),
        ("a wildcard", "*.test.", Type::AAAA, Rcode::NOERROR),
        ("an alias", "alias.test.", Type::A, Rcode::NOERROR),
        ("the alias itself", "alias.test.", Type::CNAME, Rcode::NOERROR),
        ("services", "web.test.", Type::SRV, Rcode::NOERROR),
        ("many services", "many.test.", Type::SRV, Rcode::NOERROR),
        ("mail", "web.test.", Type::MX, Rcode::NOERROR),
        ("a text", "3.web.test.", Type::TXT, Rcode::NOERROR),
        ("an address", "1.1.0.10.in-addr.arpa.", Type::PTR, Rcode::NOERROR),
        ("name servers", "test.", Type::NS, Rcode::NOERROR),
        ("the zone", "test.", Type::A, Rcode::NOERROR),
        ("no such name", "none.test.", Type::A, Rcode::NXDOMAIN),
    ];
    let ask = |(what, name, qtype, rcode)| (what, query(name, qtype, Class::IN), rcode);
    server.answers_without_allocating(&cases.map(ask));
}

/// Corefile with plugins that process each query: access control, and rewriting of queries and answers.
const RULES: &str = ". {
    view all {
        expr incidr(client_ip(), '::/0') && !do()
    }
    metadata
    bufsize 1232
    nsid
    local
    any
    chaos
    rewrite name other.test www.test
    rewrite type TXT A
    rewrite ttl regex ^www 60
    acl {
        block net 10.0.0.0/8
        filter type MX
        block type SRV
    }
    header {
        response set ra
    }
    minimal
    template IN A unrelated.test
    hosts /nonexistent {
        192.0.2.1 www.test
    }
}
";

#[test]
fn applies_rules_without_allocating() {
    let mut server = Server::new(RULES);
    let cases = [
        ("no rule", "www.test.", Type::A, Rcode::NOERROR),
        ("another name", "other.test.", Type::A, Rcode::NOERROR),
        ("another type", "www.test.", Type::TXT, Rcode::NOERROR),
        ("blocked", "www.test.", Type::SRV, Rcode::REFUSED),
        ("filtered", "www.test.", Type::MX, Rcode::NOERROR),
        ("ANY", "www.test.", Type::ANY, Rcode::NOERROR),
        ("this host", "localhost.", Type::AAAA, Rcode::NOERROR),
    ];
    let ask = |(what, name, qtype, rcode)| (what, query(name, qtype, Class::IN), rcode);
    server.answers_without_allocating(&cases.map(ask));
}
