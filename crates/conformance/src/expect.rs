//! Expectations of a response, and their evaluation.

use wire::{Rcode, Type};

use crate::built_in_error::BuiltInError;
use crate::response::{Record, Response};

/// Expectation of a response. Texts have the form of [`Record::data`]; `*` in them matches one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// `is …`: exactly these records of the queried type, in any order.
    Is(Vec<String>),
    /// `has …`: at least these records.
    Has(Vec<String>),
    /// `lacks …`: none of these records. NODATA and NXDOMAIN are fine too.
    Lacks(Vec<String>),
    /// `targets …`: SRV records whose targets together have exactly these addresses.
    Targets(Vec<String>),
    /// `cname TARGET [then ADDRESS]`: a CNAME first, then the address of its target.
    Cname(String, Option<String>),
    /// `nxdomain`: NXDOMAIN with an SOA record (RFC 2308 §2.1).
    NxDomain,
    /// `nodata`: NODATA with an SOA record (RFC 2308 §2.2).
    NoData,
    /// `absent`: NXDOMAIN or NODATA, with an SOA record.
    Absent,
    /// `ttl SECONDS`: records that all have the same TTL, at most this one.
    Ttl(u32),
    /// `negative-ttl SECONDS`: a negative TTL of at most this (RFC 2308 §5).
    NegativeTtl(u32),
    /// `badvers`: the response code BADVERS.
    BadVersion,
    /// `edns`: an OPT record.
    Edns,
    /// `no-edns`: no OPT record.
    NoEdns,
    /// `question-kept`: the question has the same letter case as the query.
    QuestionKept,
}

impl Expectation {
    /// Parses an expectation whose placeholders have been replaced.
    ///
    /// # Errors
    /// Fails if the text is not an expectation.
    pub(crate) fn read(text: &str) -> Result<Expectation, BuiltInError> {
        let mut words = text.split(' ');
        let verb = words.next().unwrap_or_default();
        let texts: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let wrong = || BuiltInError::Expectation(text.to_owned());
        let seconds = || texts.first().and_then(|text| text.parse().ok()).ok_or_else(wrong);
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
            _ => return Err(wrong()),
        })
    }

    /// Compares the response to a query for `owner` with the expectation. Returns a description of the expectation if
    /// the response does not meet it.
    ///
    /// [`Targets`](Expectation::Targets) is only checked for SRV records here; the caller has to query their
    /// addresses.
    pub(crate) fn unmet(&self, owner: &str, qtype: Type, response: &Response) -> Option<String> {
        let records = records(owner, qtype, response);
        let no_error = response.rcode == Rcode::NOERROR;
        let (holds, wanted) = match self {
            Expectation::Is(texts) => {
                (no_error && is(&records, texts) && is_all(owner, qtype, response), texts.join(", "))
            }
            Expectation::Has(texts) => (no_error && has(&records, texts), format!("at least {}", texts.join(", "))),
            Expectation::Lacks(texts) => {
                let denies = response.rcode == Rcode::NXDOMAIN || no_error;
                (denies && !texts.iter().any(|text| has_one(&records, text)), format!("none of {}", texts.join(", ")))
            }
            Expectation::Targets(texts) => {
                (no_error && !records.is_empty(), format!("SRV records with targets at {}", texts.join(", ")))
            }
            Expectation::Cname(target, then) => (cname(owner, response, target, then.as_deref()), {
                let then = then.as_ref().map_or(String::new(), |address| format!(", then {address}"));
                format!("CNAME {target}{then}")
            }),
            Expectation::NxDomain => {
                (denies(owner, response, Rcode::NXDOMAIN), "NXDOMAIN with an SOA record".to_owned())
            }
            Expectation::NoData => (denies(owner, response, Rcode::NOERROR), "NODATA with an SOA record".to_owned()),
            Expectation::Absent => (
                denies(owner, response, Rcode::NXDOMAIN) || denies(owner, response, Rcode::NOERROR),
                "NXDOMAIN or NODATA with an SOA record".to_owned(),
            ),
            Expectation::Ttl(most) => {
                (one_ttl(response, *most), format!("records with the same TTL of at most {most} s"))
            }
            Expectation::NegativeTtl(most) => {
                (soa_time(response).is_some_and(|time| time <= *most), format!("a negative TTL of at most {most} s"))
            }
            Expectation::BadVersion => (response.rcode == Rcode::BADVERS, "BADVERS".to_owned()),
            Expectation::Edns => (response.has_opt, "an OPT record".to_owned()),
            Expectation::NoEdns => (no_error && !response.has_opt, "no OPT record".to_owned()),
            Expectation::QuestionKept => (response.question_kept, "the question in its original case".to_owned()),
        };
        (!holds).then_some(wanted)
    }
}

