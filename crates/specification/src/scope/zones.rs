//! All valid zones of a few records over a small alphabet.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Block, Case, ORIGIN, first_of_each, multisets};
use crate::record::{Data, Question, Record, Type, is_within};
use crate::zone::{Zone, answer};

/// Records beside SOA and NS: owner, type and data. Names without a dot at their end are relative to the zone.
const ALPHABET: &[(&str, Type, &str)] = &[
    ("@", Type::A, ""),
    ("a", Type::A, ""),
    ("b.a", Type::A, ""),
    ("c.b.a", Type::A, ""),
    ("*", Type::A, ""),
    ("*.a", Type::A, ""),
    ("b.*", Type::A, ""),
    ("b.a", Type::Aaaa, ""),
    ("a", Type::Txt, ""),
    ("*", Type::Txt, ""),
    ("a", Type::Srv, "b.a"),
    ("a", Type::Cname, "a"),
    ("a", Type::Cname, "b"),
    ("a", Type::Cname, "b.a"),
    ("a", Type::Cname, "x"),
    ("a", Type::Cname, "out.invalid."),
    ("b", Type::Cname, "a"),
    ("b", Type::Cname, "x.a"),
    ("b.a", Type::Cname, "a"),
    ("*", Type::Cname, "a"),
    ("*", Type::Cname, "x"),
    ("*", Type::Cname, "x.a"),
    ("*", Type::Cname, "out.invalid."),
    ("*.a", Type::Cname, "b"),
    ("*.a", Type::Cname, "x.a"),
    ("@", Type::Dname, "d.invalid."),
    ("@", Type::Dname, "b"),
    ("a", Type::Dname, "b"),
    ("a", Type::Dname, "a"),
    ("a", Type::Dname, "@"),
    ("a", Type::Dname, "b.a"),
    ("a", Type::Dname, LONG),
    ("a", Type::Dname, "d.invalid."),
    ("b", Type::Dname, "a"),
    ("a", Type::Ns, "b.a"),
    ("a", Type::Ns, "a"),
    ("a", Type::Ns, "ns.invalid."),
    ("b.a", Type::Ns, "c.b.a"),
    ("b", Type::Ns, "a"),
    ("a", Type::Ds, ""),
];

/// Name of 246 bytes. A label of ten letters below it is too long.
const LONG: &str = "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.\
    lllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.\
    lllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.\
    lllllllllllllllllllllllllllllllllllllllllllllllllllllllll.invalid.";

/// Names that are asked in each zone: levels of the tree, neighbours, names that wildcards match, other letters.
const NAMES: &[&str] = &[
    "@",
    "a",
    "b",
    "b.a",
    "c.b.a",
    "x",
    "x.a",
    "x.b",
    "y.x",
    "y.x.a",
    "x.b.a",
    "x.a.a",
    "*",
    "*.a",
    "b.*",
    "x.*",
    "A",
    "X.A",
    "B.a",
    "longer-label.a",
    "out.invalid.",
];

/// Types that are asked.
const TYPES: &[Type] =
    &[Type::A, Type::Aaaa, Type::Txt, Type::Srv, Type::Cname, Type::Dname, Type::Ns, Type::Soa, Type::Ds, Type::Any];

/// Returns a zone for each set of ways through the model that the questions to a valid zone of up to `records_max`
/// records take, with a case for each way.
#[must_use]
pub fn zones(records_max: usize) -> Vec<Block> {
    let alphabet: Vec<Record> = ALPHABET.iter().enumerate().map(|(at, letter)| record(at, *letter)).collect();
    let questions = questions();
    let valid = multisets(alphabet.len(), records_max).into_iter().filter_map(|set| {
        // RFC 2181 §5: a record set has no duplicates.
        if set.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let records: Vec<Record> = set.iter().map(|at| alphabet[*at].clone()).collect();
        is_valid(&records).then(|| zone(records))
    });
    first_of_each(valid.map(|zone| block(zone, &questions)), |block| {
        let mut ways: Vec<_> = block.cases.iter().map(Case::way).collect();
        ways.sort_unstable();
        ways
    })
}

fn block(zone: Zone, questions: &[Question]) -> Block {
    let cases = questions.iter().map(|question| {
        let (answer, branches) = answer(&zone, question);
        Case { question: question.clone(), answer, branches }
    });
    let cases = first_of_each(cases, Case::way);
    Block { zone, cases }
}

fn questions() -> Vec<Question> {
    let of =
        |name: &&str| TYPES.iter().map(|qtype| Question { name: absolute(name), qtype: *qtype }).collect::<Vec<_>>();
    NAMES.iter().flat_map(of).collect()
}

fn absolute(name: &str) -> String {
    match name {
        "@" => ORIGIN.to_owned(),
        name if name.ends_with('.') => name.to_owned(),
        name => format!("{name}.{ORIGIN}"),
    }
}

fn record(at: usize, (owner, rtype, target): (&str, Type, &str)) -> Record {
    let number = u8::try_from(at).unwrap_or_default();
    let target = absolute(target);
    let data = match rtype {
        Type::Aaaa => Data::Aaaa(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into())),
        Type::Cname => Data::Cname(target),
        Type::Dname => Data::Dname(target),
        Type::Ns => Data::Ns(target),
        Type::Srv => Data::Srv(80, target),
        Type::Txt => Data::Txt(format!("t{number}")),
        Type::Ds => Data::Ds(number.into()),
        _ => Data::A(Ipv4Addr::new(192, 0, 2, number)),
    };
    Record::new(absolute(owner), data)
}

fn zone(mut records: Vec<Record>) -> Zone {
    records.push(Record::new(ORIGIN, Data::Soa));
    records.push(Record::new(ORIGIN, Data::Ns("ns.invalid.".to_owned())));
    Zone { origin: ORIGIN.to_owned(), records }
}

/// Returns true if a zone with these records may exist.
fn is_valid(records: &[Record]) -> bool {
    records.iter().enumerate().all(|(at, record)| {
        let mut others = records.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        others.all(|other| may_coexist(record, other))
    })
}

fn may_coexist(record: &Record, other: &Record) -> bool {
    let is_same_name = record.owner == other.owner;
    match record.data.rtype() {
        // RFC 1034 §3.6.2: an alias has no other records.
        Type::Cname => !is_same_name,
        // RFC 6672 §2.4: a name has one DNAME at most, and nothing exists below it. §2.3: it is not a zone cut.
        Type::Dname if is_same_name => !matches!(other.data.rtype(), Type::Dname | Type::Ns | Type::Ds),
        Type::Dname => !is_within(&other.owner, &record.owner),
        // RFC 4035 §2.4: DS is at zone cuts. Beside other records it would have no meaning.
        Type::Ds => !is_same_name || other.data.rtype() == Type::Ns,
        _ => true,
    }
}
