//! What an answer is to be, and whether it is.

use wire::{Rcode, Type};

use crate::answer::{Answer, Record};

/// What is expected of an answer. Texts are those of [`Record::data`], where one label may be `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// `is …`: exactly these records of the type that was asked, in any order.
    Is(Vec<String>),
    /// `has …`: these and perhaps others.
    Has(Vec<String>),
    /// `lacks …`: none of these; there may be no records, or no such name.
    Lacks(Vec<String>),
    /// `targets …`: SRV records whose targets have exactly these addresses, all together.
    Targets(Vec<String>),
    /// `cname TARGET [then ADDRESS]`: begins with a CNAME, and then what the target has.
    Cname(String, Option<String>),
    /// `nxdomain`: no such name, with the SOA that says how long that holds (RFC 2308 §2.1).
    NxDomain,
    /// `nodata`: the name exists without such records, with the SOA (RFC 2308 §2.2).
    NoData,
    /// `absent`: either of the two.
    Absent,
    /// `ttl SECONDS`: records, all with one TTL that is not longer.
    Ttl(u32),
    /// `negative-ttl SECONDS`: a denial that may not be kept for longer.
    NegativeTtl(u32),
    /// `badvers`
    BadVersion,
    /// `edns`
    Edns,
    /// `no-edns`
    NoEdns,
    /// `question-kept`: the question is the same letter by letter.
    QuestionKept,
}

impl Expectation {
    /// Reads an expectation in which all values are filled in.
    ///
    /// # Errors
    /// The text, if it is none.
    pub(crate) fn read(text: &str) -> Result<Expectation, String> {
        let mut words = text.split(' ');
        let verb = words.next().unwrap_or_default();
        let texts: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let seconds = || texts.first().and_then(|text| text.parse().ok()).ok_or(text);
        Ok(match (verb, texts.as_slice()) {
            ("is", [_, ..]) => Expectation::Is(texts),
            ("has", [_, ..]) => Expectation::Has(texts),
            ("lacks", [_, ..]) => Expectation::Lacks(texts),
            ("targets", [_, ..]) => Expectation::Targets(texts),
            ("cname", [target]) => Expectation::Cname(target.clone(), None),
            ("cname", [target, then, address]) if then == "then" => {
                Expectation::Cname(target.clone(), Some(address.clone()))
            }
            ("nxdomain", []) => Expectation::NxDomain,
            ("nodata", []) => Expectation::NoData,
            ("absent", []) => Expectation::Absent,
            ("ttl", [_]) => Expectation::Ttl(seconds()?),
            ("negative-ttl", [_]) => Expectation::NegativeTtl(seconds()?),
            ("badvers", []) => Expectation::BadVersion,
            ("edns", []) => Expectation::Edns,
            ("no-edns", []) => Expectation::NoEdns,
            ("question-kept", []) => Expectation::QuestionKept,
            _ => return Err(text.to_owned()),
        })
    }

    /// Whether an answer to a question for `owner` is as expected. Of [`Targets`](Expectation::Targets) only that there
    /// are SRV records: their addresses are other questions.
    ///
    /// # Errors
    /// What was expected instead.
    pub(crate) fn judge(&self, owner: &str, qtype: Type, answer: &Answer) -> Result<(), String> {
        let records = records(owner, qtype, answer);
        let no_error = answer.rcode == Rcode::NOERROR;
        let (holds, wanted) = match self {
            Expectation::Is(texts) => {
                (no_error && is(&records, texts) && is_all(owner, qtype, answer), texts.join(", "))
            }
            Expectation::Has(texts) => (no_error && has(&records, texts), format!("among others {}", texts.join(", "))),
            Expectation::Lacks(texts) => {
                let denies = answer.rcode == Rcode::NXDOMAIN || no_error;
                (denies && !texts.iter().any(|text| has_one(&records, text)), format!("not {}", texts.join(", ")))
            }
            Expectation::Targets(texts) => (no_error && !records.is_empty(), format!("SRV for {}", texts.join(", "))),
            Expectation::Cname(target, then) => (cname(owner, answer, target, then.as_deref()), {
                let then = then.as_ref().map_or(String::new(), |address| format!(", and then {address}"));
                format!("CNAME {target}{then}")
            }),
            Expectation::NxDomain => (denies(owner, answer, Rcode::NXDOMAIN), "NXDOMAIN with the SOA".to_owned()),
            Expectation::NoData => (denies(owner, answer, Rcode::NOERROR), "NOERROR, the SOA, no records".to_owned()),
            Expectation::Absent => (
                denies(owner, answer, Rcode::NXDOMAIN) || denies(owner, answer, Rcode::NOERROR),
                "no records, with the SOA".to_owned(),
            ),
            Expectation::Ttl(most) => (one_ttl(answer, *most), format!("records with one TTL of at most {most} s")),
            Expectation::NegativeTtl(most) => {
                (soa_time(answer).is_some_and(|time| time <= *most), format!("an SOA that says at most {most} s"))
            }
            Expectation::BadVersion => (answer.rcode == Rcode::BADVERS, "BADVERS".to_owned()),
            Expectation::Edns => (answer.has_opt, "an OPT record".to_owned()),
            Expectation::NoEdns => (no_error && !answer.has_opt, "no OPT record".to_owned()),
            Expectation::QuestionKept => (answer.question_kept, "the question in its own letters".to_owned()),
        };
        if holds { Ok(()) } else { Err(wanted) }
    }
}

