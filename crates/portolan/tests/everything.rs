//! Corefile with every directive of this build, served by the binary and queried.

#[path = "../../plugins/src/plugins/geoip/test_database.rs"]
mod test_database;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::support::{Client, Folder, Server, certify, page, wait_until};
use config::DirectiveEntry;
use wire::{Rcode, Type};

/// Directive that is left out, because the server is not ready without an etcd; `tests/etcd.rs` tests it.
const ELSEWHERE: &str = "etcd";

/// Corefile under test. [`QUESTIONS`] has queries for each block.
const COREFILE: &str = "(common) {
    root FOLDER
    bind 127.0.0.1
    errors
    log . \"{remote} {name} {rcode} {/geoip/country/code}\"
    prometheus localhost:0
}
plain.test:0 {
    import common
    metadata
    geoip places.mmdb
    cancel
    proxyproto
    timeouts {
        idle 30s
    }
    multisocket
    reload 30s
    nsid everything
    bufsize 1232
    rrl {
        responses-per-second 1000
        slip-ratio 2
    }
    debug
    ready localhost:0
    health localhost:0
    shed
    local
    dns64 {
        allow_ipv4
    }
    siit
    any
    chaos
    loadbalance
    tsig {
        secret key. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=
    }
    rewrite name exact old.plain.test one.plain.test
    acl {
        allow net 127.0.0.0/8
        block
    }
    cache 30
    header {
        response set ra
    }
    minimal
    template IN TXT plain.test {
        answer \"{{ .Name }} 60 IN TXT made\"
    }
    hosts /dev/null {
        192.0.2.1 one.plain.test
        fallthrough
    }
    whoami
    on startup touch FOLDER/started
    trace localhost:9
    pprof localhost:0
    control FOLDER/control.sock
    dnstap FOLDER/nobody.sock
    shadow UPSTREAM {
        sample 1/1
    }
}
files.test:0 {
    import common
    dnssec
    file db.files.test
    transfer {
        to *
    }
}
dynamic.test:0 {
    import common
    dynupdate {
        file db.files.test
        database FOLDER/dynamic.journal
        allow key. * A
    }
}
signed.test:0 {
    import common
    sign db.files.test {
        key file Ksigned.test
        directory FOLDER
    }
    file db.signed.test.signed {
        reload 1s
    }
}
auto.test:0 {
    import common
    auto {
        directory zones
    }
}
secondary.test:0 {
    import common
    secondary {
        transfer from UPSTREAM
    }
}
cluster.local:0 ext.test:0 {
    import common
    kubernetes cluster.local {
        manifests shop
    }
    autopath @kubernetes {
        clients any
    }
    k8s_external ext.test
    forward . UPSTREAM
}
forward.test:0 {
    import common
    loop
    forward . UPSTREAM
}
call.test:0 {
    import common
    grpc . CALLS
}
erratic.test:0 {
    import common
    erratic {
        drop 0
    }
}
view.test:0 {
    import common
    view all {
        expr true
    }
    whoami
}
pod.test:0 {
    import common
    kubedns localhost:0 {
        metrics skydns skydns
    }
    probe upstream UPSTREAM one.plain.test {
        address localhost:0
    }
    federations {
        prod prod.test
        place a b
    }
    kubernetes {
        manifests shop
    }
}
mesh.test:0 {
    import common
    istio {
        manifests shop
    }
}
resolver.arpa:0 {
    import common
    ddr dns.example.org 127.0.0.1 {
        announce tls
    }
}
tls://tls.test:0 {
    import common
    tls cert.pem key.pem
    whoami
}
https://https.test:0 {
    import common
    tls cert.pem key.pem
    https {
        max_connections 16
    }
    local
}
quic://quic.test:0 {
    import common
    tls cert.pem key.pem
    quic {
        max_streams 16
    }
    local
}
https3://https3.test:0 {
    import common
    tls cert.pem key.pem
    https3 {
        max_connections 16
    }
    local
}
grpc://calls.test:0 {
    import common
    tls cert.pem key.pem
    grpc_server {
        max_streams 10
    }
    whoami
}
";

/// Corefile of the upstream.
const UPSTREAM: &str = ".:0 {
    bind 127.0.0.1
    file FOLDER/db.root .
}
secondary.test:0 {
    bind 127.0.0.1
    file FOLDER/db.secondary.test
    transfer {
        to *
    }
}
grpc://.:0 {
    bind 127.0.0.1
    hosts /dev/null {
        192.0.2.8 one.call.test
    }
}
";

const ZONE: &str = "$TTL 60\n@ SOA ns host 1 7200 3600 604800 60\n@ NS ns\nns A 192.0.2.9\none A 192.0.2.2\n";
const ROOT: &str = "@ 60 SOA ns host 1 7200 3600 604800 60\n@ 60 NS ns\nns 60 A 192.0.2.9\n\
    one.forward.test 60 A 192.0.2.7\nwww.example.test 60 A 192.0.2.7\n";
const SHOP: &str = "kind: Service\napiVersion: v1\nmetadata: {name: web, namespace: shop}\n\
    spec: {clusterIP: 10.96.0.1, externalIPs: [203.0.113.7], ports: [{port: 80}]}\n---\n\
    kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: web-1, namespace: shop, \
    labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.1.0.1]}]\n";

