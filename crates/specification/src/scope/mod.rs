//! Small scopes: all zones of a few records, and one case for each way through the model.

mod clusters;
mod zones;

use std::collections::HashSet;
use std::hash::Hash;

use crate::answer::{Answer, Authority};
use crate::branch::Branch;
use crate::record::{Data, Question, Record, Type};
use crate::zone::Zone;

pub use clusters::{ClusterBlock, TYPES, absent, clusters, service_names};
pub use zones::zones;

/// Origin of each zone.
pub const ORIGIN: &str = "z.test.";

/// Question with its expected answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// Question.
    pub question: Question,
    /// Expected answer.
    pub answer: Answer,
    /// Branches of the model that lead to the answer.
    pub branches: Vec<Branch>,
}

/// Zone with its cases.
#[derive(Clone, Debug)]
pub struct Block {
    /// Zone.
    pub zone: Zone,
    /// Cases.
    pub cases: Vec<Case>,
}

/// What makes two cases of a zone equivalent: the branches, the type, the number of records, and whether the name has
/// upper-case letters.
type Way = (Vec<Branch>, Type, usize, bool);

impl Case {
    fn way(&self) -> Way {
        // The models treat the types alike that only hold data.
        let qtype = match self.question.qtype {
            Type::Aaaa | Type::Txt | Type::Srv => Type::A,
            other => other,
        };
        (self.branches.clone(), qtype, self.answer.required.len(), self.question.name.contains(char::is_uppercase))
    }
}

/// Keeps the first of all items with the same key.
fn first_of_each<T, K: Eq + Hash>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(key(item))).collect()
}

/// Returns all sequences of up to `max` numbers below `count` that do not descend, the shorter ones first.
fn multisets(count: usize, max: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..max {
        let end = all.len();
        for at in start..end {
            let least = all[at].last().copied().unwrap_or_default();
            all.extend((least..count).map(|number| [&all[at][..], &[number]].concat()).collect::<Vec<_>>());
        }
        start = end;
    }
    all
}

impl Block {
    /// Returns the block with another origin, so that a server can have many zones.
    #[must_use]
    pub fn moved(&self, origin: &str) -> Block {
        let to = |name: &str| moved(name, origin);
        let records = |all: &[Record]| all.iter().map(|record| moved_record(record, origin)).collect();
        let case = |case: &Case| Case {
            question: Question { name: to(&case.question.name), qtype: case.question.qtype },
            answer: moved_answer(&case.answer, origin),
            branches: case.branches.clone(),
        };
        Block {
            zone: Zone { origin: origin.to_owned(), records: records(&self.zone.records) },
            cases: self.cases.iter().map(case).collect(),
        }
    }
}

/// Replaces [`ORIGIN`] at the end of a name. The case of other letters is kept.
fn moved(name: &str, origin: &str) -> String {
    let start = name.len().saturating_sub(ORIGIN.len());
    match name.get(start..) {
        Some(end) if end.eq_ignore_ascii_case(ORIGIN) => format!("{}{origin}", &name[..start]),
        _ => name.to_owned(),
    }
}

fn moved_record(record: &Record, origin: &str) -> Record {
    let to = |name: &String| moved(name, origin);
    let data = match &record.data {
        Data::Cname(name) => Data::Cname(to(name)),
        Data::Dname(name) => Data::Dname(to(name)),
        Data::Ns(name) => Data::Ns(to(name)),
        Data::Ptr(name) => Data::Ptr(to(name)),
        Data::Srv(port, name) => Data::Srv(*port, to(name)),
        other => other.clone(),
    };
    Record { owner: to(&record.owner), data }
}

fn moved_answer(answer: &Answer, origin: &str) -> Answer {
    let records = |all: &[Record]| all.iter().map(|record| moved_record(record, origin)).collect();
    Answer {
        required: records(&answer.required),
        permitted: records(&answer.permitted),
        glue: records(&answer.glue),
        authority: match &answer.authority {
            Authority::Positive(zone) => Authority::Positive(moved(zone, origin)),
            Authority::Soa(zone) => Authority::Soa(moved(zone, origin)),
            Authority::Referral(servers) => Authority::Referral(records(servers)),
            Authority::Open => Authority::Open,
        },
        ..answer.clone()
    }
}
