//! Scenarios with entries and workloads, and the claims that result.

use crate::mesh::object::ServiceEntry;
use crate::object::{Event, Meta, Object};
use crate::scenario::Stage;
use crate::{Kind, Reducer, Spec};

pub(super) const KINDS: [Kind; 3] = [Kind::ServiceEntry, Kind::WorkloadEntry, Kind::WorkloadPod];

fn play(text: &str) {
    Stage::new(&Spec::new(&KINDS, &[])).play(text);
}

#[test]
fn publishes_the_addresses_of_an_entry_for_its_hosts() {
    play(
        "entry shop/pay@1 hosts=pay.global,PAY.example.com addresses=10.0.0.1,10.0.0.2/32,fd00::1/128,10.1.0.0/16 resolution=DNS => added
         ? host pay.global = 10.0.0.1,10.0.0.2,fd00::1 of shop/pay
         ? host pay.example.com = 10.0.0.1,10.0.0.2,fd00::1 of shop/pay
         ? host other.global = none
         ? below global = true
         ? below pay.global = false
         ? hosts = 2
         entry shop/pay@2 hosts=pay.global addresses=10.0.0.9 resolution=DNS => updated
         ? host pay.global = 10.0.0.9 of shop/pay
         ? host pay.example.com = none
         ? below com = false
         -entry shop/pay => removed
         ? host pay.global = none
         ? below global = false
         ? hosts = 0",
    );
}

#[test]
fn uses_allocated_addresses_for_their_host_only() {
    play(
        "entry a/a hosts=one.global,two.global resolution=DNS allocated=240.240.0.1#one.global,2001:2::1#ONE.global,240.240.0.1#One.global,240.240.0.4#a..b,240.240.0.2#two.global,240.240.0.3#gone.global
         ? host one.global = 240.240.0.1,2001:2::1 of a/a
         ? host two.global = 240.240.0.2 of a/a
         entry a/a hosts=one.global resolution=DNS allocated=240.240.0.1 addresses=10.0.0.0/8
         ? host one.global = itself of a/a
         entry a/a hosts=one.global resolution=STATIC endpoints=10.1.0.1 allocated=240.240.0.9
         ? host one.global = 240.240.0.9 of a/a",
    );
}

#[test]
fn prefers_the_longest_matching_wildcard() {
    play(
        "entry a/one hosts=*.global addresses=10.0.0.1 resolution=DNS
         entry a/two hosts=*.test.global addresses=10.0.0.2 resolution=DNS
         entry a/three hosts=x.y.test.global addresses=10.0.0.3 resolution=DNS
         ? host a.global = 10.0.0.1 of a/one
         ? host a.b.c.global = 10.0.0.1 of a/one
         ? host test.global = 10.0.0.1 of a/one
         ? host a.test.global = 10.0.0.2 of a/two
         ? host x.y.test.global = 10.0.0.3 of a/three
         ? host y.test.global = 10.0.0.2 of a/two
         ? host global = none
         ? below global = true
         ? host a.globals = none
         -entry a/one
         ? host a.global = none
         ? host a.b.test.global = 10.0.0.2 of a/two",
    );
}

#[test]
fn prefers_the_oldest_entry_regardless_of_event_order() {
    let lines = [
        "entry b/x at=2024-01-01T00:00:00Z hosts=a.global addresses=10.0.0.1 resolution=DNS",
        "entry a/z at=2024-01-02T00:00:00Z hosts=a.global addresses=10.0.0.2 resolution=DNS",
        "entry a/y at=2024-01-02T00:00:00Z hosts=a.global addresses=10.0.0.3 resolution=DNS",
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut stage = Stage::new(&Spec::new(&KINDS, &[]));
        order.iter().for_each(|at| stage.play(lines[*at]));
        stage.play(
            "? host a.global = 10.0.0.1 of b/x
             -entry b/x
             ? host a.global = 10.0.0.3 of a/y
             -entry a/y
             ? host a.global = 10.0.0.2 of a/z",
        );
    }
}

