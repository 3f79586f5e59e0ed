//! Dynamic updates of the binary: results, durability, transfers, and other clients.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::control::ControlSocket;
use crate::support::encrypted;
use crate::support::update::{SECRET, Updater};
use crate::support::{Answer, Client, Folder, Server, page, query, wait_until};
use wire::{Message, Rcode, Type};
use zone::text::Data;

const SEED: &str = "$TTL 60\n@ SOA ns host 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.53\nc CNAME ns\n";
const KEY: &str = "k.example.org.";

/// Corefile with a dynamic zone. `more` are lines of the server block, `options` of the directive.
fn corefile(folder: &Folder, more: &str, options: &str) -> String {
    folder.write("seed", SEED);
    let path = folder.path().display();
    format!(
        "example.org:0 {{\nbind 127.0.0.1\nroot {path}\nprometheus localhost:0\n\
         tsig {{\nsecret {KEY} {SECRET}\nsecret other. {SECRET}\nrequire_opcode UPDATE\n}}\n{more}\n\
         dynupdate {{\nfile seed\n{options}\n}}\n}}\n"
    )
}

const ALLOW_ALL: &str = "allow k.example.org. * *";
const DATABASE: &str = "database zone.db\nallow k.example.org. * *";

struct Zone {
    server: Server,
    address: SocketAddr,
    updater: Updater,
}

impl Zone {
    fn start(folder: &Folder, more: &str, options: &str) -> Zone {
        let mut server = Server::start(&folder.write("Corefile", &corefile(folder, more, options)));
        let address = server.address_of("dns://127.0.0.1:0");
        Zone { server, address, updater: Updater::new(address, "example.org.", Some(KEY)) }
    }

    fn send(&self, updates: &str) -> Rcode {
        self.updater.send("", updates)
    }

    fn serial(&self) -> u32 {
        let records = records(&ask(self.address, "example.org", Type::SOA));
        let soa = records.first().expect("an SOA record");
        soa.split(' ').nth(4).expect("a serial").parse().expect("a serial")
    }
}

fn ask(address: SocketAddr, name: &str, qtype: Type) -> Vec<u8> {
    let unsigned = Updater::new(address, "example.org.", None);
    unsigned.exchange(&query(7, name, qtype)).0
}

/// Records of the answer section: `TTL TYPE DATA`.
fn records(answer: &[u8]) -> Vec<String> {
    let message = Message::parse(answer).expect("a message");
    let records = message.records().filter(|record| record.section() == wire::Section::Answer);
    let line = |record: wire::Record<'_>| {
        let mut rdata = Vec::new();
        zone::text::expand(&record, &mut rdata).expect("RDATA");
        format!("{} {} {}", record.ttl(), record.rtype(), Data { rtype: record.rtype(), rdata: &rdata })
    };
    records.map(line).collect()
}

