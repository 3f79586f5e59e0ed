//! Comparison of a response with the expected answer.

use crate::answer::{Answer, Authority, Rcode};
use crate::message::Response;
use crate::record::{Record, Type};

/// Returns how a response differs from the expected answer, in a few words each; nothing if it agrees. The words name
/// types and no owners, so that equal differences of many cases have equal words.
#[must_use]
pub fn differences(expected: &Answer, response: &Response) -> Vec<String> {
    let mut found = Vec::new();
    if !expected.rcodes.contains(&response.rcode) {
        let wanted: Vec<&str> = expected.rcodes.iter().map(|rcode| rcode.name()).collect();
        found.push(format!("{} for {}", response.rcode.name(), wanted.join(" or ")));
    }
    let has_failed = response.rcode == Rcode::ServFail && expected.rcodes.contains(&Rcode::ServFail);
    if response.truncated {
        found.push("truncated".to_owned());
    }
    if !has_failed && expected.authoritative.is_some_and(|wanted| wanted != response.authoritative) {
        found.push(if response.authoritative { "AA".to_owned() } else { "no AA".to_owned() });
    }
    let [answer, authority, additional] = &response.sections;
    records(expected, answer, has_failed, &mut found);
    if !has_failed {
        self::authority(&expected.authority, authority, &mut found);
        missing("additional section lacks", &expected.glue, additional, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

/// Compares the answer section.
fn records(expected: &Answer, answer: &[Record], has_failed: bool, found: &mut Vec<String>) {
    if !has_failed {
        missing("answer lacks", &expected.required, answer, found);
        if expected.is_some && answer.is_empty() {
            found.push("answer has no records".to_owned());
        }
    }
    for (at, record) in answer.iter().enumerate() {
        let rtype = record.data.rtype();
        if !expected.is_open && !expected.required.contains(record) && !expected.permitted.contains(record) {
            found.push(format!("answer has another {rtype}"));
        } else if answer[..at].contains(record) {
            // RFC 2181 §5: a record set has no duplicates.
            found.push(format!("answer repeats {rtype}"));
        }
    }
}

fn missing(what: &str, wanted: &[Record], section: &[Record], found: &mut Vec<String>) {
    let absent = wanted.iter().filter(|record| !section.contains(record));
    found.extend(absent.map(|record| format!("{what} {}", record.data.rtype())));
}

/// Compares the authority section.
fn authority(expected: &Authority, section: &[Record], found: &mut Vec<String>) {
    let other = |is_right: &dyn Fn(&Record) -> bool, found: &mut Vec<String>| {
        let wrong = section.iter().filter(|record| !is_right(record));
        found.extend(wrong.map(|record| format!("authority has another {}", record.data.rtype())));
    };
    match expected {
        Authority::Open => {}
        Authority::Positive(zone) => {
            other(&|record| record.owner == *zone && record.data.rtype() == Type::Ns, found);
        }
        Authority::Soa(zone) => {
            let is_right = |record: &Record| record.owner == *zone && record.data.rtype() == Type::Soa;
            other(&is_right, found);
            if !section.iter().any(is_right) {
                found.push("authority lacks SOA".to_owned());
            }
        }
        Authority::Referral(servers) => {
            other(&|record| servers.contains(record), found);
            missing("authority lacks", servers, section, found);
        }
    }
}
