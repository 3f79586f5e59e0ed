//! Cluster DNS as a whole: kubeadm's Corefile, an API server that starts, changes its objects and fails, and the
//! answers.

use std::time::Duration;

use crate::support::served::Served;
use crate::support::{Folder, Server, wait_until};
use fakeapi::{FakeApi, Fault, service, slice};
use wire::{Rcode, Type};

const WEB: &str = "web.shop.svc.cluster.local.";
/// Extended DNS Errors (RFC 8914 §4.15, §4.4, §4.20).
const NOT_READY: u16 = 14;
const STALE_ANSWER: u16 = 3;
const STALE_NXDOMAIN: u16 = 19;

/// Returns the Corefile of kubeadm, except for the ports and the address of the API server.
fn kubeadm(api: &FakeApi) -> String {
    format!(
        ".:0 {{
    errors
    health :0 {{
       lameduck 5s
    }}
    ready localhost:0
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
       endpoint {}
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }}
    prometheus localhost:0
    forward . 127.0.0.1:9 {{
       max_concurrent 1000
    }}
    cache 30 {{
       disable success cluster.local
       disable denial cluster.local
    }}
    loop
    reload
    loadbalance
}}
",
        api.url()
    )
}

/// Returns the number of requests, without those that only prove that a silent watch is current.
fn requests(api: &FakeApi) -> usize {
    api.seen().iter().filter(|seen| !seen.is_proof()).count()
}

impl Served {
    fn rcode(&mut self, name: &str) -> Option<Rcode> {
        self.client.ask(name, Type::A).map(|answer| answer.rcode())
    }
}

#[test]
fn answers_servfail_with_a_reason_before_the_first_sync() {
    let api = FakeApi::with_shop();
    api.down();
    let mut served = Served::start("cluster", &kubeadm(&api));
    // The client waits half a second, and the API server is away for longer.
    let answer = served.client.ask(WEB, Type::A).expect("an answer at once");
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(NOT_READY)));
    assert!(!served.is_ready());
    api.up();
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    served.wait_until_ready();
}

#[test]
fn answers_reflect_changes_of_the_cluster() {
    let api = FakeApi::with_shop();
    let mut served = Served::start("cluster", &kubeadm(&api));
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    served.wait_until_ready();
    api.put(service("shop", "web", "10.96.0.12"));
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    api.put_all([service("shop", "db", "None"), slice("shop", "db", &["10.1.0.9"])]);
    served.wait_for_addresses("db.shop.svc.cluster.local.", &["10.1.0.9"]);
    api.delete("services", "shop", "web");
    wait_until("it is gone", || served.rcode(WEB) == Some(Rcode::NXDOMAIN));
}

#[test]
fn reloads_keep_the_cluster_data() {
    let api = FakeApi::with_shop();
    let corefile = kubeadm(&api);
    let mut served = Served::start("cluster", &corefile);
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    served.wait_until_ready();
    let asked = requests(&api);
    for round in 0..20 {
        served.reload(&corefile.replace("cache 30", &format!("cache {}", 31 + round)));
        served.server.wait_for("Reloading complete");
        assert_eq!(served.addresses(WEB), ["10.96.0.11"], "after reload {round}");
        assert!(served.is_ready());
    }
    assert_eq!(requests(&api), asked, "nothing was listed again");
    // A changed `kubernetes` block counts as another cluster, and the old one is released.
    served.reload(&corefile.replace("ttl 30", "ttl 30\n       pods verified"));
    served.server.wait_for("Reloading complete");
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    assert!(requests(&api) > asked);
}

/// Changes the `kubernetes` block so that the cluster must be listed again.
fn another_cluster(corefile: &str, option: &str) -> String {
    corefile.replace("ttl 30", &format!("ttl 30\n       pods verified\n       {option}")).replace("pods insecure", "")
}

