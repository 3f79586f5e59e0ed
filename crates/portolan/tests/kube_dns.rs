//! `portolan kube-dns` as the pod: its flags, its ConfigMap from a directory or an API server, and its pages.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, Server, page, soon, wait_until};
use fakeapi::FakeApi;
use serde_json::json;
use testkit::ports::{free_address, free_port};
use wire::{Rcode, Type};

const WEB: &str = "web.shop.svc.cluster.local.";
/// Limit for applying a ConfigMap change.
const IN_EFFECT: Duration = Duration::from_secs(1);

/// Running pod and a client.
struct Pod {
    server: Server,
    client: Client,
    pages: SocketAddr,
}

impl Pod {
    fn start(api: &FakeApi, flags: &[String]) -> Pod {
        let mut words: Vec<OsString> = vec!["kube-dns".into(), format!("--kube-master-url={}", api.url()).into()];
        let ports = ["--dns-port=0", "--dns-bind-address=127.0.0.1", "--healthz-port=0", "--prometheus-port=0"];
        words.extend(ports.iter().map(OsString::from));
        words.extend(flags.iter().map(OsString::from));
        let words: Vec<_> = words.iter().map(OsString::as_os_str).collect();
        let mut server = Server::start_with(&words);
        let client = Client::new(server.address_of("dns://127.0.0.1:0"));
        let pages = server.address_of(":0");
        Pod { server, client, pages }
    }

    fn address(&mut self, name: &str) -> Option<Ipv4Addr> {
        match self.client.ask(name, Type::A)?.addresses().first()? {
            std::net::IpAddr::V4(v4) => Some(*v4),
            std::net::IpAddr::V6(_) => None,
        }
    }

    /// Waits until this upstream answers a new name in a domain. Returns the time that took.
    fn wait_for(&mut self, domain: &str, upstream: &Upstream) -> Duration {
        let (begin, mut number) = (Instant::now(), 0);
        wait_until(&format!("{domain} is answered by {}", upstream.own), || {
            number += 1;
            self.address(&format!("n{number}.{domain}")) == Some(upstream.own)
        });
        begin.elapsed()
    }

    fn metric(&self, line: &str) -> bool {
        page(self.pages, "/metrics").is_some_and(|(_, text)| text.lines().any(|known| known == line))
    }
}

fn upstreams(of: &[&Upstream]) -> String {
    let addresses: Vec<String> = of.iter().map(|upstream| upstream.address.to_string()).collect();
    json!(addresses).to_string()
}

fn stub(domain: &str, upstream: &Upstream) -> String {
    json!({ domain: [upstream.address.to_string()] }).to_string()
}

#[test]
fn applies_a_changed_directory_within_a_second_also_to_cached_names() {
    let (api, folder) = (FakeApi::with_shop(), Folder::new("kube-dns"));
    let (first, second) = (Upstream::start(1), Upstream::start(2));
    folder.write("upstreamNameservers", &upstreams(&[&first]));
    let mut pod = Pod::start(&api, &[format!("--config-dir={}", folder.path().display())]);
    assert_eq!(pod.address("www.example.org."), Some(first.own));

    soon("a stub domain is in effect", IN_EFFECT, |round| {
        folder.write("stubDomains", &stub(&format!("corp{round}.example"), &second));
        pod.wait_for(&format!("corp{round}.example."), &second)
    });
    soon("an upstream is in effect", IN_EFFECT, |_| {
        folder.write("upstreamNameservers", &upstreams(&[&first]));
        pod.wait_for("example.org.", &first);
        folder.write("upstreamNameservers", &upstreams(&[&second]));
        pod.wait_for("example.org.", &second)
    });
    assert_eq!(pod.address("www.example.org."), Some(second.own), "the answer of the old upstream is gone");
}

#[test]
fn a_change_does_not_shorten_the_lameduck_time() {
    let (api, folder, upstream) = (FakeApi::with_shop(), Folder::new("kube-dns-end"), Upstream::start(1));
    let mut pod = Pod::start(&api, &[format!("--config-dir={}", folder.path().display())]);
    pod.server.wait_for("Portolan-");
    let told = Instant::now();
    pod.server.signal("TERM");
    pod.server.wait_for("Going into lameduck mode for 5s");
    folder.write("stubDomains", &stub("corp.example", &upstream));
    pod.server.wait_for("Configuration updated: 1 stub domains");
    assert_eq!(pod.server.wait(), Some(0));
    assert!(told.elapsed() >= Duration::from_secs(5), "{:?}", told.elapsed());
}