/// Requests to the zone one after another, with the results that CoreDNS 1.15.0 has.
#[test]
fn updates_have_the_results_of_coredns() {
    let folder = Folder::new("dynupdate-table");
    let options = "database zone.db\nallow k.example.org. host.example.org. A AAAA ANY\n\
                   allow k.example.org. @ SOA NS TXT\nallow k.example.org. c.example.org. *\nmax_update_records 5";
    let zone = Zone::start(&folder, "log", options);
    let six: String = (0..6).fold(String::new(), |text, at| text + &format!("@ 60 IN TXT {at}\n"));
    for (prerequisites, updates, rcode, serial) in [
        ("", "host 60 IN A 192.0.2.1", Rcode::NOERROR, 2),
        ("", "host 60 IN A 192.0.2.1", Rcode::NOERROR, 2),
        ("", "host 61 IN A 192.0.2.1", Rcode::NOERROR, 3),
        ("", "host 60 IN MX 10 ns", Rcode::REFUSED, 3),
        ("", "x 60 IN A 192.0.2.1", Rcode::REFUSED, 3),
        ("host 0 NONE ANY", "host 60 IN A 192.0.2.2", Rcode::YXDOMAIN, 3),
        ("host 0 IN A 192.0.2.1", "host 61 IN A 192.0.2.2", Rcode::NOERROR, 4),
        ("", "c 60 IN A 192.0.2.1", Rcode::NOERROR, 4),
        ("", "host 0 ANY ANY", Rcode::NOERROR, 5),
        ("", "@ 60 IN SOA ns host 100 3600 600 86400 60", Rcode::NOERROR, 100),
        ("", "@ 60 IN SOA ns host 50 3600 600 86400 60", Rcode::NOERROR, 100),
        ("", "@ 60 IN SOA ns host 0 3600 600 86400 60", Rcode::FORMERR, 100),
        ("", &six, Rcode::REFUSED, 100),
        ("x.other. 0 ANY ANY", "", Rcode::NOTZONE, 100),
        ("", "c 60 IN DS 1 13 2 00", Rcode::NOTIMP, 100),
    ] {
        assert_eq!(zone.updater.send(prerequisites, updates), rcode, "{prerequisites} / {updates}");
        assert_eq!(zone.serial(), serial, "{prerequisites} / {updates}");
        match serial {
            2 => assert_eq!(records(&ask(zone.address, "host.example.org", Type::A)), ["60 A 192.0.2.1"]),
            3 => assert_eq!(records(&ask(zone.address, "HOST.example.org", Type::A)), ["61 A 192.0.2.1"]),
            4 => assert_eq!(
                records(&ask(zone.address, "host.example.org", Type::A)),
                ["61 A 192.0.2.1", "61 A 192.0.2.2"]
            ),
            _ => assert_eq!(Answer(ask(zone.address, "host.example.org", Type::A)).rcode(), Rcode::NXDOMAIN),
        }
    }
    // Accepted and refused updates are answered with AA and without records.
    let answer = zone.updater.exchange(&zone.updater.message("", "host 0 ANY A"));
    let header = answer.header();
    assert!(header.flags.authoritative(), "{header:?}");
    assert_eq!((header.questions, header.answers, header.authorities, header.additionals), (1, 0, 0, 1));
    let other = Updater { qtype: Type::A, ..Updater::new(zone.address, "example.org.", Some(KEY)) };
    assert_eq!(other.send("", "host 60 IN A 192.0.2.1"), Rcode::FORMERR);
    // Other zones, keys and clients.
    for (name, key, rcode, has_aa) in [
        ("sub.example.org.", Some(KEY), Rcode::NOTAUTH, true),
        ("example.org.", Some("other."), Rcode::REFUSED, true),
        ("example.org.", None, Rcode::REFUSED, false),
        ("example.net.", None, Rcode::REFUSED, false),
    ] {
        let other = Updater::new(zone.address, name, key);
        let answer = other.exchange(&other.message("", "host 60 IN A 192.0.2.1"));
        assert_eq!((answer.rcode(), answer.header().flags.authoritative()), (rcode, has_aa), "{name} {key:?}");
    }
}

/// Logs and metrics name the zone, the key and the result. Clients that use EDNS get the reason, but only if they have
/// signed.
#[test]
fn updates_are_logged_and_counted() {
    let folder = Folder::new("dynupdate-log");
    let options = "allow k.example.org. host.example.org. A\nmax_records 5\nmax_update_records 3";
    let mut zone = Zone::start(&folder, "", options);
    let pages = zone.server.address_of("localhost:0");
    assert_eq!(zone.send("host 60 IN A 192.0.2.1"), Rcode::NOERROR);
    zone.server.wait_for(
        "[INFO] plugin/dynupdate: update of zone example.org. by key k.example.org. from 127.0.0.1: NOERROR: 1 \
         changes, SOA serial 2",
    );
    assert_eq!(zone.send("host 60 IN A 192.0.2.1"), Rcode::NOERROR);
    zone.server.wait_for("NOERROR: nothing to change");
    assert_eq!(zone.send("x 60 IN A 192.0.2.1"), Rcode::REFUSED);
    zone.server.wait_for("REFUSED: no allow rule of the key covers x.example.org. A");
    assert_eq!(zone.send("host 60 IN A 192.0.2.2"), Rcode::REFUSED);
    zone.server.wait_for("REFUSED: zone exceeds max_records (5)");
    assert_eq!(zone.send("host 0 ANY A\nhost 0 ANY A\nhost 0 ANY A\nhost 0 ANY A"), Rcode::REFUSED);
    let updater = Updater { uses_edns: true, ..Updater::new(zone.address, "example.org.", Some(KEY)) };
    let answer = updater.exchange(&updater.message("", "host 60 IN A 192.0.2.2"));
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::REFUSED, Some(18)));
    zone.server.wait_for("REFUSED: zone exceeds max_records (5)");
    let (_, metrics) = page(pages, "/metrics").expect("the metrics");
    for line in [
        "portolan_dynupdate_updates_total{zone=\"example.org.\",rcode=\"NOERROR\"} 2",
        "portolan_dynupdate_updates_total{zone=\"example.org.\",rcode=\"REFUSED\"} 4",
        "portolan_dynupdate_limited_total{zone=\"example.org.\",limit=\"max_records\"} 2",
        "portolan_dynupdate_limited_total{zone=\"example.org.\",limit=\"max_update_records\"} 1",
        "portolan_dynupdate_serial{zone=\"example.org.\"} 2",
        "portolan_dynupdate_records{zone=\"example.org.\"} 5",
        "portolan_dynupdate_commit_duration_seconds_count{zone=\"example.org.\"} 1",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} is not in {metrics}");
    }
}