#[test]
fn merges_listed_endpoints_with_selected_workloads() {
    play(
        "entry a/static hosts=s.global resolution=STATIC endpoints=10.1.0.1,unix:///run/x,,10.1.0.1,fd00::1
         ? host s.global = 10.1.0.1,fd00::1 of a/static
         entry a/names hosts=n.global resolution=DNS_ROUND_ROBIN endpoints=B.example.com,10.1.0.3,a.example.com
         ? host n.global = 10.1.0.3,b.example.com.,a.example.com. of a/names
         entry a/itself hosts=i.global resolution=DNS
         ? host i.global = itself of a/itself
         entry a/any hosts=*.any.global resolution=DYNAMIC_DNS
         ? host x.any.global = itself of a/any
         entry a/none hosts=none.global addresses=10.0.0.1 resolution=NONE endpoints=10.1.0.1 => added
         ? host none.global = 10.0.0.1 of a/none
         entry a/default hosts=default.global addresses=10.0.0.2,10.1.0.0/16 => added
         ? host default.global = 10.0.0.2 of a/default
         entry a/default hosts=default.global addresses=10.1.0.0/16 => removed
         ? host default.global = none
         entry a/nothing hosts=nothing.global allocated=240.240.0.1#nothing.global => nothing
         ? host nothing.global = none
         entry a/sel hosts=w.global resolution=STATIC selects=app:pay
         ? host w.global = nothing of a/sel
         workload a/vm1 ip=10.9.0.2 labels=app:pay,tier:1
         workload a/vm2 ip=10.9.0.1 labels=app:other,app:pay
         workload a/vm3 ip=10.9.0.3 labels=app:other
         workload a/vm4 ip=10.9.0.4 labels=app:pay unhealthy
         workload a/vm5 ip=vm.example.com labels=app:pay
         workload b/vm1 ip=10.9.0.5 labels=app:pay
         meshpod a/p1 ip=10.1.0.9,fd00::9 labels=app:pay
         meshpod a/p2 ip=10.1.0.10 labels=app:pay unready
         ? host w.global = 10.1.0.9,10.9.0.1,10.9.0.2,fd00::9 of a/sel
         meshpod a/p2 ip=10.1.0.10 labels=app:pay => updated
         workload a/vm3 ip=10.9.0.3 labels=app:pay
         -workload a/vm1
         -meshpod a/p1
         ? host w.global = 10.1.0.10,10.9.0.1,10.9.0.3 of a/sel
         entry a/sel hosts=w.global resolution=DNS selects=app:pay
         ? host w.global = 10.1.0.10,10.9.0.1,10.9.0.3,vm.example.com. of a/sel
         entry a/sel hosts=w.global resolution=STATIC selects=
         ? host w.global = 10.1.0.10,10.9.0.1,10.9.0.3 of a/sel",
    );
}

#[test]
fn shows_entries_only_to_clients_they_are_exported_to() {
    play(
        "meshpod a/p ip=10.1.0.1 captured
         meshpod b/p ip=10.1.0.2
         meshpod b/host ip=10.1.0.9 host
         entry a/all at=5 hosts=h.global resolution=DNS
         entry a/own at=1 hosts=h.global resolution=DNS exports=.
         entry a/b at=2 hosts=h.global resolution=DNS exports=b,c
         entry a/star at=4 hosts=s.global resolution=DNS exports=*
         entry a/nobody at=3 hosts=s.global resolution=DNS exports=~
         ? seen h.global by 10.1.0.1 = a/own
         ? seen h.global by 10.1.0.2 = a/b
         ? seen h.global by 10.1.0.3 = a/all
         ? seen h.global by 10.1.0.9 = a/all
         ? seen s.global by 10.1.0.1 = a/star
         ? client 10.1.0.1 = captured
         ? client 10.1.0.2 = known
         ? client 10.1.0.9 = unknown
         meshpod a/q ip=10.1.0.2
         ? client 10.1.0.2 = unknown
         -meshpod b/p
         ? client 10.1.0.2 = known
         ? seen h.global by 10.1.0.2 = a/own
         meshpod a/q ip=10.1.0.3
         ? client 10.1.0.2 = unknown
         ? client 10.1.0.3 = known",
    );
}

#[test]
fn relist_removes_entries_and_workloads_it_does_not_contain() {
    play(
        "? synced = false
         listing entry
         entry a/one@1 hosts=one.global resolution=STATIC selects=app:x
         entry a/two@1 hosts=two.global resolution=DNS
         listed entry
         listed workload
         listed meshpod
         ? synced = true
         listing workload
         workload a/vm@1 ip=10.9.0.1 labels=app:x
         listed workload
         ? host one.global = 10.9.0.1 of a/one
         listing entry
         entry a/one@1 hosts=one.global resolution=STATIC selects=app:x => nothing
         ~entry a/two
         listed entry => listed { swept: 0 }
         ? host two.global = itself of a/two
         listing entry
         entry a/one@1 hosts=one.global resolution=STATIC selects=app:x => nothing
         listed entry => listed { swept: 1 }
         ? host two.global = none
         listing workload
         listed workload => listed { swept: 1 }
         ? host one.global = nothing of a/one",
    );
}

/// Applies an entry without workloads and returns the resulting notes. Errors end with ` !`.
fn notes_of(entry: ServiceEntry<'_>) -> Vec<String> {
    let (mut reducer, _) = Reducer::new(&Spec::new(&KINDS, &[]));
    let meta = Meta { namespace: "shop", name: "pay", version: "" };
    reducer.apply(0, &Event::Applied(Object::ServiceEntry(ServiceEntry { meta, ..entry })), 1);
    reducer.take_notes().iter().map(|note| format!("{note}{}", if note.is_error() { " !" } else { "" })).collect()
}

