//! The commands of `README.md`, `docs/tutorial.md` and `docs/3am.md`, run by a shell against the server of the
//! examples, and their output. Numbers, durations, addresses and host names may differ. If `dig` or `curl` is not
//! installed, the tests print a message and are skipped.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::control::ControlSocket;
use crate::support::pages::{blocks, commands, normalized};
use crate::support::upstream::Upstream;
use crate::support::{Folder, PATIENCE, Server};

const README: &str = include_str!("../../../README.md");
const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const NIGHT: &str = include_str!("../../../docs/3am.md");
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Server of the examples, in a scratch copy of them, with a shell.
struct Guide {
    folder: Folder,
    address: SocketAddr,
    /// Address of the page for readiness.
    ready: SocketAddr,
    _server: Server,
}

impl Guide {
    /// Starts the server with this upstream. Returns `None` if `dig` or `curl` is not installed.
    fn start(name: &str, upstream: SocketAddr) -> Option<Guide> {
        for (program, option) in [("dig", "-v"), ("curl", "--version")] {
            if Command::new(program).arg(option).output().is_err() {
                crate::support::skip(format_args!("`{program}` is not installed: {name} is not tried"));
                return None;
            }
        }
        let folder = Folder::new(name);
        let copied =
            Command::new("cp").arg("-R").arg(Path::new(REPOSITORY).join("examples")).arg(folder.path()).status();
        assert!(copied.unwrap().success());
        let socket = format!("@portolan-{name}-{}", std::process::id());
        folder.write("examples/Corefile", &corefile(&socket, upstream));
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.current_dir(folder.path()).args(["-conf", "examples/Corefile"]);
        let mut server = Server::start_command(command);
        let address = server.address_of("dns://");
        let ready = server.address_of("localhost:0");
        let ControlSocket(socket) = ControlSocket::of(&mut server);
        let guide = Guide { folder, address, ready, _server: server };
        let program = env!("CARGO_BIN_EXE_portolan");
        let choose = format!("[ $1 = check ] || set -- \"$@\" --socket {socket}");
        guide.add_program("portolan", &format!("{choose}\nexec {program} \"$@\""));
        // `kubectl exec … -- /coredns COMMAND` runs the command here.
        guide.add_program("kubectl", "while [ \"$1\" != -- ]; do shift; done; shift 2; exec portolan \"$@\"");
        Some(guide)
    }

    fn add_program(&self, name: &str, script: &str) {
        let path = self.folder.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a command and returns what it prints.
    fn run(&self, command: &str) -> String {
        let command = command
            .replace("-p 1053", &format!("-p {}", self.address.port()))
            .replace("localhost:8181", &self.ready.to_string());
        let path = format!("{}/bin:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Runs a command until it prints the expected text, because a change takes a moment.
    #[track_caller]
    fn expect(&self, command: &str, expected: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = self.run(command);
            if normalized(&printed) == normalized(expected) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{command}:
{printed}
expected:
{expected}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs the commands of a block and compares what they print. Returns their number.
    #[track_caller]
    fn compare(&self, block: &str) -> usize {
        let commands = commands(block);
        commands.iter().for_each(|(command, expected)| self.expect(command, expected));
        commands.len()
    }

    /// Runs all blocks of a part of a page. Returns the number of commands whose output was compared.
    #[track_caller]
    fn follow(&self, part: &str) -> usize {
        let mut compared = 0;
        for block in blocks(part) {
            match block.kind.as_str() {
                "sh" => _ = self.run(&block.text),
                "console" => compared += self.compare(&block.text),
                other => panic!("unknown block: {other}"),
            }
        }
        compared
    }
}

/// Returns the Corefile of the examples on free ports, with this upstream. Its lines keep their numbers.
fn corefile(socket: &str, upstream: SocketAddr) -> String {
    let example = std::fs::read_to_string(Path::new(REPOSITORY).join("examples/Corefile")).unwrap();
    let on_free_ports =
        [":1053", ":8080", ":8181", ":9153"].iter().fold(example, |text, port| text.replace(port, ":0"));
    on_free_ports
        .replace("/etc/resolv.conf", &upstream.to_string())
        .replace("loadbalance\n", &format!("loadbalance\n    control {socket}\n"))
}

/// Returns the part of a page between two headings.
fn part<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("\n## {from}\n")).unwrap();
    rest.split_once(&format!("\n## {to}\n")).unwrap().0
}

#[test]
fn the_readme_prints_what_it_says() {
    let upstream = Upstream::start(7);
    let Some(guide) = Guide::start("readme", upstream.address) else { return };
    guide.folder.write("Corefile", ".:53 {\n  kubernets cluster.local\n}\n");
    let examples: Vec<_> = blocks(README).into_iter().filter(|block| block.kind == "console").collect();
    let compared: usize = examples.iter().map(|block| guide.compare(&block.text)).sum();
    assert_eq!(compared, 4);
}

#[test]
fn the_tutorial_prints_what_it_says() {
    let upstream = Upstream::start(7);
    let Some(guide) = Guide::start("tutorial", upstream.address) else { return };
    assert!(guide.follow(part(TUTORIAL, "Ask", "Stop")) > 7);
}

#[test]
fn the_page_for_the_night_shows_what_status_and_tail_print() {
    let closed = testkit::ports::free_address();
    let Some(guide) = Guide::start("3am", closed) else { return };
    guide.run("sed -i 's/cache 30/cash 30/' examples/Corefile; portolan reload");
    guide.run("dig @127.0.0.1 -p 1053 www.example.org");
    assert_eq!(guide.follow(part(NIGHT, "What `status` looks like", "What was tried")), 2);
}

#[test]
fn numbers_addresses_and_host_names_may_differ() {
    assert_eq!(normalized("up 2.7 s host a-1, sha c0f2…,"), normalized("up 870 µs host b sha 11…,"));
    assert_eq!(normalized("12:42:43.8 127.0.0.1:53 x:12:5"), ["N N x:N"]);
    assert_eq!(normalized("  Answers  1"), ["Answers"]);
    assert_ne!(normalized("NOERROR"), normalized("NXDOMAIN"));
}