/// An update that is refused before its records are read has exactly one line, whatever refuses it.
#[test]
fn an_update_that_is_refused_unread_is_logged_once() {
    let folder = Folder::new("dynupdate-refused");
    let options = "allow k.example.org. host.example.org. A\nmax_update_records 1";
    let mut zone = Zone::start(&folder, "errors", options);
    let cases = [
        (
            "example.org.",
            Some("stranger."),
            "by key stranger. (not verified) from 127.0.0.1: NOTAUTH: TSIG: unknown key",
        ),
        ("example.org.", Some("other."), "by key other. from 127.0.0.1: REFUSED: no allow rule has this key"),
        ("example.org.", None, "without a key from 127.0.0.1: REFUSED: the query is not signed"),
        (
            "sub.example.org.",
            Some(KEY),
            "by key k.example.org. from 127.0.0.1: NOTAUTH: the server block has no dynamic",
        ),
        ("example.net.", Some(KEY), "by key k.example.org. (not verified) from 127.0.0.1: REFUSED: no server block"),
        ("example.org.", Some(KEY), "by key k.example.org. from 127.0.0.1: REFUSED: the update has more records than"),
    ];
    for (name, key, _) in cases {
        let other = Updater::new(zone.address, name, key);
        let refused = other.exchange_unverified(&other.message("", "host 60 IN A 192.0.2.1\nhost 60 IN A 192.0.2.2"));
        assert_ne!(refused.rcode(), Rcode::NOERROR, "{name} {key:?}");
    }
    assert_eq!(zone.send("host 60 IN A 192.0.2.1"), Rcode::NOERROR);
    zone.server.wait_for("NOERROR: 1 changes");
    for (name, _, reason) in cases {
        zone.server.wait_for(&format!("[INFO] update of zone {name} {reason}"));
    }
    let lines = zone.server.lines();
    let more: Vec<_> = lines.iter().filter(|line| line.contains("example") && line.starts_with('[')).collect();
    assert!(more.is_empty(), "{more:?}");
}