#[test]
fn skips_and_reports_invalid_values() {
    let good = || ServiceEntry {
        hosts: vec!["pay.global", "*.test.global"],
        addresses: vec!["127.255.0.2", "10.0.0.0/8"],
        resolution: "DNS",
        ..ServiceEntry::default()
    };
    let mapped = ["adding DNS mapping: pay.global.->[127.255.0.2]", "adding DNS mapping: .test.global.->[127.255.0.2]"];
    let part = |what: &str| format!("Ignoring a part of service entry shop/pay: {what} !");
    let whole = |what: &str| vec![format!("Ignoring invalid service entry: shop/pay: {what} !")];
    let (long, many) = ("x".repeat(300), vec!["10.0.0.1"; 2000]);
    assert_eq!(notes_of(good()), mapped);
    for host in ["*", "", ".", "a..b", "*a.b", "a.*.b", "a b", "ä.b", "a\\046b", "*.", &long] {
        let shown: String = host.chars().take(80).collect();
        let hosts = vec![host, "pay.global", "*.test.global"];
        let expected = part(&format!("{shown:?} is not a host name"));
        assert_eq!(notes_of(ServiceEntry { hosts, ..good() }), [&[expected.as_str()], &mapped[..]].concat());
        let expected = whole(&format!("{shown:?} is not a host name"));
        assert_eq!(notes_of(ServiceEntry { hosts: vec![host], ..good() }), expected);
    }
    for address in ["pay", "", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/x", "::1/129", "::ffff:10.0.0.1", "10.0.0.256"] {
        let addresses = vec![address, "127.255.0.2"];
        let expected = part(&format!("{address:?} is not an IP address"));
        assert_eq!(notes_of(ServiceEntry { addresses, ..good() }), [&[expected.as_str()], &mapped[..]].concat());
    }
    assert_eq!(notes_of(ServiceEntry::default()), whole("it has no hosts"));
    assert_eq!(
        notes_of(ServiceEntry { resolution: "dns", ..good() }),
        [&[part("unknown resolution \"dns\"").as_str()], &mapped[..]].concat()
    );
    let unresolved = || ServiceEntry { addresses: vec!["10.0.0.0/8"], ..good() };
    assert_eq!(notes_of(ServiceEntry { resolution: "dns", ..unresolved() }), whole("unknown resolution \"dns\""));
    assert_eq!(notes_of(ServiceEntry { resolution: "NONE", ..good() }), mapped);
    assert!(notes_of(ServiceEntry { resolution: "NONE", ..unresolved() }).is_empty());
    let fixed = || ServiceEntry { resolution: "STATIC", addresses: Vec::new(), ..good() };
    let notes = notes_of(ServiceEntry { endpoints: vec!["host.example", "10.1.0.1"], ..fixed() });
    assert_eq!(notes[0], part("\"host.example\" is not the address of an endpoint"));
    assert_eq!(notes[1], "adding DNS mapping: pay.global.->[10.1.0.1]");
    assert_eq!(notes_of(ServiceEntry { endpoints: many, ..fixed() })[0], "adding DNS mapping: pay.global.->[10.0.0.1]");
    let endpoints: Vec<String> = (0..1500).map(|at| format!("10.1.{}.{}", at / 256, at % 256)).collect();
    let endpoints = endpoints.iter().map(String::as_str).collect();
    let expected = part("it has more than 1024 hosts, addresses or endpoints");
    assert_eq!(notes_of(ServiceEntry { endpoints, ..fixed() })[0], expected);
}

#[test]
fn notes_a_mapping_only_when_it_changes() {
    let (mut reducer, _) = Reducer::new(&Spec::new(&KINDS, &[]));
    let mut apply = |version, hosts: &[&'static str], addresses: &[&'static str], export: &'static str| {
        let entry = ServiceEntry {
            meta: Meta { namespace: "shop", name: "pay", version },
            hosts: hosts.to_vec(),
            addresses: addresses.to_vec(),
            resolution: "DNS",
            export_to: vec![export],
            ..ServiceEntry::default()
        };
        reducer.apply(0, &Event::Applied(Object::ServiceEntry(entry)), 1);
        reducer.take_notes().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(apply("1", &["a.global"], &["10.0.0.1"], "*"), ["adding DNS mapping: a.global.->[10.0.0.1]"]);
    assert!(apply("1", &["a.global"], &["10.0.0.2"], "*").is_empty(), "the version is known");
    assert!(apply("2", &["a.global"], &["10.0.0.1"], ".").is_empty());
    let two = apply("3", &["b.global"], &["10.0.0.1", "::1"], ".");
    assert_eq!(two, ["removing DNS mapping: a.global.", "adding DNS mapping: b.global.->[10.0.0.1 ::1]"]);
    assert!(apply("4", &["b.global"], &[], ".").is_empty(), "DNS knows it");
}
