//! Tests of the tap with a whole generation: what a worker copies, and what it leaves out.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use metrics::Registry;
use wire::{Class, EdeCode, Header, MessageBuf, Name, NameRef, Owner, Rcode, Section, Type};

use super::*;
use crate::{
    Block, BlockId, Chain, Clock, Failure, Generation, Hooks, Instant, Listener, ListenerId, PeerInfo, Plugin, Query,
    Response, ServerMetrics, Site, SiteId, Step, Transport, Verdict, Worker, Zones,
};

/// Plugin whose answer depends on the first label.
struct Answer;

impl Plugin for Answer {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        match query.key().labels().next().unwrap_or_default() {
            b"missing" => {
                response.set_rcode(Rcode::NXDOMAIN);
                Verdict::Missing
            }
            b"broken" => Verdict::Fail(Failure::servfail(EdeCode::NETWORK_ERROR, "broken")),
            b"silent" => Verdict::Drop,
            b"retried" => {
                for address in ["192.0.2.1:53", "192.0.2.2:53", "192.0.2.1:53"] {
                    query.set_upstream(address.parse().expect("an address"));
                }
                Verdict::Done
            }
            b"again" => {
                for _ in 0..2 {
                    query.set_upstream("192.0.2.1:53".parse().expect("an address"));
                }
                Verdict::Done
            }
            b"rewritten" => {
                query.set_name(NameRef::ROOT);
                query.restore_question();
                Verdict::Done
            }
            _ => {
                response.message.push_a(Section::Answer, Owner::Question, 60, [192, 0, 2, 1].into());
                Verdict::Done
            }
        }
    }
}

/// Clock that is 5 ms after the arrival of every query, and counts how often it is read.
#[derive(Clone, Default)]
struct Late(Rc<Cell<usize>>);

impl Clock for Late {
    fn now(&self) -> Instant {
        self.0.set(self.0.get() + 1);
        Instant::START + Duration::from_millis(5)
    }

    fn since_1970(&self) -> Duration {
        Duration::ZERO
    }
}

struct Watched {
    generation: Generation,
    worker: Worker,
    ring: Arc<Ring>,
    clock: Late,
    /// Arrival of the next query.
    received: Instant,
}

impl Watched {
    fn new() -> Watched {
        let registry = Registry::new();
        let mut listener = Listener::default();
        listener.router.add(NameRef::ROOT, SiteId(0));
        let zones = Some(["corp.", "."].iter().map(|zone| Name::from_text(zone).expect("a name")).collect());
        let (plugin, hooks, fallthrough) = (Arc::new(Answer), Hooks::DOWN, Zones::default());
        let step = Step {
            name: "k8s_external",
            order: 0,
            plugin,
            hooks,
            zones,
            fallthrough,
            refuses: crate::Refuses::Nothing,
        };
        let block = Block { chain: Chain::new(vec![step]), ..Block::default() };
        let site = Site { listener: ListenerId(0), block: BlockId(0), zone: ".".to_owned() };
        let metrics = ServerMetrics::new(&registry, ["dns://:53"].into_iter());
        let generation = Generation::new(vec![listener], vec![site], vec![block], metrics);
        let clock = Late::default();
        let (mut worker, ring) = (Worker::new(&registry, Box::new(clock.clone()), 7), Arc::new(Ring::default()));
        worker.attach_tap(Arc::clone(&ring));
        Watched { generation, worker, ring, clock, received: Instant::START }
    }

    fn ask(&mut self, name: &str, qtype: Type, client: &str) {
        let mut packet = MessageBuf::new();
        let name = Name::from_text(name).expect("a name");
        packet.start(Header { id: 7, ..Header::default() }, Some((name.as_ref(), qtype, Class::IN)));
        self.send(packet.finish(None, [].into_iter()), client);
    }

    fn send(&mut self, packet: &[u8], client: &str) {
        let mut transaction = self.worker.take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(packet);
        let address: SocketAddr = client.parse().expect("an address");
        transaction.query.peer = PeerInfo { address, local: address, transport: Transport::Tcp, ..PeerInfo::default() };
        transaction.query.received = self.received;
        let _ = self.generation.receive(ListenerId(0), &mut transaction, &mut self.worker);
        self.worker.give_transaction(transaction);
    }

