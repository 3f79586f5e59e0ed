//! Signed answers, validated by Unbound. If Unbound is not installed, the tests print a message and are skipped.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Answer, Client, Folder, Server, wait_until};
use testkit::ports::free_address;
use wire::{Class, Flags, Header, MessageBuf, Name, Opt, Rcode, Type};

/// DNSSEC algorithms with a key in `keys`.
const ALGORITHMS: [u8; 5] = [8, 10, 13, 14, 15];

/// Zone with every kind of answer, with relative names. One of its DS records is valid in each zone.
const ZONE: &str = "$TTL 300
@ SOA ns host 1 7200 3600 1209600 300
@ NS ns
@ MX 10 mail
ns A 192.0.2.1
mail A 192.0.2.2
www A 192.0.2.3
www A 192.0.2.4
alias CNAME www
*.wild A 192.0.2.5
*.wild MX 10 mail
deep.empty A 192.0.2.6
old DNAME wild
_dns._udp SRV 1 2 53 ns
sub NS ns.sub
sub DS 40853 15 2 2D14CB304A857DAF535497E0DF58D36D135AD4DDF848C1DA5A297E80EB60411F
sub DS 40853 15 2 DFB985CA28CE86E24ADB3F9A1D7A656E4E6091122D831AC6799172216903D846
sub DS 40853 15 2 7A4CB9F5170263C5418DFECC296012596EDFD10DE7592F95619F4E583969F381
sub DS 40853 15 2 79DE159524DA2CB6B668C6A0ADE499B2A6A37DD726B0DE6DE827053A247AA4DD
sub DS 40853 15 2 71E8F25A2BF55B5B1F7DC6D117C043B0FA4A11610185816A0179C10663581A00
sub DS 40853 15 2 2637449FFA0FE65F8C029C41F5793688163765C107633FA63EFC37D38D771F36
sub DS 40853 15 2 58D6768B919E0CCB121A623589EE2D27FCE972400D9EC8EB7AE75975894292F3
sub DS 40853 15 2 DAD9658EEAB024076A14D1627EA3292C5AAF4DC26C6C8F021F53542D93929236
sub DS 40853 15 2 C767CF875E2CEEFAC2CA8B2716139F7CEDF679D972B2862B216FC838F6B67161
ns.sub A 192.0.2.7
open NS ns.open
ns.open A 192.0.2.8
";

/// Child zone.
const CHILD: &str = "$TTL 300\n@ SOA ns host 1 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.9\nwww A 192.0.2.10\n";

/// Expected result of a validating resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Records, validated.
    Records,
    /// NODATA, with a valid proof.
    Nothing,
    /// NXDOMAIN with a valid proof, or NODATA if the zone proves it that way.
    NoName,
    /// Records of a zone with a proof that it is not signed.
    Unsigned,
}

/// Queries to [`ZONE`] with their expected results.
const QUESTIONS: &[(&str, Type, Wanted)] = &[
    ("", Type::SOA, Wanted::Records),
    ("", Type::NS, Wanted::Records),
    ("", Type::DNSKEY, Wanted::Records),
    ("", Type::MX, Wanted::Records),
    ("", Type::TXT, Wanted::Nothing),
    ("www", Type::A, Wanted::Records),
    ("wWw", Type::A, Wanted::Records),
    ("www", Type::AAAA, Wanted::Nothing),
    ("www", Type::HTTPS, Wanted::Nothing),
    ("nothing", Type::A, Wanted::NoName),
    ("a.b.nothing", Type::TXT, Wanted::NoName),
    ("empty", Type::A, Wanted::Nothing),
    ("deep.empty", Type::A, Wanted::Records),
    ("alias", Type::A, Wanted::Records),
    ("alias", Type::AAAA, Wanted::Nothing),
    ("x.wild", Type::A, Wanted::Records),
    ("x.y.wild", Type::MX, Wanted::Records),
    ("x.wild", Type::AAAA, Wanted::Nothing),
    ("x.old", Type::A, Wanted::Records),
    ("x.old", Type::AAAA, Wanted::Nothing),
    ("_dns._udp", Type::SRV, Wanted::Records),
    ("sub", Type::DS, Wanted::Records),
    ("open", Type::DS, Wanted::Nothing),
    ("www", Type::DS, Wanted::Nothing),
    ("www.sub", Type::A, Wanted::Records),
    ("www.open", Type::A, Wanted::Unsigned),
];

