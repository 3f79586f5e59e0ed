use wire::{Header, MessageBuf, Owner, Rcode};

use super::*;
use crate::text;

const OLD: [&str; 4] = ["@ 60 SOA ns h 1 1 1 1 1", "@ 60 NS ns", "ns 60 A 192.0.2.1", "www 60 A 192.0.2.9"];

fn origin() -> Name {
    Name::from_text("example.org.").unwrap()
}

fn record(line: &str) -> text::Record {
    text::record(line, origin().as_ref(), 60).unwrap()
}

fn old() -> Arc<Zone> {
    let mut builder = Builder::new(origin().as_ref());
    for record in OLD.map(record) {
        builder.add(record.owner.as_ref(), (record.rtype, record.class, record.ttl), &record.rdata).unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

/// Builds a message from record lines separated by `;`. The line `soa N` is the SOA record with serial N.
fn message(lines: &str) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((origin().as_ref(), Type::IXFR, Class::IN)));
    for line in lines.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let line =
            line.strip_prefix("soa ").map_or(line.to_owned(), |serial| format!("@ 60 SOA ns h {serial} 1 1 1 1"));
        let record = record(&line);
        let fixed = (record.rtype, record.class, record.ttl);
        message.push(Section::Answer, Owner::Name(record.owner.as_ref()), fixed, |data| data.bytes(&record.rdata));
    }
    message.finish(None, core::iter::empty()).to_vec()
}

/// Processes messages separated by `|`. Returns the sorted records of the resulting zone.
fn outcome(messages: &str) -> Result<Option<Vec<String>>, TransferError> {
    let mut differences = Differences::new(old());
    let mut messages = messages.split('|');
    while differences.receive(&message(messages.next().unwrap_or_default()))? {}
    assert_eq!(messages.next(), None, "something is left");
    let Some(zone) = differences.finish()? else { return Ok(None) };
    let line = |owner: &Name, rtype, ttl, rdata| format!("{owner} {ttl} {rtype} {}", text::Data { rtype, rdata });
    let sets = zone.sets_from(0).flat_map(|(_, owner, set)| {
        set.data().map(|rdata| line(&owner, set.rtype, set.ttl, rdata)).collect::<Vec<_>>()
    });
    let mut lines: Vec<String> = sets.collect();
    lines.push(format!("serial {}", zone.soa().unwrap().serial));
    lines.sort();
    Ok(Some(lines))
}

fn zone(lines: &[&str]) -> Result<Option<Vec<String>>, TransferError> {
    let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    lines.sort();
    Ok(Some(lines))
}

#[test]
fn applies_differences_up_to_the_newest_version() {
    const NS: &str = "example.org. 60 NS ns.example.org.";
    const A: &str = "ns.example.org. 60 A 192.0.2.1";
    let two = zone(&[NS, A, "new.example.org. 5 A 192.0.2.2", "serial 3"]);
    let cases = [
        // One version, in one message and in three, with names in different case.
        ("soa 3; soa 1; www 60 A 192.0.2.9; soa 3; new 5 A 192.0.2.2; soa 3", two.clone()),
        ("soa 3; soa 1; WWW 9 A 192.0.2.9| soa 3; new 5 A 192.0.2.2| soa 3", two.clone()),
        // Two versions: a record is added and removed again, and the other way round.
        (
            "soa 3; soa 1; www 60 A 192.0.2.9; soa 2; x 60 TXT x; soa 2; x 60 TXT x; soa 3; new 5 A 192.0.2.2; soa 3",
            two,
        ),
        ("soa 3; soa 1; www A 192.0.2.9; soa 2; soa 2; soa 3; www A 192.0.2.9; soa 3", {
            zone(&[NS, A, "serial 3", "www.example.org. 60 A 192.0.2.9"])
        }),
        // A change of the TTL.
        ("soa 2; soa 1; www 60 A 192.0.2.9; soa 2; www 7 A 192.0.2.9; soa 2", {
            zone(&[NS, A, "serial 2", "www.example.org. 7 A 192.0.2.9"])
        }),
        // Only a new serial, with a record outside the zone.
        ("soa 2; soa 1; other.test. 60 A 192.0.2.9; soa 2; soa 2", {
            zone(&[NS, A, "serial 2", "www.example.org. 60 A 192.0.2.9"])
        }),
        // The whole zone.
        ("soa 9; @ 60 NS ns| ns 60 A 192.0.2.7; soa 9", zone(&[NS, "ns.example.org. 60 A 192.0.2.7", "serial 9"])),
        ("soa 9; soa 9", zone(&["serial 9"])),
        // Up to date.
        ("soa 1", Ok(None)),
        ("soa 4294967295", Ok(None)),
    ];
    for (messages, expected) in cases {
        assert_eq!(outcome(messages), expected, "{messages}");
    }
}

