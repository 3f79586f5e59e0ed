use super::*;
use crate::kube_dns::{CommandLine, Program};

fn settings(program: Program, text: &str) -> Settings {
    let words = CommandLine::parse(text.split_whitespace().map(str::to_owned), program.flags()).unwrap();
    let variable = |name: &str| (name == "PROMETHEUS_PORT" && text.contains("10053")).then(|| "10055".to_owned());
    Settings::read(program, &words, &variable).unwrap().0
}

fn config_map(pairs: &[(&str, &str)]) -> ConfigMapSettings {
    ConfigMapSettings::parse(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        .unwrap()
}

#[track_caller]
fn check(program: Program, flags: &str, data: &[(&str, &str)], expected: &str) {
    let known = BTreeMap::from([("ns.acme.example".to_owned(), vec!["10.9.9.9".parse().unwrap()])]);
    let got = corefile(&settings(program, flags), &config_map(data), HostNames::Resolved(&known));
    assert_eq!(got, expected, "\n{got}");
}

#[test]
fn one_process_replaces_the_pod() {
    check(
        Program::Pod,
        "--config-map=kube-dns",
        &[
            (
                "stubDomains",
                r#"{"acme.example": ["1.2.3.4:5353", "ns.acme.example"], "later.example": ["ns.later.example"]}"#,
            ),
            ("upstreamNameservers", r#"["8.8.8.8", "8.8.4.4"]"#),
            ("federations", "fed=fed.example.com"),
        ],
        "\
.:53 {
    errors
    bufsize 1232
    prometheus :10054
    kubedns :8081 {
        lameduck 5s
        dnsmasq kubedns
    }
    chaos
    loadbalance
    cache {
        success 9984
        denial 9984
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    federations cluster.local {
        fed fed.example.com
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        compat kube-dns
        pods insecure
        ttl 30
        fallthrough in-addr.arpa ip6.arpa
    }
    loop
    forward . 8.8.8.8 8.8.4.4 {
        policy sequential
        failover SERVFAIL
    }
}

acme.example:53 {
    errors
    bufsize 1232
    prometheus :10054
    kubedns {
        stub
        dnsmasq kubedns
    }
    loadbalance
    cache {
        success 9984
        denial 9984
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    forward . 1.2.3.4:5353 10.9.9.9 {
        policy sequential
        failover SERVFAIL
    }
}

later.example:53 {
    errors
    bufsize 1232
    prometheus :10054
    kubedns {
        stub
        dnsmasq kubedns
    }
    loadbalance
    cache {
        success 9984
        denial 9984
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    # no address known yet for ns.later.example
    template ANY ANY {
        rcode SERVFAIL
        ederror 22 \"no known address of the name servers\"
    }
}
",
    );
}

#[test]
fn reads_the_stock_flags_of_all_three_containers() {
    check(
        Program::Pod,
        "--domain=cluster.local. --dns-port=10053 --config-dir=/kube-dns-config --v=2 -restartDnsmasq=true \
         -configDir=/etc/k8s/dns/dnsmasq-nanny --probe=kubedns,127.0.0.1:10053,kubernetes.default.svc.cluster.local,5,SRV \
         -- -k --cache-size=1000 --no-negcache --dns-loop-detect --log-facility=- --server=/cluster.local/127.0.0.1#10053 \
         --server=/in-addr.arpa/127.0.0.1#10053 --server=/ip6.arpa/127.0.0.1#10053",
        &[],
        "\
.:53 .:10053 {
    errors
    bufsize 1232
    prometheus :10054
    kubedns :8081 {
        lameduck 5s
        metrics skydns skydns
        page :10055 /metrics
        dnsmasq kubedns
    }
    probe kubedns 127.0.0.1:10053 kubernetes.default.svc.cluster.local 5s SRV {
        address :10054
        prefix kubedns
    }
    chaos
    loadbalance
    cache {
        success 1000
        disable denial
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        compat kube-dns
        pods insecure
        ttl 30
        fallthrough in-addr.arpa ip6.arpa
    }
    loop
    forward . /etc/resolv.conf {
        policy sequential
        failover SERVFAIL
    }
}
",
    );
}

#[test]
fn writes_a_corefile_for_each_container_alone() {
    check(
        Program::KubeDns,
        "--domain=cluster.local --dns-port=10053 --kubecfg-file=/a/b --nameservers=10.0.0.1 --profiling",
        &[("stubDomains", r#"{"acme.example": ["1.2.3.4"]}"#)],
        "\
.:10053 {
    errors
    kubedns :8081 {
        lameduck 5s
        metrics skydns skydns
        page :10055 /metrics
    }
    pprof localhost:6060
    chaos
    loadbalance
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig /a/b
        compat kube-dns
        pods insecure
        ttl 30
        fallthrough in-addr.arpa ip6.arpa
    }
    loop
    forward . 10.0.0.1 {
        policy sequential
        failover SERVFAIL
    }
}
",
    );
    check(
        Program::Nanny,
        "-- --cache-size=100 --server=/cluster.local/127.0.0.1#1053 --local=/lan/ --server=/x.lan/# --no-resolv -S 9.9.9.9",
        &[],
        "\
.:53 {
    errors
    bufsize 1232
    kubedns {
        lameduck 5s
        dnsmasq kubedns
    }
    chaos
    loadbalance
    cache {
        success 100
        denial 100
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    loop
    forward . 9.9.9.9 {
        policy sequential
        failover SERVFAIL
    }
}

cluster.local:53 {
    errors
    bufsize 1232
    kubedns {
        stub
        dnsmasq kubedns
    }
    loadbalance
    cache {
        success 100
        denial 100
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    forward . 127.0.0.1:1053 {
        policy sequential
        failover SERVFAIL
    }
}

lan:53 {
    errors
    bufsize 1232
    kubedns {
        stub
        dnsmasq kubedns
    }
    loadbalance
    cache {
        success 100
        denial 100
    }
    template ANY ANY lan {
        rcode NXDOMAIN
        authority \"lan. 60 IN SOA ns.lan. hostmaster.lan. 1 7200 1800 86400 60\"
    }
}

x.lan:53 {
    errors
    bufsize 1232
    kubedns {
        stub
        dnsmasq kubedns
    }
    loadbalance
    cache {
        success 100
        denial 100
    }
    hosts /etc/hosts {
        ttl 0
        fallthrough
        fallthrough_nodata
    }
    forward . 9.9.9.9 {
        policy sequential
        failover SERVFAIL
    }
}
",
    );
    check(
        Program::Sidecar,
        "--probe=dnsmasq,127.0.0.1:53,kubernetes.default.svc.cluster.local,5,A --prometheus-path=/m",
        &[],
        "\
.:0 {
    bind 127.0.0.1
    errors
    prometheus :10054 {
        path /m
    }
    kubedns {
        lameduck 5s
        dnsmasq kubedns 127.0.0.1:53 5000ms
    }
    probe dnsmasq 127.0.0.1:53 kubernetes.default.svc.cluster.local 5s A {
        address :10054
        prefix kubedns
    }
}
",
    );
}

#[test]
fn writes_records_of_dnsmasq() {
    let settings = settings(
        Program::Nanny,
        "-- --address=/dev.example/10.0.0.5 --address=/ads.example/ --host-record=a.example,10.0.0.6 --filter-AAAA \
         --txt-record=t.example,one,two --domain-needed --dns-forward-max=500 --max-cache-ttl=60 --min-cache-ttl=10 --log-queries \
         --cname=w.example,x.example --local=/lan/ --host-record=h.lan,10.0.0.7",
    );
    let text = corefile(&settings, &ConfigMapSettings::default(), HostNames::Unresolved);
    for part in [
        "    log\n",
        "    cache 60 {\n        success 150 60 10\n        denial 150 60 10\n    }\n",
        "        filter AAAA\n",
        "    rewrite continue rcode exact dev.example. NXDOMAIN NOERROR\n\
         \u{20}   rewrite continue rcode suffix .dev.example. NXDOMAIN NOERROR\n\
         \u{20}   rewrite continue rcode exact t.example. NXDOMAIN NOERROR\n",
        "    template IN A {\n        match ^[^.]+\\.$\n        rcode NXDOMAIN\n        fallthrough\n    }\n\
         \u{20}   template IN AAAA {\n        match ^[^.]+\\.$\n",
        "    template IN A dev.example {\n        answer \"{{ .Name }} 0 IN A 10.0.0.5\"\n    }\n",
        "    template ANY ANY ads.example {\n        rcode NXDOMAIN\n",
        "        match ^t\\.example\\.$\n        answer \"{{ .Name }} 0 IN TXT \\\"one\\\" \\\"two\\\"\"\n",
        "    hosts /etc/hosts {\n        10.0.0.6 a.example\n        10.0.0.7 h.lan\n        ttl 0\n\
         \u{20}       fallthrough\n        fallthrough_nodata\n    }\n",
        "        max_concurrent 500\n",
        "    template IN ANY w.example {\n        match ^w\\.example\\.$\n",
        "    template IN A h.lan {\n        match ^h\\.lan\\.$\n        answer \"{{ .Name }} 0 IN A 10.0.0.7\"\n\
         \u{20}       fallthrough\n    }\n",
        "    template IN ANY h.lan {\n        match ^h\\.lan\\.$\n        rcode NOERROR\n        fallthrough\n    }\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // DS and NS of top-level domains are forwarded, and so are other types of names with local records.
    for denied in
        ["template ANY ANY {", "template IN ANY dev.example", "template IN AAAA h.lan", "rcode exact w.example"]
    {
        assert!(!text.contains(denied), "{denied}\n{text}");
    }
}

/// Arguments after `--` configure dnsmasq, on port 53 by default. Without `--` there is no dnsmasq, as in the pod.
#[test]
fn each_part_listens_on_its_port_in_the_pod() {
    for (flags, keys) in [
        ("--domain=k8s.example", ".:53"),
        ("--dns-port=5300", ".:5300"),
        ("--dns-port=5300 -- -k", ".:53 .:5300"),
        ("--dns-port=5300 -- --port=5300", ".:5300"),
        ("--dns-port=5300 -- --port=5353", ".:5300 .:5353"),
        ("--dns-port=5300 -- --port=0", ".:5300"),
    ] {
        let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
        assert_eq!(text.lines().next(), Some(format!("{keys} {{").as_str()), "{flags}");
    }
}

#[test]
fn keeps_host_names_that_are_not_resolved() {
    let settings = settings(Program::Pod, "");
    let config_map =
        config_map(&[("stubDomains", r#"{"acme.example": ["ns.acme.example"], "cluster.local": ["1.2.3.4"]}"#)]);
    let text = corefile(&settings, &config_map, HostNames::Unresolved);
    assert!(text.contains("forward . ns.acme.example {"), "{text}");
    assert!(!text.contains("1.2.3.4"), "the zone of the cluster is no stub domain:\n{text}");
    assert_eq!(named_hosts(&settings, &config_map).into_iter().collect::<Vec<_>>(), ["ns.acme.example"]);
}

#[test]
fn a_stub_domain_above_the_cluster_leaves_it_its_zone() {
    let settings =
        settings(Program::Pod, "-- --ptr-record=1.0.96.10.in-addr.arpa,x.example --txt-record=t.cluster.local,one");
    let config_map = config_map(&[("stubDomains", r#"{"local": ["1.2.3.4"], "arpa": ["1.2.3.4"]}"#)]);
    let text = corefile(&settings, &config_map, HostNames::Unresolved);
    let (main, others) = text.split_once("\n}\n").unwrap();
    assert!(main.starts_with(".:53 cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {\n"), "{text}");
    assert!(main.contains("template IN PTR 1.0.96.10") && main.contains("template IN TXT t.cluster.local"), "{text}");
    assert!(others.contains("arpa:53 {") && others.contains("local:53 {") && !others.contains("template"), "{text}");
}

#[test]
fn serves_the_cluster_where_dnsmasq_forwarded_to_kube_dns() {
    let stock = "-- --server=/cluster.local/127.0.0.1#10053 --server=/in-addr.arpa/127.0.0.1#10053 \
                 --server=127.0.0.1#10053 --no-resolv";
    let text = corefile(&settings(Program::Pod, stock), &ConfigMapSettings::default(), HostNames::Unresolved);
    assert!(!text.contains("10053") && text.contains("kubernetes cluster.local"), "{text}");
    assert!(text.contains("forward . /etc/resolv.conf {"), "{text}");
    assert_eq!(text.matches("{\n    errors").count(), 1, "{text}");
}

#[test]
fn own_records_have_their_ttl_or_local_ttl() {
    let flags = "-- --local-ttl=7 --cname=w.example,x.example,77 --cname=v.example,x.example --address=/dev.example/10.0.0.5 \
                 --host-record=a.example,10.0.0.6,55 --host-record=b.example,10.0.0.8";
    let text = corefile(&settings(Program::Nanny, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    for part in [
        "{{ .Name }} 77 IN CNAME x.example.",
        "{{ .Name }} 7 IN CNAME x.example.",
        "{{ .Name }} 7 IN A 10.0.0.5",
        "{{ .Name }} 55 IN A 10.0.0.6",
        "        10.0.0.6 a.example\n        10.0.0.8 b.example\n        ttl 7\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn aliases_keep_a_ttl_below_the_minimum_of_the_cache() {
    for (flags, success) in [
        ("-- --cname=w.example,x.example", "success 150 3600 0\n        denial 150\n"),
        ("-- --cname=w.example,x.example,4 --cname=v.example,x.example,3 --max-cache-ttl=60", "success 150 60 3\n"),
        ("-- --cname=w.example,x.example,5", "success 150\n"),
        ("-- --cname=w.example,x.example --min-cache-ttl=10", "success 150 3600 10\n"),
        ("-- --host-record=a.example,10.0.0.6", "success 150\n"),
    ] {
        let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
        assert!(text.contains(success), "{flags}\n{text}");
    }
}

/// kops uses the misspelt zone `in6.arpa`.
#[test]
fn zones_sent_to_the_port_of_kube_dns_are_served_here() {
    let flags = "-- --server=/cluster.local/127.0.0.1#10053 --server=/svc.cluster.local/127.0.0.1#10053 \
                 --server=/in6.arpa/127.0.0.1#10053 --server=/10.in-addr.arpa/127.0.0.1#10053 --server=/local/127.0.0.1#10053";
    let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    assert!(!text.contains("10053"), "{text}");
    assert_eq!(text.matches("{\n    errors").count(), 1, "one server block:\n{text}");
    let flags = "-- --server=/corp.example/127.0.0.1#10053 --server=/example/10.0.0.1 --server=/mixed/127.0.0.1#10053 \
                 --server=/mixed/10.0.0.2";
    let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    assert!(text.starts_with(".:53 corp.example:53 {\n"), "the longer name stays here:\n{text}");
    assert!(
        text.contains("mixed:53 {\n") && text.contains("forward . 10.0.0.2 {") && !text.contains("10053"),
        "{text}"
    );
}

#[test]
fn the_address_of_kube_dns_does_not_move_dnsmasq() {
    let flags = "--dns-port=10053 --dns-bind-address=127.0.0.1 -- --cache-size=1000";
    let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    let (main, own) = text.split_once("\n}\n").unwrap();
    assert!(main.starts_with(".:53 {\n    errors\n") && !main.contains("bind"), "{text}");
    assert!(own.contains(".:10053 {\n    bind 127.0.0.1\n") && own.contains("kubernetes cluster.local"), "{text}");
    assert!(!own.contains("cache"), "kube-dns keeps nothing:\n{text}");
    let flags = "--dns-port=10053 --dns-bind-address=127.0.0.1 -- --listen-address=127.0.0.2";
    let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    assert!(text.starts_with(".:53 {\n    bind 127.0.0.2\n"), "{text}");
    let text = corefile(
        &settings(Program::Pod, "--dns-bind-address=127.0.0.1"),
        &ConfigMapSettings::default(),
        HostNames::Unresolved,
    );
    assert!(text.starts_with(".:53 {\n    bind 127.0.0.1\n"), "without dnsmasq it is the only one:\n{text}");
}

#[test]
fn a_probe_without_a_type_asks_for_any() {
    let flags = "--probe=a,[127.0.0.1]:10053,kubernetes.default.svc.cluster.local";
    let text = corefile(&settings(Program::Sidecar, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    let part = "probe a 127.0.0.1:10053 kubernetes.default.svc.cluster.local 5s ANY {\n        empty\n";
    assert!(text.contains(part), "{text}");
}

#[test]
fn converts_stale_answers_and_upstream_order() {
    for (flags, part) in [
        ("-- --use-stale-cache", "serve_stale 86400s\n"),
        ("-- --use-stale-cache=60", "serve_stale 60s\n"),
        ("-- --use-stale-cache=0", "serve_stale 31536000s\n"),
        ("-- --cache-size=9", "loadbalance\n"),
        ("-- --all-servers --server=192.0.2.1", "        ask_all\n"),
    ] {
        let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
        assert!(text.contains(part), "{flags}: {text}");
    }
    let flags = "-- --no-round-robin --local=/lan/";
    let text = corefile(&settings(Program::Pod, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    assert!(!text.contains("loadbalance") && !text.contains("serve_stale"), "{text}");
}

#[test]
fn federations_may_be_json() {
    let written = [("federations", r#"{"fed": "fed.example.com"}"#), ("upstreamNameservers", r#"["8.8.8.8"]"#)];
    let text = corefile(&settings(Program::Pod, ""), &config_map(&written), HostNames::Unresolved);
    assert!(text.contains("        fed fed.example.com\n") && text.contains("forward . 8.8.8.8 {"), "{text}");
}

/// Addresses of hosts have their names in reverse, also if reverse zones are forwarded, as by the sidecar in the pod.
#[test]
fn reverse_zones_know_the_hosts() {
    let flags = "-- --server=/cluster.local/127.0.0.1#10053 --server=/in-addr.arpa/127.0.0.1#10053 --domain-needed \
                 --host-record=a.example,10.0.0.6 --addn-hosts=/etc/more";
    let text = corefile(&settings(Program::Nanny, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    let (_, reverse) = text.split_once("\nin-addr.arpa:53 {").expect("a block for the reverse zone");
    let lines = "        127.0.0.1 localhost\n        ::1 localhost\n        10.0.0.6 a.example\n";
    let hosts = format!(
        "    hosts /etc/more . {{\n{lines}        ttl 0\n        fallthrough\n        fallthrough_nodata\n    }}\n"
    );
    assert!(reverse.contains(&hosts), "{text}");
    assert!(text.contains(&format!("    hosts /etc/more {{\n{lines}")), "{text}");
    let only = corefile(
        &settings(Program::Nanny, "-- --no-hosts --server=/in-addr.arpa/127.0.0.1#10053"),
        &ConfigMapSettings::default(),
        HostNames::Unresolved,
    );
    assert!(!only.contains("hosts "), "{only}");
    let flags = "-- --server=/in-addr.arpa/127.0.0.1#10053";
    let default = corefile(&settings(Program::Nanny, flags), &ConfigMapSettings::default(), HostNames::Unresolved);
    let (main, reverse) = default.split_once("\nin-addr.arpa:53 {").expect("a block for the reverse zone");
    assert!(main.contains("    hosts /etc/hosts {\n        ttl 0\n"), "{default}");
    assert!(reverse.contains("    hosts /etc/hosts . {\n        ttl 0\n"), "{default}");
}
