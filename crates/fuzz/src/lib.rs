//! What may come from outside, thrown at those who read it: a function for each kind, which panics if something is wrong.
//!
//! `cargo xtask fuzz` looks for inputs that do so, guided by what they reach; `tests/corpus.rs` runs the inputs in `corpus`
//! with the other tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "panicking is how a finding is told"
)]

pub mod files;
pub mod objects;
pub mod records;
pub mod zone;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use ::corefile::{NoFiles, Style, render};
use cluster::Clusters;
use cluster::scenario::Script;
use engine::Planning;
use testkit::{Arrival, Entry, Names, Reaction, Server};
use wire::{Header, Message};

/// A function that reads input.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("query", query),
    ("reply", reply),
    ("corefile", corefile),
    ("zone", zone::file),
    ("transfer", zone::transfer),
    ("differences", zone::differences),
    ("objects", objects::decode),
    ("skydns", records::skydns),
    ("hosts", files::hosts),
    ("template", files::template),
    ("expression", files::expression),
    ("resolv", files::resolv),
    ("weights", files::weights),
    ("geoip", files::geoip),
    ("secrets", files::secrets),
    ("key", files::key),
    ("signed", files::signed),
];

/// Octets of the header before the counts: id and flags; and of the whole header.
const COUNTS_AT: usize = 4;
const HEADER: usize = 12;
/// Longer than anything in the server waits for an upstream.
const PATIENCE: Duration = Duration::from_secs(20);
/// A query for `www.example.org. A`.
const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03org\x00\x00\x01\x00\x01";

/// A packet from a client, to a server like kubeadm's: an answer is a message to that question and fits, or there is none.
pub fn query(packet: &[u8]) {
    thread_local! {
        static SERVER: RefCell<Server> = RefCell::new(server());
    }
    SERVER.with_borrow_mut(|server| ask(server, packet));
}

/// What an upstream says to a question: `input` is its flags, its counts, and all that follows the question.
pub fn reply(input: &[u8]) {
    thread_local! {
        static SERVER: RefCell<Server> = RefCell::new(server());
    }
    let Some((head, rest)) = input.split_at_checked(HEADER - 2) else { return };
    let counts = COUNTS_AT - 2;
    let octets = [&head[..counts], &QUERY[COUNTS_AT..COUNTS_AT + 2], &head[counts + 2..], &QUERY[HEADER..], rest];
    SERVER.with_borrow_mut(|server| {
        server.outside.upstreams.set(UPSTREAM, vec![entry(Reaction::Octets(octets.concat()))]);
        ask(server, QUERY);
        // What is cached of it must be as good the second time, and when its time is over.
        ask(server, QUERY);
        server.pass(Duration::from_secs(40));
    });
}

fn ask(server: &mut Server, packet: &[u8]) {
    let ticket = server.ask(packet, Arrival::default());
    let outcome = server.wait_for(&ticket, PATIENCE).expect("every query comes to an end");
    if let Some(answer) = outcome.answer {
        check_answer(packet, &answer);
    }
}

fn check_answer(packet: &[u8], answer: &[u8]) {
    let asked = Header::read(packet).expect("nothing but a query is answered");
    let header = Header::read(answer).expect("an answer has a header");
    assert!(!asked.flags.is_response(), "a response is answered");
    assert!(header.flags.is_response() && header.id == asked.id, "{header:?}");
    assert!(answer.len() <= usize::from(u16::MAX), "{} octets", answer.len());
    let message = Message::parse(answer).expect("an answer is a message");
    assert!(message.records().all(|record| record.rdata().len() <= answer.len()));
}

const UPSTREAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)), 53);

/// A server like kubeadm's, with a small cluster and an upstream that refuses.
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
    Entry { names: Names::Any, qtype: None, over: None, delay: Duration::ZERO, once: false, reaction }
}

/// A Corefile: whatever is wrong with it is said, at a place that is in it, and what is right can be planned.
pub fn corefile(text: &[u8]) {
    let text = String::from_utf8_lossy(text).into_owned();
    let parsed = ::corefile::parse(Path::new("Corefile"), text, &NoFiles);
    let mut problems = parsed.diagnostics;
    let planning = Planning { slots: plugins::DIRECTIVES, dns_port: 53, interface: &|_| None };
    let plan = engine::plan(&parsed.corefile, &planning, &mut problems);
    let broken = problems.iter().any(::corefile::Diagnostic::is_error);
    assert!(plan.is_some() || broken, "there is no plan, and nobody says why");
    for style in [Style::Plain, Style::Color] {
        let shown = render(&problems, &parsed.corefile.sources, style);
        assert_eq!(shown.is_empty(), problems.is_empty());
    }
}
