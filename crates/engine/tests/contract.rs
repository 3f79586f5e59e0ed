//! Tests of the plugin contract: minimal plugins, each with the hooks of a real one, and scenarios that run them.
//!
//! From top to bottom, as in a real chain: `tally` (counts queries and answers), `read` (reads a label), `observe`
//! (*trace*, *dnstap*), `dns64`, `sign` (*tsig*), `rename` and `rename_again` (*rewrite*), `onward` (`rewrite edns0`),
//! `autopath`, `fragile` (panics), `chase_above`, `stale` (*cache*), `chase` (follows CNAMEs), `directory` (*etcd*),
//! `stream` (*transfer*), and two directives of the testkit that answer. `docs/decisions/0003-plugin-contract.md`
//! records the conclusions.

#[path = "contract/autopath.rs"]
mod autopath;
#[path = "contract/chase.rs"]
mod chase;
#[path = "contract/directory.rs"]
mod directory;
#[path = "contract/dns64.rs"]
mod dns64;
#[path = "contract/fragile.rs"]
mod fragile;
#[path = "contract/observe.rs"]
mod observe;
#[path = "contract/onward.rs"]
mod onward;
#[path = "contract/read.rs"]
mod read;
#[path = "contract/rename.rs"]
mod rename;
#[path = "contract/sign.rs"]
mod sign;
#[path = "contract/stale.rs"]
mod stale;
#[path = "contract/stream.rs"]
mod stream;
#[path = "contract/tally.rs"]
mod tally;

use core::time::Duration;

use config::DirectiveEntry::{self, Available};
use config::Directives;
use testkit::{Answer, Arrival, Entry, Names, Outcome, Parsed, Question, Reaction, Server};
use wire::{Name, Opt, Type};

static ENTRIES: [DirectiveEntry; 18] = [
    Available(&tally::MANIFEST),
    Available(&read::MANIFEST),
    Available(&observe::MANIFEST),
    Available(&dns64::MANIFEST),
    Available(&sign::MANIFEST),
    Available(&rename::RENAME),
    Available(&rename::RENAME_AGAIN),
    Available(&onward::MANIFEST),
    Available(&autopath::MANIFEST),
    Available(&fragile::ENDING),
    Available(&fragile::MANIFEST),
    Available(&chase::CHASE_ABOVE),
    Available(&stale::MANIFEST),
    Available(&chase::CHASE),
    Available(&directory::MANIFEST),
    Available(&stream::MANIFEST),
    testkit::toys::RECORDS,
    testkit::toys::OUTWARD,
];

#[test]
fn plugins_pass_their_contract_scenarios() {
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract"), Directives::new(&ENTRIES), &[]);
}

/// Signing comes last: after truncation, after the EDNS options, and after the steps above have changed the answer.
#[test]
fn signs_responses_after_all_other_changes() {
    let records: String = (0..20).map(|number| format!("www.test. 60 IN A 192.0.2.{number}\n")).collect();
    let mut server = server(&format!(
        "test {{\ndns64\nsign\nrename {{\nold.test new.test\n}}\nfragile\nrecords {{\n{records}}}\n}}"
    ));
    for (name, qtype, udp_size, flags) in [
        ("www.test.", Type::A, None, "aa rd"),
        ("www.test.", Type::A, Some(512), "aa rd"),
        // Twenty addresses of 16 bytes do not fit into 512 bytes together with a signature.
        ("www.test.", Type::AAAA, None, "tc rd"),
        ("www.test.", Type::AAAA, Some(1232), "rd"),
        ("none.old.test.", Type::A, None, "aa rd"),
        ("down.test.", Type::A, Some(512), "rd"),
    ] {
        let opt = udp_size.map(|udp_size| Opt { udp_size, extended_rcode: 0, version: 0, dnssec_ok: false });
        let query = Question { opt, ..question(name, qtype) }.packet();
        let outcome = server.ask(&query, Arrival::default()).outcome();
        assert_signed(&query, outcome, flags, udp_size.unwrap_or(512));
    }
}

