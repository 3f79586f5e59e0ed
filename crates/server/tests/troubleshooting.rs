//! The commands of `docs/troubleshooting.md`, run by a shell with `dig`, and their output. If `dig` is not installed,
//! the test prints a message and is skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use fakeapi::FakeApi;
use support::served::Served;

const PAGE: &str = include_str!("../../../docs/troubleshooting.md");
/// Address of the server in the page.
const ADDRESS: &str = "@10.96.0.10";
/// Section whose server has never reached the API server.
const NOT_SYNCED: &str = "SERVFAIL with EDE 14";

/// Section of the page with the lines of one of its consoles.
type Console<'p> = (&'p str, Vec<&'p str>);

#[test]
fn commands_print_what_the_page_says() {
    if Command::new("dig").arg("-v").output().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: `dig` is not installed: docs/troubleshooting.md is not tried");
        return;
    }
    let (api, down) = (FakeApi::with_shop(), FakeApi::with_shop());
    down.down();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut served = Served::start("troubleshooting", &corefile(&api, silent.local_addr().unwrap()));
    served.wait_for_addresses("web.shop.svc.cluster.local.", &["10.96.0.11"]);
    let starting = Served::start("starting", &corefile(&down, silent.local_addr().unwrap()));
    let consoles = consoles();
    assert!(consoles.len() > 6, "{consoles:?}");
    for (section, lines) in consoles {
        let server = if section == NOT_SYNCED { starting.address } else { served.address };
        let commands = lines.iter().filter_map(|line| line.strip_prefix("$ "));
        let printed: String = commands.map(|command| format!("$ {command}\n{}", run(command, server))).collect();
        assert_eq!(printed.lines().collect::<Vec<_>>(), lines, "section {section}");
    }
}

/// Returns the Corefile with the zones that the page asks for.
fn corefile(api: &FakeApi, silent: SocketAddr) -> String {
    let block =
        |zone: &str, rest: &str| format!("{zone}:0 {{\n    bind 127.0.0.1\n    errors\n    cache\n    {rest}\n}}\n");
    [
        block(
            "cluster.local",
            &format!(
                "kubernetes {{\n        endpoint {}\n        startup_timeout 0s\n    }}\n    ready localhost:0",
                api.url()
            ),
        ),
        block("example.org", "forward . 127.0.0.1:9"),
        block("example.net", &format!("forward . {silent}")),
        block("example.com", "acl {\n        block\n    }\n    whoami"),
    ]
    .concat()
}

fn consoles() -> Vec<Console<'static>> {
    let (mut all, mut section, mut open): (Vec<Console<'_>>, &str, bool) = (Vec::new(), "", false);
    for line in PAGE.lines() {
        match line {
            "```console" => {
                open = true;
                all.push((section, Vec::new()));
            }
            "```" => open = false,
            line if open => all.last_mut().unwrap().1.push(line),
            line => section = line.strip_prefix('#').map_or(section, |rest| rest.trim_start_matches('#').trim()),
        }
    }
    all
}

/// Runs a command against a server. Returns its output with `N` as the message ID.
fn run(command: &str, server: SocketAddr) -> String {
    let command = command.replace(ADDRESS, &format!("@{} -p {}", server.ip(), server.port()));
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let anonymous =
        |line: &str| line.split_once(", id: ").map_or(line.to_owned(), |(start, _)| format!("{start}, id: N"));
    // `dig` pads names with tabs or spaces by their length.
    text.lines().map(|line| format!("{}\n", anonymous(line).replace("\t\t", "\t"))).collect()
}
