//! Tests the errors for bad input files and for bad text in the languages inside a Corefile. Each error has its
//! position, and the previous configuration keeps serving. The cases are in `bad-input.txt`, by parser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::{Arrival, Parsed, Question, Server};
use wire::{Name, Section, Type};

const ROWS: &str = include_str!("bad-input.txt");
/// File with the input. In a Corefile, the word `INPUT` stands for the input itself.
const FILE: &str = "input";
/// Longer than any interval at which a file is checked.
const A_WHILE: Duration = Duration::from_secs(61);
/// Enough queries to tell a weighted choice from chance.
const TIMES: usize = 20;

/// Expected handling of bad input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The configuration is rejected.
    Refused,
    /// Rejected at the start. At a reload, the error is logged and the previous contents are kept.
    RefusedOrKept,
    /// Like `RefusedOrKept`, and the same applies when the file changes without a reload.
    RefusedOrWatched,
    /// The error is logged and the rest is used.
    Warned,
}

/// Parser under test, with a Corefile that uses it.
struct Parser {
    name: &'static str,
    corefile: &'static str,
    /// Valid input, with a name that then has an address.
    good: &'static str,
    asked: &'static str,
    then: Then,
}

const KEY: &str = "example.org. IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n";
const PRIVATE: &str = "Private-key-format: v1.2\nAlgorithm: 15 (ED25519)\n\
    PrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\n";

const PARSERS: [Parser; 11] = [
    Parser {
        name: "zone",
        corefile: "example.org {\n    file input {\n        reload 10s\n    }\n}\n",
        good: "@ 60 SOA ns host 1 1 1 1 1\n@ 60 NS ns\nns 60 A 192.0.2.1\n",
        asked: "ns.example.org.",
        then: Then::RefusedOrWatched,
    },
    Parser {
        name: "hosts",
        corefile: ". {\n    hosts input\n}\n",
        good: "192.0.2.1 a.test\n",
        asked: "b.test.",
        then: Then::Warned,
    },
    Parser {
        name: "resolv.conf",
        corefile: ". {\n    hosts /dev/null {\n        192.0.2.1 a.test\n        fallthrough\n    }\n    forward . \
                   input\n}\n",
        good: "nameserver 192.0.2.53\n",
        asked: "a.test.",
        then: Then::RefusedOrKept,
    },
    Parser {
        name: "resolv.conf in part",
        corefile: ". {\n    hosts /dev/null {\n        192.0.2.1 b.test\n        fallthrough\n    }\n    forward . \
                   input\n}\n",
        good: "nameserver 192.0.2.53\n",
        asked: "b.test.",
        then: Then::Warned,
    },
    Parser {
        name: "public key",
        corefile: "example.org {\n    dnssec {\n        key file input\n    }\n    whoami\n}\n",
        good: KEY,
        asked: "example.org.",
        then: Then::RefusedOrKept,
    },
    Parser {
        name: "private key",
        corefile: "example.org {\n    dnssec {\n        key file input\n    }\n    whoami\n}\n",
        good: PRIVATE,
        asked: "example.org.",
        then: Then::RefusedOrKept,
    },
    Parser {
        name: "secrets",
        corefile: ". {\n    tsig {\n        secrets input\n    }\n    whoami\n}\n",
        good: "key a. { secret YQ==; };\n",
        asked: "example.org.",
        then: Then::RefusedOrKept,
    },
    Parser {
        name: "geoip",
        corefile: ". {\n    geoip input\n    whoami\n}\n",
        good: "",
        asked: "example.org.",
        then: Then::Refused,
    },
    Parser {
        name: "template",
        corefile: ". {\n    template IN A {\n        answer \"INPUT\"\n    }\n}\n",
        good: "{{ .Name }} 60 IN A 192.0.2.1",
        asked: "example.org.",
        then: Then::Refused,
    },
    Parser {
        name: "expression",
        corefile: ". {\n    view some {\n        expr INPUT\n    }\n    whoami\n}\n",
        good: "true",
        asked: "example.org.",
        then: Then::Refused,
    },
    Parser {
        name: "weights",
        corefile: ". {\n    loadbalance weighted input\n    hosts /dev/null {\n        192.0.2.2 a.test\n        \
                   192.0.2.1 a.test\n    }\n}\n",
        good: "a.test\n192.0.2.1 255\n",
        asked: "a.test.",
        then: Then::RefusedOrWatched,
    },
];