/// What was acknowledged is there after SIGKILL, whatever the seed says by then. The files belong to one process.
#[test]
fn acknowledged_updates_survive_a_kill() {
    let folder = Folder::new("dynupdate-kill");
    let mut zone = Zone::start(&folder, "", DATABASE);
    for host in 0..20 {
        assert_eq!(zone.send(&format!("h{host} 60 IN A 192.0.2.{host}")), Rcode::NOERROR);
    }
    let database = folder.path().join("zone.db");
    assert_eq!(std::fs::metadata(&database).expect("a database").permissions().mode() & 0o777, 0o600);
    // A second process must not use the same file.
    let mut second = Server::start(&folder.path().join("Corefile"));
    second.wait_for("another process uses it");
    assert_eq!(second.wait(), Some(1));
    zone.server.signal("KILL");
    zone.server.wait();
    // A crash in the middle of a write leaves a part of it.
    let mut file = std::fs::OpenOptions::new().append(true).open(&database).expect("the database");
    file.write_all(b"C\0\0\x01\0half an entry").expect("a write");
    folder.write("seed", &format!("{SEED}new A 192.0.2.99\n"));
    let text = corefile(&folder, "", DATABASE);
    folder.write("seed", &format!("{SEED}new A 192.0.2.99\n"));
    let mut server = Server::start(&folder.write("Corefile", &text));
    server.wait_for("dropped 18 bytes of an update that a crash has cut");
    let address = server.address_of("dns://127.0.0.1:0");
    let zone = Zone { server, address, updater: Updater::new(address, "example.org.", Some(KEY)) };
    assert_eq!(zone.serial(), 21);
    assert_eq!(records(&ask(address, "h19.example.org", Type::A)), ["60 A 192.0.2.19"]);
    assert_eq!(Answer(ask(address, "new.example.org", Type::A)).rcode(), Rcode::NXDOMAIN, "the seed is not read");
    assert_eq!(zone.send("h20 60 IN A 192.0.2.20"), Rcode::NOERROR);
    drop(zone);
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(records(&ask(zone.address, "h20.example.org", Type::A)), ["60 A 192.0.2.20"]);
}

/// Acknowledged updates are there even if the database was removed while the server used it.
#[test]
fn a_removed_database_is_written_again() {
    let folder = Folder::new("dynupdate-removed");
    let mut zone = Zone::start(&folder, "", DATABASE);
    let database = folder.path().join("zone.db");
    assert_eq!(zone.send("a1 60 IN A 192.0.2.1"), Rcode::NOERROR);
    std::fs::remove_file(&database).expect("a database");
    assert_eq!(zone.send("a2 60 IN A 192.0.2.2"), Rcode::NOERROR);
    zone.server.wait_for("was removed while in use: writing a new one");
    // Another file in its place is not overwritten.
    let away = folder.path().join("away.db");
    std::fs::rename(&database, &away).expect("a database");
    folder.write("zone.db", "another file");
    assert_eq!(zone.send("a3 60 IN A 192.0.2.3"), Rcode::SERVFAIL);
    zone.server.wait_for("another file has taken its place");
    let problem = ControlSocket::of(&mut zone.server).status()["problems"][0].clone();
    let text = problem["text"].as_str().expect("a problem");
    assert!(problem["code"] == "PD-K09" && text.starts_with("zone example.org.: updates fail, because "), "{problem}");
    assert_eq!(std::fs::read(&database).expect("a file"), b"another file");
    std::fs::rename(&away, &database).expect("a database");
    assert_eq!(zone.send("a4 60 IN A 192.0.2.4"), Rcode::NOERROR);
    zone.server.signal("KILL");
    zone.server.wait();
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.serial(), 4);
    for (name, count) in [("a1", 1), ("a2", 1), ("a3", 0), ("a4", 1)] {
        let name = format!("{name}.example.org");
        assert_eq!(records(&ask(zone.address, &name, Type::A)).len(), count, "{name}");
    }
}

/// Updates of many clients at once are all applied, and all that were acknowledged are on the disk.
#[test]
fn concurrent_updates_are_all_kept() {
    const CLIENTS: u32 = 8;
    const EACH: u32 = 25;
    let folder = Folder::new("dynupdate-many");
    let mut zone = Zone::start(&folder, "", DATABASE);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let updater = &zone.updater;
            scope.spawn(move || {
                for host in 0..EACH {
                    assert_eq!(updater.send("", &format!("h{client}-{host} 60 IN TXT {client}")), Rcode::NOERROR);
                }
            });
        }
    });
    assert_eq!(zone.serial(), 1 + CLIENTS * EACH);
    zone.server.signal("KILL");
    zone.server.wait();
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.serial(), 1 + CLIENTS * EACH);
    for client in 0..CLIENTS {
        let name = format!("h{client}-{}.example.org", EACH - 1);
        assert_eq!(records(&ask(zone.address, &name, Type::TXT)).len(), 1, "{name}");
    }
}

