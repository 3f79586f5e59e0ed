//! Relays in front of the API server: the whole server follows them from the position that it has, and never goes back.

use std::time::{Duration, Instant};

use fakeapi::{FakeApi, Fault, namespace, service, slice};
use serde_json::Value;
use wire::Type;

use crate::support::served::Served;
use crate::support::{Folder, wait_until};

const WEB: &str = "web.shop.svc.cluster.local.";
const TOKEN: &str = "for relays";
/// Time after which answers come from a relay that is behind, if a server took them.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

/// An API server, two relays with its objects, and the files of a node.
struct Cluster {
    server: FakeApi,
    relays: [FakeApi; 2],
    folder: Folder,
}

impl Cluster {
    fn new(name: &str) -> Cluster {
        let relays = [FakeApi::start_tls(), FakeApi::start_tls()];
        let cluster = Cluster { server: FakeApi::start(), relays, folder: Folder::new(name) };
        let authorities: String = cluster.relays.iter().map(|relay| relay.pems().unwrap().authority.clone()).collect();
        cluster.folder.write("ca.pem", &authorities);
        cluster.folder.write("token", TOKEN);
        for relay in &cluster.relays {
            relay.act_as_relay(Duration::from_millis(250));
            relay.require_token(TOKEN);
        }
        let endpoints = slice("shop", "web", &["10.1.0.5", "10.1.0.6"]);
        cluster.put(&[namespace("shop"), service("shop", "web", "10.96.0.11"), endpoints]);
        cluster
    }

    fn put(&self, objects: &[Value]) {
        for api in self.relays.iter().chain([&self.server]) {
            api.put_all(objects.iter().cloned());
        }
    }

    fn put_web(&self, address: &str) {
        self.put(&[service("shop", "web", address)]);
    }

    fn corefile(&self) -> String {
        let folder = self.folder.path().display();
        let [one, other] = self.relays.each_ref().map(FakeApi::url);
        format!(
            ".:0 {{
    ready localhost:0
    kubernetes cluster.local {{
       endpoint {}
       relays {one} {other}
       relay_tls {folder}/ca.pem
       relay_token {folder}/token
       snapshot {folder}/snapshot
       ttl 0
    }}
    prometheus localhost:0
}}
",
            self.server.url()
        )
    }

    fn start(&self) -> Served {
        let mut served = Served::start("relays", &self.corefile());
        served.wait_for_addresses(WEB, &["10.96.0.11"]);
        served.wait_until_ready();
        served
    }

    /// Returns the relay that has been asked for lists, and the other one.
    fn used(&self) -> [&FakeApi; 2] {
        let [one, other] = &self.relays;
        if lists(one) > 0 { [one, other] } else { [other, one] }
    }
}

/// Returns the number of lists of Services.
fn lists(api: &FakeApi) -> usize {
    let is_list = |seen: &&fakeapi::ReceivedRequest| {
        let is_page = !seen.is_watch() && seen.parameter("limit") == "500";
        seen.resource == "services" && (seen.is_streaming_list() || is_page)
    };
    api.seen().iter().filter(is_list).count()
}

#[test]
fn a_relay_serves_the_cluster_and_another_one_takes_over() {
    let cluster = Cluster::new("relays-takeover");
    let mut served = cluster.start();
    let [used, other] = cluster.used();
    cluster.put_web("10.96.0.12");
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    used.down();
    cluster.put_web("10.96.0.13");
    served.wait_for_addresses(WEB, &["10.96.0.13"]);
    used.up();
    other.down();
    cluster.put_web("10.96.0.14");
    served.wait_for_addresses(WEB, &["10.96.0.14"]);
    assert!(cluster.server.seen().is_empty(), "the API server is not asked");
    assert_eq!((lists(used), lists(other)), (1, 0), "watches are resumed");
}

#[test]
fn answers_do_not_go_back_to_the_view_of_a_relay_that_is_behind() {
    let cluster = Cluster::new("relays-behind");
    let mut served = cluster.start();
    let [ahead, behind] = cluster.used();
    ahead.put(service("shop", "web", "10.96.0.12"));
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    ahead.down();
    let since = Instant::now();
    while since.elapsed() < LONG_ENOUGH {
        assert_eq!(served.addresses(WEB), ["10.96.0.12"]);
    }
    behind.put(service("shop", "web", "10.96.0.12"));
    behind.put(service("shop", "web", "10.96.0.13"));
    served.wait_for_addresses(WEB, &["10.96.0.13"]);
    assert_eq!(lists(behind), 0);
}

#[test]
fn a_relay_without_the_history_is_listed_from_the_known_version() {
    let cluster = Cluster::new("relays-gone");
    let mut served = cluster.start();
    let [used, other] = cluster.used();
    other.down();
    used.compact();
    // The check of the position succeeds, and the watch finds the history gone.
    used.script("services", [None, Some(Fault::Status(410, None))]);
    used.drop_connections();
    used.wait_seen("a list with a lower bound", |seen| {
        seen.iter().any(|seen| seen.is_streaming_list() && seen.parameter("resourceVersion").parse().unwrap_or(0) >= 3)
    });
    used.put(service("shop", "web", "10.96.0.12"));
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    assert!(cluster.server.seen().is_empty(), "the API server is not asked");
}

#[test]
fn a_killed_server_continues_at_the_relays_without_a_list() {
    let cluster = Cluster::new("relays-killed");
    let mut served = cluster.start();
    let file = cluster.folder.path().join("snapshot");
    wait_until("the snapshot is written", || file.exists());
    for round in 0..5 {
        let address = format!("10.96.1.{round}");
        cluster.put_web(&address);
        served.wait_for_addresses(WEB, &[&address]);
        // This kills it.
        drop(served);
        served = Served::start("relays", &cluster.corefile());
        assert_eq!(served.addresses(WEB), [address], "start {round}");
        wait_until("the watches are resumed", || {
            served.client.ask(WEB, Type::A).is_some_and(|answer| answer.ede().is_none())
        });
    }
    assert_eq!(cluster.relays.iter().map(lists).sum::<usize>(), 1);
    assert!(cluster.server.seen().is_empty(), "the API server is not asked");
}