#[test]
fn watches_only_its_config_map_and_rejects_an_invalid_one() {
    let (api, upstream, other) = (FakeApi::with_shop(), Upstream::start(1), Upstream::start(2));
    let put = |stub_domains: String| {
        api.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "kube-dns"},
            "data": {"upstreamNameservers": upstreams(&[&upstream]), "stubDomains": stub_domains, "more": "ignored"},
        }))
    };
    put(stub("corp.example", &other));
    let mut pod = Pod::start(&api, &["--config-map=kube-dns".to_owned()]);
    assert_eq!(pod.address("a.corp.example."), Some(other.own), "the start waits for the existing configuration");
    let asked = api.seen();
    let of_config = asked.iter().filter(|seen| seen.resource == "configmaps");
    assert!(of_config.clone().all(|seen| seen.parameter("fieldSelector") == "metadata.name=kube-dns"), "{asked:?}");
    assert!(of_config.clone().all(|seen| seen.namespace == "kube-system"));

    put("{ not JSON".to_owned());
    let line = pod.server.wait_for("The ConfigMap is invalid");
    assert!(line.contains("`stubDomains`: invalid JSON"), "{line}");
    wait_until("it is counted", || pod.metric("portolan_kube_dns_config_refused_total 1"));
    assert_eq!(pod.address("b.corp.example."), Some(other.own), "the previous configuration stays in effect");

    // Other ConfigMaps of the namespace are ignored; kube-dns applied any of them.
    api.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "other"}, "data": {"stubDomains": "{}"},
    }));
    put(stub("lab.example", &other));
    pod.wait_for("lab.example.", &other);
    assert_eq!(pod.address("c.corp.example."), Some(upstream.own), "it is not a stub domain any more");
    api.delete("configmaps", "kube-system", "kube-dns");
    pod.server.wait_for("0 stub domains, 0 upstreams");
}

#[test]
fn serves_the_pages_and_metrics_of_the_pod() {
    let (api, upstream) = (FakeApi::with_shop(), Upstream::start(1));
    let mut pod = Pod::start(&api, &[format!("--nameservers={}", upstream.address)]);
    wait_until("/readiness is ok", || page(pod.pages, "/readiness") == Some((200, "ok\n".to_owned())));
    assert_eq!(pod.address(WEB), Some(Ipv4Addr::new(10, 96, 0, 11)));
    assert_eq!(pod.address("www.example.org."), pod.address("www.example.org."));
    let (status, dump) = page(pod.pages, "/cache").unwrap();
    let dump: serde_json::Value = serde_json::from_str(&dump).unwrap_or_else(|error| panic!("{error}: {dump}"));
    assert_eq!(status, 200);
    // The format of kube-dns: a tree of labels, starting at the top-level domain.
    let path = ["local", "cluster", "svc", "shop", "web"];
    let web = path.iter().fold(&dump, |node, label| &node["ChildNodes"][label]);
    let entries = web["Entries"].as_object().unwrap();
    assert!(entries.values().any(|entry| entry["host"] == "10.96.0.11" && entry["ttl"] == 30), "{dump}");
    assert!(entries.keys().all(|label| label.len() == 16), "labels are hashes: {dump}");
    assert!(dump["Complete"].as_bool().unwrap());
    for line in ["kubedns_dnsmasq_hits 1", "kubedns_dnsmasq_max_size 9984", "kubedns_dnsmasq_insertions 1"] {
        assert!(pod.metric(line), "{line} in {:?}", page(pod.pages, "/metrics"));
    }
    // The endpoint of a headless Service is named by a hash. A Service without ports has port 0.
    let srv = pod.client.ask(WEB, Type::SRV).unwrap();
    assert_eq!(srv.rcode(), Rcode::NOERROR);
}

