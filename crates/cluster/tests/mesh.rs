//! Cost of one change in a mesh with 10,000 entries.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may fail, and measures time")]

use std::net::IpAddr;
use std::time::{Duration, Instant};

use cluster::mesh::object::ServiceEntry;
use cluster::object::{Event, Meta, Object};
use cluster::{Change, Kind, Reducer, Spec};
use wire::Name;

const KINDS: [Kind; 2] = [Kind::ServiceEntry, Kind::WorkloadEntry];
/// Budget for applying an event and looking up its result, in an unoptimised build. The goal from the change to the
/// answer is 20 ms.
const BUDGET: Duration = Duration::from_millis(5);

/// Applies entry number `at`, which has a host of its own, in version `version`.
fn apply_one(reducer: &mut Reducer, at: u32, version: &str) -> Change {
    let (name, host) = (format!("e{at}"), format!("host{at}.ns{}.global", at % 50));
    let (namespace, address) = (format!("ns{}", at % 50), format!("10.{}.{}.{version}", at / 256 % 256, at % 256));
    let entry = ServiceEntry {
        meta: Meta { namespace: &namespace, name: &name, version },
        hosts: vec![&host],
        addresses: vec![&address],
        resolution: "DNS",
        ..ServiceEntry::default()
    };
    reducer.apply(0, &Event::Applied(Object::ServiceEntry(entry)), 1)
}

#[test]
fn one_change_among_ten_thousand_entries_takes_under_five_milliseconds() {
    let (mut reducer, index) = Reducer::new(&Spec::new(&KINDS, &[]));
    for at in 0..10_000 {
        assert_eq!(apply_one(&mut reducer, at, "1"), Change::Added);
    }
    reducer.take_notes();
    let mesh = index.mesh().unwrap();
    assert_eq!(mesh.hosts(), 10_000);
    let name = Name::from_text("host7777.ns27.global").unwrap();
    let least = (2..50).map(|version| {
        let begin = Instant::now();
        apply_one(&mut reducer, 7777, &version.to_string());
        let address = mesh.find(name.as_ref(), |claims| claims.first()?.addresses.first().copied());
        assert_eq!(address, format!("10.30.97.{version}").parse::<IpAddr>().ok());
        begin.elapsed()
    });
    let least = least.min().unwrap();
    assert!(least < BUDGET, "{least:?}");
}
