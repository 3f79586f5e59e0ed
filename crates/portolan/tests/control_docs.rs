//! Runs the examples of `docs/control.md`: every command of a `console` block prints what the page says. `*` is any
//! text, and blanks may differ.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::support::control::ControlSocket;
use crate::support::pages::{blocks, console, matches};
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, PATIENCE, Server};
use wire::Type;

const PAGE: &str = include_str!("../../../docs/control.md");

#[test]
fn commands_print_what_the_page_says() {
    let upstream = Upstream::start(7);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let page = PAGE
        .replace("127.0.0.1:UPSTREAM", &upstream.address.to_string())
        .replace("127.0.0.1:NOBODY", &nobody.local_addr().unwrap().to_string());
    let folder = Folder::new("control-docs");
    let blocks = blocks(&page);
    let corefile = &blocks.iter().find(|block| block.kind == "corefile").unwrap().text;
    // A socket of its own: the default one is that of another server of the tests.
    let start = format!(".:0 {{\n    bind 127.0.0.1\n    control @portolan-docs-{}", std::process::id());
    let corefile = corefile.replacen(". {", &start, 1);
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let socket = ControlSocket::of(&mut server);
    let mut ran = 0;
    for (command, expected) in console(&page) {
        let typed: Vec<&str> = command.split(' ').collect();
        match typed.as_slice() {
            ["dig", name] if name.ends_with(".corp") => _ = client.send(name, Type::A),
            ["dig", name] => assert!(client.ask(name, Type::A).is_some(), "{command}"),
            ["portolan", rest @ ..] => {
                let rest: Vec<String> = rest.iter().map(|word| word.replace("report.tar.gz", "/dev/null")).collect();
                let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
                let mut output = socket.run(&rest);
                // A query on its way to the upstream may not have arrived yet, or not have failed yet.
                let end = Instant::now() + PATIENCE;
                while !matches(&expected, &output.stdout) && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(50));
                    output = socket.run(&rest);
                }
                assert!(matches(&expected, &output.stdout), "{command}:\n{}{}", output.stdout, output.stderr);
                ran += 1;
            }
            _ => panic!("unknown command: {command}"),
        }
    }
    assert!(ran >= 12, "{ran}");
}

#[test]
fn every_command_is_on_the_page() {
    for name in ["status", "requests", "cache get", "cache flush", "tail", "top", "reload", "loglevel", "report"] {
        assert!(PAGE.contains(&format!("$ portolan {name}")), "{name}");
    }
}

#[test]
fn patterns_match_any_text_at_a_star() {
    assert!(matches("a * c", "a b c") && matches("*", "") && matches("a*", "abc") && matches("* b *", "a b c"));
    assert!(!matches("a * c", "a b d") && !matches("a", "ab") && !matches("b*", "ab"));
}
