//! Records in a real etcd: loading, changes, outages, data loss, compaction, authentication and TLS. If etcd is not
//! installed, the tests print a message and are skipped.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::support::served::Served;
use crate::support::store::{self, Store};
use crate::support::{Answer, Folder, certify_all, page, wait_until};
use testkit::ports::free_port;
use wire::{Rcode, Type};

/// Extended DNS Error codes (RFC 8914 §4).
const STALE_ANSWER: Option<u16> = Some(3);
const NOT_READY: Option<u16> = Some(14);
const STALE_NXDOMAIN: Option<u16> = Some(19);
const INVALID_DATA: Option<u16> = Some(24);

/// Starts a server that answers from a store, and waits until it is ready.
fn serve(name: &str, store: &Store) -> Served {
    let served = Served::start(name, &corefile(&format!("endpoint http://127.0.0.1:{}", store.port)));
    served.wait_until_ready();
    served
}

impl Served {
    fn ask(&mut self, name: &str, qtype: Type) -> Answer {
        loop {
            // A busy machine may drop a datagram.
            if let Some(answer) = self.client.ask(&format!("{name}.skydns.test."), qtype) {
                return answer;
            }
        }
    }

    /// Returns the response code of the answer, its Extended DNS Error and its addresses.
    fn say(&mut self, name: &str) -> (Rcode, Option<u16>, Vec<String>) {
        let answer = self.ask(name, Type::A);
        (answer.rcode(), answer.ede(), answer.addresses().iter().map(ToString::to_string).collect())
    }

    fn wait_for(&mut self, name: &str, address: &str) {
        wait_until(address, || self.say(name) == (Rcode::NOERROR, None, vec![address.to_owned()]));
    }

    fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
    }
}

fn corefile(options: &str) -> String {
    format!(
        "skydns.test:0 {{\nbind 127.0.0.1\nerrors\nprometheus localhost:0\nready localhost:0\netcd {{\n{options}\n}}\n}}\n"
    )
}

fn key(name: &str) -> String {
    format!("/skydns/test/skydns/{name}")
}

fn host(address: &str) -> String {
    format!("{{\"host\":\"{address}\"}}")
}

fn known(address: &str) -> (Rcode, Option<u16>, Vec<String>) {
    (Rcode::NOERROR, None, vec![address.to_owned()])
}

/// Prints a measured time.
fn report(what: &str, took: Duration) {
    let _ = writeln!(io::stderr(), "etcd: {what}: {:.2} ms", took.as_secs_f64() * 1e3);
}