#[test]
fn reload_waits_until_a_changed_cluster_is_synced() {
    let api = FakeApi::with_shop();
    let corefile = kubeadm(&api);
    let mut served = Served::start("cluster", &corefile);
    served.wait_until_ready();
    api.fault("pods", Fault::Status(503, None));
    served.reload(&another_cluster(&corefile, "startup_timeout 1m"));
    served.server.wait_for("[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server");
    served.server.wait_for("[WARNING] plugin/kubernetes: Failed to watch pods");
    assert_eq!(served.addresses(WEB), ["10.96.0.11"]);
    assert_eq!(served.rcode("missing.shop.svc.cluster.local."), Some(Rcode::NXDOMAIN));
    assert!(served.is_ready());
    api.heal("pods");
    served.server.wait_for("Reloading complete");
    assert_eq!(served.rcode("10-9-9-9.shop.pod.cluster.local."), Some(Rcode::NXDOMAIN), "all kinds are known");
    assert!(served.is_ready());
}

#[test]
fn reload_wait_has_a_limit_and_does_not_delay_shutdown() {
    let api = FakeApi::with_shop();
    let corefile = kubeadm(&api).replace("lameduck 5s", "lameduck 0s");
    let mut served = Served::start("cluster", &corefile);
    served.wait_until_ready();
    api.fault("pods", Fault::Status(503, None));
    served.reload(&another_cluster(&corefile, "startup_timeout 50ms"));
    served.server.wait_for("[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API");
    served.server.wait_for("Reloading complete");
    assert_eq!(served.rcode("10-9-9-9.shop.pod.cluster.local."), Some(Rcode::SERVFAIL));
    served.reload(&another_cluster(&corefile, "startup_timeout 1h\n       labels a=b"));
    served.server.wait_for("[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server");
    served.server.signal("TERM");
    assert_eq!(served.server.wait(), Some(0));
}

#[test]
fn limits_the_request_rate_as_configured() {
    let api = FakeApi::with_shop();
    let corefile = kubeadm(&api).replace("ttl 30", "ttl 30\n       apiserver_qps 1\n       apiserver_burst 1");
    let served = Served::start("cluster", &corefile);
    served.wait_until_ready();
    let seen = api.seen();
    let gaps: Vec<_> = seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(gaps.len() == 2 && gaps.iter().all(|gap| *gap > Duration::from_millis(250)), "{gaps:?}");
}

#[test]
fn keeps_answering_while_the_api_server_is_down() {
    let api = FakeApi::with_shop();
    let corefile = kubeadm(&api);
    let mut served = Served::start("cluster", &corefile);
    served.wait_until_ready();
    api.down();
    served.reload(&corefile.replace("cache 30", "cache 60"));
    served.server.wait_for("Reloading complete");
    served.server.wait_for("[WARNING] plugin/kubernetes: Failed to watch ");
    assert_eq!(served.addresses(WEB), ["10.96.0.11"]);
    assert_eq!(served.rcode("missing.shop.svc.cluster.local."), Some(Rcode::NXDOMAIN));
    assert!(served.is_ready());
    api.put(service("shop", "web", "10.96.0.12"));
    api.up();
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
}

#[test]
fn continues_its_watches_after_being_suspended() {
    let api = FakeApi::with_shop();
    let mut served = Served::start("cluster", &kubeadm(&api));
    served.wait_until_ready();
    let asked = requests(&api);
    served.server.signal("STOP");
    wait_until("the process is suspended", || served.server.stands_still());
    api.put(service("shop", "web", "10.96.0.12"));
    assert_eq!(served.rcode(WEB), None);
    served.server.signal("CONT");
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    assert_eq!(requests(&api), asked, "no requests were repeated");
}