/// Queries with their expected response code and addresses.
const QUESTIONS: &[(&str, Type, Rcode, &[&str])] = &[
    ("one.plain.test.", Type::A, Rcode::NOERROR, &["192.0.2.1"]),
    ("old.plain.test.", Type::A, Rcode::NOERROR, &["192.0.2.1"]),
    ("one.plain.test.", Type::AAAA, Rcode::NOERROR, &["64:ff9b::c000:201"]),
    ("localhost.plain.test.", Type::A, Rcode::NOERROR, &["127.0.0.1"]),
    ("any.plain.test.", Type::TXT, Rcode::NOERROR, &[]),
    ("_dns.resolver.arpa.", Type::A, Rcode::NOERROR, &[]),
    ("one.files.test.", Type::A, Rcode::NOERROR, &["192.0.2.2"]),
    ("one.dynamic.test.", Type::A, Rcode::NOERROR, &["192.0.2.2"]),
    ("one.signed.test.", Type::A, Rcode::NOERROR, &["192.0.2.2"]),
    ("one.auto.test.", Type::A, Rcode::NOERROR, &["192.0.2.2"]),
    ("one.secondary.test.", Type::A, Rcode::NOERROR, &["192.0.2.2"]),
    ("web.shop.svc.cluster.local.", Type::A, Rcode::NOERROR, &["10.96.0.1"]),
    ("www.example.test.shop.svc.cluster.local.", Type::A, Rcode::NOERROR, &["192.0.2.7"]),
    ("web.shop.ext.test.", Type::A, Rcode::NOERROR, &["203.0.113.7"]),
    ("one.forward.test.", Type::A, Rcode::NOERROR, &["192.0.2.7"]),
    ("one.call.test.", Type::A, Rcode::NOERROR, &["192.0.2.8"]),
    ("web.shop.prod.svc.pod.test.", Type::A, Rcode::NOERROR, &["10.96.0.1"]),
    ("one.erratic.test.", Type::A, Rcode::NOERROR, &["192.0.2.53"]),
];

#[test]
fn corefile_has_every_directive() {
    let parsed = corefile::parse("Corefile".as_ref(), COREFILE.to_owned(), &corefile::NoFiles);
    assert!(!parsed.has_errors());
    let blocks = parsed.corefile.blocks.iter().flat_map(|block| &block.directives);
    let used: BTreeSet<String> = blocks.map(|directive| directive.name.text.clone()).collect();
    let here = plugins::DIRECTIVES.entries().iter().filter(|entry| matches!(entry, DirectiveEntry::Available(_)));
    let missing: Vec<_> =
        here.map(DirectiveEntry::name).filter(|name| !used.contains(*name) && *name != ELSEWHERE).collect();
    assert!(missing.is_empty(), "add these directives and queries for them to this test: {missing:?}");
}

#[test]
fn serves_every_directive() {
    let folder = Folder::new("everything");
    let place = folder.path().display().to_string();
    certify(&folder, &["127.0.0.1"]);
    for name in ["db.files.test", "zones/db.auto.test", "db.secondary.test"] {
        folder.write(name, ZONE);
    }
    folder.write("Ksigned.test.key", &include_str!("keys/ksk-15.key").replace("example.org.", "signed.test."));
    folder.write("Ksigned.test.private", include_str!("keys/ksk-15.private"));
    folder.write("db.root", ROOT);
    folder.write("shop/web.yaml", SHOP);
    std::fs::write(folder.path().join("places.mmdb"), test_database::database("Test-City")).unwrap();
    let mut upstream = Server::start(&folder.write("upstream", &UPSTREAM.replace("FOLDER", &place)));
    let (names, calls) = (upstream.address_of("dns://127.0.0.1:0"), upstream.address_of("grpc://127.0.0.1:0"));

    let corefile = COREFILE.replace("FOLDER", &place).replace("UPSTREAM", &names.to_string());
    let mut server = Server::start(&folder.write("Corefile", &corefile.replace("CALLS", &calls.to_string())));
    let mut address_of = |scheme| server.address_of(&format!("{scheme}://127.0.0.1:0"));
    let [dns, tls, grpc, https] = ["dns", "tls", "grpc", "https"].map(&mut address_of);
    assert!([tls, grpc, https].iter().all(|address| std::net::TcpStream::connect(address).is_ok()));
    // `tests/quic.rs` sends queries to these.
    assert!(["quic", "https3"].map(&mut address_of).iter().all(|address| address.port() != 0));
    QUESTIONS.iter().for_each(|question| ask(dns, question));
    let any = Client::new(dns).ask("view.test.", Type::A).unwrap();
    assert_eq!((any.rcode(), any.addresses()), (Rcode::NOERROR, vec![IpAddr::from([127, 0, 0, 1])]));
    wait_until("the command has run", || folder.path().join("started").exists());
    // *erratic* is ready after its third query.
    (0..2).for_each(|_| drop(Client::new(dns).ask("one.erratic.test.", Type::A)));
    pages(&mut server);
}

/// Repeats a query until the expected answer arrives, because some data is fetched first.
fn ask(server: SocketAddr, (name, qtype, rcode, addresses): &(&str, Type, Rcode, &[&str])) {
    let mut client = Client::new(server);
    let wanted: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    wait_until(&format!("{name} {qtype} has {addresses:?}"), || {
        let answer = client.ask(name, *qtype);
        answer.is_some_and(|answer| answer.rcode() == *rcode && answer.addresses() == wanted)
    });
}

/// Checks the pages, which all have the same port.
fn pages(server: &mut Server) {
    let address = server.address_of("localhost:0");
    assert_eq!(page(address, "/health"), Some((200, "OK".to_owned())));
    wait_until("it is ready", || page(address, "/ready").is_some_and(|(status, _)| status == 200));
    let (_, metrics) = page(address, "/metrics").expect("metrics");
    for zone in ["plain.test.", "cluster.local.", "secondary.test.", "view.test."] {
        assert!(metrics.contains(&format!("zone=\"{zone}\"")), "{zone}");
    }
}
