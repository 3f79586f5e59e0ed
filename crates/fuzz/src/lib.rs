//! Fuzz targets for everything that parses untrusted input. Each target is a function that panics on a finding.
//!
//! `cargo xtask fuzz` searches for such inputs with coverage guidance. `tests/corpus.rs` runs the inputs in `corpus`
//! with the other tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a panic reports a finding"
)]

pub mod control;
pub mod files;
pub mod gzip;
pub mod objects;
pub mod oracle;
pub mod proxy;
pub mod quic;
pub mod records;
pub mod relay;
pub mod snapshot;
pub mod stream;
pub mod zone;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use ::corefile::{NoFiles, Style, render};
use cluster::Clusters;
use cluster::scenario::Script;
use config::Planning;
use testkit::{Arrival, Entry, Names, Reaction, Server};
use wire::{Header, Message};

/// Fuzz target: a function that processes an input.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("query", query),
    ("reply", reply),
    ("stream", stream::stream),
    ("mirror", stream::mirror),
    ("corefile", corefile),
    ("zone", zone::file),
    ("transfer", zone::transfer),
    ("differences", zone::differences),
    ("update", zone::update),
    ("journal", zone::journal),
    ("objects", objects::decode),
    ("snapshot", snapshot::log),
    ("gzip", gzip::members),
    ("skydns", records::skydns),
    ("hosts", files::hosts),
    ("template", files::template),
    ("expression", files::expression),
    ("resolv", files::resolv),
    ("control", control::control),
    ("weights", files::weights),
    ("geoip", files::geoip),
    ("secrets", files::secrets),
    ("key", files::key),
    ("signed", files::signed),
    ("http3", quic::http3),
    ("doq", quic::doq),
    ("doh", quic::doh),
    ("proxy", proxy::header),
    ("relay", relay::relay),
];

/// Offset in bytes of the counts in the header (after id and flags), and length of the header.
const COUNTS_AT: usize = 4;
const HEADER: usize = 12;
/// Longer than any wait for an upstream in the server.
const PATIENCE: Duration = Duration::from_secs(20);
/// Query for `www.example.org. A`.
const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03org\x00\x00\x01\x00\x01";

/// Client packet to a server configured like kubeadm's. The server must send a valid response or none.
pub fn query(packet: &[u8]) {
    thread_local! {
        static SERVER: RefCell<Server> = RefCell::new(server());
    }
    SERVER.with_borrow_mut(|server| ask(server, packet));
}

/// Upstream response: `input` is the header after the id (QDCOUNT is ignored), and everything after the question.
pub fn reply(input: &[u8]) {
    thread_local! {
        static SERVER: RefCell<Server> = RefCell::new(server());
    }
    let Some((head, rest)) = input.split_at_checked(HEADER - 2) else { return };
    let counts = COUNTS_AT - 2;
    let bytes = [&head[..counts], &QUERY[COUNTS_AT..COUNTS_AT + 2], &head[counts + 2..], &QUERY[HEADER..], rest];
    let bytes = bytes.concat();
    oracle::compare(&bytes);
    SERVER.with_borrow_mut(|server| {
        server.io.upstreams.set(UPSTREAM, vec![entry(Reaction::Bytes(bytes))]);
        ask(server, QUERY);
        // Ask again for the cached answer, and let it expire.
        ask(server, QUERY);
        server.pass(Duration::from_secs(40));
    });
}

fn ask(server: &mut Server, packet: &[u8]) {
    oracle::compare(packet);
    let ticket = server.ask(packet, Arrival::default());
    let outcome = server.wait_for(&ticket, PATIENCE).expect("every query ends");
    if let Some(answer) = outcome.answer {
        check_answer(packet, &answer);
        oracle::compare(&answer);
    }
}

fn check_answer(packet: &[u8], answer: &[u8]) {
    let asked = Header::read(packet).expect("nothing but a query is answered");
    let header = Header::read(answer).expect("an answer has a header");
    assert!(!asked.flags.is_response(), "a response is answered");
    assert!(header.flags.is_response() && header.id == asked.id, "{header:?}");
    assert!(answer.len() <= usize::from(u16::MAX), "{} bytes", answer.len());
    let message = Message::parse(answer).expect("an answer is a message");
    assert!(message.records().all(|record| record.rdata().len() <= answer.len()));
}

const UPSTREAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)), 53);

/// Creates a server configured like kubeadm's, with a small cluster and an upstream that refuses connections.
fn server() -> Server {
    let cluster = Script::default();
    cluster.play("ns shop");
    cluster.play("svc shop/web ips=10.96.0.1,fd00::1 ports=http:80/TCP,dns:53/UDP");
    cluster.play("svc shop/db ips=None");
    cluster.play("slice shop/db-1 of=db v4=10.1.0.1#db-0,10.1.0.2,!10.1.0.3 ports=pg:5432/TCP");
    cluster.play("svc shop/out external=www.example.org");
    cluster.play("svc shop/round external=round.shop.svc.cluster.local");
    let mut server = Server::new(plugins::DIRECTIVES);
    let clusters: Rc<dyn Clusters> = Rc::new(cluster);
    server.process.provide(clusters);
    server.load(COREFILE).expect("the Corefile is right");
    server
}

const COREFILE: &str = ".:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    hosts {
        192.0.2.1 one.test
        fallthrough
    }
    prometheus
    forward . 192.0.2.53
    cache 30 {
        serve_stale
    }
    loop
    loadbalance
    log
}
";

fn entry(reaction: Reaction) -> Entry {
    Entry { names: Names::Any, qtype: None, over: None, delay: Duration::ZERO, once: false, wrong_ids: 0, reaction }
}

/// Corefile: errors must be reported at a position in the file, and a Corefile without errors must yield a plan.
pub fn corefile(text: &[u8]) {
    let text = String::from_utf8_lossy(text).into_owned();
    let parsed = ::corefile::parse(Path::new("Corefile"), text, &NoFiles);
    let mut problems = parsed.diagnostics;
    let planning =
        Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &|_| None, memory: None };
    let plan = config::plan(&parsed.corefile, &planning, &mut problems);
    let broken = problems.iter().any(::corefile::Diagnostic::is_error);
    assert!(plan.is_some() || broken, "no plan and no error");
    for style in [Style::Plain, Style::Color] {
        let shown = render(&problems, &parsed.corefile.sources, style);
        assert_eq!(shown.is_empty(), problems.is_empty());
    }
}