#[test]
fn rejects_inconsistent_responses() {
    let cases = [
        ("", TransferError::NoSoa),
        ("www 60 A 192.0.2.9", TransferError::NoSoa),
        ("soa 2", TransferError::NoDifferences),
        // Removal of an unknown record, addition of an existing one, and a double removal.
        ("soa 2; soa 1; www A 192.0.2.8; soa 2; soa 2", TransferError::Differences),
        ("soa 2; soa 1; soa 2; www A 192.0.2.9; soa 2", TransferError::Differences),
        ("soa 2; soa 1; www A 192.0.2.9; www A 192.0.2.9; soa 2; soa 2", TransferError::Differences),
        // Versions that do not follow each other.
        ("soa 3; soa 1; soa 2; soa 1; soa 3; soa 3", TransferError::Differences),
        ("soa 3; soa 1; soa 1; soa 3", TransferError::Differences),
        ("soa 3; soa 1; soa 4294967295; soa 3", TransferError::Differences),
    ];
    for (messages, expected) in cases {
        assert_eq!(outcome(messages), Err(expected), "{messages}");
    }
    let mut refused = MessageBuf::new();
    let flags = wire::Flags::default().with_rcode(Rcode::REFUSED);
    refused.start(Header { flags, ..Header::default() }, None);
    let refused = refused.finish(None, core::iter::empty()).to_vec();
    assert_eq!(Differences::new(old()).receive(&refused), Err(TransferError::Refused(Rcode::REFUSED)));
}

/// An RRset can have tens of thousands of records, so finding a record in it must not be linear.
#[test]
fn replaces_a_large_rrset_quickly() {
    const RECORDS: u16 = 20_000;
    let address = |first: u8, at: u16| [[first, 0], at.to_be_bytes()].concat();
    let mut builder = Builder::new(origin().as_ref());
    let soa = record(OLD[0]);
    builder.add(origin().as_ref(), (Type::SOA, Class::IN, 60), &soa.rdata).unwrap();
    (0..RECORDS).for_each(|at| builder.add(origin().as_ref(), (Type::A, Class::IN, 60), &address(10, at)).unwrap());
    let mut differences = Differences::new(Arc::new(builder.finish().unwrap()));
    differences.receive(&message("soa 2; soa 1")).unwrap();
    for first in [10, 172] {
        for at in 0..RECORDS {
            let mut part = MessageBuf::new();
            part.start(Header::default(), None);
            let fixed = (Type::A, Class::IN, 60);
            part.push(Section::Answer, Owner::Name(origin().as_ref()), fixed, |data| data.bytes(&address(first, at)));
            assert_eq!(differences.receive(part.finish(None, core::iter::empty())), Ok(true));
        }
        differences.receive(&message("soa 2")).unwrap();
    }
    assert_eq!(differences.changes(), Some(2 * usize::from(RECORDS)));
    let newer = differences.finish().unwrap().unwrap();
    let all: Vec<_> =
        newer.sets_from(0).flat_map(|(_, _, set)| set.data().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect();
    assert!(all.len() == usize::from(RECORDS) && all.iter().all(|rdata| rdata[0] == 172));
}
