//! Comparison of a recorded answer and a response.
//!
//! Record sets are compared, not their order. Names may differ in the case of their letters, which is a difference of
//! its own kind. The size in the OPT record is not compared: CoreDNS repeats that of the client, and Portolan has its
//! own (docs/differences.md#messages).

use std::collections::BTreeSet;

use testkit::{Parsed, Record};
use wire::OptionCode;

use super::answer::{Answer, Recorded};

/// Placeholder for the serial of an SOA record that depends on the time.
const SERIAL: &str = " SERIAL ";
/// Position of the serial in the text of an SOA record.
const SERIAL_WORD: usize = 6;
/// Names of the sections in recorded answers.
const SECTIONS: [&str; 3] = ["an", "ns", "ar"];

/// Returns the differences between a recorded answer and a response, `-` for what is missing and `+` for what is new.
pub(crate) fn differences(recorded: &Recorded, response: Option<&Parsed>) -> Vec<String> {
    match (&recorded.answer, response) {
        (None, None) => Vec::new(),
        (Some(_), None) => vec!["no response".to_owned()],
        (None, Some(response)) => vec![format!("no response -> {}", response.rcode())],
        (Some(answer), Some(response)) => between(answer, response),
    }
}

fn between(answer: &Answer, response: &Parsed) -> Vec<String> {
    let mut differences = Vec::new();
    let rcode = response.rcode().to_string();
    if answer.rcode != rcode {
        differences.push(format!("rcode {} -> {rcode}", answer.rcode));
    }
    let flags: BTreeSet<String> = answer.flags.iter().filter(|flag| *flag != "QR").cloned().collect();
    let own_flags = response.flag_names().into_iter().map(str::to_ascii_uppercase).collect();
    differences.extend(changes("flag", &flags, &own_flags));
    // Which records fit into a truncated response is free.
    if !flags.contains("TC") && !own_flags.contains("TC") {
        let sections = SECTIONS.iter().zip(&answer.sections).zip(&response.sections);
        differences.extend(sections.flat_map(|((name, old), new)| records(name, old, new)));
    }
    if answer.has_opt != response.opt.is_some() {
        differences.push(format!("{}OPT", if answer.has_opt { "-" } else { "+" }));
    }
    let options = answer.options.iter().map(|option| without_ede_name(option)).collect();
    let own_options = response.options.iter().map(|(code, data)| option(*code, data)).collect();
    differences.extend(changes("option", &options, &own_options));
    differences
}

/// Compares the record sets of a section.
fn records(section: &str, recorded: &[String], response: &[Record]) -> Vec<String> {
    let mut old: BTreeSet<String> = recorded.iter().map(|text| canonical(text)).collect();
    let mut new: BTreeSet<String> = response.iter().map(ToString::to_string).collect();
    if recorded.iter().any(|text| text.contains(SERIAL)) {
        (old, new) = (converted(&old, without_serial), converted(&new, without_serial));
    }
    let differ_in = |convert: fn(&str) -> String| converted(&old, convert) == converted(&new, convert);
    match old == new {
        true => Vec::new(),
        false if differ_in(str::to_lowercase) => vec![format!("{section} letter case")],
        false if differ_in(without_serial) => vec![format!("{section} SOA serial")],
        false => changes(section, &old, &new),
    }
}

/// Returns the recorded text of a record in the form in which those of a response are printed.
fn canonical(recorded: &str) -> String {
    let text = recorded.replace(SERIAL, " 0 ");
    text.parse::<Record>().map_or(text, |record| record.to_string())
}

fn converted(set: &BTreeSet<String>, convert: fn(&str) -> String) -> BTreeSet<String> {
    set.iter().map(|text| convert(text)).collect()
}

/// Replaces the serial in the text of an SOA record.
pub(crate) fn without_serial(record: &str) -> String {
    let mut words: Vec<&str> = record.split(' ').collect();
    if words.get(3) == Some(&"SOA") && words.len() > SERIAL_WORD {
        words[SERIAL_WORD] = "SERIAL";
    }
    words.join(" ")
}

