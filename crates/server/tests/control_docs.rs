//! Runs the examples of `docs/control.md`: every command of a `console` block prints what the page says. `*` is any
//! text, and blanks may differ.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::net::UdpSocket;

use support::control::ControlSocket;
use support::upstream::Upstream;
use support::{Client, Folder, Server};
use wire::Type;

const PAGE: &str = include_str!("../../../docs/control.md");

/// Fenced blocks of a kind.
fn blocks<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let fenced = page.split("\n~~~").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(&format!(" {kind}\n"))).collect()
}

/// Commands of a block, each with the lines that it prints.
fn commands(block: &str) -> Vec<(&str, String)> {
    block
        .split("$ ")
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (command, printed) = part.split_once('\n').unwrap_or((part, ""));
            (command, printed.trim().to_owned())
        })
        .collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a text matches a pattern, in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let found =
            if at + 1 == parts.len() { rest.ends_with(part).then(|| rest.len() - part.len()) } else { rest.find(part) };
        match found {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn commands_print_what_the_page_says() {
    let upstream = Upstream::start(7);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let page = PAGE
        .replace("@CONTROL", &format!("@portolan-docs-{}", std::process::id()))
        .replace("127.0.0.1:UPSTREAM", &upstream.address.to_string())
        .replace("127.0.0.1:NOBODY", &nobody.local_addr().unwrap().to_string());
    let folder = Folder::new("control-docs");
    let corefile = blocks(&page, "corefile")[0].replacen(". {", ".:0 {\n    bind 127.0.0.1", 1);
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let socket = ControlSocket::of(&mut server);
    let mut ran = 0;
    for (command, expected) in blocks(&page, "console").into_iter().flat_map(commands) {
        let typed: Vec<&str> = command.split(' ').collect();
        match typed.as_slice() {
            ["dig", name] if name.ends_with(".corp") => _ = client.send(name, Type::A),
            ["dig", name] => assert!(client.ask(name, Type::A).is_some(), "{command}"),
            ["portolan", rest @ ..] => {
                let rest: Vec<String> = rest.iter().map(|word| word.replace("report.tar.gz", "/dev/null")).collect();
                let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
                let mut output = socket.run(&rest);
                // The query on its way to the upstream may not have arrived yet.
                for _ in 0..100 {
                    if matches(&words(&expected), &words(&output.stdout)) || rest != ["requests"] {
                        break;
                    }
                    output = socket.run(&rest);
                }
                assert!(
                    matches(&words(&expected), &words(&output.stdout)),
                    "{command}:\n{}{}",
                    output.stdout,
                    output.stderr
                );
                ran += 1;
            }
            _ => panic!("unknown command: {command}"),
        }
    }
    assert!(ran >= 12, "{ran}");
}

#[test]
fn every_command_is_on_the_page() {
    for name in ["status", "requests", "cache get", "cache flush", "reload", "loglevel", "report"] {
        assert!(PAGE.contains(&format!("$ portolan {name}")), "{name}");
    }
}

#[test]
fn patterns_match_any_text_at_a_star() {
    assert!(matches("a * c", "a b c") && matches("*", "") && matches("a*", "abc") && matches("* b *", "a b c"));
    assert!(!matches("a * c", "a b d") && !matches("a", "ab") && !matches("b*", "ab"));
}
