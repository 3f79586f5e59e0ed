//! Zone transfers with Knot DNS as primary and as secondary. If it is not installed, the tests print a message and are
//! skipped.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use crate::support::{Client, Folder, Server, wait_until};
use testkit::ports::free_address;
use wire::Type;

/// Number of records in the zone; its transfer needs many messages.
const HOSTS: u32 = 6_000;

/// Knot DNS on its own address.
struct Knot {
    child: Child,
    address: SocketAddr,
}

impl Knot {
    /// Starts Knot with these sections of its configuration; returns `None` if it is not installed.
    fn start(folder: &Folder, address: SocketAddr, sections: &str) -> Option<Knot> {
        let path = folder.path().display();
        let (ip, port) = (address.ip(), address.port());
        // Long timeouts, because Knot's next attempt after a timeout would be too late for a test.
        let patience = "  tcp-remote-io-timeout: 20000\n  tcp-io-timeout: 20000\n";
        let server =
            format!("server:\n  listen: {ip}@{port}\n  rundir: \"{path}\"\n  pidfile: \"{path}/knot.pid\"\n{patience}");
        let database = format!("database:\n  storage: \"{path}\"\n");
        let conf = folder.write("knot.conf", &format!("{server}{database}{sections}"));
        let child = Command::new("knotd").arg("-c").arg(conf).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        match child {
            Ok(child) => Some(Knot { child, address }),
            Err(error) => {
                crate::support::skip(format_args!("a test of zone transfers needs knotd: {error}"));
                None
            }
        }
    }

    /// Makes Knot read its zone files again.
    fn reload(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill").success());
    }

