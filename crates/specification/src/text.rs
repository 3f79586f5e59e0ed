//! Text form of the cases, with which any server can be tested.
//!
//! A block has a zone and its questions:
//!
//! ~~~ txt
//! zone
//! a CNAME b
//! ? a A: NOERROR aa: a CNAME b: soa
//! ~~~
//!
//! Names without a dot at their end are relative to the origin of the zone, which is `@`; give each zone an origin of
//! its own. Each zone also has an SOA record and the NS record `@ NS ns.invalid.`. A line of a question has four parts:
//!
//! 1. QNAME and QTYPE.
//! 2. Response codes, one of which is right, and `aa`, `noaa` or nothing if both are right.
//! 3. Records that the answer section must have; after `?`, further ones that it may have, and after `!` too, of which
//!    it must have at least one; `...` if it may have any others. Records are separated by `;`.
//! 4. Authority section: `soa` for the SOA record of the zone, `referral` and NS records, `any` if nothing is said about
//!    it, or nothing for no record or the NS records of the zone. After `+`, records that the additional section must
//!    have.

use std::fmt::Write as _;

use crate::answer::{Answer, Authority};
use crate::record::{Data, Record, is_within};
use crate::scope::{Block, Case, ORIGIN};

/// Returns the text of a block.
#[must_use]
pub fn block(block: &Block) -> String {
    let mut text = String::from("zone\n");
    for record in block.zone.records.iter().filter(|record| !is_given(record)) {
        text.push_str(&relative_record(record));
        text.push('\n');
    }
    for case in &block.cases {
        text.push_str(&line(case));
        text.push('\n');
    }
    text
}

/// Returns true for the records that each zone has.
fn is_given(record: &Record) -> bool {
    record.owner == ORIGIN && matches!(record.data, Data::Soa | Data::Ns(_))
}

fn line(case: &Case) -> String {
    let Case { question, answer, .. } = case;
    let rcodes: Vec<&str> = answer.rcodes.iter().map(|rcode| rcode.name()).collect();
    let flag = answer.authoritative.map_or("", |is_set| if is_set { " aa" } else { " noaa" });
    let mut text = format!("? {} {}: {}{flag}:", relative(&question.name), question.qtype, rcodes.join(" "));
    let mut parts = vec![records(&answer.required)];
    if !answer.permitted.is_empty() {
        parts.push(format!("{} {}", if answer.is_some { '!' } else { '?' }, records(&answer.permitted)));
    }
    parts.push(if answer.is_open { "...".to_owned() } else { String::new() });
    parts.retain(|part| !part.is_empty());
    let _ = write!(text, " {}: {}", parts.join(" "), authority(answer));
    text.trim_end().to_owned()
}

fn authority(answer: &Answer) -> String {
    let mut text = match &answer.authority {
        Authority::Positive(_) => String::new(),
        Authority::Soa(_) => "soa".to_owned(),
        Authority::Referral(servers) => format!("referral {}", records(servers)),
        Authority::Open => "any".to_owned(),
    };
    if !answer.glue.is_empty() {
        let _ = write!(text, " + {}", records(&answer.glue));
    }
    text
}

/// Returns records on one line.
#[must_use]
pub fn records(all: &[Record]) -> String {
    let texts: Vec<String> = all.iter().map(relative_record).collect();
    texts.join("; ")
}

/// Returns a record with names relative to the origin.
fn relative_record(record: &Record) -> String {
    let text = record.to_string();
    let words: Vec<String> = text.split(' ').map(relative).collect();
    words.join(" ")
}

/// Returns a word relative to the origin, if it is a name in it.
fn relative(word: &str) -> String {
    let name = word.to_ascii_lowercase();
    match word.len().checked_sub(ORIGIN.len()) {
        Some(0) if name == ORIGIN => "@".to_owned(),
        Some(length) if is_within(&name, ORIGIN) && length > 0 => word[..length - 1].to_owned(),
        _ => word.to_owned(),
    }
}
