//! Cases of the executable specification: all zones of up to two records, and all small clusters.
//!
//! `cargo xtask specification` asks those of larger zones, and other servers.

use std::fmt::Write as _;

use crate::support::served::Served;
use crate::support::{Client, Folder, PATIENCE};
use specification::answer::Answer;
use specification::compare::differences;
use specification::record::{Data, Question, Record, Type};
use specification::scope::{self, Case};
use specification::{cluster, message, objects};

/// Number of questions without a response. More would overflow the socket buffer of the server.
const WINDOW: usize = 32;
/// Maximum number of records in a zone.
const RECORDS_MAX: usize = 2;

/// Number of cases of clusters in which Portolan deliberately differs (docs/proof.md).
const EXPLAINED: usize = 14;

/// Returns true for these: PTR for an endpoint of two headless Services that has a host name in one of them. Names
/// without one have a label made of the address, with dashes.
fn is_explained(case: &Case) -> bool {
    let is_assigned = |record: &&Record| match &record.data {
        Data::Ptr(name) => name.split('.').next().is_some_and(|label| label.contains('-')),
        _ => false,
    };
    let names = &case.answer.required;
    let assigned = names.iter().filter(is_assigned).count();
    case.question.qtype == Type::Ptr && assigned > 0 && assigned < names.len()
}

/// Asks all questions, and returns the cases with other answers.
fn wrong(client: &Client, cases: &[&Case]) -> Vec<String> {
    let mut wrong = Vec::new();
    for window in cases.chunks(WINDOW) {
        for (id, case) in (0..).zip(window) {
            client.send_bytes(&message::query(id, &case.question));
        }
        for _ in window {
            let bytes = client.receive_any().expect("a response").0;
            let id = u16::from_be_bytes([bytes[0], bytes[1]]);
            let Case { question, answer, .. } = window[usize::from(id)];
            wrong.extend(difference(question, answer, &bytes));
        }
    }
    wrong
}

fn difference(question: &Question, answer: &Answer, bytes: &[u8]) -> Option<String> {
    let read = message::read(bytes, question);
    let found = read.map_or_else(|error| vec![error.to_string()], |response| differences(answer, &response));
    (!found.is_empty()).then(|| format!("{question:?}: {found:?}, expected {answer:?}"))
}

fn assert_all(served: Served, cases: &[&Case]) {
    let client = served.client.waiting(PATIENCE);
    let wrong = wrong(&client, cases);
    assert!(wrong.is_empty(), "{} of {} answers differ, the first: {}", wrong.len(), cases.len(), wrong[0]);
}

#[test]
fn zones_of_up_to_two_records_are_answered_as_specified() {
    let blocks = scope::zones(RECORDS_MAX);
    let blocks: Vec<_> = blocks.iter().enumerate().map(|(at, block)| block.moved(&format!("z{at}.test."))).collect();
    let folder = Folder::new("specification-zones");
    for block in &blocks {
        let origin = &block.zone.origin;
        let mut text = format!("$TTL 60\n{origin} SOA ns.invalid. host.invalid. 1 3600 600 86400 60\n");
        for record in block.zone.records.iter().filter(|record| record.data != Data::Soa) {
            writeln!(text, "{record}").expect("a text");
        }
        folder.write(&format!("db.{}", origin.trim_end_matches('.')), &text);
    }
    let directory = folder.path().display().to_string();
    let auto = format!("auto {{\n        directory {directory} db\\.(.*) {{1}}\n        reload 0s\n    }}");
    let served = Served::start_in(folder, &format!(".:0 {{\n    {auto}\n    ready localhost:0\n}}\n"));
    assert_all(served, &blocks.iter().flat_map(|block| &block.cases).collect::<Vec<_>>());
}

#[test]
fn small_clusters_are_answered_as_specified() {
    let blocks = scope::clusters();
    let clusters: Vec<_> = blocks.iter().zip(0..).map(|(block, number)| block.numbered(number)).collect();
    let folder = Folder::new("specification-clusters");
    let documents: Vec<String> = clusters.iter().flat_map(|(cluster, _)| objects::json(cluster)).collect();
    let file = folder.write("objects.yaml", &documents.join("\n---\n"));
    let zone = cluster::ZONE.trim_end_matches('.');
    let kubernetes = format!("manifests {}\n        pods insecure", file.display());
    let kubernetes = format!("kubernetes {zone} in-addr.arpa ip6.arpa {{\n        {kubernetes}\n    }}");
    let served = Served::start_in(folder, &format!(".:0 {{\n    {kubernetes}\n    ready localhost:0\n}}\n"));
    served.wait_until_ready();
    let cases = clusters.iter().flat_map(|(_, cases)| cases);
    let (explained, cases): (Vec<&Case>, Vec<&Case>) = cases.partition(|case| is_explained(case));
    assert_eq!(explained.len(), EXPLAINED, "cases that differ deliberately");
    assert_all(served, &cases);
}