#[test]
fn is_not_ready_before_the_cluster_is_synced() {
    let api = FakeApi::with_shop();
    api.fault("services", fakeapi::Fault::Stall);
    let mut pod = Pod::start(&api, &[]);
    let (status, body) = page(pod.pages, "/readiness").unwrap();
    assert_eq!((status, body.as_str()), (503, "waiting for kubernetes\n"));
    assert_eq!(pod.client.ask("nothing.shop.svc.cluster.local.", Type::A).unwrap().rcode(), Rcode::SERVFAIL);
}

#[test]
fn exits_with_one_line_for_invalid_flags() {
    for (flags, said) in [
        (&["kube-dns", "--no-such-flag=1"][..], "unknown flag: --no-such-flag=1"),
        (&["kube-dns", "--config-dir=a", "--config-map=b"], "cannot be used together"),
        (&["kube-dns", "--probe=a,b"], "--probe: 'a,b' is not LABEL,SERVER,NAME"),
    ] {
        let mut server = Server::start_with(&flags.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>());
        server.wait_for(said);
        assert_eq!(server.wait(), Some(2), "{flags:?}");
    }
}

#[test]
fn selects_the_container_by_executable_name() {
    let folder = Folder::new("kube-dns-name");
    let binary = folder.path().join("dnsmasq-nanny");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_portolan"), &binary).unwrap();
    let run = |flags: &[&str]| {
        let output = std::process::Command::new(&binary).args(flags).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&["-configDir=/nowhere", "--print-corefile", "--", "-p", "5300", "--no-resolv", "-S", "192.0.2.1"]);
    assert!(text.contains(".:5300 {") && text.contains("forward . 192.0.2.1 {"), "{text}");
    assert!(!text.contains("kubernetes"), "{text}");
    assert!(run(&["--domain=cluster.local"]).contains("unknown flag"), "it is a flag of kube-dns only");
}

