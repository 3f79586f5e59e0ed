//! The commands of `docs/troubleshooting.md`, run by a shell with `dig` and `portolan`, and their output. Numbers may
//! differ. If `dig` is not installed, the test prints a message and is skipped.

use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use crate::support::control::ControlSocket;
use crate::support::pages::normalized;
use crate::support::served::Served;
use fakeapi::FakeApi;

const PAGE: &str = include_str!("../../../docs/troubleshooting.md");
/// Address of the server in the page.
const ADDRESS: &str = "@10.96.0.10";
/// Section whose server has never reached the API server.
const NOT_SYNCED: &str = "SERVFAIL with EDE 14";

/// Server of some sections, with its control socket.
struct Stage {
    served: Served,
    socket: ControlSocket,
}

impl Stage {
    fn start(name: &str, api: &FakeApi, silent: SocketAddr) -> Stage {
        let socket = format!("@portolan-{name}-{}", std::process::id());
        let mut served = Served::start(name, &corefile(api, silent, &socket));
        let socket = ControlSocket::of(&mut served.server);
        Stage { served, socket }
    }

    /// Runs a command and returns its output, with the path of the Corefile as in a pod.
    fn run(&self, command: &str) -> String {
        let address = self.served.address;
        let command = command.replace(ADDRESS, &format!("@{} -p {}", address.ip(), address.port()));
        let (program, ControlSocket(socket)) = (env!("CARGO_BIN_EXE_portolan"), &self.socket);
        let portolan = format!("portolan() {{ {program} \"$@\" --socket {socket}; }}\n");
        let output = Command::new("sh").args(["-c", &(portolan + &command)]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.replace(&self.served.folder.path().display().to_string(), "/etc/coredns")
    }
}

#[test]
fn commands_print_what_the_page_says() {
    if Command::new("dig").arg("-v").output().is_err() {
        crate::support::skip("`dig` is not installed: docs/troubleshooting.md is not tried");
        return;
    }
    let (api, down) = (FakeApi::with_shop(), FakeApi::with_shop());
    down.down();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let mut stage = Stage::start("troubleshooting", &api, silent);
    stage.served.wait_for_addresses("web.shop.svc.cluster.local.", &["10.96.0.11"]);
    let starting = Stage::start("starting", &down, silent);
    let mut differences = String::new();
    for (section, command, expected) in examples() {
        let stage = if section == NOT_SYNCED { &starting } else { &stage };
        let printed = stage.run(command);
        if normalized(&printed) != normalized(&expected) {
            let _ = write!(differences, "# {section}\n$ {command}\n{printed}");
        }
    }
    assert!(differences.is_empty(), "other output than on the page:\n{differences}");
}

#[test]
fn each_symptom_has_commands() {
    for symptom in
        ["NXDOMAIN", NOT_SYNCED, "SERVFAIL with EDE 23", "SERVFAIL with EDE 13", "Timeout", "ndots", "REFUSED"]
    {
        assert!(examples().iter().any(|(section, ..)| *section == symptom), "{symptom}");
    }
}

/// Returns the Corefile with the zones that the page asks for.
fn corefile(api: &FakeApi, silent: SocketAddr, socket: &str) -> String {
    let block =
        |zone: &str, rest: &str| format!("{zone}:0 {{\n    bind 127.0.0.1\n    errors\n    cache\n    {rest}\n}}\n");
    [
        block(
            "cluster.local",
            &format!(
                "kubernetes {{\n        endpoint {}\n        startup_timeout 0s\n    }}\n    ready localhost:0\n    \
                 control {socket}",
                api.url()
            ),
        ),
        block("example.org", "forward . 127.0.0.1:9"),
        block("example.net", &format!("forward . {silent}")),
        block("example.com", "acl {\n        block\n    }\n    whoami"),
    ]
    .concat()
}

/// Returns the commands of the page, each with its section and its output.
fn examples() -> Vec<(&'static str, &'static str, String)> {
    let (mut all, mut section, mut open): (Vec<(&str, &str, String)>, &str, bool) = (Vec::new(), "", false);
    for line in PAGE.lines() {
        match (line, line.strip_prefix("$ ")) {
            ("```console", _) => open = true,
            ("```", _) => open = false,
            (_, Some(command)) if open => all.push((section, command, String::new())),
            _ if open => all.last_mut().expect("a command before its output").2.extend([line, "\n"]),
            _ => section = line.strip_prefix('#').map_or(section, |rest| rest.trim_start_matches('#').trim()),
        }
    }
    all
}