    /// Waits until the address of `name` ends with `last`.
    fn wait_for(&self, name: &str, last: u8) {
        let mut client = Client::new(self.address);
        wait_until("Knot has the zone", || asks(&mut client, name, last));
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asks(client: &mut Client, name: &str, last: u8) -> bool {
    let answer = client.ask(name, Type::A);
    answer.is_some_and(|answer| answer.addresses() == [Ipv4Addr::new(192, 0, 2, last)])
}

fn zone(serial: u32, last: u8) -> String {
    let mut text = format!("$TTL 60\n@ SOA ns host {serial} 2 1 1000 60\n@ NS ns\nns A 192.0.2.{last}\n");
    for host in 0..HOSTS {
        writeln!(text, "host-{host} AAAA 2001:db8::{host:x}").expect("a line");
    }
    text
}

#[test]
fn transfers_a_zone_to_knot_and_notifies_it() {
    let (folder, address) = (Folder::new("to-knot"), free_address());
    folder.write("db.example.org", &zone(1, 1));
    let db = folder.path().join("db.example.org");
    let corefile = format!(
        "example.org:0 {{\nbind 127.0.0.1\nfile {} {{\nreload 1s\n}}\ntransfer {{\nto * {address}\n}}\n}}\n",
        db.display()
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let ours = server.address_of("dns://127.0.0.1:0");
    let (ip, port) = (ours.ip(), ours.port());
    let knot = Knot::start(
        &folder,
        address,
        &format!(
            "remote:\n  - id: us\n    address: {ip}@{port}\nacl:\n  - id: us\n    address: {ip}\n    action: \
             notify\nzone:\n  - domain: example.org\n    master: us\n    acl: us\n    storage: \"{}/knot\"\n",
            folder.path().display()
        ),
    );
    let Some(knot) = knot else { return };
    knot.wait_for("ns.example.org.", 1);
    server.wait_for(&format!("Outgoing transfer of {} records of zone \"example.org.\"", HOSTS + 4));
    folder.write("db.example.org", &zone(2, 2));
    knot.wait_for("ns.example.org.", 2);
}

#[test]
fn serves_and_follows_a_zone_from_knot() {
    let (folder, address) = (Folder::new("from-knot"), free_address());
    let path = folder.path().display();
    folder.write("example.org.zone", &zone(1, 1));
    let sections = format!(
        "acl:\n  - id: us\n    address: 127.0.0.1\n    action: transfer\nzone:\n  - domain: example.org\n    acl: \
         us\n    storage: \"{path}\"\n    file: example.org.zone\n    zonefile-sync: -1\n    journal-content: none\n"
    );
    let Some(knot) = Knot::start(&folder, address, &sections) else { return };
    let corefile = format!("example.org:0 {{\nbind 127.0.0.1\nsecondary {{\ntransfer from {address}\n}}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    wait_until("the zone is there", || asks(&mut client, "ns.example.org.", 1));
    let last = client.ask("host-5999.example.org.", Type::AAAA).expect("an answer");
    assert_eq!(last.addresses(), ["2001:db8::176f".parse::<std::net::IpAddr>().expect("an address")]);
    // Knot restarts with another version; the server checks the serial every two seconds.
    drop(knot);
    folder.write("example.org.zone", &zone(2, 2));
    let _knot = Knot::start(&folder, address, &sections);
    wait_until("the zone is followed", || asks(&mut client, "ns.example.org.", 2));
}

/// Tests IXFR: Knot keeps the differences between the versions of its zone file in its journal.
#[test]
fn applies_incremental_transfers_from_knot() {
    let (folder, address) = (Folder::new("differences"), free_address());
    let path = folder.path().display();
    folder.write("example.org.zone", &zone(1, 1));
    let sections = format!(
        "acl:\n  - id: us\n    address: 127.0.0.1\n    action: transfer\nzone:\n  - domain: example.org\n    acl: \
         us\n    storage: \"{path}\"\n    file: example.org.zone\n    zonefile-sync: -1\n    zonefile-load: \
         difference\n    journal-content: changes\n"
    );
    let Some(knot) = Knot::start(&folder, address, &sections) else { return };
    let corefile = format!("example.org:0 {{\nbind 127.0.0.1\nsecondary {{\ntransfer from {address}\n}}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    wait_until("the zone is there", || asks(&mut client, "ns.example.org.", 1));
    for version in [2, 3] {
        folder.write("example.org.zone", &zone(version, version.try_into().expect("a small number")));
        knot.reload();
        server.wait_for(&format!("{version} SOA serial, 2 changes by IXFR"));
        let number = version.try_into().expect("a small number");
        assert!(asks(&mut client, "ns.example.org.", number));
    }
    let last = client.ask("host-5999.example.org.", Type::AAAA).expect("an answer");
    assert_eq!(last.addresses(), ["2001:db8::176f".parse::<std::net::IpAddr>().expect("an address")]);
}

/// Returns the output of `dig` for a query signed with a key; `None` if dig is not installed.
fn dig(server: SocketAddr, key: &str, question: &[&str]) -> Option<String> {
    let output = Command::new("dig")
        .args([&format!("@{}", server.ip()), "-p", &server.port().to_string(), "-y", key, "+tries=1"])
        .args(question)
        .output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            crate::support::skip(format_args!("a test of signed queries needs dig: {error}"));
            None
        }
    }
}

/// Tests TSIG with dig, which prints a warning only for an invalid signature.
#[test]
fn answers_signed_queries_with_signatures() {
    let folder = Folder::new("tsig");
    folder.write("db", &zone(1, 1));
    folder.write("keys", "key \"file.\" { algorithm hmac-sha1; secret \"c2VjcmV0\"; };\n");
    let (db, keys) = (folder.path().join("db"), folder.path().join("keys"));
    let corefile = format!(
        "example.org:0 {{\nbind 127.0.0.1\nfile {}\ntransfer {{\nto *\n}}\ntsig {{\nsecret key. YWJjZGVm\nsecrets \
         {}\nrequire all\n}}\n}}\n",
        db.display(),
        keys.display()
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    let whole = format!("XFR size: {} records", HOSTS + 4);
    for key in ["hmac-sha256:key:YWJjZGVm", "hmac-sha512:key:YWJjZGVm", "hmac-sha1:file:c2VjcmV0"] {
        for (question, wanted) in [
            (&["ns.example.org", "A"][..], "192.0.2.1"),
            (&["no.example.org", "A"], "NXDOMAIN"),
            (&["example.org", "AXFR"], &whole),
        ] {
            let Some(said) = dig(address, key, question) else { return };
            assert!(said.contains(wanted), "{key} {question:?}: {said}");
            assert!(!said.contains("verify") && !said.contains("failed"), "{key} {question:?}: {said}");
        }
    }
    for (key, error) in [("hmac-sha256:key:YWJj", "BADSIG"), ("hmac-sha256:other:YWJj", "BADKEY")] {
        let Some(said) = dig(address, key, &["ns.example.org", "A"]) else { return };
        assert!(said.contains("NOTAUTH") && said.contains(error), "{key}: {said}");
        // An unsigned error response has the time of the request, so the clocks are not to blame.
        assert!(!said.contains("hmac-sha256. 0 300 0 ") && !said.contains("clocks"), "{key}: {said}");
    }
}