/// What was asked for: each record once, though a server may list it twice.
fn records<'a>(owner: &str, qtype: Type, answer: &'a Answer) -> Vec<&'a str> {
    let asked = answer.answers.iter().filter(|record| record.rtype == qtype && record.owner == owner);
    let mut records: Vec<&str> = asked.map(|record| record.data.as_str()).collect();
    records.sort_unstable();
    records.dedup();
    records
}

/// Whether nothing was answered but what was asked.
fn is_all(owner: &str, qtype: Type, answer: &Answer) -> bool {
    answer.answers.iter().all(|record| record.rtype == qtype && record.owner == owner)
}

/// Whether these are all records. Texts without `*` are looked for first, so
/// that a `*` cannot take what is theirs.
fn is(records: &[&str], texts: &[String]) -> bool {
    let mut left: Vec<&str> = records.to_vec();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.sort_by_key(|text| text.contains('*'));
    let found = texts.iter().all(|text| {
        let at = left.iter().position(|record| matches(text, record));
        at.map(|at| left.swap_remove(at)).is_some()
    });
    found && left.is_empty()
}

fn has(records: &[&str], texts: &[String]) -> bool {
    texts.iter().all(|text| has_one(records, text))
}

fn has_one(records: &[&str], text: &str) -> bool {
    records.iter().any(|record| matches(text, record))
}

/// Whether a record is this text, in which `*` stands for one label.
fn matches(text: &str, record: &str) -> bool {
    let Some((before, behind)) = text.split_once('*') else { return text == record };
    let label = record.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
    label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
}

fn cname(owner: &str, answer: &Answer, target: &str, then: Option<&str>) -> bool {
    let Some((first, rest)) = answer.answers.split_first() else { return false };
    let leads = first.rtype == Type::CNAME && first.owner == owner && first.data == target;
    let follows = |record: &Record| record.owner == target && Some(record.data.as_str()) == then;
    match then {
        // Nobody promises that there is such a name elsewhere; the code is that of the target (RFC 6604 §3).
        None => leads && matches!(answer.rcode, Rcode::NOERROR | Rcode::NXDOMAIN),
        Some(_) => leads && answer.rcode == Rcode::NOERROR && !rest.is_empty() && rest.iter().all(follows),
    }
}

/// Whether it denies, and an SOA of a zone that the name is in says for how long.
fn denies(owner: &str, answer: &Answer, rcode: Rcode) -> bool {
    let holds_name = |zone: &str| zone.is_empty() || owner == zone || owner.ends_with(&format!(".{zone}"));
    answer.rcode == rcode && answer.answers.is_empty() && answer.soa().is_some_and(|soa| holds_name(&soa.owner))
}

fn one_ttl(answer: &Answer, most: u32) -> bool {
    let ttls: Vec<u32> = answer.answers.iter().map(|record| record.ttl).collect();
    ttls.first().is_some_and(|first| first <= &most && ttls.iter().all(|ttl| ttl == first))
}

