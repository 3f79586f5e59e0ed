//! Comparison with the server that this one replaces: two servers with zone data that differs, and the report.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::control::ControlSocket;
use crate::support::pages::{blocks, console, matches};
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, PATIENCE, Server, wait_until};
use serde_json::Value;
use wire::Type;

const PAGE: &str = include_str!("../../../docs/shadow.md");

/// Old server.
const OLD: &str = ".:0 {
    bind 127.0.0.1
    hosts /dev/null {
        192.0.2.1 one.test
        192.0.2.2 two.test
        192.0.2.3 three.test
    }
}
";

/// Starts a server, and returns its address.
fn serve(folder: &Folder, name: &str, corefile: &str) -> (Server, SocketAddr) {
    let mut server = Server::start(&folder.write(name, corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    (server, address)
}

/// New server with a client and its control socket.
struct New {
    server: Server,
    client: Client,
    socket: ControlSocket,
    folder: Folder,
}

impl New {
    /// Starts a server with the hosts of [`OLD`] that compares its answers with `to`.
    fn start(name: &str, to: SocketAddr, options: &str) -> New {
        New::start_with(name, |folder| corefile(folder, to, options))
    }

    fn start_with(name: &str, corefile: impl FnOnce(&Folder) -> String) -> New {
        let folder = Folder::new(name);
        let (mut server, address) = serve(&folder, "Corefile", &corefile(&folder));
        let socket = ControlSocket::of(&mut server);
        New { server, client: Client::new(address), socket, folder }
    }

    fn ask(&mut self, name: &str) {
        assert!(self.client.ask(name, Type::A).is_some(), "{name}");
    }

    /// Returns the only comparison once its count of a result is `number`.
    fn wait_for(&self, result: &str, number: u64) -> Value {
        let mut comparison = Value::Null;
        wait_until(&format!("{number} {result}"), || {
            comparison = self.socket.json(&["shadow", "report"])["comparisons"][0].take();
            comparison["counts"][result] == number
        });
        comparison
    }
}

fn corefile(folder: &Folder, to: SocketAddr, options: &str) -> String {
    let control = folder.path().join("control.sock").display().to_string();
    let shadow = format!("control {control}\nshadow {to} {{\nsample 1/1\ntimeout 5s\n{options}\n}}\n");
    OLD.replacen("bind 127.0.0.1\n", &format!("bind 127.0.0.1\n{shadow}"), 1)
}

#[test]
fn equal_servers_agree() {
    let folder = Folder::new("shadow-equal-old");
    let (_old, to) = serve(&folder, "old", OLD);
    let mut new = New::start("shadow-equal", to, "");
    let names = ["one.test.", "two.test.", "Three.TEST.", "none.test."];
    names.iter().for_each(|name| new.ask(name));
    let comparison = new.wait_for("same", 4);
    assert_eq!(comparison["agreement_percent"], 100.0);
    assert_eq!(comparison["groups"], Value::Array(Vec::new()));
    let report = new.socket.run(&["shadow", "report"]);
    assert_eq!(report.code, 0);
    assert!(report.stdout.contains("agreement 100 %") && report.stdout.contains("4 same"), "{}", report.stdout);
}

#[test]
fn a_changed_record_is_an_example_with_both_answers() {
    let folder = Folder::new("shadow-changed-old");
    let (_old, to) = serve(&folder, "old", &OLD.replace("192.0.2.2 two.test", "192.0.2.99 two.test"));
    let mut new = New::start("shadow-changed", to, "report 1s\nto-file differences");
    let file = new.folder.path().join("differences");
    let written = corefile(&new.folder, to, "report 1s\nto-file FILE").replace("FILE", &file.display().to_string());
    new.folder.write("Corefile", &written);
    assert_eq!(new.socket.run(&["reload"]).code, 0);
    ["one.test.", "two.test.", "three.test."].iter().for_each(|name| new.ask(name));
    let comparison = new.wait_for("different", 1);
    let group = &comparison["groups"][0];
    let texts = ["zone", "qtype", "old_rcode", "new_rcode"].map(|field| group[field].as_str().unwrap_or_default());
    assert_eq!((texts, &group["known"]), ([".", "A", "NOERROR", "NOERROR"], &Value::Null));
    let example = &group["examples"][0];
    assert_eq!((&example["name"], &example["client"]), (&"two.test.".into(), &"127.0.0.1".into()));
    assert_eq!(example["differs"], serde_json::json!(["answer"]));
    assert_eq!(example["old"]["answer"][0], "two.test. 3600 IN A 192.0.2.99");
    assert_eq!(example["new"]["answer"][0], "two.test. 3600 IN A 192.0.2.2");
    assert!(example["explained"]["origin"].as_str().unwrap().contains("hosts"), "{example}");
    assert_eq!(new.socket.run(&["shadow", "report"]).code, 1);

    new.server.wait_for("1 of 3 answers differ");
    wait_until("the difference is in the file", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    });
    let line: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&line["name"], &line["old"]["answer"][0]), (&"two.test.".into(), &example["old"]["answer"][0]));

    // A reload that does not change the line keeps the results.
    new.folder.write("Corefile", &written.replace("192.0.2.2 two.test", "192.0.2.99 two.test"));
    assert_eq!(new.socket.run(&["reload"]).code, 0);
    new.ask("two.test.");
    assert_eq!(new.wait_for("same", 3)["counts"]["different"], 1);
}