    /// Asks five different queries.
    fn ask_all(&mut self) {
        self.ask("www.Example.org.", Type::A, "10.0.0.1:1000");
        self.ask("missing.corp.", Type::AAAA, "10.0.1.2:1000");
        self.ask("broken.db.corp.", Type::A, "[2001:db8::1]:1000");
        self.ask("silent.corp.", Type::MX, "10.0.1.3:1000");
        // A header that announces a question, without one.
        self.send(&[0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], "[::ffff:10.0.1.4]:1000");
    }

    fn watch(&mut self, filter: Filter) {
        let mut filters = Filters::default();
        assert_eq!(filters.add(filter, 2), Some(2));
        self.worker.set_filters(Arc::new(filters));
    }

    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        drain(&[Arc::clone(&self.ring)], |words| records.push(Record::from_words(words)));
        records
    }
}

fn filter(conditions: &[(&str, &str)]) -> Filter {
    let mut filter = Filter::default();
    for (key, value) in conditions {
        filter.set(key, value).unwrap_or_else(|error| panic!("{key}={value}: {error}"));
    }
    filter
}

#[test]
fn copies_what_a_query_and_its_answer_were() {
    let mut watched = Watched::new();
    watched.ask_all();
    let records = watched.records();
    let [answered, missing, broken, silent, unread] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(answered.name(), b"\x03www\x07Example\x03org\0");
    assert_eq!((answered.qtype, answered.rcode, answered.answers), (Type::A, Rcode::NOERROR, 1));
    assert_eq!((answered.plugin(), answered.zone_len(), answered.took), ("k8s_external", 1, Duration::from_millis(5)));
    assert_eq!((answered.client, answered.transport), ("10.0.0.1:1000".parse().expect("an address"), Transport::Tcp));
    assert_eq!((answered.ede, answered.upstream, answered.flags), (None, None, RecordFlags::default()));
    assert_eq!((answered.reasons, answered.weight), (Reasons::SAMPLE, 1));
    assert_eq!((missing.rcode, missing.plugin(), missing.zone_len()), (Rcode::NXDOMAIN, "k8s_external", 6));
    assert_eq!((missing.reasons, missing.answers), (Reasons::SAMPLE, 0));
    assert_eq!((broken.rcode, broken.ede), (Rcode::SERVFAIL, Some(EdeCode::NETWORK_ERROR)));
    assert_eq!((broken.ede_text(), answered.ede_text()), ("broken", ""));
    assert_eq!((broken.plugin(), broken.reasons), ("k8s_external", Reasons::FAILURE));
    assert_eq!(broken.client, "[2001:db8::1]:1000".parse().expect("an address"));
    assert!(silent.flags.has(RecordFlags::DROPPED) && silent.reasons == Reasons::FAILURE);
    assert!(unread.flags.has(RecordFlags::UNREAD) && unread.name().is_empty() && unread.plugin().is_empty());
    assert_eq!((unread.rcode, unread.qtype), (Rcode::FORMERR, Type(0)));
    assert_eq!(unread.client, "10.0.1.4:1000".parse().expect("an address"));
}

#[test]
fn says_how_often_upstreams_were_asked_and_that_the_question_was_rewritten() {
    let mut watched = Watched::new();
    for name in ["retried.corp.", "again.corp.", "rewritten.corp.", "www.corp."] {
        watched.ask(name, Type::A, "10.0.0.1:1000");
    }
    let records = watched.records();
    let [retried, again, rewritten, usual] = records.as_slice() else { panic!("{records:?}") };
    let upstream = Some("192.0.2.1:53".parse().expect("an address"));
    assert_eq!((retried.upstream, retried.attempts, retried.transport), (upstream, 3, Transport::Tcp));
    assert!(retried.flags.has(RecordFlags::OTHER_UPSTREAMS) && !again.flags.has(RecordFlags::OTHER_UPSTREAMS));
    assert_eq!((again.upstream, again.attempts), (upstream, 2));
    assert!(rewritten.flags.has(RecordFlags::REWRITTEN) && rewritten.name() == b"\x09rewritten\x04corp\0");
    assert!(!retried.flags.has(RecordFlags::REWRITTEN) && !usual.flags.has(RecordFlags::REWRITTEN));
    assert_eq!((usual.upstream, usual.attempts), (None, 0));
}