#[test]
fn reports_bad_input_with_its_position_and_keeps_serving() {
    let mut wrong = Vec::new();
    let mut parser: Option<&Parser> = None;
    let mut tried = Vec::new();
    for line in ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("parser ") {
            parser = PARSERS.iter().find(|parser| parser.name == name);
            tried.push(parser.unwrap_or_else(|| panic!("no parser {name}")).name);
            continue;
        }
        let (input, said) = line.split_once(" => ").unwrap_or_else(|| panic!("{line}: no ` => `"));
        let (parser, input) = (parser.expect("a parser first"), input.trim_start().replace('⏎', "\n"));
        let failure = parser.try_input(&input, said).err();
        wrong.extend(failure.map(|failure| format!("{}: {line}: {failure}", parser.name)));
    }
    assert!(PARSERS.iter().all(|parser| tried.contains(&parser.name)), "{tried:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Parser {
    fn try_input(&self, input: &str, said: &str) -> Result<(), String> {
        let mut server = Server::new(plugins::DIRECTIVES);
        let is_refused = self.then != Then::Warned;
        check(is_refused, &load(self, &mut server, input), &server, said)?;
        if self.name == "geoip" {
            return Ok(());
        }
        let mut server = Server::new(plugins::DIRECTIVES);
        load(self, &mut server, self.good)?;
        server.io.take_log_line("");
        let before = answer(&mut server, self.asked);
        if self.then == Then::RefusedOrWatched {
            server.world.write(FILE, input);
            server.pass(A_WHILE);
            let logged = server.io.take_log_line(said);
            logged.then_some(()).ok_or_else(|| format!("not in the log: {:?}", server.io.log_lines()))?;
        }
        let loaded = load(self, &mut server, input);
        check(self.then == Then::Refused, &loaded, &server, said)?;
        let after = answer(&mut server, self.asked);
        if self.then != Then::Warned && (before.is_none() || before != after) {
            return Err(format!("it was {before:?}, and is {after:?}"));
        }
        if self.then == Then::Warned && after.is_none() {
            return Err(format!("what is right is not used: {after:?}"));
        }
        Ok(())
    }
}

/// Checks that bad input was refused, or that the log has a warning about it.
fn check(is_refused: bool, loaded: &Result<(), String>, server: &Server, said: &str) -> Result<(), String> {
    match loaded {
        Err(error) if is_refused && error.contains(said) => Ok(()),
        Ok(()) if !is_refused && server.io.take_log_line(said) => Ok(()),
        loaded => Err(format!("{loaded:?}, log: {:?}", server.io.log_lines())),
    }
}

fn load(parser: &Parser, server: &mut Server, input: &str) -> Result<(), String> {
    server.world.write(FILE, input);
    for (name, file, good) in [("public key", "input.key", KEY), ("private key", "input.private", PRIVATE)] {
        server.world.write(file, if parser.name == name { input } else { good });
    }
    server.load(&parser.corefile.replace("INPUT", input)).map_err(|error| error.0)
}

/// Most frequent answer of a server.
fn answer(server: &mut Server, name: &str) -> Option<String> {
    let packet = Question::new(Name::from_text(name).unwrap(), Type::A).packet();
    let mut ask = || {
        let ticket = server.ask(&packet, Arrival::default());
        let answer = server.wait_for(&ticket, A_WHILE).and_then(|outcome| outcome.answer)?;
        let parsed = Parsed::read(&answer).unwrap();
        let first = parsed.section(Section::Answer).iter().chain(parsed.section(Section::Additional)).next();
        first.map(|record| format!("{record:?}"))
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    (0..TIMES).filter_map(|_| ask()).for_each(|answer| *counts.entry(answer).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(answer, _)| answer)
}