/// Returns one file of a key pair, adapted to a zone; the stored keys are for `example.org`.
fn key(name: &str, zone: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(name);
    std::fs::read_to_string(path).expect("a key").replace("example.org.", &format!("{zone}."))
}

/// Writes both files of a key pair for a zone.
fn write_key(folder: &Folder, key_name: &str, zone: &str) {
    for half in ["key", "private"] {
        folder.write(&format!("{zone}.{key_name}.{half}"), &key(&format!("{key_name}.{half}"), zone));
    }
}

/// Validating resolver with stub zones and trust anchors.
struct Unbound {
    child: Child,
    address: SocketAddr,
}

impl Unbound {
    /// Starts Unbound for zones at `server`, with the trust anchors in `anchors`. Returns `None` if it is not
    /// installed.
    fn start(folder: &Folder, server: SocketAddr, zones: &[String], anchors: &str) -> Option<Unbound> {
        let address = free_address();
        let (path, port) = (folder.path().display(), address.port());
        let anchors = folder.write("anchors", anchors);
        let mut text = format!(
            "server:\n interface: 127.0.0.1@{port}\n directory: \"{path}\"\n chroot: \"\"\n username: \"\"\n \
             pidfile: \"\"\n use-syslog: no\n num-threads: 1\n do-not-query-localhost: no\n val-log-level: 2\n \
             module-config: \"validator iterator\"\n trust-anchor-file: \"{}\"\nremote-control:\n control-enable: no\n",
            anchors.display()
        );
        for zone in zones {
            text += &format!("stub-zone:\n name: {zone}\n stub-addr: 127.0.0.1@{}\n", server.port());
        }
        let log = std::fs::File::create(folder.path().join("unbound.log")).expect("a log");
        let mut command = Command::new("unbound");
        command.arg("-d").arg("-c").arg(folder.write("unbound.conf", &text)).stdout(Stdio::null()).stderr(log);
        match command.spawn() {
            Ok(child) => Some(Unbound { child, address }),
            Err(error) => {
                crate::support::skip(format_args!("a test of signed answers needs unbound: {error}"));
                None
            }
        }
    }

    /// Sends a query. Returns a description if the result is not the expected one.
    fn check(&self, name: &str, qtype: Type, wanted: Wanted) -> Option<String> {
        let client = Client::new(self.address);
        let mut answer = None;
        wait_until("unbound answers", || {
            client.send_bytes(&query(name, qtype));
            answer = client.receive_any();
            answer.is_some()
        });
        let answer = answer?;
        let is_right = match wanted {
            Wanted::Records => is_validated(&answer) && has(&answer, qtype),
            Wanted::Nothing => is_validated(&answer) && answer.rcode() == Rcode::NOERROR && !has(&answer, qtype),
            Wanted::NoName => is_validated(&answer) && !has(&answer, qtype),
            Wanted::Unsigned => !is_validated(&answer) && answer.rcode() == Rcode::NOERROR && has(&answer, qtype),
        };
        let (rcode, validated) = (answer.rcode(), is_validated(&answer));
        (!is_right).then(|| format!("{name} {qtype}: {rcode}, validated: {validated}, wanted: {wanted:?}"))
    }
}

impl Drop for Unbound {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a query with the AD bit and a UDP payload size that fits the keys of all algorithms.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    let flags = Flags::default().with_recursion_desired(true).with_authentic_data(true);
    let mut message = MessageBuf::new();
    let name = Name::from_text(name).expect("a name");
    message.start(Header { id: 1, flags, ..Header::default() }, Some((name.as_ref(), qtype, Class::IN)));
    let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    message.finish(Some(opt), std::iter::empty()).to_vec()
}

fn is_validated(answer: &Answer) -> bool {
    answer.header().flags.authentic_data()
}

fn has(answer: &Answer, qtype: Type) -> bool {
    let message = wire::Message::parse(&answer.0).expect("a message");
    message.records().any(|record| record.section() == wire::Section::Answer && record.rtype() == qtype)
}