/// Includes an answer after the client timeout, while the exchange continues in the background.
#[test]
fn signs_responses_that_arrive_later() {
    let mut server = server("test {\nsign\nstale 30s {\nverify 200ms\n}\noutward 192.0.2.53\n}");
    let address = "192.0.2.53:53".parse().unwrap();
    let entry = |delay, reaction| Entry {
        names: Names::Any,
        qtype: None,
        over: None,
        delay,
        once: false,
        wrong_ids: 0,
        reaction,
    };
    let query = question("www.test.", Type::A).packet();
    for delay in [100, 150, 5_000].map(Duration::from_millis) {
        server.io.upstreams.set(address, vec![entry(delay, Reaction::Answer(Answer::default()))]);
        let ticket = server.ask(&query, Arrival::default());
        let outcome = server.wait_for(&ticket, Duration::from_secs(1));
        assert_eq!(outcome.as_ref().map(|outcome| outcome.took), Some(delay.min(Duration::from_millis(200))));
        assert_signed(&query, outcome, "rd", 1232);
        server.pass(Duration::from_secs(30));
    }
}

/// Each message of a zone transfer is signed.
#[test]
fn signs_every_message_of_a_zone_transfer() {
    let mut server = server("test {\nsign\nstream 3\n}");
    let query = question("all.test.", Type::AXFR).packet();
    let arrival = Arrival { transport: engine::Transport::Tcp, ..Arrival::default() };
    let outcome = server.ask(&query, arrival).outcome().unwrap();
    assert_eq!(outcome.more.len(), 2);
    for message in &outcome.more {
        let answer = Some(message.clone());
        assert_signed(&query, Some(Outcome { answer, ..outcome.clone() }), "aa rd", u16::MAX);
    }
}

/// With *debug*, a crash is for the debugger: a runtime that catches it would go on without the task of a socket.
#[test]
#[allow(clippy::disallowed_methods, reason = "the process that ends is one of its own")]
fn a_panic_ends_the_process_if_that_is_wanted() {
    use std::os::unix::process::ExitStatusExt;

    const NAME: &str = "a_panic_ends_the_process_if_that_is_wanted";
    if std::env::var_os(NAME).is_some() {
        server("test {\nending\nfragile\n}").ask(&question("down.test.", Type::A).packet(), Arrival::default());
        return;
    }
    let own = std::env::current_exe().expect("the path of this program");
    let child = std::process::Command::new(own).args(["--exact", NAME, "--nocapture"]).env(NAME, "").output().unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(6), "SIGABRT: {text}");
    assert!(text.contains("broke at down"), "{text}");
}

fn server(corefile: &str) -> Server {
    let mut server = Server::new(Directives::new(&ENTRIES));
    assert_eq!(server.load(corefile), Ok(()));
    server
}

fn question(name: &str, qtype: Type) -> Question {
    Question::new(Name::from_text(name).unwrap_or_default(), qtype)
}

fn assert_signed(query: &[u8], outcome: Option<Outcome>, flags: &str, size_max: u16) {
    let answer = outcome.and_then(|outcome| outcome.answer).unwrap_or_default();
    assert!(sign::verified(query, &answer), "{answer:02x?}");
    assert!(answer.len() <= usize::from(size_max), "{} bytes", answer.len());
    let parsed = Parsed::read(&answer).ok();
    assert_eq!(parsed.map(|parsed| parsed.flag_names().join(" ")).as_deref(), Some(flags));
}

/// Plugin that passes on every query.
struct Pass;

impl engine::Plugin for Pass {}

#[test]
fn refuses_more_plugins_than_a_query_has_notes_for() {
    let manifests = |count: usize| {
        let entries = (0..count).map(|number| {
            let build: config::options::Build<()> =
                |_, _| Ok(Some(config::setup::Part::new(Pass, engine::Hooks::DOWN)));
            let manifest = config::options::Manifest::new(format!("p{number}").leak(), "", || (), build);
            Available(Box::leak(Box::new(manifest)))
        });
        let entries: Vec<DirectiveEntry> = entries.collect();
        let lines: String = (0..count).map(|number| format!("p{number}\n")).collect();
        Server::new(Directives::new(entries.leak())).load(&format!(".:53 {{\n{lines}}}\n"))
    };
    assert_eq!(manifests(engine::STEPS_MAX), Ok(()));
    let refused = manifests(engine::STEPS_MAX + 1).expect_err("one too many");
    assert!(
        refused
            .0
            .contains("at most 64 plugins that answer queries; this one has 65 (`p64` is the first over the limit)"),
        "{refused}"
    );
}