#[test]
fn a_silent_server_delays_no_answer() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut new = New::start("shadow-silent", silent.local_addr().unwrap(), "");
    let started = Instant::now();
    (0..20).for_each(|_| new.ask("one.test."));
    // If each answer waited for the other server, they would take 100 s.
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
    let comparison = new.wait_for("timeout", 20);
    assert_eq!((&comparison["agreement_percent"], &comparison["counts"]["same"]), (&Value::Null, &0.into()));
}

#[test]
fn a_full_queue_drops_queries_and_counts_them() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut new = New::start("shadow-full", silent.local_addr().unwrap(), "max 1");
    (0..4_400).for_each(|_| new.ask("one.test."));
    let comparison = &new.socket.json(&["shadow", "report"])["comparisons"][0];
    let dropped = comparison["counts"]["dropped"].as_u64().unwrap();
    assert!((1..=304).contains(&dropped), "{dropped}");
}

/// The old server answers the clients, and the new one compares what it would have answered.
#[test]
fn an_old_server_reports_its_answers_by_dnstap() {
    let upstream = Upstream::start(7);
    let forward = format!("fallthrough\n}}\nforward . {}\n", upstream.address);
    let mut new = New::start_with("shadow-dnstap", |folder| {
        let dnstap = format!("dnstap {}", folder.path().join("mirror.sock").display());
        // The address of the old server is only a name for it: nothing is sent there.
        let corefile = corefile(folder, "192.0.2.53:53".parse().unwrap(), &dnstap);
        corefile.replacen("192.0.2.2 two.test", "192.0.2.99 two.test", 1).replacen(
            "three.test\n    }\n",
            &format!("three.test\n{forward}"),
            1,
        )
    });
    let mirror = new.folder.path().join("mirror.sock");
    wait_until("the new server listens", || mirror.exists());
    let tap = format!("bind 127.0.0.1\ndnstap {} full\n", mirror.display());
    let old =
        OLD.replacen("bind 127.0.0.1\n", &tap, 1).replacen("three.test\n    }\n", &format!("three.test\n{forward}"), 1);
    let folder = Folder::new("shadow-dnstap-old");
    let (_old, address) = serve(&folder, "old", &old);
    let mut client = Client::new(address);
    for name in ["one.test.", "two.test.", "www.example.org.", "Three.Test."] {
        assert!(client.ask(name, Type::A).is_some(), "{name}");
    }
    new.wait_for("same", 3);
    let comparison = new.wait_for("different", 1);
    let example = &comparison["groups"][0]["examples"][0];
    assert_eq!((&example["name"], &example["client"]), (&"two.test.".into(), &"127.0.0.1".into()));
    assert_eq!(example["old"]["answer"][0], "two.test. 3600 IN A 192.0.2.2");
    assert_eq!(example["new"]["answer"][0], "two.test. 3600 IN A 192.0.2.99");
    // Queries to the new server itself are not compared.
    new.ask("two.test.");
    assert_eq!(new.wait_for("different", 1)["counts"]["same"], 3);
}

#[test]
fn hidden_names_are_not_in_the_report() {
    let folder = Folder::new("shadow-hidden-old");
    let (_old, to) = serve(&folder, "old", &OLD.replace("192.0.2.2 two.test", "192.0.2.99 two.test"));
    let mut new = New::start_with("shadow-hidden", |folder| {
        let path = format!("{} {{\nprivacy names=suffix\n}}", folder.path().join("control.sock").display());
        let shown = folder.path().join("control.sock").display().to_string();
        corefile(folder, to, "").replacen(&shown, &path, 1)
    });
    new.ask("two.test.");
    let comparison = new.wait_for("different", 1);
    assert!(!comparison.to_string().contains("two") && !comparison.to_string().contains("192.0.2"), "{comparison}");
}

#[test]
fn a_server_without_the_directive_says_so() {
    let new = New::start_with("shadow-none", |folder| {
        let control = folder.path().join("control.sock").display().to_string();
        OLD.replacen("bind 127.0.0.1\n", &format!("bind 127.0.0.1\ncontrol {control}\n"), 1)
    });
    let report = new.socket.run(&["shadow", "report"]);
    assert_eq!((report.code, report.stdout.as_str()), (1, "no server block has the directive shadow\n"));
}

#[test]
fn commands_print_what_the_page_says() {
    let old_folder = Folder::new("shadow-docs-old");
    let listening = |text: &str| text.replacen(". {", ".:0 {\n    bind 127.0.0.1", 1);
    let corefiles: Vec<String> =
        blocks(PAGE).into_iter().filter(|block| block.kind == "corefile").map(|block| block.text).collect();
    let (_old, to) = serve(&old_folder, "old", &listening(&corefiles[0]));
    let mut new = New::start_with("shadow-docs", |folder| {
        let control = folder.path().join("control.sock").display().to_string();
        let text = listening(&corefiles[1]).replace("192.0.2.10", &to.to_string());
        text.replacen("bind 127.0.0.1", &format!("bind 127.0.0.1\n    control {control}"), 1)
    });
    let page = PAGE.replace("192.0.2.10:53", &to.to_string());
    let mut ran = 0;
    for (command, expected) in console(&page) {
        match command.split(' ').collect::<Vec<_>>().as_slice() {
            ["dig", name] => new.ask(name),
            ["portolan", rest @ ..] => {
                let mut output = new.socket.run(rest);
                let end = Instant::now() + PATIENCE;
                while !matches(&expected, &output.stdout) && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(50));
                    output = new.socket.run(rest);
                }
                assert!(matches(&expected, &output.stdout), "{command}:\n{}{}", output.stdout, output.stderr);
                ran += 1;
            }
            _ => panic!("unknown command: {command}"),
        }
    }
    assert_eq!(ran, 1);
}
