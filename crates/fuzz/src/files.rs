//! Fuzz targets for configuration files and for the languages embedded in a Corefile. Each input reaches a server
//! through the plugin that reads it. The server must either report an error with a position, or answer queries.

use testkit::{Question, Server};
use wire::{Name, Type};

use crate::{QUERY, ask};

/// Maximum number of words of an input that are queried. Fuzzing uses small files.
const ASKED_MAX: usize = 32;
/// Path of the input file.
const FILE: &str = "input";
/// Separator of the two halves of a key.
const BETWEEN: &[u8] = b"\n--\n";
/// Query types.
const TYPES: [Type; 3] = [Type::A, Type::AAAA, Type::TXT];

/// Hosts file. Its names and addresses are queried after the server has reloaded the file.
pub fn hosts(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let names: Vec<Name> = text.split_whitespace().filter_map(name_or_pointer).take(ASKED_MAX).collect();
    with_server(|server| {
        server.world.write(FILE, b"192.0.2.1 www.example.org\n");
        server.load(". {\n    hosts input {\n        reload 1s\n    }\n}\n").expect("a hosts file is never refused");
        server.world.write(FILE, input);
        server.pass(core::time::Duration::from_secs(2));
        for name in &names {
            for qtype in [Type::A, Type::AAAA, Type::PTR] {
                ask(server, &Question::new(name.clone(), qtype).packet());
            }
        }
    });
}

/// Returns a word as a name, or an IPv4 address as its reverse name.
fn name_or_pointer(word: &str) -> Option<Name> {
    let reversed = word.parse().ok().map(|address: core::net::Ipv4Addr| {
        let [one, two, three, four] = address.octets();
        format!("{four}.{three}.{two}.{one}.in-addr.arpa.")
    });
    Name::from_text(reversed.as_deref().unwrap_or(word)).ok()
}

/// Answer text of *template*.
pub fn template(input: &[u8]) {
    let text = quoted(&String::from_utf8_lossy(input));
    try_corefile(&format!(
        ". {{\n    template IN ANY {{\n        match \"^(?P<first>[a-z]+)[.](.*)[.]$\"\n        answer {text}\n    }}\n}}\n"
    ));
}

/// Expression of *view*.
pub fn expression(input: &[u8]) {
    let text = quoted(&String::from_utf8_lossy(input));
    try_corefile(&format!(
        ". {{\n    metadata\n    view some {{\n        expr {text}\n    }}\n    whoami\n}}\n. {{\n    whoami\n}}\n"
    ));
}

/// Resolver file (`resolv.conf`) for *forward*.
pub fn resolv(input: &[u8]) {
    try_file(input, ". {\n    forward . /input\n}\n");
}

/// Weights file for *loadbalance*.
pub fn weights(input: &[u8]) {
    let block = "    hosts /dev/null {\n        192.0.2.1 www.example.org\n        192.0.2.2 www.example.org\n    }\n";
    try_file(input, &format!(". {{\n    loadbalance weighted input\n{block}}}\n"));
}

/// Database for *geoip*.
pub fn geoip(input: &[u8]) {
    try_file(
        input,
        ". {\n    metadata\n    geoip input\n    whoami\n    log . \"{/geoip/city/name} {/geoip/subdivisions/code} \
         {/geoip/latitude} {/geoip/country/is_in_european_union} {/geoip/asn/number} {/geoip/asn/org}\"\n}\n",
    );
}

/// Secrets file for *tsig*.
pub fn secrets(input: &[u8]) {
    try_file(input, ". {\n    tsig {\n        secrets input\n    }\n    whoami\n}\n");
}

/// Public and private half of a key for *dnssec*. If the key loads, the server must answer queries with it.
pub fn key(input: &[u8]) {
    let middle = input.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN);
    let (public, private) = middle.map_or((input, &[][..]), |at| (&input[..at], &input[at + BETWEEN.len()..]));
    with_server(|server| {
        server.world.write("K.key", public);
        server.world.write("K.private", private);
        try_on(server, "example.org {\n    dnssec {\n        key file K\n    }\n    whoami\n}\n");
    });
}

/// Signed zone file, whose signatures *sign* checks.
pub fn signed(input: &[u8]) {
    with_server(|server| {
        server.world.write("K.key", KEY);
        server.world.write("K.private", PRIVATE);
        server.world.write("db", ZONE);
        server.world.write("out/db.example.org.signed", input);
        server
            .load("example.org {\n    sign db {\n        key file K\n        directory out\n    }\n    whoami\n}\n")
            .expect("an invalid zone is signed again");
    });
}

const KEY: &str = "example.org. IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n";
const PRIVATE: &str = "Private-key-format: v1.2\nAlgorithm: 15 (ED25519)\n\
    PrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\n";
const ZONE: &str = "@ 60 SOA ns host 1 7200 3600 604800 60\n@ 60 NS ns\n";

/// Quotes a text as one word of a Corefile. Drops backslashes before quotes and at the end, which a Corefile cannot
/// express.
fn quoted(text: &str) -> String {
    let mut word = String::from("\"");
    for character in text.chars() {
        if character == '"' {
            word.truncate(word.trim_end_matches('\\').len());
            word.push('\\');
        }
        word.push(character);
    }
    word.truncate(word.trim_end_matches('\\').len());
    word + "\""
}

fn try_file(input: &[u8], corefile: &str) {
    with_server(|server| {
        for path in [FILE, "/input"] {
            server.world.write(path, input);
        }
        try_on(server, corefile);
    });
}

fn try_corefile(text: &str) {
    with_server(|server| try_on(server, text));
}

/// Loads a Corefile and sends queries. If loading fails, the error must have a position.
fn try_on(server: &mut Server, corefile: &str) {
    match server.load(corefile) {
        Ok(()) => {
            ask(server, QUERY);
            for qtype in TYPES {
                let mut question = Question::new(Name::from_text("www.example.org").expect("a name"), qtype);
                question.opt = Some(wire::Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: true });
                ask(server, &question.packet());
            }
        }
        Err(error) => assert!(error.0.contains("--> Corefile:"), "{error}"),
    }
}

fn with_server(run: impl FnOnce(&mut Server)) {
    run(&mut Server::new(plugins::DIRECTIVES));
}
