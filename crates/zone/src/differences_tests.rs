use wire::{Header, MessageBuf, Name, Owner, Rcode, Section};

use super::*;
use crate::text;

const OLD: [&str; 4] = ["@ 60 SOA ns h 1 1 1 1 1", "@ 60 NS ns", "ns 60 A 192.0.2.1", "www 60 A 192.0.2.9"];

fn origin() -> Name {
    Name::from_text("example.org.").unwrap()
}

fn name(text: &str) -> Name {
    Name::from_text(text).unwrap()
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

fn response() -> Header {
    Header { flags: wire::Flags::default().with_response(true), ..Header::default() }
}

/// Builds a message from record lines separated by `;`. The line `soa N` is the SOA record with serial N.
fn message(lines: &str) -> Vec<u8> {
    let mut message = MessageBuf::new();
    message.start(response(), Some((origin().as_ref(), Type::IXFR, Class::IN)));
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
        // A second removal of a record that an earlier version removed, and a second addition.
        ("soa 3; soa 1; www A 192.0.2.9; soa 2; soa 2; www A 192.0.2.9; soa 3; soa 3", TransferError::Differences),
        ("soa 3; soa 1; soa 2; x A 192.0.2.8; soa 2; soa 3; x A 192.0.2.8; soa 3", TransferError::Differences),
        // Differences from another version, also with wrapped serials, and unrelated SOA records.
        ("soa 2; soa 77; v TXT 1; soa 2; v TXT 2; soa 2", TransferError::Start { ours: 1, theirs: 77 }),
        ("soa 2; soa 0; soa 2; soa 2", TransferError::Start { ours: 1, theirs: 0 }),
        ("soa 2; soa 4294967295; soa 2; soa 2", TransferError::Start { ours: 1, theirs: 4_294_967_295 }),
        ("soa 2; soa 3", TransferError::Start { ours: 1, theirs: 3 }),
        // A whole zone without records, or that ends with another SOA record.
        ("soa 9; soa 9", TransferError::NoNs),
        ("soa 9; ns 60 A 192.0.2.7; soa 9", TransferError::NoNs),
        ("soa 9; @ 60 NS ns; soa 8", TransferError::LastSerial { first: 9, last: 8 }),
        ("soa 9; @ 60 NS ns; soa 1", TransferError::LastSerial { first: 9, last: 1 }),
        ("soa 9; @ 60 NS ns; @ 60 SOA ns h 9 1 1 1 2", TransferError::LastSoa),
        ("soa 9; @ 60 NS ns; soa 9; x TXT 1", TransferError::AfterEnd),
        // Versions that do not follow each other.
        ("soa 3; soa 1; soa 2; soa 1; soa 3; soa 3", TransferError::Gap { from: 2, to: 1 }),
        ("soa 4; soa 1; soa 2; soa 3; soa 4; soa 4", TransferError::Gap { from: 2, to: 3 }),
        ("soa 3; soa 1; soa 1; soa 3", TransferError::Gap { from: 1, to: 1 }),
        ("soa 3; soa 1; soa 4294967295; soa 3", TransferError::Gap { from: 1, to: 4_294_967_295 }),
        ("soa 3; soa 1; soa 2147483649; soa 3", TransferError::Gap { from: 1, to: 2_147_483_649 }),
        ("soa 3; soa 1; soa 4", TransferError::Gap { from: 1, to: 4 }),
        // The last SOA record has other data, or records follow it.
        ("soa 3; soa 1; soa 3; @ 60 SOA ns h 3 1 1 1 2", TransferError::LastSoa),
        ("soa 3; soa 1; soa 3; soa 3; soa 3", TransferError::AfterEnd),
        ("soa 3; soa 1; soa 3; soa 3; x TXT 1", TransferError::AfterEnd),
        // The last name server is removed.
        ("soa 3; soa 1; @ NS ns; soa 3; soa 3", TransferError::NoNs),
        // SOA records of other names.
        ("www SOA ns h 2 1 1 1 1", TransferError::OtherSoa(Box::new(name("www.example.org.")))),
        ("soa 2; org. SOA ns h 2 1 1 1 1", TransferError::OtherSoa(Box::new(name("org.")))),
        ("soa 2; soa 1; www SOA ns h 2 1 1 1 1", TransferError::OtherSoa(Box::new(name("www.example.org.")))),
        // Records of other classes.
        ("soa 2; soa 1; www CH TXT 1", TransferError::Class(Type::TXT, Class::CH)),
        ("soa 2; @ 60 NS ns; @ CH SOA ns h 2 1 1 1 1", TransferError::Class(Type::SOA, Class::CH)),
        ("@ CH SOA ns h 2 1 1 1 1", TransferError::Class(Type::SOA, Class::CH)),
    ];
    for (messages, expected) in cases {
        assert_eq!(outcome(messages), Err(expected), "{messages}");
    }
    assert_eq!(
        outcome("soa 9; @ 60 NS ns; ns 60 A 192.0.2.7; @ 60 SOA NS H 9 1 1 1 1").map(|zone| zone.is_some()),
        Ok(true)
    );
    let mut refused = MessageBuf::new();
    let flags = response().flags.with_rcode(Rcode::REFUSED);
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
    builder.add(origin().as_ref(), (Type::NS, Class::IN, 60), &record(OLD[1]).rdata).unwrap();
    (0..RECORDS).for_each(|at| builder.add(origin().as_ref(), (Type::A, Class::IN, 60), &address(10, at)).unwrap());
    let mut differences = Differences::new(Arc::new(builder.finish().unwrap()));
    differences.receive(&message("soa 2; soa 1")).unwrap();
    for first in [10, 172] {
        for at in 0..RECORDS {
            let mut part = MessageBuf::new();
            part.start(response(), None);
            let fixed = (Type::A, Class::IN, 60);
            part.push(Section::Answer, Owner::Name(origin().as_ref()), fixed, |data| data.bytes(&address(first, at)));
            assert_eq!(differences.receive(part.finish(None, core::iter::empty())), Ok(true));
        }
        differences.receive(&message("soa 2")).unwrap();
    }
    assert_eq!(differences.changes(), Some(2 * usize::from(RECORDS)));
    let newer = differences.finish().unwrap().unwrap();
    let sets = newer.sets_from(0).filter(|(_, _, set)| set.rtype == Type::A);
    let all: Vec<_> = sets.flat_map(|(_, _, set)| set.data().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect();
    assert!(all.len() == usize::from(RECORDS) && all.iter().all(|rdata| rdata[0] == 172));
}

/// Every message is checked, not only the first one.
#[test]
fn rejects_later_messages_that_are_no_part_of_the_transfer() {
    let no_error = response().flags;
    let other = name("example.net.");
    let ours = origin();
    let cases = [
        (no_error.with_rcode(Rcode::SERVFAIL), None, TransferError::Refused(Rcode::SERVFAIL)),
        (no_error.with_rcode(Rcode::NOTAUTH), None, TransferError::Refused(Rcode::NOTAUTH)),
        (no_error.with_response(false), None, TransferError::NotAResponse),
        (no_error.with_opcode(wire::Opcode::NOTIFY), None, TransferError::NotAResponse),
        (no_error, Some((other.as_ref(), Type::AXFR, Class::IN)), TransferError::Question),
        (no_error, Some((ours.as_ref(), Type::A, Class::IN)), TransferError::Question),
        (no_error, Some((ours.as_ref(), Type::AXFR, Class::CH)), TransferError::Question),
    ];
    for (flags, question, expected) in cases {
        let mut later = MessageBuf::new();
        later.start(Header { flags, ..Header::default() }, question);
        let later = later.finish(None, core::iter::empty()).to_vec();
        let mut incoming = crate::Incoming::new(origin().as_ref());
        assert_eq!(incoming.receive(&message("soa 9; @ 60 NS ns")), Ok(true));
        assert_eq!(incoming.receive(&later), Err(expected.clone()));
        for begun in ["soa 9; @ 60 NS ns", "soa 9; soa 1"] {
            let mut differences = Differences::new(old());
            assert_eq!(differences.receive(&message(begun)), Ok(true));
            assert_eq!(differences.receive(&later), Err(expected.clone()));
        }
    }
}

/// A version that is not newer is refused before its records are read (RFC 1982 §3.2).
#[test]
fn a_full_transfer_must_be_newer() {
    let receive = |ours: u32, theirs: u32| {
        let mut incoming = crate::Incoming::new(origin().as_ref()).newer_than(Some(ours));
        incoming.receive(&message(&format!("soa {theirs}; @ 60 NS ns; soa {theirs}")))
    };
    for (ours, theirs) in [(1, 2), (u32::MAX, 0), (u32::MAX - 5, 7), (0, (1 << 31) - 1)] {
        assert_eq!(receive(ours, theirs), Ok(false), "{ours} {theirs}");
    }
    for (ours, theirs) in [(2, 2), (2, 1), (0, u32::MAX), (0, 1 << 31), (1 << 31, 0)] {
        assert_eq!(receive(ours, theirs), Err(TransferError::NotNewer { ours, theirs }), "{ours} {theirs}");
    }
}

#[test]
fn a_full_transfer_has_the_limits_of_its_zone() {
    let receive = |records: usize| {
        let limits = crate::Limits { records, ..crate::Limits::default() };
        let mut incoming = crate::Incoming::new(origin().as_ref()).within(limits);
        incoming.receive(&message("soa 9; @ 60 NS ns; ns 60 A 192.0.2.1; ns 60 AAAA 2001:db8::1; soa 9"))
    };
    assert_eq!((receive(4), receive(3).is_err()), (Ok(false), true));
}

/// Many changes do not fit into the memory for differences, so that the whole zone is requested instead.
#[test]
fn bounds_the_memory_of_differences() {
    let mut differences = Differences::new(old());
    differences.receive(&message("soa 2; soa 1; soa 2")).unwrap();
    let mut added = 0_u32;
    let refused = loop {
        let mut part = MessageBuf::new();
        part.start(response(), None);
        let owner = name(&format!("x{added:07}.example.org."));
        let fixed = (Type::A, Class::IN, 60);
        part.push(Section::Answer, Owner::Name(owner.as_ref()), fixed, |data| data.bytes(&added.to_be_bytes()));
        match differences.receive(part.finish(None, core::iter::empty())) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, TransferError::ManyDifferences);
    assert!((20_000..200_000).contains(&added), "{added} changes");
}