/// Returns the unexpected results for zones, with the log of the resolver.
fn complaints(unbound: &Unbound, folder: &Folder, zones: &[String]) -> Vec<String> {
    let of_zone = |zone: &String| {
        let ask = |(relative, qtype, wanted): &(&str, Type, Wanted)| {
            unbound.check(format!("{relative}.{zone}.").trim_start_matches('.'), *qtype, *wanted)
        };
        QUESTIONS.iter().filter_map(ask).collect::<Vec<_>>()
    };
    let mut wrong: Vec<_> = zones.iter().flat_map(of_zone).collect();
    if !wrong.is_empty() {
        wrong.push(std::fs::read_to_string(folder.path().join("unbound.log")).unwrap_or_default());
    }
    wrong
}

/// Tests zones that are signed online, with each algorithm.
#[test]
fn online_signatures_are_valid() {
    let folder = Folder::new("dnssec");
    let zones = ALGORITHMS.map(|algorithm| format!("a{algorithm}.example.org"));
    folder.write("db", ZONE);
    folder.write("db.child", CHILD);
    let (mut corefile, mut anchors, mut all) = (String::new(), String::new(), Vec::new());
    for (algorithm, zone) in ALGORITHMS.iter().zip(&zones) {
        write_key(&folder, &format!("ksk-{algorithm}"), zone);
        anchors += &key(&format!("ksk-{algorithm}.key"), zone);
        let mut keys = format!("{zone}.ksk-{algorithm}");
        if *algorithm == 13 {
            write_key(&folder, "zsk-13", zone);
            keys += &format!(" {zone}.zsk-13");
        }
        let (sub, open) = (format!("sub.{zone}"), format!("open.{zone}"));
        write_key(&folder, "ksk-15", &sub);
        let block = |zone: &str, keys: &str, db: &str| {
            let signing = if keys.is_empty() { String::new() } else { format!("dnssec {{\nkey file {keys}\n}}\n") };
            format!("{zone}:0 {{\nbind 127.0.0.1\nroot {}\n{signing}file {db}\n}}\n", folder.path().display())
        };
        corefile += &block(zone, &keys, "db");
        corefile += &block(&sub, &format!("{sub}.ksk-15"), "db.child");
        corefile += &block(&open, "", "db.child");
        all.extend([zone.clone(), sub, open]);
    }
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    let Some(unbound) = Unbound::start(&folder, address, &all, &anchors) else { return };
    let wrong = complaints(&unbound, &folder, &zones);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a program that validates a signed zone file. Does nothing if it is not installed.
fn judge(program: &str, arguments: &[&std::ffi::OsStr]) {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&said));
        }
        Err(error) => crate::support::skip(format_args!("a judge of signed zones is missing, {program}: {error}")),
    }
}

/// Tests a zone file that is signed offline and then served: external tools validate both the file and the answers.
#[test]
fn offline_signatures_are_valid() {
    let (folder, zone) = (Folder::new("sign"), "signed.example.org");
    let (sub, open) = (format!("sub.{zone}"), format!("open.{zone}"));
    folder.write("db", ZONE);
    folder.write("db.child", CHILD);
    for algorithm in ALGORITHMS {
        write_key(&folder, &format!("ksk-{algorithm}"), zone);
    }
    write_key(&folder, "ksk-15", &sub);
    let root = folder.path().display();
    let keys = ALGORITHMS.map(|algorithm| format!(" {zone}.ksk-{algorithm}")).concat();
    let corefile = format!(
        "{zone}:0 {{\nbind 127.0.0.1\nroot {root}\nsign db {{\nkey file{keys}\ndirectory {root}\n}}\n\
         file db.{zone}.signed {{\nreload 1s\n}}\n}}\n\
         {sub}:0 {{\nbind 127.0.0.1\nroot {root}\ndnssec {{\nkey file {sub}.ksk-15\n}}\nfile db.child\n}}\n\
         {open}:0 {{\nbind 127.0.0.1\nroot {root}\nfile db.child\n}}\n"
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    server.wait_for("Successfully signed zone");
    server.wait_for("Successfully reloaded zone");
    let file = folder.path().join(format!("db.{zone}.signed"));
    judge("dnssec-verify", &["-z".as_ref(), "-o".as_ref(), zone.as_ref(), file.as_os_str()]);
    judge("ldns-verify-zone", &[file.as_os_str()]);
    let zones = [zone.to_owned(), sub, open];
    let Some(unbound) = Unbound::start(&folder, address, &zones, &key("ksk-13.key", zone)) else { return };
    let wrong = complaints(&unbound, &folder, &zones[..1]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