#[test]
fn the_records_of_several_workers_are_read_in_order() {
    let mut workers = [Watched::new(), Watched::new(), Watched::new()];
    let order = [2, 0, 0, 2, 0];
    for (at, worker) in order.into_iter().enumerate() {
        workers[worker].received = Instant::START + Duration::from_millis(at as u64);
        workers[worker].ask(&format!("n{at}.test."), Type::A, "10.0.0.1:1000");
    }
    let rings = workers.each_ref().map(|watched| Arc::clone(&watched.ring));
    let mut read = Vec::new();
    drain(&rings, |words| read.push(Record::from_words(Record::used(words)).name()[2] - b'0'));
    assert_eq!(read, [0, 1, 2, 3, 4]);
    drain(&rings, |_| panic!("nothing is left"));
}

#[test]
fn filters_select_queries_by_their_conditions() {
    type Conditions<'a> = &'a [(&'a str, &'a str)];
    const ALL: &[usize] = &[0, 1, 2, 3, 4];
    let table: &[(Conditions<'_>, &[usize])] = &[
        (&[], ALL),
        (&[("name", "www.example.ORG")], &[0]),
        (&[("name", "*.corp.")], &[1, 2, 3]),
        (&[("name", "*.db.corp")], &[2]),
        (&[("name", "db.corp.")], &[]),
        (&[("name", "orp.,*.rp.")], &[]),
        (&[("name", "*.")], &[0, 1, 2, 3]),
        (&[("name", "!*.corp.")], &[0, 4]),
        (&[("zone", "missing.corp.")], &[1]),
        (&[("zone", "corp.,org.")], &[0, 1, 2, 3]),
        (&[("zone", ".")], &[0, 1, 2, 3]),
        (&[("type", "A,mx")], &[0, 2, 3]),
        (&[("type", "!A")], &[1, 3, 4]),
        (&[("type", "TYPE28")], &[1]),
        (&[("rcode", "NXDOMAIN,SERVFAIL")], &[1, 2]),
        (&[("rcode", "!NOERROR,NXDOMAIN")], &[2, 3, 4]),
        (&[("rcode", "dropped")], &[3]),
        (&[("rcode", "FORMERR")], &[4]),
        (&[("plugin", "k8s_external")], &[0, 1, 2, 3]),
        (&[("plugin", "!k8s_external")], &[4]),
        (&[("plugin", "forward")], &[]),
        (&[("client", "10.0.0.1")], &[0]),
        (&[("client", "10.0.1.0/24")], &[1, 3, 4]),
        (&[("client", "2001:db8::/32,10.0.0.1")], &[0, 2]),
        (&[("client", "!10.0.0.0/8")], &[2]),
        (&[("slow", "0.005")], ALL),
        (&[("slow", "0.0051")], &[]),
        (&[("name", "*.corp."), ("type", "A")], &[2]),
        (&[("rcode", "!NOERROR"), ("client", "10.0.1.2"), ("slow", "0.001")], &[1]),
    ];
    for (conditions, expected) in table {
        let mut watched = Watched::new();
        watched.watch(filter(conditions));
        watched.ask_all();
        let records = watched.records();
        let selected = |(at, record): (usize, &Record)| record.reasons.has_tail(2).then_some(at);
        let by_worker: Vec<usize> = records.iter().enumerate().filter_map(selected).collect();
        assert_eq!(by_worker, *expected, "{conditions:?}");
        assert_eq!(watched.ring.selected(2), expected.len() as u64, "{conditions:?}");
        let again = |(at, record): (usize, &Record)| filter(conditions).selects_record(record).then_some(at);
        assert_eq!(records.iter().enumerate().filter_map(again).collect::<Vec<_>>(), *expected, "{conditions:?}");
    }
}

#[test]
fn a_filter_that_selects_nothing_does_not_read_the_clock() {
    let mut watched = Watched::new();
    watched.ring.set_sample_every(1000);
    watched.watch(filter(&[("name", "no.such.test.")]));
    let mut reads_after = |name| {
        watched.ask(name, Type::A, "10.0.0.1:1000");
        watched.clock.0.get()
    };
    // The first query of a worker is part of the sample.
    let [first, second, third] = ["www.test.", "www.test.", "no.such.test."].map(&mut reads_after);
    assert_eq!((first, second), (1, 1));
    assert_eq!(third, 2, "a record has the duration");
}

#[test]
fn a_sample_that_begins_again_counts_the_next_query_once() {
    let mut watched = Watched::new();
    watched.ring.set_sample_every(1000);
    watched.ask("first.test.", Type::A, "10.0.0.1:1000");
    watched.ring.set_sample_every(1);
    watched.ask("left-out.test.", Type::A, "10.0.0.1:1000");
    watched.worker.restart_sample();
    watched.ask("next.test.", Type::A, "10.0.0.1:1000");
    watched.ask("last.test.", Type::A, "10.0.0.1:1000");
    let weights: Vec<(u32, u8)> = watched.records().iter().map(|record| (record.weight, record.name()[1])).collect();
    assert_eq!(weights, [(1, b'f'), (1, b'n'), (1, b'l')]);
}

#[test]
fn a_filter_by_addresses_selects_only_those() {
    let mut watched = Watched::new();
    let mut own = Filter::default();
    own.set_addresses(["10.0.1.4", "10.0.0.1"].map(|address| address.parse().expect("an address")).to_vec());
    watched.watch(own);
    watched.ask_all();
    let selected: Vec<bool> = watched.records().iter().map(|record| record.reasons.has_tail(2)).collect();
    assert_eq!(selected, [true, false, false, false, true]);
}

#[test]
fn refuses_conditions_that_are_not_understood() {
    for (key, value, message) in [
        ("nmae", "x", "there is no filter `nmae`"),
        ("name", "a..b", "`a..b` is not a domain name, or `*.` and a domain name"),
        ("name", "", "`` is not a domain name, or `*.` and a domain name"),
        ("type", "A,", "`` is not a record type such as AAAA"),
        ("rcode", "NOSUCH", "`NOSUCH` is not a response code such as NXDOMAIN, or DROPPED"),
        ("client", "10.0.0.0/33", "`10.0.0.0/33` is not an IP address or a network such as 10.0.0.0/8"),
        ("slow", "-1", "`-1` is not a number of seconds"),
        ("sample", "0", "`0` is not a number from 1 to 1000000"),
    ] {
        let error = Filter::default().set(key, value).expect_err(key);
        assert_eq!(error.to_string(), message);
    }
    let many = ["a"; 33].join(",");
    assert_eq!(Filter::default().set("plugin", &many), Err(FilterError::TooMany));
}

#[test]
fn the_text_of_an_error_has_the_room_that_the_name_leaves() {
    let mut watched = Watched::new();
    // Names that leave a word for the text, and none.
    for len in [NAME_MAX - 12, NAME_MAX] {
        let rest = len - "broken".len() - 2;
        let (one, other) = (rest / 2, rest - rest / 2);
        watched.ask(&format!("broken.{}.{}.", "a".repeat(one - 1), "b".repeat(other - 1)), Type::A, "10.0.0.1:1000");
    }
    let records = watched.records();
    let texts: Vec<&str> = records.iter().map(Record::ede_text).collect();
    assert!(records.iter().all(|record| !record.flags.has(RecordFlags::NAME_CUT)), "{records:?}");
    assert_eq!(texts, ["broken", ""]);
    assert_eq!(records[1].name().len(), NAME_MAX);
}

#[test]
fn cuts_long_names() {
    let mut watched = Watched::new();
    let long = format!("{}.{}.corp.", "a".repeat(63), "b".repeat(63));
    watched.ask(&long, Type::A, "10.0.0.1:1000");
    let records = watched.records();
    assert!(records[0].flags.has(RecordFlags::NAME_CUT));
    assert_eq!(records[0].name().len(), NAME_MAX);
    assert_eq!(records[0].name()[..4], *b"\x3faaa");
}

#[test]
fn the_weights_of_the_sample_add_up_to_the_queries() {
    let mut watched = Watched::new();
    watched.ring.set_sample_every(16);
    let mut sampled = 0;
    for round in 0..400 {
        for at in 0..8 {
            // The eight queries of a search path, again and again.
            watched.ask(&format!("n{at}.corp."), Type::A, "10.0.0.1:1000");
        }
        let records = watched.records();
        sampled += records.iter().map(|record| u64::from(record.weight)).sum::<u64>();
        let asked = (round + 1) * 8;
        assert!(sampled <= asked && asked - sampled < 25, "{sampled} of {asked}");
    }
}

#[test]
fn a_sample_has_no_bias_for_queries_that_repeat() {
    let mut watched = Watched::new();
    watched.ring.set_sample_every(16);
    let mut counts = [0u32; 8];
    for _ in 0..16_000 {
        for at in 0..8 {
            watched.ask(&format!("n{at}.corp."), Type::A, "10.0.0.1:1000");
        }
        for record in watched.records() {
            counts[usize::from(record.name()[2] - b'0')] += record.weight;
        }
    }
    // 1,000 samples for each; six standard deviations are below 20 %.
    assert!(counts.iter().all(|count| count.abs_diff(16_000) < 3_200), "{counts:?}");
}

#[test]
fn a_full_ring_loses_records_and_counts_them() {
    let mut watched = Watched::new();
    watched.ring.set_sample_every(1000);
    watched.watch(filter(&[("type", "A")]));
    for _ in 0..2 * CAPACITY_MAX {
        watched.ask("www.example.org.", Type::A, "10.0.0.1:1000");
    }
    let lost = watched.ring.tail_lost(2);
    assert!((CAPACITY_MAX as u64..=CAPACITY_MAX as u64 + 256).contains(&lost), "{lost}");
    // Failures still have room.
    for _ in 0..200 {
        watched.ask("broken.corp.", Type::AAAA, "10.0.0.1:1000");
    }
    assert_eq!(watched.ring.lost(), 0);
    let records = watched.records();
    assert_eq!(records.iter().filter(|record| record.reasons.is_failure()).count(), 200);
    for _ in 0..CAPACITY_MAX + 5 {
        watched.ask("broken.corp.", Type::AAAA, "10.0.0.1:1000");
    }
    assert_eq!((watched.records().len(), watched.ring.lost()), (CAPACITY_MAX, 5));
}

#[test]
fn the_rings_of_many_workers_are_small() {
    for (workers, capacity) in [(0, 1024), (1, 1024), (8, 1024), (16, 512), (64, 128), (1024, 128)] {
        assert_eq!(Ring::new(workers).capacity(), capacity, "{workers} workers");
    }
    // The positions do not depend on a power of two.
    let (ring, words) = (Arc::new(Ring::new(9)), |number| [number; WORDS]);
    assert_eq!(ring.capacity(), 910);
    for round in 0..3 {
        (0..911).for_each(|number| ring.push(Reasons::FAILURE, 1, || words(number)));
        let mut taken = Vec::new();
        drain(std::slice::from_ref(&ring), |words| taken.push(words[0]));
        assert_eq!((taken, ring.lost()), ((0..910).collect(), round + 1));
    }
}

#[test]
fn shows_a_sample_of_the_selected_queries() {
    let mut watched = Watched::new();
    watched.watch(filter(&[("sample", "10")]));
    let mut shown = 0;
    for _ in 0..5_000 {
        watched.ask("www.example.org.", Type::A, "10.0.0.1:1000");
        shown += watched.records().iter().filter(|record| record.reasons.has_tail(2)).count();
    }
    assert!((450..=550).contains(&shown), "{shown}");
    assert_eq!(watched.ring.selected(2), 5_000);
}
