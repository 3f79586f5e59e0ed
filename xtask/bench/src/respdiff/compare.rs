//! Comparison of two responses.
//!
//! The order of records, the size in the OPT record and the text of an Extended DNS Error are not compared. TTLs may
//! differ by the time between both responses, because caches count down. A difference of flags or of letter case says
//! if Portolan repeats the query in it: a rule for a copy does not explain anything else.

use std::collections::{BTreeMap, BTreeSet};

use testkit::{Parsed, Record};
use wire::{Flags, Opcode, Section, Type};

use crate::replay::compare::{changes, option, without_serial};

/// Names of the sections.
const SECTIONS: [&str; 3] = ["an", "ns", "ar"];

/// Parts of the query that a response may repeat.
pub(crate) struct Asked<'q> {
    /// Name in the letters of the client.
    pub(crate) name: &'q str,
    pub(crate) flags: Flags,
}

impl Asked<'_> {
    /// Returns true if a response has a flag of the query as the query has it.
    fn has_same(&self, flag: &str, response: &Parsed) -> bool {
        let values = |flags: Flags| match flag {
            "RD" => Some(flags.recursion_desired()),
            "CD" => Some(flags.checking_disabled()),
            _ => None,
        };
        values(self.flags).is_some() && values(self.flags) == values(response.header.flags)
    }

    /// Returns true if all owners that are the name of the query are written as there.
    fn has_same_letters(&self, records: &[Record]) -> bool {
        let owners = records.iter().map(|record| record.owner.to_string());
        owners.filter(|owner| owner.eq_ignore_ascii_case(self.name)).all(|owner| owner == self.name)
    }
}

/// Returns the differences between the response of CoreDNS and that of Portolan, `-` for what is missing and `+` for
/// what is new. TTLs may differ by `tolerance` seconds.
pub(crate) fn differences(coredns: &Parsed, portolan: &Parsed, asked: &Asked, tolerance: u32) -> Vec<String> {
    let mut found = Vec::new();
    let (old, new) = (coredns.rcode().to_string(), portolan.rcode().to_string());
    if old != new {
        found.push(format!("rcode {old} -> {new}"));
    }
    let flags = [coredns, portolan].map(flags);
    let note = |change: String| {
        let is_copy = change.get("flag -".len()..).is_some_and(|flag| asked.has_same(flag, portolan));
        if is_copy { format!("{change} as asked") } else { change }
    };
    found.extend(changes("flag", &flags[0], &flags[1]).into_iter().map(note));
    let questions = [coredns, portolan].map(question);
    if questions[0] != questions[1] {
        found.push(format!("question {} -> {}", questions[0], questions[1]));
    }
    // Which records fit into a truncated response is free.
    if !flags.iter().any(|flags| flags.contains("TC")) {
        for (name, (old, new)) in SECTIONS.iter().zip(coredns.sections.iter().zip(&portolan.sections)) {
            found.extend(records(name, (old, new), asked, tolerance));
        }
    }
    found.extend(edns(coredns, portolan));
    found
}

fn flags(response: &Parsed) -> BTreeSet<String> {
    let mut flags: BTreeSet<String> = response.flag_names().into_iter().map(str::to_ascii_uppercase).collect();
    let opcode = response.header.flags.opcode();
    if opcode != Opcode::QUERY {
        flags.insert(format!("OPCODE{}", opcode.0));
    }
    flags
}

fn question(response: &Parsed) -> String {
    response.question.as_ref().map_or("none".to_owned(), |(name, qtype, qclass)| format!("{name}/{qtype}/{qclass}"))
}

fn edns(coredns: &Parsed, portolan: &Parsed) -> Vec<String> {
    let mut found = Vec::new();
    match (coredns.opt, portolan.opt) {
        (Some(_), None) => found.push("-OPT".to_owned()),
        (None, Some(_)) => found.push("+OPT".to_owned()),
        (Some(old), Some(new)) if old.dnssec_ok != new.dnssec_ok => {
            found.push(format!("{}DO", if old.dnssec_ok { "-" } else { "+" }));
        }
        _ => {}
    }
    let options = |response: &Parsed| -> BTreeSet<String> {
        response.options.iter().map(|(code, data)| without_text(&option(*code, data))).collect()
    };
    found.extend(changes("option", &options(coredns), &options(portolan)));
    found
}

/// Removes the text of an Extended DNS Error, which is free.
fn without_text(option: &str) -> String {
    match option.split_once(": ") {
        Some((code, _)) if code.starts_with("EDE ") => code.to_owned(),
        _ => option.to_owned(),
    }
}