/// Returns the records that answer the query, without duplicates, which servers may send.
fn records<'a>(owner: &str, qtype: Type, response: &'a Response) -> Vec<&'a str> {
    let asked = response.answers.iter().filter(|record| record.rtype == qtype && record.owner == owner);
    let mut records: Vec<&str> = asked.map(|record| record.data.as_str()).collect();
    records.sort_unstable();
    records.dedup();
    records
}

/// Returns true if all records in the answer section have the queried name and type.
fn is_all(owner: &str, qtype: Type, response: &Response) -> bool {
    response.answers.iter().all(|record| record.rtype == qtype && record.owner == owner)
}

/// Returns true if each record matches one text and vice versa. Texts without `*` are matched first, so that a `*`
/// cannot take their records.
fn is(records: &[&str], texts: &[String]) -> bool {
    let mut left: Vec<&str> = records.to_vec();
    let (open, exact): (Vec<&str>, Vec<&str>) = texts.iter().map(String::as_str).partition(|text| text.contains('*'));
    let found = exact.iter().chain(&open).all(|text| {
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

/// Returns true if a record matches a text, in which `*` stands for one label.
fn matches(text: &str, record: &str) -> bool {
    let Some((before, behind)) = text.split_once('*') else { return text == record };
    let label = record.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
    label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
}

fn cname(owner: &str, response: &Response, target: &str, then: Option<&str>) -> bool {
    let Some((first, rest)) = response.answers.split_first() else { return false };
    let leads = first.rtype == Type::CNAME && first.owner == owner && first.data == target;
    let follows = |record: &Record| record.owner == target && Some(record.data.as_str()) == then;
    match then {
        // The target may not exist, and then the response code is that of the target (RFC 6604 §3).
        None => leads && matches!(response.rcode, Rcode::NOERROR | Rcode::NXDOMAIN),
        Some(_) => leads && response.rcode == Rcode::NOERROR && !rest.is_empty() && rest.iter().all(follows),
    }
}

/// Returns true for a negative response with the SOA record of a zone that contains the name.
fn denies(owner: &str, response: &Response, rcode: Rcode) -> bool {
    let holds_name = |zone: &str| zone.is_empty() || owner == zone || owner.ends_with(&format!(".{zone}"));
    response.rcode == rcode && response.answers.is_empty() && response.soa().is_some_and(|soa| holds_name(&soa.owner))
}

fn one_ttl(response: &Response, most: u32) -> bool {
    let ttls: Vec<u32> = response.answers.iter().map(|record| record.ttl).collect();
    ttls.first().is_some_and(|first| first <= &most && ttls.iter().all(|ttl| ttl == first))
}

/// Returns the negative TTL in seconds: the smaller of the SOA's TTL and its MINIMUM field (RFC 2308 §5).
fn soa_time(response: &Response) -> Option<u32> {
    response.soa().and_then(|soa| Some(soa.ttl.min(soa.data.parse().ok()?)))
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

    /// Parses a response: `RCODE|answers|authorities`, records separated by commas.
    fn response(text: &str) -> Response {
        let [rcode, answers, authorities] = text.split('|').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let records = |text: &str| text.split(',').filter(|text| !text.is_empty()).map(record).collect();
        Response {
            rcode: rcode.parse().unwrap(),
            is_truncated: false,
            question_kept: false,
            has_opt: false,
            answers: records(answers),
            authorities: records(authorities),
        }
    }

    #[test]
    fn judges_responses_by_their_expectation() {
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
            assert_eq!(read.unmet(OWNER, qtype, &response(good)), None, "{expectation}: {good}");
            for bad in bad {
                assert!(read.unmet(OWNER, qtype, &response(bad)).is_some(), "{expectation}: {bad}");
            }
        }
        for flag in ["edns", "question-kept"] {
            assert!(Expectation::read(flag).unwrap().unmet(OWNER, Type::A, &response("NOERROR||")).is_some());
        }
        assert!(Expectation::read("is").is_err() && Expectation::read("ttl soon").is_err());
    }
}