#[test]
fn answers_reflect_changes_immediately() {
    if !store::is_installed() {
        return;
    }
    let store = Store::start("etcd-changes");
    store.put(&key("one"), &host("192.0.2.1"));
    store.put(&key("web/a"), &host("192.0.2.2"));
    let mut served = serve("changes", &store);
    assert_eq!(served.say("one"), known("192.0.2.1"));
    assert_eq!(served.say("none").0, Rcode::NXDOMAIN);

    let mut times: Vec<Duration> = (0..41)
        .map(|round| {
            let address = format!("192.0.2.{}", 100 + round);
            store.put(&key("one"), &host(&address));
            let start = Instant::now();
            served.wait_for("one", &address);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    report("a change is answered, median", times[20]);
    // Without a watch, changes would be seen only by the next list. A busy machine takes longer than it usually does.
    assert!(times[20] < Duration::from_millis(500), "{times:?}");

    store.put(&key("web/b"), &host("192.0.2.3"));
    wait_until("both", || served.say("web").2 == ["192.0.2.2", "192.0.2.3"]);
    store.delete(&key("web/a"));
    served.wait_for("web", "192.0.2.3");
    store.delete(&key("web/b"));
    wait_until("none", || served.say("web").0 == Rcode::NXDOMAIN);
    assert!(served.metric("portolan_etcd_events_total") >= 44.0);
}

#[test]
fn an_invalid_value_affects_only_its_own_name() {
    if !store::is_installed() {
        return;
    }
    let store = Store::start("etcd-nonsense");
    store.put(&key("web/good"), &host("192.0.2.1"));
    store.put(&key("web/bad"), "not json");
    store.put(&key("bad"), "{\"host\":7}");
    let mut served = serve("nonsense", &store);
    served.server.wait_for("/skydns/test/skydns/bad is not served: the value is not a record: `host`: invalid type");
    served.server.wait_for("/skydns/test/skydns/web/bad is not served");
    assert_eq!(served.say("web"), known("192.0.2.1"));
    assert_eq!(served.say("bad"), (Rcode::SERVFAIL, INVALID_DATA, vec![]));
    assert_eq!(served.metric("portolan_etcd_refused_records_total{reason=\"json\"}"), 2.0);
    store.put(&key("bad"), &host("192.0.2.2"));
    served.wait_for("bad", "192.0.2.2");
    store.put(&key("bad"), &host("a..b"));
    served.server.wait_for("the host \"a..b\" is neither an address nor a name");
    wait_until("unreadable", || served.say("bad").0 == Rcode::SERVFAIL);
}

#[test]
fn answers_every_query_during_an_outage() {
    if !store::is_installed() {
        return;
    }
    let mut store = Store::start("etcd-outage");
    store.put(&key("one"), &host("192.0.2.1"));
    let mut served = serve("outage", &store);
    store.kill();
    served.server.wait_for("Failed to follow");
    let end = Instant::now() + Duration::from_secs(2);
    let mut asked = 0;
    while Instant::now() < end {
        let (rcode, ede, addresses) = served.say("one");
        assert_eq!((rcode, addresses), (Rcode::NOERROR, vec!["192.0.2.1".to_owned()]));
        assert!(asked == 0 || ede == STALE_ANSWER, "{ede:?}");
        asked += 1;
    }
    assert_eq!(served.say("none"), (Rcode::NXDOMAIN, STALE_NXDOMAIN, vec![]));
    assert!(served.metric("portolan_etcd_stale_answers_total{zone=\"skydns.test.\"}") >= f64::from(asked));
    assert_eq!(served.metric("portolan_etcd_current{zones=\"skydns.test.\"}"), 0.0);

    store.run();
    served.wait_for("one", "192.0.2.1");
    served.server.wait_for("Following");
    assert_eq!(served.metric("portolan_etcd_current{zones=\"skydns.test.\"}"), 1.0);
    store.put(&key("one"), &host("192.0.2.2"));
    served.wait_for("one", "192.0.2.2");
}

#[test]
fn notices_a_store_that_was_emptied() {
    if !store::is_installed() {
        return;
    }
    let mut store = Store::start("etcd-emptied");
    for number in 0..9 {
        store.put(&key("old"), &host(&format!("192.0.2.{number}")));
    }
    let mut served = serve("emptied", &store);
    assert_eq!(served.say("old"), known("192.0.2.8"));
    store.kill();
    store.forget();
    store.run();
    store.put(&key("new"), &host("192.0.2.9"));
    served.wait_for("new", "192.0.2.9");
    assert_eq!(served.say("old").0, Rcode::NXDOMAIN);
}

#[test]
fn denies_no_name_before_the_first_sync() {
    if !store::is_installed() {
        return;
    }
    let mut store = Store::new("etcd-late", &[]);
    let mut served = Served::start("late", &corefile(&format!("endpoint http://127.0.0.1:{}", store.port)));
    assert_eq!(served.say("one"), (Rcode::SERVFAIL, NOT_READY, vec![]));
    assert_eq!(page(served.pages, "/ready").expect("the page").0, 503);
    store.run();
    store.put(&key("one"), &host("192.0.2.1"));
    served.wait_until_ready();
    served.wait_for("one", "192.0.2.1");
}

#[test]
fn reload_waits_for_the_records() {
    if !store::is_installed() {
        return;
    }
    let (store, mut next) = (Store::start("etcd-now"), Store::start("etcd-next"));
    store.put(&key("one"), &host("192.0.2.1"));
    next.put(&key("one"), &host("192.0.2.2"));
    next.kill();
    let mut served = serve("reload", &store);
    served.reload(&corefile(&format!("endpoint http://127.0.0.1:{}", next.port)));
    served.server.wait_for("waiting for etcd before this is served");
    assert_eq!(served.say("one"), known("192.0.2.1"));
    next.run();
    wait_until("the other store is served", || {
        let said = served.say("one");
        assert!(said == known("192.0.2.1") || said == known("192.0.2.2"), "{said:?}");
        said == known("192.0.2.2")
    });
}

#[test]
fn tries_another_member() {
    if !store::is_installed() {
        return;
    }
    let mut stores = [Store::start("etcd-first"), Store::start("etcd-second")];
    stores.iter().zip(["192.0.2.1", "192.0.2.2"]).for_each(|(store, address)| store.put(&key("one"), &host(address)));
    let ports = [free_port(), stores[0].port, stores[1].port].map(|port| format!("127.0.0.1:{port}")).join(" ");
    let mut served = Served::start("members", &corefile(&format!("endpoint {ports}")));
    served.wait_for("one", "192.0.2.1");
    stores[0].kill();
    served.wait_for("one", "192.0.2.2");
}

/// Checks that a watch that a compaction has cancelled is followed by a new list, which has the changes that it missed.
#[test]
fn lists_again_after_a_compaction() {
    if !store::is_installed() {
        return;
    }
    let store = Store::start("etcd-compacted");
    store.put(&key("one"), &host("192.0.2.1"));
    let mut served = serve("compacted", &store);
    served.server.signal("STOP");
    let long = "x".repeat(60_000);
    // More data than fits into the buffers between etcd and the server.
    for number in 0..300 {
        store.put(&key(&format!("text/{}", number % 10)), &format!("{{\"text\":\"{long}\"}}"));
    }
    store.put(&key("one"), &host("192.0.2.2"));
    store.compact();
    served.server.signal("CONT");
    served.wait_for("one", "192.0.2.2");
    wait_until("a new list", || served.metric("portolan_etcd_lists_total") >= 2.0);
    store.put(&key("one"), &host("192.0.2.3"));
    served.wait_for("one", "192.0.2.3");
}

#[test]
fn limits_the_ttl_to_the_lease() {
    if !store::is_installed() {
        return;
    }
    let store = Store::start("etcd-leases");
    let lease = store.grant(120);
    store.put_with_lease(&key("leased"), &host("192.0.2.1"), &lease);
    store.put_with_lease(&key("short"), "{\"host\":\"192.0.2.2\",\"ttl\":7}", &lease);
    let mut served = serve("leases", &store);
    let ttl = |answer: &Answer| wire::Message::parse(&answer.0).unwrap().records().next().map(|record| record.ttl());
    wait_until("the lease is known", || ttl(&served.ask("leased", Type::A)).is_some_and(|ttl| ttl > 30));
    let left = ttl(&served.ask("leased", Type::A)).unwrap();
    assert!((90..=120).contains(&left), "{left}");
    assert_eq!(ttl(&served.ask("short", Type::A)), Some(7));
    store.revoke(&lease);
    wait_until("both are gone", || ["leased", "short"].iter().all(|name| served.say(name).0 == Rcode::NXDOMAIN));
}

#[test]
fn authenticates_with_a_password() {
    if !store::is_installed() {
        return;
    }
    let mut store = Store::start("etcd-closed");
    store.put(&key("one"), &host("192.0.2.1"));
    // The user may not read the key of the zone itself.
    store.close("dns", "pass", "/skydns/test/skydns/");
    let endpoint = format!("endpoint http://127.0.0.1:{}", store.port);
    for (name, credentials, line) in [
        ("stranger", "", "Failed to follow"),
        ("wrong", "credentials dns wrong", "authentication failed"),
        ("other-path", "credentials dns pass\npath /other", "no permission to read the keys"),
    ] {
        let mut served = Served::start(name, &corefile(&format!("{endpoint}\n{credentials}")));
        served.server.wait_for(line);
        assert_eq!(served.say("one"), (Rcode::SERVFAIL, NOT_READY, vec![]), "{name}");
    }
    let mut served = Served::start("closed", &corefile(&format!("{endpoint}\ncredentials dns pass")));
    served.wait_for("one", "192.0.2.1");
    store.put(&key("one"), &host("192.0.2.2"));
    served.wait_for("one", "192.0.2.2");
    store.kill();
    served.server.wait_for("Failed to follow");
    store.run();
    served.wait_for("one", "192.0.2.2");
}

#[test]
fn follows_a_store_over_tls() {
    if !store::is_installed() {
        return;
    }
    let folder = Folder::new("etcd-certificates");
    certify_all(&folder, "ca", &[("server", "server-key", &["127.0.0.1"]), ("client", "client-key", &["dns"])]);
    certify_all(&folder, "other-ca", &[]);
    let path = |name: &str| folder.path().join(format!("{name}.pem")).display().to_string();
    let port = free_port();
    let arguments = [
        format!("https://127.0.0.1:{port}"),
        format!("--cert-file={}", path("server")),
        format!("--key-file={}", path("server-key")),
        format!("--trusted-ca-file={}", path("ca")),
        "--client-cert-auth".to_owned(),
    ];
    let store = Store::start_with("etcd-tls", &arguments);
    store.put(&key("one"), &host("192.0.2.1"));
    let endpoint = format!("endpoint https://127.0.0.1:{port}");
    let own = format!("{} {}", path("client"), path("client-key"));
    for (name, tls) in
        [("nobody", format!("tls {}", path("ca"))), ("untrusted", format!("tls {own} {}", path("other-ca")))]
    {
        let mut served = Served::start(name, &corefile(&format!("{endpoint}\n{tls}")));
        served.server.wait_for("Failed to follow https://127.0.0.1");
        assert_eq!(served.say("one"), (Rcode::SERVFAIL, NOT_READY, vec![]), "{name}");
    }
    let mut served = Served::start("tls", &corefile(&format!("{endpoint}\ntls {own} {}", path("ca"))));
    served.wait_for("one", "192.0.2.1");
    store.put(&key("one"), &host("192.0.2.2"));
    served.wait_for("one", "192.0.2.2");
}

#[test]
fn loads_many_records() {
    if !store::is_installed() {
        return;
    }
    // An unoptimised build is slower.
    let many = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
    let store = Store::start("etcd-many");
    let pair = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        (key(&format!("n{}/h{number}", number % 1000)), host(&format!("10.{a}.{b}.{c}")))
    };
    store.put_all(&(0..many).map(pair).collect::<Vec<_>>());
    let start = Instant::now();
    let mut served = serve("many", &store);
    report(&format!("{many} records are loaded"), start.elapsed());
    assert_eq!(served.metric("portolan_etcd_records{zones=\"skydns.test.\"}"), f64::from(many));
    let last = many - 1;
    let [_, a, b, c] = last.to_be_bytes();
    assert_eq!(served.say(&format!("h{last}.n{}", last % 1000)), known(&format!("10.{a}.{b}.{c}")));
}
