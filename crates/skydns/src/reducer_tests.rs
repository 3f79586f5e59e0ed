use super::*;
use crate::scenario::Script;
use crate::{Host, Stores};
use wire::Name;

fn request(zones: &[&str]) -> Request {
    let zones = zones.iter().map(|zone| Name::from_text(zone).unwrap()).collect();
    Request { endpoints: Vec::new(), path: "/skydns".to_owned(), zones, credentials: None, tls: None }
}

/// Formats the known keys with the last byte of their addresses, or `?` for an invalid value.
fn known(index: &Index) -> String {
    let host = |record: &Option<Arc<Record>>| match record.as_deref().map(|record| &record.host) {
        Some(Host::Address(std::net::IpAddr::V4(address))) => address.octets()[3].to_string(),
        Some(_) => "-".to_owned(),
        None => "?".to_owned(),
    };
    let view = index.view();
    let texts: Vec<_> =
        view.0.below(b"").map(|(key, entry)| format!("{}={}", String::from_utf8_lossy(key), host(entry))).collect();
    texts.join(" ")
}

#[test]
fn applies_events_of_the_requested_zones() {
    let script = Script::default();
    script.play(&[r#"/skydns/test/a {"host":"10.0.0.1"}"#, r#"/skydns/other/a {"host":"10.0.0.9"}"#, "/else x"]);
    let followed = script.follow(&request(&["test"])).unwrap();
    let index = followed.index();
    assert_eq!(known(index), "test/a=1");
    assert!(index.is_listed() && index.is_current());

    script.play(&[r#"/skydns/test/b {"host":"10.0.0.2"}"#, r#"/skydns/other/b {"host":"10.0.0.9"}"#]);
    script.play(&[r#"/skydns/test {"host":"10.0.0.3"}"#, r#"/skydns/tests/b {"host":"10.0.0.9"}"#]);
    script.play(&["/skydns/test/c no record", "-/skydns/test/a", "-/skydns/test/never"]);
    assert_eq!(known(index), "test=3 test/b=2 test/c=?");
    assert_eq!((index.counts().records, index.counts().refused), (3, 1));
}

#[test]
fn relist_catches_up_after_an_outage() {
    let script = Script::default();
    let line = |name: &str, number: u32| format!(r#"/skydns/test/{name} {{"host":"10.0.0.{number}"}}"#);
    let lines = |lines: &[String]| script.play(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    lines(&[line("a", 1), line("b", 2), line("c", 3), line("z/y", 4)]);
    let followed = script.follow(&request(&["test", "x"])).unwrap();
    let index = followed.index();
    script.go_away();
    lines(&[line("aa", 5), line("b", 6), "-/skydns/test/c".to_owned(), "-/skydns/test/z/y".to_owned()]);
    assert_eq!(known(index), "test/a=1 test/b=2 test/c=3 test/z/y=4");
    assert!(index.is_listed() && !index.is_current());
    script.come_back();
    assert_eq!(known(index), "test/a=1 test/aa=5 test/b=6");
    assert!(index.is_current());
}

#[test]
fn applies_a_list_page_by_page() {
    let (mut reducer, index) = Reducer::new(&request(&["test"]));
    let value = br#"{"host":"10.0.0.1"}"#;
    let pair = |key: &'static str| Pair { key: key.as_bytes(), value, lease: 0 };
    let all = ["/skydns/test/a", "/skydns/test/b", "/skydns/test/c", "/skydns/test/d"].map(pair);
    let range = |from: &str, to: &str| Range { from: from.into(), to: to.into(), is_single: false };
    reducer.list(&range("/skydns/test/", "/skydns/test0"), &all, 1, &mut |_, _| {});
    // The first page no longer has b, and the second page is empty.
    reducer.list(&range("/skydns/test/", "/skydns/test/b\0"), &all[..1], 2, &mut |_, _| {});
    assert_eq!(known(&index), "test/a=1 test/c=1 test/d=1");
    reducer.list(&range("/skydns/test/b\0", "/skydns/test0"), &[], 3, &mut |_, _| {});
    assert_eq!(known(&index), "test/a=1");
    assert_eq!(index.serial(), 3);
    reducer.list(&range("/skydns/test/", "/skydns/test0"), &all[..1], 4, &mut |_, _| {});
    assert_eq!(index.serial(), 3, "nothing has changed");
    reducer.list(&range("/skydns/test/", "/skydns/test0"), &all, 1, &mut |_, _| {});
    assert_eq!(index.serial(), 4, "the clock was set back");
}

#[test]
fn reports_values_that_are_not_served() {
    let (mut reducer, index) = Reducer::with_bound(&request(&["test"]), 2);
    let put = |key: &'static str, value: &'static str| {
        Event::Put(Pair { key: key.as_bytes(), value: value.as_bytes(), lease: 0 })
    };
    let mut errors = Vec::new();
    let events = [
        put("/skydns/test/a", "x"),
        put("/skydns/test/a..b", "{}"),
        put("/skydns/test/c", "{}"),
        put("/skydns/test/d", "{}"),
        put("/skydns/test/c", r#"{"host":"10.0.0.1"}"#),
        put("/other", "{}"),
    ];
    reducer.apply(&events, 1, &mut |key, error| {
        errors.push(format!("{} {}", String::from_utf8_lossy(key), error.label()));
    });
    assert_eq!(errors, ["/skydns/test/a json", "/skydns/test/a..b key", "/skydns/test/d number"]);
    assert_eq!(known(&index), "test/a=? test/c=1");
}

#[test]
fn tracks_leases_only_while_they_have_records() {
    const SECOND: u64 = 1_000_000_000;
    let (mut reducer, index) = Reducer::new(&request(&["test"]));
    let put = |key: &'static str, lease| Event::Put(Pair { key: key.as_bytes(), value: b"{}", lease });
    let events =
        [put("/skydns/test/a", 7), put("/skydns/test/b", 7), put("/skydns/test/c", 8), put("/skydns/test/d", 0)];
    reducer.apply(&events, 1, &mut |_, _| {});
    let mut due = reducer.leases_due(0, 9);
    due.sort_unstable();
    assert_eq!(due, [7, 8]);
    assert_eq!(reducer.leases_due(0, 1).len(), 1);
    reducer.set_lease(7, Some(100), 0);
    reducer.set_lease(8, None, 0);
    reducer.set_lease(9, Some(1), 0);
    assert!(reducer.leases_due(9 * SECOND, 9).is_empty());
    assert_eq!(reducer.leases_due(10 * SECOND, 9), [8]);
    reducer.apply(&[Event::Delete(b"/skydns/test/c")], 2, &mut |_, _| {});
    assert!(reducer.leases_due(49 * SECOND, 9).is_empty());
    assert_eq!(reducer.leases_due(50 * SECOND, 9), [7]);
    let view = index.view();
    let record = view.exactly(Name::from_text("a.test").unwrap().as_ref()).unwrap().unwrap();
    assert_eq!(record.ttl(10 * SECOND, crate::LeaseBounds { min: 30, max: 1000 }), 90);
}
