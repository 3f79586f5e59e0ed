//! DNS over TLS, both ways: one server with a certificate, and others that pass questions on to it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::net::IpAddr;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use support::{Client, Folder, Server};
use wire::{Rcode, Type};

/// Writes an authority's certificate, and a server's with its key.
fn certify(folder: &Folder, names: &[&str]) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("an authority");
    folder.write("ca.pem", &authority.pem());
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("names");
    folder.write("cert.pem", &params.signed_by(&key, &issuer).expect("a certificate").pem());
    folder.write("key.pem", &key.serialize_pem());
}

#[test]
fn questions_pass_through_tls() {
    let folder = Folder::new("tls");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let corefile = format!(
        "tls://.:0 {{\nbind 127.0.0.1\ntls {} {}\nhosts /dev/null {{\n192.0.2.1 www.example.org\n}}\n}}\n",
        path("cert.pem"),
        path("key.pem")
    );
    let mut upstream = Server::start(&folder.write("upstream", &corefile));
    let to = upstream.address_of("tls://127.0.0.1:0");

    let ca = path("ca.pem");
    for (name, options, rcode) in [
        ("by-name", format!("tls {ca}\ntls_servername dns.example.org"), Rcode::NOERROR),
        ("by-address", format!("tls {ca}"), Rcode::NOERROR),
        ("another-name", format!("tls {ca}\ntls_servername dns.example.net"), Rcode::SERVFAIL),
        ("unknown-authority", format!("tls {}\ntls_servername dns.example.org", path("cert.pem")), Rcode::SERVFAIL),
    ] {
        let corefile = format!(".:0 {{\nbind 127.0.0.1\nforward . tls://{to} {{\n{options}\n}}\n}}\n");
        let mut server = Server::start(&folder.write(name, &corefile));
        let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
        // The second question finds the connection open.
        for _ in 0..2 {
            let answer = client.ask("www.example.org.", Type::A).expect("an answer");
            assert_eq!(answer.rcode(), rcode, "{name}");
            let known: &[IpAddr] = if rcode == Rcode::NOERROR { &["192.0.2.1".parse().unwrap()] } else { &[] };
            assert_eq!(answer.addresses(), known, "{name}");
        }
    }
}
