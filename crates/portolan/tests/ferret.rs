//! Zones that a formal model of authoritative servers chose (Ferret), with the answers and verdicts of BIND, NSD, Knot
//! and PowerDNS: `ferret/README.md`.
//!
//! One server has the zones of all tests. So each name of a test ends with a label of its own.

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::Command;

use crate::support::served::Served;
use crate::support::{Client, Folder, PATIENCE};
use serde_json::Value;
use testkit::{Parsed, Record};

/// Number of reference servers, and of checkers.
const SERVERS: usize = 4;
/// Number of tests in which the reference servers agree.
const AGREED: usize = 10_098;
/// Number of zones that three of the four checkers refuse.
const REFUSED: usize = 244;

/// Response code, AA, and the sorted answer records.
type Content = (String, bool, Vec<String>);

/// Unpacks a file with one JSON object a line.
fn read(packed: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Appends the label of a test to each name in a line: words with a dot at their end.
fn labelled(line: &str, label: &str) -> String {
    let word = |word: &str| if word.ends_with('.') { format!("{word}{label}.") } else { word.to_owned() };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the lines of a zone with the label of its test, and its origin.
fn zone(text: &str, label: &str) -> (String, String) {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let text = lines.fold(String::new(), |mut text, line| {
        writeln!(text, "{}", labelled(line, label)).unwrap();
        text
    });
    let soa = text.lines().find(|line| line.contains(" SOA ")).expect("a zone has an SOA record");
    let origin = soa.split(' ').next().expect("a line has an owner").to_owned();
    (text, origin)
}

/// Returns the label of a test.
fn label(test: &Value) -> String {
    format!("t{}", test["id"])
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().expect("a list").iter().map(text)
}

/// Returns the answer on which all reference servers agree.
fn agreed(test: &Value) -> Option<Content> {
    let [group] = &test["answers"].as_array()?[..] else { return None };
    let records = texts(&group["answer"]).map(|line| labelled(line, &label(test)).parse().expect("a record"));
    let content = content(text(&group["rcode"]), texts(&group["flags"]).any(|flag| flag == "AA"), records);
    (texts(&group["servers"]).count() == SERVERS).then_some(content)
}

fn ask(client: &mut Client, test: &Value) -> Content {
    let name = labelled(text(&test["name"]), &label(test));
    let qtype = text(&test["type"]).parse().expect("a type");
    let answer = client.ask(&name, qtype).expect("an answer");
    let parsed = Parsed::read(&answer.0).expect("a message");
    let (flags, [records, ..]) = (parsed.header.flags, parsed.sections);
    content(&flags.rcode().to_string(), flags.authoritative(), records.into_iter())
}

fn content(rcode: &str, is_authoritative: bool, records: impl Iterator<Item = Record>) -> Content {
    let mut records: Vec<String> = records.map(|record| record.to_string().to_ascii_lowercase()).collect();
    records.sort_unstable();
    (rcode.to_owned(), is_authoritative, records)
}

#[test]
fn answers_as_the_reference_servers_where_they_agree() {
    let tests = read(include_bytes!("ferret/valid.jsonl.gz"));
    let folder = Folder::new("ferret");
    for test in &tests {
        let (text, origin) = zone(text(&test["zone"]), &label(test));
        folder.write(&format!("db.{}", origin.trim_end_matches('.')), &text);
    }
    let directory = folder.path().display().to_string();
    let corefile = format!(
        ".:0 {{\n    auto {{\n        directory {directory} db\\.(.*) {{1}}\n        reload 0s\n    }}\n    ready \
         localhost:0\n}}\n"
    );
    let served = Served::start_in(folder, &corefile);
    let mut client = served.client.waiting(PATIENCE);
    let agreed: Vec<(&Value, Content)> = tests.iter().filter_map(|test| Some((test, agreed(test)?))).collect();
    assert_eq!(agreed.len(), AGREED);
    let answers = agreed.iter().map(|(test, expected)| (test, expected, ask(&mut client, test)));
    let different: Vec<_> = answers.filter(|(_, expected, answer)| *expected != answer).collect();
    let first = different.first().map(|(test, expected, answer)| format!("{}\n{expected:?}\n{answer:?}", test["zone"]));
    assert!(different.is_empty(), "{} differ, first:\n{}", different.len(), first.unwrap_or_default());
}

#[test]
fn check_reports_the_zones_that_three_of_four_checkers_refuse() {
    let zones = read(include_bytes!("ferret/invalid.jsonl.gz"));
    let folder = Folder::new("ferret-invalid");
    let mut corefile = ".:53 {\n".to_owned();
    let mut refused = Vec::new();
    let is_refused = |test: &&Value| {
        let checkers = test["checkers"].as_object().expect("the verdicts");
        checkers.values().filter(|verdict| verdict["Code"] != 0).count() + 1 >= SERVERS
    };
    for test in zones.iter().filter(is_refused) {
        let name = format!("c{}-{}", test["condition"], test["id"]);
        let (text, origin) = zone(text(&test["zone"]), &name);
        let file = folder.write(&name, &text);
        writeln!(corefile, "    file {} {origin}", file.display()).unwrap();
        refused.push(name);
    }
    corefile.push_str("}\n");
    assert_eq!(refused.len(), REFUSED);
    let corefile = folder.write("Corefile", &corefile);
    let checked = Command::new(env!("CARGO_BIN_EXE_portolan")).args(["check", "--files"]).arg(corefile).output();
    let report = String::from_utf8(checked.expect("a check").stdout).expect("a report");
    let missed: Vec<&String> = refused.iter().filter(|name| !report.contains(&format!("/{name}:"))).collect();
    assert!(missed.is_empty(), "{} of {REFUSED} are not reported: {missed:?}\n{report}", missed.len());
}