/// A reload keeps the zone, with a database and without. One that is refused changes nothing.
#[test]
fn a_reload_keeps_the_zone() {
    for options in [DATABASE, ALLOW_ALL] {
        let folder = Folder::new("dynupdate-reload");
        let mut zone = Zone::start(&folder, "", options);
        assert_eq!(zone.send("host 60 IN A 192.0.2.1"), Rcode::NOERROR);
        let again = |zone: &mut Zone, options: &str, line: &str| {
            folder.write("Corefile", &corefile_only(&folder, options));
            zone.server.signal("USR1");
            zone.server.wait_for(line);
        };
        again(&mut zone, &format!("{options}\nmax_records 2"), "zone exceeds max_records (2)");
        assert_eq!(zone.send("host 60 IN A 192.0.2.2"), Rcode::NOERROR, "the old limits");
        again(&mut zone, &options.replace(" *", " A").replace(" A A", " * A"), "Reloading complete");
        assert_eq!(records(&ask(zone.address, "host.example.org", Type::A)).len(), 2, "{options}");
        assert_eq!(zone.send("host 60 IN TXT a"), Rcode::REFUSED, "the new rules");
        assert_eq!(zone.send("host 0 ANY A"), Rcode::NOERROR, "the new rules");
        assert_eq!(zone.serial(), 4);
        // A new seed replaces a zone without a database, and no other.
        folder.write("seed", &format!("{SEED}new A 192.0.2.99\n"));
        again(&mut zone, options, "Reloading complete");
        assert_eq!(zone.serial(), if options == DATABASE { 4 } else { 1 }, "{options}");
    }
}

/// Corefile for a folder whose seed exists.
fn corefile_only(folder: &Folder, options: &str) -> String {
    let path = folder.path().display();
    format!(
        "example.org:0 {{\nbind 127.0.0.1\nroot {path}\nprometheus localhost:0\n\
         tsig {{\nsecret {KEY} {SECRET}\nrequire_opcode UPDATE\n}}\ndynupdate {{\nfile seed\n{options}\n}}\n}}\n"
    )
}

