//! Recorded questions and answers.

use serde_json::Value;
use testkit::Question;
use wire::{Name, Opcode, Opt, OptionCode, Type};

/// UDP payload size in bytes of questions without `bufN`.
const UDP_SIZE: u16 = 4096;
/// Client subnet 192.0.2.0/24 (RFC 7871 §6).
const SUBNET: &[u8] = &[0, 1, 24, 0, 192, 0, 2];
/// Client cookie (RFC 7873 §4).
const COOKIE: &[u8] = &[0x24, 0xa5, 0xac, 0x12, 0x23, 0x34, 0x45, 0x56];

/// A question, and its answer if one came.
pub(crate) struct Recorded {
    pub(crate) question: Question,
    pub(crate) tcp: bool,
    /// The question as text: name, type and modifiers.
    pub(crate) text: String,
    pub(crate) answer: Option<Answer>,
}

/// An answer. Records and EDNS options are texts.
pub(crate) struct Answer {
    pub(crate) rcode: String,
    /// Flags in upper case.
    pub(crate) flags: Vec<String>,
    /// Records of the three sections.
    pub(crate) sections: [Vec<String>; 3],
    /// True if it has an OPT record. Its size is that of the client, so it is not kept.
    pub(crate) has_opt: bool,
    pub(crate) options: Vec<String>,
}

impl Recorded {
    /// Parses a line of `answers.jsonl`.
    pub(crate) fn parse(line: &str) -> Option<Recorded> {
        let line: Value = serde_json::from_str(line).ok()?;
        let words = texts(&line["q"]);
        let [name, qtype, modifiers @ ..] = words.as_slice() else { return None };
        let qtype: Type = qtype.parse().ok()?;
        let mut question = Question::new(Name::from_text(name).ok()?, qtype);
        question.opt = question.opt.map(|opt| Opt { udp_size: UDP_SIZE, ..opt });
        modifiers.iter().try_for_each(|modifier| modify(&mut question, modifier))?;
        let tcp = matches!(qtype, Type::AXFR | Type::IXFR) || modifiers.iter().any(|modifier| modifier == "tcp");
        let timeout = line["timeout"] == true;
        let answer = (!timeout).then(|| Answer::parse(&line)).flatten();
        (timeout || answer.is_some()).then(|| Recorded { question, tcp, text: words.join(" "), answer })
    }
}

/// Changes a question as a recorded modifier says. Returns `None` for an unknown modifier.
fn modify(question: &mut Question, modifier: &str) -> Option<()> {
    let flags = question.header.flags;
    match modifier {
        "tcp" => {}
        "noedns" => question.opt = None,
        "do" => question.opt.as_mut()?.dnssec_ok = true,
        "v1" => question.opt.as_mut()?.version = 1,
        "cd" => question.header.flags = flags.with_checking_disabled(true),
        "ad" => question.header.flags = flags.with_authentic_data(true),
        "nord" => question.header.flags = flags.with_recursion_desired(false),
        "nsid" => question.options.push((OptionCode::NSID, Vec::new())),
        "cookie" => question.options.push((OptionCode::COOKIE, COOKIE.to_vec())),
        "ecs" => question.options.push((OptionCode::CLIENT_SUBNET, SUBNET.to_vec())),
        other => match other.strip_prefix("buf") {
            Some(size) => question.opt.as_mut()?.udp_size = size.parse().ok()?,
            None => {
                let opcode = Opcode(other.strip_prefix("op")?.parse().ok()?);
                question.header.flags = flags.with_opcode(opcode);
            }
        },
    }
    Some(())
}

impl Answer {
    fn parse(line: &Value) -> Option<Answer> {
        Some(Answer {
            rcode: line["rcode"].as_str()?.to_owned(),
            flags: line["flags"].as_str()?.split(' ').map(str::to_owned).collect(),
            sections: ["an", "ns", "ar"].map(|section| texts(&line[section])),
            has_opt: line["edns"].is_u64(),
            options: texts(&line["opt"]),
        })
    }
}

/// Returns the texts in a list; none if it is missing.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_the_modifiers_of_a_question() {
        let line = r#"{"q": ["a.test.", "SRV", "do", "cd", "nord", "buf512", "tcp"], "timeout": true}"#;
        let recorded = Recorded::parse(line).unwrap();
        let parsed = testkit::Parsed::read(&recorded.question.packet()).unwrap();
        assert_eq!(parsed.to_string(), "a.test. SRV cd edns 512 do");
        assert!(recorded.tcp && recorded.answer.is_none());
        assert!(Recorded::parse(r#"{"q": ["a.test.", "A", "nosuch"], "timeout": true}"#).is_none());
        assert!(Recorded::parse(r#"{"q": ["a.test.", "A"], "rcode": "NOERROR"}"#).is_none());
    }
}
