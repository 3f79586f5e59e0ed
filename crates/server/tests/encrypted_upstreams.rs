//! Forwarding over TLS, HTTPS and QUIC: one server with a certificate, and others that forward queries to it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::net::{IpAddr, SocketAddr};

use support::{Client, Folder, Server, certify, page, wait_until};
use wire::{Rcode, Type};

const SCHEMES: [&str; 3] = ["tls", "https", "quic"];
const HOSTS: &str = "hosts /dev/null {\n192.0.2.1 www.example.org\n}";

fn path(folder: &Folder, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Starts a server that answers over all encrypted transports. Returns the address of each.
fn serve(folder: &Folder, lines: &str) -> (Server, Vec<(&'static str, SocketAddr)>) {
    let keys = SCHEMES.map(|scheme| format!("{scheme}://.:0")).join(" ");
    let (certificate, key) = (path(folder, "cert.pem"), path(folder, "key.pem"));
    let corefile = format!("{keys} {{\nbind 127.0.0.1\ntls {certificate} {key}\n{lines}\n}}\n");
    let mut server = Server::start(&folder.write("upstream", &corefile));
    let addresses = SCHEMES.map(|scheme| (scheme, server.address_of(&format!("{scheme}://127.0.0.1:0"))));
    (server, addresses.to_vec())
}

/// Server that forwards to an upstream.
struct Forwarding {
    server: Server,
    client: Client,
    metrics: SocketAddr,
}

/// Starts a server that forwards all queries to an upstream.
fn forward(folder: &Folder, to: &str, options: &str) -> Forwarding {
    let ca = path(folder, "ca.pem");
    let corefile = format!(
        ".:0 {{\nbind 127.0.0.1\nerrors\nprometheus localhost:0\nforward . {to} {{\ntls {ca}\nmax_fails 0\n{options}\n}}\n}}\n"
    );
    let name = to.replace(|c: char| !c.is_alphanumeric(), "-");
    let mut server = Server::start(&folder.write(&name, &corefile));
    let client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let metrics = server.address_of("localhost:0");
    Forwarding { server, client, metrics }
}

fn metric(metrics: SocketAddr, series: &str) -> f64 {
    let shown = page(metrics, "/metrics").expect("metrics").1;
    let line = shown.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

fn expect_address(client: &mut Client) {
    let answer = client.ask("www.example.org.", Type::A).expect("an answer");
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, None), "{:?}", answer.0);
    assert_eq!(answer.addresses(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
}

#[test]
fn forwards_over_each_encrypted_transport_and_keeps_the_connection() {
    let folder = Folder::new("encrypted");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let (_upstream, addresses) = serve(&folder, HOSTS);
    for (scheme, to) in addresses {
        let methods: &[&str] = if scheme == "https" { &["", "doh_method GET"] } else { &[""] };
        for method in methods {
            let Forwarding { server: _server, mut client, metrics } =
                forward(&folder, &format!("{scheme}://{to}"), method);
            for _ in 0..20 {
                expect_address(&mut client);
            }
            let proto = if scheme == "tls" { "tcp-tls" } else { scheme };
            let labels = format!("{{proxy_name=\"forward\",to=\"{to}\",proto=\"{proto}\"}}");
            let count = |name| metric(metrics, &format!("coredns_proxy_conn_cache_{name}_total{labels}"));
            let (hits, misses) = (count("hits"), count("misses"));
            assert!(hits + misses == 20.0 && (1.0..=4.0).contains(&misses), "{scheme} {method}: {hits} and {misses}");
        }
    }
}

/// Checks exact server names: the name after `%` or in `tls_servername`, or else the address.
#[test]
fn refuses_certificates_for_other_names() {
    let folder = Folder::new("encrypted-names");
    certify(&folder, &["dns.example.org"]);
    let (_upstream, addresses) = serve(&folder, HOSTS);
    for (scheme, to) in addresses {
        let named = format!("{scheme}://127.0.0.1%dns.example.org:{}", to.port());
        expect_address(&mut forward(&folder, &named, "").client);
        let unnamed = format!("{scheme}://{to}");
        expect_address(&mut forward(&folder, &unnamed, "tls_servername dns.example.org").client);
        for options in ["", "tls_servername dns.example.net"] {
            let Forwarding { mut server, mut client, .. } = forward(&folder, &unnamed, options);
            let answer = client.ask("www.example.org.", Type::A).expect("an answer");
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(23)), "{scheme}");
            let line = server.wait_for("[ERROR] plugin/errors: 2 www.example.org. A: dial");
            assert!(line.contains("tls: failed to verify certificate"), "{scheme}: {line}");
        }
    }
}

#[test]
fn a_restarted_upstream_is_asked_again_without_a_failed_query() {
    let folder = Folder::new("encrypted-restart");
    certify(&folder, &["127.0.0.1"]);
    for scheme in SCHEMES {
        let ports = [support::ports::free_port()];
        let (certificate, key) = (path(&folder, "cert.pem"), path(&folder, "key.pem"));
        let port = ports[0];
        let corefile = format!("{scheme}://.:{port} {{\nbind 127.0.0.1\ntls {certificate} {key}\n{HOSTS}\n}}\n");
        let file = folder.write("upstream", &corefile);
        let upstream = Server::start(&file);
        let Forwarding { server: _server, mut client, .. } =
            forward(&folder, &format!("{scheme}://127.0.0.1:{port}"), "");
        expect_address(&mut client);
        drop(upstream);
        let answer = client.ask("www.example.org.", Type::A).expect("an answer");
        assert_eq!(answer.rcode(), Rcode::SERVFAIL, "{scheme}");
        let _upstream = Server::start(&file);
        wait_until("the upstream is asked again", || {
            client.ask("www.example.org.", Type::A).is_some_and(|answer| answer.rcode() == Rcode::NOERROR)
        });
    }
}