/// How long a denial may be kept, in seconds: the smaller of two times of its SOA (RFC 2308 §5).
fn soa_time(answer: &Answer) -> Option<u32> {
    answer.soa().and_then(|soa| Some(soa.ttl.min(soa.data.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "web.a.svc.test";

    fn record(text: &str) -> Record {
        let [owner, rtype, ttl, data] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        Record {
            owner: owner.to_owned(),
            rtype: rtype.parse().unwrap(),
            ttl: ttl.parse().unwrap(),
            data: data.to_owned(),
        }
    }

    /// An answer as `RCODE|answers|authorities`, records separated by commas.
    fn answer(text: &str) -> Answer {
        let [rcode, answers, authorities] = text.split('|').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let records = |text: &str| text.split(',').filter(|text| !text.is_empty()).map(record).collect();
        Answer {
            rcode: rcode.parse().unwrap(),
            is_truncated: false,
            question_kept: false,
            has_opt: false,
            answers: records(answers),
            authorities: records(authorities),
        }
    }

    #[test]
    fn an_answer_is_as_expected_or_not() {
        let soa = "test SOA 5 5";
        for (expectation, qtype, good, bad) in [
            (
                "is 1.1.1.1 2.2.2.2",
                Type::A,
                "NOERROR|web.a.svc.test A 5 2.2.2.2,web.a.svc.test A 5 1.1.1.1|",
                vec![
                    "NOERROR|web.a.svc.test A 5 1.1.1.1|",
                    "NOERROR|web.a.svc.test A 5 1.1.1.1,web.a.svc.test A 5 2.2.2.2,web.a.svc.test A 5 3.3.3.3|",
                    "NOERROR|web.a.svc.test A 5 1.1.1.1,other.test A 5 2.2.2.2|",
                    "NOERROR|web.a.svc.test A 5 1.1.1.1,web.a.svc.test A 5 2.2.2.2,x.test CNAME 5 y.test|",
                    "SERVFAIL|web.a.svc.test A 5 2.2.2.2,web.a.svc.test A 5 1.1.1.1|",
                ],
            ),
            (
                "is 80/*.test 80/cat.test",
                Type::SRV,
                "NOERROR|web.a.svc.test SRV 5 80/cat.test,web.a.svc.test SRV 5 80/x.test|",
                vec![
                    "NOERROR|web.a.svc.test SRV 5 80/cat.test|",
                    "NOERROR|web.a.svc.test SRV 5 80/cat.test,web.a.svc.test SRV 5 80/x.y.test|",
                    "NOERROR|web.a.svc.test SRV 5 81/cat.test,web.a.svc.test SRV 5 80/x.test|",
                ],
            ),
            (
                "has a.test",
                Type::PTR,
                "NOERROR|web.a.svc.test PTR 5 a.test,web.a.svc.test PTR 5 b.test|",
                vec!["NOERROR|web.a.svc.test PTR 5 b.test|"],
            ),
            ("lacks *.test", Type::PTR, "NXDOMAIN||", vec!["NOERROR|web.a.svc.test PTR 5 b.test|", "REFUSED||"]),
            ("targets 1.1.1.1", Type::SRV, "NOERROR|web.a.svc.test SRV 5 80/cat.test|", vec!["NOERROR||"]),
            (
                "cname b.test",
                Type::A,
                "NOERROR|web.a.svc.test CNAME 5 b.test,b.test A 5 1.1.1.1|",
                vec!["NOERROR|web.a.svc.test A 5 1.1.1.1|", "NOERROR|web.a.svc.test CNAME 5 c.test|", "NXDOMAIN||"],
            ),
            (
                "cname b.test then 1.1.1.1",
                Type::A,
                "NOERROR|web.a.svc.test CNAME 5 b.test,b.test A 5 1.1.1.1|",
                vec![
                    "NOERROR|web.a.svc.test CNAME 5 b.test|",
                    "NOERROR|web.a.svc.test CNAME 5 b.test,b.test A 5 1.1.1.2|",
                ],
            ),
            ("nxdomain", Type::A, &format!("NXDOMAIN||{soa}"), vec!["NXDOMAIN||", "NOERROR||test SOA 5 5"]),
            ("nodata", Type::A, &format!("NOERROR||{soa}"), vec!["NOERROR||", "NOERROR||other SOA 5 5"]),
            ("absent", Type::A, &format!("NOERROR||{soa}"), vec!["NOERROR||", "REFUSED||test SOA 5 5"]),
            (
                "ttl 30",
                Type::A,
                "NOERROR|web.a.svc.test A 30 1.1.1.1|",
                vec![
                    "NOERROR|web.a.svc.test A 31 1.1.1.1|",
                    "NOERROR|web.a.svc.test A 5 1.1.1.1,web.a.svc.test A 6 1.1.1.2|",
                    "NOERROR||",
                ],
            ),
            ("negative-ttl 30", Type::A, "NXDOMAIN||test SOA 60 30", vec!["NXDOMAIN||test SOA 60 31", "NXDOMAIN||"]),
            ("badvers", Type::A, "BADVERS||", vec!["NOERROR||"]),
            ("no-edns", Type::A, "NOERROR||", vec!["FORMERR||"]),
        ] {
            let read = Expectation::read(expectation).unwrap();
            assert_eq!(read.judge(OWNER, qtype, &answer(good)), Ok(()), "{expectation}: {good}");
            for bad in bad {
                assert!(read.judge(OWNER, qtype, &answer(bad)).is_err(), "{expectation}: {bad}");
            }
        }
        for flag in ["edns", "question-kept"] {
            assert!(Expectation::read(flag).unwrap().judge(OWNER, Type::A, &answer("NOERROR||")).is_err());
        }
        assert!(Expectation::read("is").is_err() && Expectation::read("ttl soon").is_err());
    }
}