/// Returns what is missing from a set as `WHAT -TEXT`, and what is new as `WHAT +TEXT`.
pub(crate) fn changes(what: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) -> Vec<String> {
    let missing = old.difference(new).map(|text| format!("{what} -{text}"));
    missing.chain(new.difference(old).map(|text| format!("{what} +{text}"))).collect()
}

/// Removes the name of the code from `EDE 15 (Blocked): text`.
fn without_ede_name(option: &str) -> String {
    match (option.split_once(" ("), option.split_once(')')) {
        (Some((code, _)), Some((_, text))) if option.starts_with("EDE ") => format!("{code}{text}"),
        _ => option.to_owned(),
    }
}

/// Returns an EDNS option in the form of recorded answers.
pub(crate) fn option(code: OptionCode, data: &[u8]) -> String {
    let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
    match (code, data.split_first_chunk()) {
        (OptionCode::EXTENDED_ERROR, Some((info, []))) => format!("EDE {}", u16::from_be_bytes(*info)),
        (OptionCode::EXTENDED_ERROR, Some((info, text))) => {
            format!("EDE {}: {}", u16::from_be_bytes(*info), String::from_utf8_lossy(text))
        }
        (OptionCode::NSID, _) => format!("NSID {hex}"),
        (OptionCode::COOKIE, _) => format!("COOKIE {hex}"),
        (OptionCode(code), _) => format!("option {code} {hex}"),
    }
}

#[cfg(test)]
mod tests {
    use wire::{Flags, Header, MessageBuf, Name, Section, Type};

    use super::*;

    /// Compares a recorded answer to `a.test. A` with a response that has these flags and answer records.
    fn compare(recorded: &str, flags: Flags, records: &[&str]) -> Vec<String> {
        let line = format!("{{\"q\": [\"a.test.\", \"A\"], {recorded}}}");
        let mut message = MessageBuf::new();
        let name = Name::from_text("a.test.").unwrap();
        message.start(Header::default(), Some((name.as_ref(), Type::A, wire::Class::IN)));
        records.iter().for_each(|text| text.parse::<Record>().unwrap().push_to(&mut message, Section::Answer));
        let mut bytes = message.finish(None, std::iter::empty()).to_vec();
        bytes[2..4].copy_from_slice(&flags.with_response(true).0.to_be_bytes());
        let response = Parsed::read(&bytes).unwrap();
        differences(&Recorded::parse(&line).unwrap(), Some(&response))
    }

    #[test]
    fn ignores_the_order_of_records_and_a_serial_that_depends_on_the_time() {
        let recorded = r#""rcode": "NOERROR", "flags": "QR AA", "an": ["a.test. 5 IN A 192.0.2.1",
            "test. 5 IN SOA ns.test. h.test. SERIAL 1 2 3 4", "a.test. 5 IN A 192.0.2.2"]"#;
        let flags = Flags::default().with_authoritative(true);
        let soa = "test. 5 IN SOA ns.test. h.test. 77 1 2 3 4";
        let same = ["a.test. 5 IN A 192.0.2.2", soa, "a.test. 5 IN A 192.0.2.1"];
        assert_eq!(compare(recorded, flags, &same), [""; 0]);
        let other = ["a.test. 6 IN A 192.0.2.2", soa, "a.test. 5 IN A 192.0.2.1"];
        assert_eq!(compare(recorded, flags, &other), ["an -a.test. 5 IN A 192.0.2.2", "an +a.test. 6 IN A 192.0.2.2"]);
    }

    #[test]
    fn names_each_kind_of_difference() {
        let recorded = r#""rcode": "NXDOMAIN", "flags": "QR AA", "an": ["A.test. 5 IN A 192.0.2.1"], "edns": 4096,
            "opt": ["EDE 15 (Blocked): why"]"#;
        let found = compare(recorded, Flags::default(), &["a.test. 5 IN A 192.0.2.1"]);
        let expected = ["rcode NXDOMAIN -> NOERROR", "flag -AA", "an letter case", "-OPT", "option -EDE 15: why"];
        assert_eq!(found, expected);
        let truncated = r#""rcode": "NOERROR", "flags": "QR TC", "an": ["a.test. 5 IN A 192.0.2.1"]"#;
        assert_eq!(compare(truncated, Flags::default().with_truncated(true), &[]), [""; 0]);
    }
}
