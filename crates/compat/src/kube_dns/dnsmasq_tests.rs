use super::*;

fn read(text: &str) -> Result<(Dnsmasq, Vec<Warning>), FlagError> {
    Dnsmasq::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn servers(dnsmasq: &Dnsmasq, domain: &str) -> String {
    match &dnsmasq.domains[domain] {
        Domain::Servers(servers) => servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Domain::DefaultUpstreams => "usual".to_owned(),
    }
}

#[test]
fn reads_the_stock_arguments() {
    let (dnsmasq, said) = read(
        "-k --cache-size=1000 --no-negcache --dns-loop-detect --log-facility=- --server=/cluster.local/127.0.0.1#10053 \
         --server=/in-addr.arpa/127.0.0.1#10053 --server=/ip6.arpa/127.0.0.1#10053",
    )
    .unwrap();
    assert_eq!((dnsmasq.cache_size, dnsmasq.keeps_denials), (1000, false));
    assert_eq!(servers(&dnsmasq, "cluster.local"), "127.0.0.1:10053");
    assert_eq!(dnsmasq.domains.len(), 3);
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn reads_servers_in_all_forms() {
    let (dnsmasq, said) = read(
        "-S 8.8.8.8 -S/a.example/b.example/10.0.0.1#5353 --server=/a.example/10.0.0.2 --local=/lan/ --server=/x.lan/# \
         --rev-server=10.1.0.0/16,10.0.0.9 --server=fd00::1#5353 --server=10.0.0.3@eth0 --server ns.example.org",
    )
    .unwrap();
    let all: Vec<String> = dnsmasq.servers.iter().map(ToString::to_string).collect();
    assert_eq!(all, ["8.8.8.8", "[fd00::1]:5353", "10.0.0.3", "ns.example.org"]);
    assert_eq!(servers(&dnsmasq, "a.example"), "10.0.0.1:5353 10.0.0.2");
    assert_eq!(servers(&dnsmasq, "b.example"), "10.0.0.1:5353");
    assert_eq!((servers(&dnsmasq, "lan"), servers(&dnsmasq, "x.lan")), (String::new(), "usual".to_owned()));
    assert_eq!(servers(&dnsmasq, "1.10.in-addr.arpa"), "10.0.0.9");
    assert_eq!(said, [Warning::Differs("dnsmasq's --server".to_owned(), "the source after `@` is ignored")]);
}

#[test]
fn reads_limits_policies_and_addresses() {
    let (dnsmasq, _) = read(
        "-c0 -p 5300 --max-ttl=300 --max-cache-ttl=600 --min-cache-ttl=7200 --neg-ttl=60 --dns-forward-max=1500 --no-resolv \
         --all-servers --log-queries=extra --edns-packet-max=1232 --listen-address=127.0.0.1,::1 --filter-AAAA -D",
    )
    .unwrap();
    assert_eq!((dnsmasq.cache_size, dnsmasq.port, dnsmasq.forward_max), (0, 5300, 1500));
    assert_eq!((dnsmasq.ttl_max, dnsmasq.ttl_min, dnsmasq.denial_ttl), (Some(300), Some(3600), Some(60)));
    assert_eq!((dnsmasq.resolv_conf, dnsmasq.asks_all, dnsmasq.is_logging), (None, true, true));
    assert_eq!((dnsmasq.udp_size, dnsmasq.listen.len(), dnsmasq.filtered), (Some(1232), 2, vec!["AAAA"]));
    assert!(dnsmasq.keeps_plain_names);
}

#[test]
fn reads_local_records() {
    let (dnsmasq, _) = read(
        "--address=/ads.example/ --address=/dev.example/10.0.0.5 --host-record=a.example,b.example,10.0.0.6,fd00::6 \
         --addn-hosts=/etc/more --cname=www.example,web.example --txt-record=t.example,one,two --mx-host=m.example,mail.example,5 \
         --srv-host=_ldap._tcp.example,ldap.example,389 --ptr-record=x.example,y.example",
    )
    .unwrap();
    assert_eq!(dnsmasq.addresses.len(), 2);
    assert_eq!(dnsmasq.hosts.len(), 4);
    let records: Vec<String> = dnsmasq
        .local_records
        .iter()
        .map(|record| format!("{} {} {}", record.name, record.rtype, record.data))
        .collect();
    assert_eq!(
        records,
        [
            "www.example CNAME web.example.",
            "t.example TXT \"one\" \"two\"",
            "m.example MX 5 mail.example.",
            "_ldap._tcp.example SRV 0 0 389 ldap.example.",
            "x.example PTR y.example.",
        ]
    );
}

#[test]
fn warns_of_arguments_without_effect_and_refuses_invalid_ones() {
    let (_, said) = read("--stop-dns-rebind --min-port=1024 --no-such-thing=7 -Zfoo").unwrap();
    assert_eq!(said.len(), 4, "{said:?}");
    for text in [
        "--server=/a b/1.2.3.4",
        "--server=/x{/1.2.3.4",
        "--server=1.2.3.4#x",
        "--cache-size=many",
        "stray",
        "--address=/a/b",
        "--listen-address=eth0",
        "--host-record=a",
        "--cname=a",
        "--cname=a.example,b c,30",
        "--max-ttl=x",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn a_ttl_limit_of_0_means_no_limit() {
    let (dnsmasq, _) = read("--neg-ttl=0 --max-ttl=0 --max-cache-ttl=0 --min-cache-ttl=0").unwrap();
    assert_eq!((dnsmasq.ttl_max, dnsmasq.ttl_min, dnsmasq.denial_ttl), (None, None, None));
    let (dnsmasq, _) = read("--max-ttl=0 --max-cache-ttl=60").unwrap();
    assert_eq!(dnsmasq.ttl_max, Some(60));
}

#[test]
fn reads_ttls_of_local_records() {
    let (dnsmasq, said) = read(
        "--cname=www.example,web.example,30 --cname=a.example,b.example,web.example,77 --cname=v.example,web.example \
         --host-record=h.example,10.0.0.6,fd00::6,55 --host-record=i.example,10.0.0.7 --local-ttl=5",
    )
    .unwrap();
    assert_eq!(said, []);
    let records: Vec<_> =
        dnsmasq.local_records.iter().map(|record| (record.name.as_str(), record.data.as_str(), record.ttl)).collect();
    assert_eq!(
        records,
        [
            ("www.example", "web.example.", Some(30)),
            ("a.example", "web.example.", Some(77)),
            ("b.example", "web.example.", Some(77)),
            ("v.example", "web.example.", None),
        ]
    );
    assert_eq!(dnsmasq.hosts.iter().map(|host| host.ttl).collect::<Vec<_>>(), [Some(55), Some(55), None]);
    assert_eq!(dnsmasq.local_ttl, 5);
}

/// dnsmasq 2.90 starts with each of these arguments.
#[test]
fn warns_of_odd_values_that_dnsmasq_accepts() {
    for text in [
        "--server=//10.0.0.1",
        "--server=/*.zone/10.0.0.1",
        "--server=10.0.0.1#53@10.0.0.2#55",
        "--server=10.0.0.1@eth0#53",
        "--server=1.2.3.4#0",
        "--server=/a.b/1.2.3.4#0",
        "--server=",
        "--local=",
        "--mx-host=a",
        "--srv-host=_a._tcp.b",
        "--ptr-record=x",
        "--txt-record=",
        "--txt-record=a.example,a\"b",
        "--address=//1.2.3.4",
        "--address=1.2.3.4",
        "--address=/*.a/1.2.3.4",
        "--host-record=a,30",
        "--edns-packet-max=9",
        "--edns-packet-max=65535",
    ] {
        let (_, said) = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(said.len(), 1, "{text}: {said:?}");
    }
    let (dnsmasq, _) = read("--server=/*.zone/10.0.0.1 --server=/#/10.0.0.2 --server=10.0.0.3#54@10.0.0.4#55").unwrap();
    assert_eq!(servers(&dnsmasq, "zone"), "10.0.0.1");
    assert_eq!(dnsmasq.servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.2", "10.0.0.3:54"]);
}