/// Checks that every generated Corefile is valid, for all flags and arguments that affect it.
#[test]
fn generates_a_valid_corefile_from_all_flags() {
    let folder = Folder::new("kube-dns-flags");
    folder.write("map/stubDomains", r#"{"acme.example": ["1.2.3.4:5353"], "10.in-addr.arpa": ["10.0.0.2"]}"#);
    folder.write("map/federations", "fed=fed.example.com");
    let map = format!("--config-dir={}", folder.path().join("map").display());
    let run = |words: &[&str]| std::process::Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap();
    for flags in [
        &["--dns-port=10053", "--", "-k", "--cache-size=0", "--no-negcache", "--server=/cluster.local/127.0.0.1#10053"]
            [..],
        &["--probe=a,127.0.0.1:53,example.org,5,SRV", "--probe=b,::1,_x._tcp.example.org", "--prometheus-path=/m"],
        &["--kube-master-url=http://127.0.0.1:1", "--dnsmasq-addr=127.0.0.1", "--dnsmasq-port=53", "--profiling"],
        &[
            "--",
            "--address=/dev.example/10.0.0.5",
            "--address=/ads.example/",
            "--address=/sink.example/#",
            "--filter-AAAA",
            "--host-record=a.example,b.lan,10.0.0.6,fd00::6",
            "--addn-hosts=/etc/hosts",
            "--txt-record=t.example,one,two words",
            "--mx-host=m.example,mail.example",
            "--srv-host=_ldap._tcp.example,ldap.example,389",
            "--cname=w.example,x.example",
            "--ptr-record=1.0.0.10.in-addr.arpa,x.example",
            "--domain-needed",
            "--dns-forward-max=500",
            "--max-cache-ttl=60",
            "--min-cache-ttl=10",
            "--neg-ttl=5",
            "--log-queries",
            "--edns-packet-max=1232",
            "--local=/lan/",
            "--server=/x.lan/#",
            "--all-servers",
            "--listen-address=127.0.0.1",
            "--rev-server=10.1.0.0/16,10.0.0.9",
        ],
    ] {
        let printed = run(&[&["kube-dns", &map, "--print-corefile"], flags].concat());
        assert!(printed.status.success(), "{flags:?}: {printed:?}");
        let corefile = folder.write("Corefile", &String::from_utf8(printed.stdout).unwrap());
        let checked = run(&["check", corefile.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(
            checked.status.success() && said.is_empty(),
            "{flags:?}: {said}\n{}",
            std::fs::read_to_string(&corefile).unwrap()
        );
    }
}

#[test]
fn reloads_when_resolv_conf_changes() {
    let (api, folder) = (FakeApi::with_shop(), Folder::new("kube-dns-resolv"));
    let file = folder.write("resolv.conf", "nameserver 127.0.0.1\n");
    let mut pod = Pod::start(
        &api,
        &["--".to_owned(), format!("--port={}", free_port()), format!("--resolv-file={}", file.display())],
    );
    folder.write("resolv.conf", "nameserver 127.0.0.2\n# longer\n");
    pod.server.wait_for("Reloading complete");
}

/// Starts one container by the name of its program.
fn container(folder: &Folder, name: &str, flags: &[String]) -> Server {
    let binary = folder.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_portolan"), &binary).unwrap();
    Server::start_program(&binary, &flags.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>())
}

/// Tests an old manifest with a new image: three containers, each a process that reaches the others by port.
#[test]
fn replaces_the_three_containers_of_an_old_manifest() {
    let (api, folder, upstream) = (FakeApi::with_shop(), Folder::new("kube-dns-three"), Upstream::start(1));
    let mut records = container(
        &folder,
        "kube-dns",
        &[
            format!("--kube-master-url={}", api.url()),
            "--dns-port=0".to_owned(),
            "--dns-bind-address=127.0.0.1".to_owned(),
            "--healthz-port=0".to_owned(),
        ],
    );
    let records_at = records.address_of("dns://127.0.0.1:0");
    folder.write("map/upstreamNameservers", &upstreams(&[&upstream]));
    let servers = ["cluster.local", "in-addr.arpa", "ip6.arpa"]
        .map(|domain| format!("--server=/{domain}/127.0.0.1#{}", records_at.port()));
    let front_at = free_address();
    let mut arguments = vec![
        "-v=2".to_owned(),
        "-logtostderr".to_owned(),
        format!("-configDir={}", folder.path().join("map").display()),
        "-restartDnsmasq=true".to_owned(),
        "--".to_owned(),
        "-k".to_owned(),
        format!("--port={}", front_at.port()),
        "--listen-address=127.0.0.1".to_owned(),
        "--cache-size=1000".to_owned(),
        "--no-negcache".to_owned(),
        "--log-facility=-".to_owned(),
    ];
    arguments.extend(servers);
    let mut front = container(&folder, "dnsmasq-nanny", &arguments);
    front.wait_for("Portolan-");
    let mut side = container(
        &folder,
        "sidecar",
        &[
            format!("--probe=kubedns,{records_at},{},1,SRV", WEB.trim_end_matches('.')),
            format!("--probe=dnsmasq,{front_at},{},1,SRV", WEB.trim_end_matches('.')),
            "--prometheus-port=0".to_owned(),
            format!("--dnsmasq-port={}", front_at.port()),
            "--dnsmasq-poll-interval-ms=100".to_owned(),
        ],
    );
    let pages = side.address_of(":0");

    let mut client = Client::new(front_at);
    wait_until("the cluster is served", || {
        client.ask(WEB, Type::A).is_some_and(|answer| answer.addresses().len() == 1)
    });
    assert_eq!(client.ask("www.example.org.", Type::A).unwrap().addresses(), [std::net::IpAddr::from(upstream.own)]);
    for label in ["kubedns", "dnsmasq"] {
        wait_until(&format!("{label} is healthy"), || {
            page(pages, &format!("/healthcheck/{label}")).is_some_and(|(status, _)| status == 200)
        });
    }
    wait_until("the statistics of dnsmasq are shown", || {
        page(pages, "/metrics").is_some_and(|(_, text)| text.contains("kubedns_dnsmasq_max_size 1000\n"))
    });
    let (_, metrics) = page(pages, "/metrics").unwrap();
    assert!(metrics.contains("kubedns_probe_dnsmasq_latency_ms_bucket"), "{metrics}");
    drop(front);
    wait_until("the probe of dnsmasq fails", || {
        page(pages, "/healthcheck/dnsmasq").is_some_and(|(status, _)| status == 503)
    });
}