/// Compares the record sets of a section.
fn records(section: &str, (old, new): (&[Record], &[Record]), asked: &Asked, tolerance: u32) -> Vec<String> {
    let texts = |records: &[Record], convert: fn(&str) -> String| -> BTreeMap<String, u32> {
        records.iter().map(|record| (convert(&without_ttl(record)), record.ttl)).collect()
    };
    let same = |convert: fn(&str) -> String| {
        let (old, new) = (texts(old, convert), texts(new, convert));
        old.len() == new.len()
            && old.iter().zip(&new).all(|(old, new)| old.0 == new.0 && old.1.abs_diff(*new.1) <= tolerance)
    };
    if same(str::to_owned) {
        return Vec::new();
    }
    if same(str::to_lowercase) {
        let letters = if asked.has_same_letters(new) { "letter case as asked" } else { "letter case" };
        return vec![format!("{section} {letters}")];
    }
    if same(|text| without_serial(text).to_lowercase()) {
        return vec![format!("{section} SOA serial")];
    }
    // Letters and serials are differences of their own, so they do not count beside others.
    let texts = |records: &[Record]| -> BTreeMap<String, String> {
        let text = |record: &Record| without_serial(&record.to_string());
        records.iter().map(|record| (text(record).to_lowercase(), text(record))).collect()
    };
    let (old, new) = (texts(old), texts(new));
    let without_ttls = |texts: &BTreeMap<String, String>| texts.keys().map(|text| cut_ttl(text)).collect();
    let ttls: [BTreeSet<String>; 2] = [without_ttls(&old), without_ttls(&new)];
    let what = match (ttls[0] == ttls[1], is_lower(&old, &new)) {
        (true, true) => format!("{section} TTL lower"),
        (true, false) => format!("{section} TTL"),
        (false, _) => section.to_owned(),
    };
    let only = |some: &BTreeMap<String, String>, other: &BTreeMap<String, String>| -> Vec<String> {
        some.iter().filter(|(key, _)| !other.contains_key(*key)).map(|(_, text)| text.clone()).collect()
    };
    let missing = only(&old, &new).into_iter().map(|text| format!("{what} -{text}"));
    missing.chain(only(&new, &old).into_iter().map(|text| format!("{what} +{text}"))).collect()
}

/// Returns true if no record has a higher TTL than the lowest of the same old record.
fn is_lower(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> bool {
    let lowest = |texts: &BTreeMap<String, String>| {
        let mut lowest = BTreeMap::<String, u32>::new();
        for text in texts.keys() {
            let ttl = text.split(' ').nth(1).and_then(|ttl| ttl.parse().ok()).unwrap_or(u32::MAX);
            lowest.entry(cut_ttl(text)).and_modify(|other| *other = ttl.min(*other)).or_insert(ttl);
        }
        lowest
    };
    let (old, new) = (lowest(old), lowest(new));
    new.iter().all(|(record, ttl)| old.get(record).is_some_and(|other| ttl <= other))
}

/// Returns a record as text, with the TTL 0.
fn without_ttl(record: &Record) -> String {
    Record { ttl: 0, ..record.clone() }.to_string()
}

/// Replaces the TTL in the text of a record.
fn cut_ttl(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    words.iter().enumerate().map(|(at, word)| if at == 1 { "0" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Returns the kind of a response in a word: `ANSWER`, `NODATA`, `REFERRAL`, `NXDOMAIN` …, with `ALIAS+` before it if
/// an alias leads to it.
pub(crate) fn shape(response: &Parsed, qtype: Type) -> String {
    let answers = response.section(Section::Answer);
    let is_asked = |record: &Record| response.question.as_ref().is_some_and(|question| record.owner == question.0);
    let is_alias = |record: &&Record| match record.rtype {
        Type::CNAME => qtype != Type::CNAME,
        // That of a parent is an alias, whatever the type of the query.
        Type::DNAME => qtype != Type::DNAME || !is_asked(record),
        _ => false,
    };
    let aliases = answers.iter().filter(is_alias).count();
    let end = match response.rcode().to_string().as_str() {
        "NOERROR" if answers.len() > aliases => "ANSWER".to_owned(),
        // An alias is an answer, too.
        "NOERROR" if qtype == Type::ANY && aliases > 0 => "ANSWER".to_owned(),
        "NOERROR" => without_records(response).to_owned(),
        other => other.to_owned(),
    };
    if aliases > 0 && qtype != Type::ANY { format!("ALIAS+{end}") } else { end }
}

fn without_records(response: &Parsed) -> &'static str {
    let authority = response.section(Section::Authority);
    let has = |rtype| authority.iter().any(|record| record.rtype == rtype);
    match (has(Type::SOA), has(Type::NS)) {
        (true, _) => "NODATA",
        (_, true) => "REFERRAL",
        _ => "EMPTY",
    }
}