/// A configuration that never serves leaves no database, and neither does a check.
#[test]
fn a_failed_start_creates_nothing() {
    let folder = Folder::new("dynupdate-failed");
    let path = folder.write("Corefile", &corefile(&folder, "file missing {\nreload 0s\n}", DATABASE));
    let mut server = Server::start(&path);
    assert_eq!(server.wait(), Some(1));
    assert!(!folder.path().join("zone.db").exists(), "a failed start has created a database");
    folder.write("Corefile", &corefile(&folder, "", DATABASE));
    let portolan = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().expect("a check");
    let checked = portolan(&["check", "--files", path.to_str().expect("a path")]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(!folder.path().join("zone.db").exists(), "a check has created a database");
    // A check reads the database of the server that runs.
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.send("host 60 IN A 192.0.2.1"), Rcode::NOERROR);
    let checked = portolan(&["check", "--files", path.to_str().expect("a path")]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Mistakes in the configuration that make the zone useless or unsafe.
#[test]
fn a_check_warns_of_mistakes() {
    let folder = Folder::new("dynupdate-check");
    folder.write("seed", SEED);
    let check = |block: &str| {
        let path = folder.path().display();
        let corefile = format!("example.org:0 {{\nroot {path}\n{block}\n}}\n");
        let corefile = folder.write("Corefile", &corefile);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        let output = command.args(["check", "--files"]).arg(corefile).output().expect("a check");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dynamic = |rule: &str| format!("dynupdate {{\nfile seed\nallow {rule}\n}}");
    std::fs::hard_link(folder.path().join("seed"), folder.path().join("linked")).expect("a link");
    std::os::unix::fs::symlink("seed", folder.path().join("symbolic")).expect("a link");
    let same = "database and seed must be different files";
    for (block, message) in [
        (dynamic("k. * A"), "every update is refused: this server block has no *tsig*"),
        (dynamic("k. * *"), "the key k. may change every record of the zone"),
        (format!("tsig {{\nsecret k. YQ==\n}}\n{}", dynamic("k. * A")), "`require_opcode UPDATE` is missing"),
        (format!("tsig {{\nsecret x. YQ==\n}}\n{}", dynamic("k. * A")), "no secret for the key k., which *dynupdate*"),
        (dynamic("k. host A"), "names are absolute; did you mean `host.example.org.`?"),
        (format!("{0}\n{0}", dynamic("k. * A")), "a line can only be used once for the zone example.org."),
        (dynamic("k. * A\nmax_records 3"), "exceeds configured limits"),
        (dynamic("k. * A\ndatabase seed"), same),
        (dynamic("k. * A\ndatabase linked"), same),
        (dynamic("k. * A\ndatabase symbolic"), same),
    ] {
        let checked = check(&block);
        assert!(checked.contains(message), "{block}: {checked}");
    }
    let good = "dynupdate example.org {\nfile seed\nallow k A.example.org a any TYPE28\nallow K @ *\n\
                allow k. * txt\ndatabase zone.db\nmax_bytes 1000\nmax_update_records 65535\n}";
    let checked = check(&format!("tsig {{\nsecret k YQ==\nrequire_opcode UPDATE\n}}\n{good}"));
    assert!(!checked.contains("warning") && !checked.contains("error"), "{checked}");
    for (more, message) in [
        ("x DS 1 13 2 00", "zone contains unsupported RR type DS"),
        ("x A 192.0.2.1\nx CNAME ns", "zone contains CNAME data conflict at x.example.org."),
        ("@ SOA ns host 2 1 1 1 1", "contains more than one SOA"),
        ("x.example.com. A 192.0.2.1", "record ignored: its owner is outside the zone"),
        ("x CH TXT a", "its class is not IN"),
    ] {
        folder.write("seed", &format!("{SEED}{more}\n"));
        let checked = check(&dynamic("k. * A"));
        assert!(checked.contains(message), "{more}: {checked}");
    }
    // Other mistakes of a zone are no reason to refuse it.
    folder.write("seed", &format!("{SEED}sub NS ns.sub\n"));
    let checked = check(&dynamic("k. * A"));
    assert!(checked.contains("zone/missing-glue") && !checked.contains("error["), "{checked}");
    folder.write("seed", &SEED.replace("host 1 ", "host 0 "));
    let checked = check(&dynamic("k. * A"));
    assert!(checked.contains("zone contains an SOA with serial zero"), "{checked}");
}

/// Databases that cannot be used stop the start. The seed never replaces them.
#[test]
fn a_damaged_database_is_an_error() {
    let folder = Folder::new("dynupdate-damaged");
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.send("a 60 IN A 192.0.2.1"), Rcode::NOERROR);
    assert_eq!(zone.send("b 60 IN A 192.0.2.1"), Rcode::NOERROR);
    drop(zone);
    let path = folder.path().join("zone.db");
    let good = std::fs::read(&path).expect("the database");
    let mut flipped = good.clone();
    flipped[100] ^= 1;
    let text = |text: &[u8]| text.to_vec();
    for (contents, message) in [
        (flipped, "database is damaged at byte"),
        (good[..100].to_vec(), "database is incomplete"),
        (text(b""), "unrecognized database format"),
        (text(SEED.as_bytes()), "unrecognized database format"),
    ] {
        std::fs::write(&path, contents).expect("a database");
        let mut server = Server::start(&folder.path().join("Corefile"));
        server.wait_for(message);
        assert_eq!(server.wait(), Some(1));
    }
}

/// A database of CoreDNS is taken over, and stays as it was under another name.
#[test]
fn a_database_of_coredns_is_taken_over() {
    let folder = Folder::new("dynupdate-coredns");
    let theirs = include_bytes!("../../fuzz/corpus/journal/coredns-large");
    std::fs::write(folder.path().join("zone.db"), theirs).expect("a database");
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.serial(), 5);
    assert_eq!(records(&ask(zone.address, "h90.example.org", Type::TXT)).len(), 1);
    assert_eq!(std::fs::read(folder.path().join("zone.db")).expect("a file"), theirs, "unchanged before an update");
    assert_eq!(zone.send("h90 0 ANY ANY"), Rcode::NOERROR);
    assert_eq!(std::fs::read(folder.path().join("zone.db.coredns")).expect("a copy"), theirs);
    drop(zone);
    let zone = Zone::start(&folder, "", DATABASE);
    assert_eq!(zone.serial(), 6);
    assert_eq!(Answer(ask(zone.address, "h90.example.org", Type::TXT)).rcode(), Rcode::NXDOMAIN);
}

/// UPDATE reaches dynamic zones only. Everybody else answers as a server without them.
#[test]
fn other_blocks_and_transports_do_not_implement_updates() {
    let folder = Folder::new("dynupdate-others");
    crate::support::certify(&folder, &["127.0.0.1"]);
    let path = folder.path().display().to_string();
    let (dynamic, port) = (corefile(&folder, "", ALLOW_ALL), testkit::ports::free_port());
    let dynamic = dynamic.replace("example.org:0", &format!("example.org:{port}"));
    let text = format!("{dynamic}example.net:{port} {{\nbind 127.0.0.1\nwhoami\n}}\n");
    let doh = corefile(&folder, &format!("tls {path}/cert.pem {path}/key.pem"), ALLOW_ALL);
    let doh = doh.replace("example.org:0", "https://example.org:0");
    let mut server = Server::start(&folder.write("Corefile", &format!("{text}{doh}")));
    let address = server.address_of(&format!("dns://127.0.0.1:{port}"));
    let send = |zone: &str| {
        let updater = Updater::new(address, zone, None);
        updater.exchange(&updater.message("", "")).rcode()
    };
    assert_eq!(send("example.net."), Rcode::NOTIMP);
    assert_eq!(send("example.com."), Rcode::REFUSED);
    let updater = Updater::new(address, "example.org.", Some(KEY));
    assert_eq!(updater.send("", "host 60 IN A 192.0.2.1"), Rcode::NOERROR);
    // Over UDP too.
    let client = Client::new(address).waiting(crate::support::PATIENCE);
    client.send_bytes(&updater.message("", "host 60 IN A 192.0.2.2"));
    assert_eq!(client.receive_any().map(|answer| answer.rcode()), Some(Rcode::NOERROR));
    let https = server.address_of("https://127.0.0.1:0");
    let message = folder.path().join("message");
    std::fs::write(&message, updater.message("", "host 60 IN A 192.0.2.3")).expect("a file");
    let mut curl = Command::new("curl");
    curl.args(["--http2", "--silent", "--insecure", "--header", "content-type: application/dns-message"]);
    curl.arg("--data-binary").arg(format!("@{}", message.display())).arg(format!("https://{https}/dns-query"));
    let Ok(output) = curl.output() else { return crate::support::skip("install the Debian package `curl`") };
    assert_eq!(Answer(output.stdout).rcode(), Rcode::NOTIMP, "a DNS answer, not an HTTP error");
}

/// TLS is the only encrypted transport with updates, as in CoreDNS.
#[test]
fn updates_work_over_tls_and_over_no_other_encrypted_transport() {
    let folder = Folder::new("dynupdate-encrypted");
    crate::support::certify(&folder, &["dns.example.org"]);
    let (path, ca) = (folder.path().display().to_string(), folder.path().join("ca.pem"));
    let text = corefile(&folder, &format!("tls {path}/cert.pem {path}/key.pem"), ALLOW_ALL);
    let transports = ["tls", "quic", "https3", "grpc"];
    let text = transports.map(|scheme| text.replace("example.org:0", &format!("{scheme}://example.org:0"))).concat();
    let mut server = Server::start(&folder.write("Corefile", &text));
    let [tls, quic, https3, grpc] = transports.map(|scheme| server.address_of(&format!("{scheme}://127.0.0.1:0")));
    let updater = Updater::new(tls, "example.org.", Some(KEY));
    let host = encrypted::over_tls(&[], tls, &ca, &updater.message("", "host 60 IN A 192.0.2.4"));
    assert_eq!(host.rcode(), Rcode::NOERROR);
    let has_host = encrypted::over_tls(&[], tls, &ca, &query(7, "host.example.org", Type::A));
    assert_eq!(has_host.addresses(), [std::net::IpAddr::from([192, 0, 2, 4])]);
    // An update without a signature is short, and its ID can be 0.
    let mut message = Updater::new(tls, "example.org.", None).message("", "");
    assert_eq!(encrypted::over_grpc(&[], grpc, &ca, &message).rcode(), Rcode::NOTIMP);
    assert_eq!(encrypted::over_http3(https3, &ca, &message).rcode(), Rcode::NOTIMP);
    message[..2].fill(0);
    assert_eq!(encrypted::over_quic(quic, &ca, &message).rcode(), Rcode::NOTIMP);
}

#[test]
fn an_update_with_a_wrong_signature_changes_nothing() {
    let folder = Folder::new("dynupdate-signature");
    let zone = Zone::start(&folder, "", ALLOW_ALL);
    let mut message = zone.updater.message("", "host 60 IN A 192.0.2.5");
    // The last byte of the MAC precedes the ID, the error and the length of other data.
    let at = message.len() - 7;
    message[at] ^= 1;
    assert_eq!(zone.updater.exchange_unverified(&message).rcode(), Rcode::NOTAUTH);
    assert!(records(&ask(zone.address, "host.example.org", Type::A)).is_empty());
    message[at] ^= 1;
    assert_eq!(zone.updater.exchange(&message).rcode(), Rcode::NOERROR, "it was the signature");
}

/// A secondary gets each new version at once, as differences.
#[test]
fn secondaries_get_changes() {
    let folder = Folder::new("dynupdate-secondary");
    let port = testkit::ports::free_port();
    let primary = Zone::start(&folder, &format!("transfer {{\nto 127.0.0.1:{port}\n}}"), DATABASE);
    let text =
        format!("example.org:{port} {{\nbind 127.0.0.1\nsecondary {{\ntransfer from {}\n}}\n}}\n", primary.address);
    let mut secondary = Server::start(&folder.write("Secondary", &text));
    let address = secondary.address_of(&format!("dns://127.0.0.1:{port}"));
    secondary.wait_for("4 records, 1 SOA serial");
    let mut client = Client::new(address);
    for host in 1..=6 {
        assert_eq!(primary.send(&format!("h 0 ANY ANY\nh 60 IN A 192.0.2.{host}")), Rcode::NOERROR);
        let wanted: [std::net::IpAddr; 1] = [[192, 0, 2, host].into()];
        let has = |client: &mut Client| client.ask("h.example.org", Type::A).map(|answer| answer.addresses());
        wait_until("the secondary has the change", || has(&mut client).is_some_and(|known| known == wanted));
    }
    secondary.wait_for("changes by IXFR");
}

/// BIND's nsupdate as the client.
#[test]
fn nsupdate_changes_the_zone() {
    let folder = Folder::new("dynupdate-nsupdate");
    let zone = Zone::start(&folder, "", DATABASE);
    let mut script = format!("server 127.0.0.1 {}\nzone example.org.\n", zone.address.port());
    for line in [
        "prereq nxdomain host.example.org.",
        "update add host.example.org. 60 A 192.0.2.7",
        "update add host.example.org. 60 TXT \"a b\"",
        "send",
        "prereq yxrrset host.example.org. A 192.0.2.7",
        "update delete host.example.org. TXT",
        "update add srv.example.org. 60 SRV 1 2 53 host.example.org.",
        "send",
        "answer",
    ] {
        writeln!(script, "{line}").expect("a line");
    }
    let run = |words: &[&str], script: &str| {
        let mut command = Command::new("nsupdate");
        command.args(words).arg("-y").arg(format!("hmac-sha256:k.example.org:{SECRET}"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        child.stdin.take().expect("its input").write_all(script.as_bytes()).expect("a script");
        Some(child.wait_with_output().expect("its output"))
    };
    let Some(output) = run(&[], &script) else {
        return crate::support::skip("install the Debian package `bind9-dnsutils` for nsupdate");
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(records(&ask(zone.address, "host.example.org", Type::A)), ["60 A 192.0.2.7"]);
    assert_eq!(records(&ask(zone.address, "host.example.org", Type::TXT)), [""; 0]);
    assert_eq!(records(&ask(zone.address, "srv.example.org", Type::SRV)), ["60 SRV 1 2 53 host.example.org."]);
    // The same prerequisite fails now, over TCP.
    let Some(output) = run(&["-v"], &script) else { return };
    assert!(String::from_utf8_lossy(&output.stderr).contains("YXDOMAIN"), "{output:?}");
    assert_eq!(zone.serial(), 3);
}