#[test]
fn serves_and_watches_manifests() {
    let folder = Folder::new("manifests");
    let manifest = |ip: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\napiVersion: v1\nkind: Service\n\
             metadata: {{name: web, namespace: shop}}\nspec: {{clusterIP: {ip}, ports: [{{name: http, port: 80}}]}}\n"
        )
    };
    let path = folder.write("shop.yaml", &manifest("10.96.0.1"));
    let corefile = format!(
        ".:0 {{\n    kubernetes cluster.local {{\n        manifests {}\n    }}\n    ready localhost:0\n}}\n",
        path.display()
    );
    let mut served = Served::start("cluster", &corefile);
    served.wait_for_addresses(WEB, &["10.96.0.1"]);
    folder.write("shop.yaml", &manifest("10.96.0.2"));
    served.wait_for_addresses(WEB, &["10.96.0.2"]);
    folder.write("shop.yaml", "kind: [");
    served.server.wait_for("shop.yaml");
    assert_eq!(served.addresses(WEB), ["10.96.0.2"], "the last valid state is still served");
}

#[test]
fn rejects_an_impossible_source_with_its_position() {
    let folder = Folder::new("source");
    let corefile = folder
        .write("Corefile", ".:0 {\n    kubernetes cluster.local {\n        kubeconfig /nonexistent/config\n    }\n}\n");
    let mut server = Server::start(&corefile);
    assert_eq!(server.wait(), Some(1));
    server.wait_for("Corefile:2:5");
    server.wait_for("/nonexistent/config");
}

#[test]
fn answers_from_its_snapshot_after_each_kill() {
    let api = FakeApi::with_shop();
    let folder = Folder::new("remembered");
    let file = folder.path().join("snapshot");
    let corefile = kubeadm(&api).replace("ttl 30", &format!("ttl 30\n       snapshot {}", file.display()));
    let mut served = Served::start("cluster", &corefile);
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    wait_until("the snapshot is written", || file.exists());
    api.down();
    let mut fastest = Duration::MAX;
    for round in 0..20 {
        // Dropping a server kills it.
        served = Served::start("cluster", &corefile);
        let answer = served.client.ask(WEB, Type::A).expect("an answer at once");
        fastest = fastest.min(served.server.started.elapsed());
        assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, Some(STALE_ANSWER)), "start {round}");
        let denial = served.client.ask("missing.shop.svc.cluster.local.", Type::A).expect("an answer");
        assert_eq!((denial.rcode(), denial.ede()), (Rcode::NXDOMAIN, Some(STALE_NXDOMAIN)));
        assert!(served.is_ready());
    }
    assert!(fastest < Duration::from_secs(1), "{fastest:?}: unoptimised and beside other tests");
    api.put(service("shop", "web", "10.96.0.12"));
    api.up();
    served.wait_for_addresses(WEB, &["10.96.0.12"]);
    wait_until("all data is current again", || {
        served.client.ask(WEB, Type::A).is_some_and(|answer| answer.ede().is_none())
    });
}

/// A server that is killed right after it has answered from a change restarts with that change, and lists nothing.
#[test]
fn is_never_older_after_a_kill_and_lists_nothing() {
    let api = FakeApi::with_shop();
    let folder = Folder::new("never-older");
    let file = folder.path().join("snapshot");
    let corefile = kubeadm(&api).replace("ttl 30", &format!("ttl 0\n       snapshot {}", file.display()));
    let mut served = Served::start("cluster", &corefile);
    served.wait_for_addresses(WEB, &["10.96.0.11"]);
    wait_until("the snapshot is written", || file.exists());
    let before = api.seen().len();
    for round in 0..10 {
        let address = format!("10.96.1.{round}");
        api.put(service("shop", "web", &address));
        served.wait_for_addresses(WEB, &[&address]);
        // This kills it.
        drop(served);
        served = Served::start("cluster", &corefile);
        assert_eq!(served.addresses(WEB), [address], "start {round}");
        wait_until("the watches are resumed", || {
            served.client.ask(WEB, Type::A).is_some_and(|answer| answer.ede().is_none())
        });
    }
    let is_list = |seen: &fakeapi::ReceivedRequest| {
        seen.is_streaming_list() || !seen.is_watch() && seen.parameter("limit") != "1" && seen.name.is_empty()
    };
    let lists: Vec<_> = api.seen().into_iter().skip(before).filter(is_list).collect();
    assert!(lists.is_empty(), "{lists:?}");
}
