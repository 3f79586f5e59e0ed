use std::path::Path;
use std::sync::Arc;

use wire::{Class, Flags, Header, Message, MessageBuf, Name, Opcode, Owner, Rcode, Section, Type};

use super::journal::{self, History, JournalError};
use super::*;
use crate::text::{Data, Entries, Entry};
use crate::{Differences, Zone, load};

pub(super) const SEED: &str = "$TTL 60\n@ SOA ns host 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.53\nc CNAME ns\n";
const MANY: UpdateLimits = UpdateLimits { records: 1000, bytes: 100_000 };

pub(super) fn origin() -> Name {
    Name::from_text("example.org.").unwrap()
}

pub(super) fn zone(text: &str) -> Zone {
    load(origin().as_ref(), Path::new("seed"), &mut |_| Ok(text.as_bytes().to_vec())).unwrap().zone
}

/// Lines of a zone, sorted: `NAME TTL TYPE DATA`.
pub(super) fn lines(zone: &Zone) -> Vec<String> {
    let soa = zone.soa_set().into_iter().map(|set| (origin(), set));
    let sets = soa.chain(zone.sets_from(0).map(|(_, owner, set)| (owner, set)));
    let line = |(owner, set): (Name, crate::RecordSet<'_>)| {
        let each =
            move |data: &[u8]| format!("{owner} {} {} {}", set.ttl, set.rtype, Data { rtype: set.rtype, rdata: data });
        set.data().map(each).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = sets.flat_map(line).collect();
    lines.sort();
    lines
}

/// Parses records as nsupdate has them, one for each line: `NAME TTL CLASS TYPE [DATA]`.
fn push_all(message: &mut MessageBuf, section: Section, text: &str) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let name = if words[0].ends_with('.') { words[0].to_owned() } else { format!("{}.example.org.", words[0]) };
        let name = Name::from_text(name.trim_start_matches("@.")).unwrap();
        let (ttl, class, rtype): (u32, Class, Type) =
            (words[1].parse().unwrap(), words[2].parse().unwrap(), words[3].parse().unwrap());
        let rdata = words.get(4).map_or_else(Vec::new, |data| {
            let text = format!("x 1 IN {rtype} {data}\n");
            let mut entries = Entries::new(text.as_bytes(), origin().as_ref());
            assert!(matches!(entries.next().unwrap(), Some(Entry::Record { .. })), "{line}");
            entries.rdata().to_vec()
        });
        message.push_data(section, Owner::Name(name.as_ref()), (rtype, class, ttl), &rdata).unwrap();
    }
}

/// UPDATE message with these records.
pub(super) fn message(prerequisites: &str, updates: &str) -> Vec<u8> {
    let mut message = MessageBuf::new();
    let flags = Flags::default().with_opcode(Opcode::UPDATE);
    message.start(Header { flags, ..Header::default() }, Some((origin().as_ref(), Type::SOA, Class::IN)));
    push_all(&mut message, Section::Answer, prerequisites);
    push_all(&mut message, Section::Authority, updates);
    message.finish(None, core::iter::empty()).to_vec()
}

fn apply(draft: &mut Draft, prerequisites: &str, updates: &str) -> Rcode {
    let packet = message(prerequisites, updates);
    let Ok(request) = UpdateRequest::read(&Message::parse(&packet).unwrap()) else { return Rcode::FORMERR };
    draft.apply(&request, |_, _| true, MANY).map_or_else(|error| error.rcode(), |_| Rcode::NOERROR)
}

fn built(draft: &Draft) -> Vec<String> {
    lines(&draft.build(crate::Limits::default()).unwrap())
}

/// Applies requests one after another to the seed: prerequisites, updates, the code, and the serial after it.
fn steps(steps: &[(&str, &str, Rcode, u32)]) -> Vec<String> {
    let mut draft = Draft::new(Arc::new(zone(SEED)));
    for (prerequisites, updates, rcode, serial) in steps {
        let before = built(&draft);
        assert_eq!(apply(&mut draft, prerequisites, updates), *rcode, "{prerequisites} / {updates}");
        assert_eq!(draft.serial(), *serial, "{prerequisites} / {updates}");
        if *rcode != Rcode::NOERROR {
            assert_eq!(built(&draft), before, "{prerequisites} / {updates}");
        }
    }
    built(&draft)
}

/// The row of RFC 2136 §2.4 for each prerequisite, and the rows that make it fail.
#[test]
fn prerequisites_have_their_codes() {
    for (prerequisite, rcode) in [
        ("ns 0 ANY ANY", Rcode::NOERROR),
        ("NS 0 ANY ANY", Rcode::NOERROR),
        ("x 0 ANY ANY", Rcode::NXDOMAIN),
        ("ns 0 ANY A", Rcode::NOERROR),
        ("ns 0 ANY AAAA", Rcode::NXRRSET),
        ("x 0 NONE ANY", Rcode::NOERROR),
        ("ns 0 NONE ANY", Rcode::YXDOMAIN),
        ("ns 0 NONE AAAA", Rcode::NOERROR),
        ("ns 0 NONE A", Rcode::YXRRSET),
        ("ns 0 IN A 192.0.2.53", Rcode::NOERROR),
        ("ns 0 IN A 192.0.2.53\nns 0 IN A 192.0.2.53", Rcode::NOERROR),
        ("ns 0 IN A 192.0.2.54", Rcode::NXRRSET),
        ("ns 0 IN A 192.0.2.53\nns 0 IN A 192.0.2.54", Rcode::NXRRSET),
        ("c 0 IN CNAME NS.example.ORG.", Rcode::NOERROR),
        ("@ 0 IN SOA ns host 1 3600 600 86400 60", Rcode::NOERROR),
        ("ns 60 IN A 192.0.2.53", Rcode::FORMERR),
        ("ns 0 ANY A 192.0.2.53", Rcode::FORMERR),
        ("ns 0 NONE A 192.0.2.53", Rcode::FORMERR),
        ("ns 0 CH A 192.0.2.53", Rcode::FORMERR),
        ("ns 0 ANY TYPE65400", Rcode::FORMERR),
        ("ns 0 ANY AXFR", Rcode::FORMERR),
        ("ns 0 IN A", Rcode::FORMERR),
        ("ns 0 ANY DS", Rcode::NOTIMP),
        ("ns.other. 0 ANY A", Rcode::NOTZONE),
        ("org. 0 ANY ANY", Rcode::NOTZONE),
        // The first failure counts, and RRsets with values come last.
        ("ns 0 IN A 192.0.2.54\nx 0 ANY ANY", Rcode::NXDOMAIN),
        ("x 0 ANY ANY\nns 60 ANY A", Rcode::NXDOMAIN),
    ] {
        let serial = if rcode == Rcode::NOERROR { 2 } else { 1 };
        steps(&[(prerequisite, "new 60 IN TXT a", rcode, serial)]);
    }
    // A name below which others exist has no records, and neither has one that only a wildcard matches.
    let after = [
        ("", "a.b 60 IN A 192.0.2.1\n*.w 60 IN A 192.0.2.2", Rcode::NOERROR, 2),
        ("b 0 ANY ANY", "", Rcode::NXDOMAIN, 2),
        ("x.w 0 NONE ANY", "", Rcode::NOERROR, 2),
    ];
    steps(&after);
}

#[test]
fn the_prescan_refuses_a_request_as_a_whole() {
    for (update, rcode) in [
        ("a.other. 60 IN A 192.0.2.1", Rcode::NOTZONE),
        ("a 60 IN AXFR", Rcode::FORMERR),
        ("a 60 IN ANY", Rcode::FORMERR),
        ("a 60 IN TYPE65400", Rcode::FORMERR),
        ("a 60 IN A", Rcode::FORMERR),
        ("a 60 IN DS 1 13 2 00", Rcode::NOTIMP),
        ("a 0 ANY DNSKEY", Rcode::NOTIMP),
        ("a 0 NONE CDS 0 0 0 00", Rcode::NOTIMP),
        ("a 60 ANY A", Rcode::FORMERR),
        ("a 0 ANY A 192.0.2.1", Rcode::FORMERR),
        ("a 0 ANY MAILB", Rcode::FORMERR),
        ("a 60 NONE A 192.0.2.1", Rcode::FORMERR),
        ("a 0 NONE ANY", Rcode::FORMERR),
        ("a 60 CH A 192.0.2.1", Rcode::FORMERR),
        ("a 60 IN SOA ns host 9 1 1 1 1", Rcode::FORMERR),
        ("@ 60 IN SOA ns host 0 1 1 1 1", Rcode::FORMERR),
    ] {
        steps(&[("", &format!("first 60 IN A 192.0.2.1\n{update}"), rcode, 1)]);
    }
    // Prerequisites come first.
    steps(&[("x 0 ANY ANY", "a.other. 60 IN A 192.0.2.1", Rcode::NXDOMAIN, 1)]);
}

/// Operations of RFC 2136 §3.4.2, with the serials that CoreDNS has after them.
#[test]
fn operations_have_their_effects() {
    let zone = steps(&[
        ("", "host 60 IN A 192.0.2.1", Rcode::NOERROR, 2),
        ("", "host 60 IN A 192.0.2.1", Rcode::NOERROR, 2),
        ("", "host 61 IN A 192.0.2.1", Rcode::NOERROR, 3),
        ("host 0 NONE ANY", "host 60 IN A 192.0.2.9", Rcode::YXDOMAIN, 3),
        ("host 0 IN A 192.0.2.1", "host 60 IN A 192.0.2.2", Rcode::NOERROR, 4),
        // An alias takes no other data, and a name with other data takes no alias.
        ("", "c 60 IN A 192.0.2.1", Rcode::NOERROR, 4),
        ("", "host 60 IN CNAME ns", Rcode::NOERROR, 4),
        ("", "c 60 IN CNAME NS", Rcode::NOERROR, 4),
        ("", "c 60 IN CNAME host", Rcode::NOERROR, 5),
        // A record that comes and goes in one request is a change.
        ("", "y 60 IN A 192.0.2.1\ny 0 NONE A 192.0.2.1", Rcode::NOERROR, 6),
        ("", "y 0 NONE A 192.0.2.1\ny 0 ANY A\ny 0 ANY ANY", Rcode::NOERROR, 6),
        // SOA and NS of the apex stay.
        ("", "@ 0 ANY SOA\n@ 0 ANY NS", Rcode::NOERROR, 6),
        ("", "@ 0 NONE SOA ns host 6 3600 600 86400 60", Rcode::NOERROR, 6),
        ("", "@ 0 NONE NS ns", Rcode::NOERROR, 6),
        ("", "@ 60 IN NS ns2\n@ 0 NONE NS ns", Rcode::NOERROR, 7),
        ("", "@ 60 IN TXT a\n@ 0 ANY ANY", Rcode::NOERROR, 8),
        ("", "@ 60 IN SOA ns host 100 1 1 1 1", Rcode::NOERROR, 100),
        ("", "@ 60 IN SOA ns host 50 1 1 1 1", Rcode::NOERROR, 100),
        ("", "@ 60 IN SOA ns host 0 1 1 1 1", Rcode::FORMERR, 100),
        // Half of the serials away is not newer.
        ("", "@ 60 IN SOA ns host 2147483748 1 1 1 1", Rcode::NOERROR, 100),
        ("", "@ 60 IN SOA ns host 2147483747 1 1 1 1", Rcode::NOERROR, 2_147_483_747),
        ("", "@ 60 IN SOA ns host 4294967295 1 1 1 1", Rcode::NOERROR, 4_294_967_295),
        // 0 is skipped.
        ("", "mx 60 IN MX 10 Mail\nmx 60 IN MX 10 mail", Rcode::NOERROR, 1),
        ("", "mx 0 NONE MX 10 MAIL", Rcode::NOERROR, 2),
        ("", "host 0 ANY A\nsub 60 IN NS ns.sub\nns.sub 60 IN A 192.0.2.9", Rcode::NOERROR, 3),
    ]);
    assert_eq!(
        zone,
        [
            "c.example.org. 60 CNAME host.example.org.",
            "example.org. 60 NS ns2.example.org.",
            "example.org. 60 SOA ns.example.org. host.example.org. 3 1 1 1 1",
            "ns.example.org. 60 A 192.0.2.53",
            "ns.sub.example.org. 60 A 192.0.2.9",
            "sub.example.org. 60 NS ns.sub.example.org.",
        ]
    );
}

/// All records of a set have one TTL (RFC 2181 §5.2): the last one that was given.
#[test]
fn a_new_record_gives_its_ttl_to_the_set() {
    let zone = steps(&[("", "h 60 IN A 192.0.2.1\nh 30 IN A 192.0.2.2", Rcode::NOERROR, 2)]);
    assert!(zone.contains(&"h.example.org. 30 A 192.0.2.1".to_owned()), "{zone:?}");
}

/// RFC 2181 §8.
#[test]
fn a_ttl_with_the_top_bit_set_counts_as_zero() {
    for (raw_ttl, ttl) in [(0, 0), (0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0), (u32::MAX, 0)] {
        let record = UpdateRecord { owner: origin(), rtype: Type::A, class: Class::IN, raw_ttl, rdata: Box::default() };
        assert_eq!(record.ttl(), ttl, "{raw_ttl}");
    }
}

#[test]
fn permissions_come_after_prerequisites_and_before_the_prescan() {
    let check = |prerequisites: &str, updates: &str| {
        let packet = message(prerequisites, updates);
        let request = UpdateRequest::read(&Message::parse(&packet).unwrap()).unwrap();
        let host = Name::from_text("host.example.org.").unwrap();
        let allows = |owner: wire::NameRef<'_>, rtype| owner.same(host.as_ref()) && rtype == Type::A;
        let mut draft = Draft::new(Arc::new(zone(SEED)));
        draft.apply(&request, allows, MANY).map_or_else(|error| error.rcode(), |_| Rcode::NOERROR)
    };
    assert_eq!(check("", "HOST 60 IN A 192.0.2.1"), Rcode::NOERROR);
    assert_eq!(check("", "host 60 IN A 192.0.2.1\nhost 60 IN AAAA ::1"), Rcode::REFUSED);
    assert_eq!(check("", "x 60 IN A 192.0.2.1"), Rcode::REFUSED);
    assert_eq!(check("", "host 0 ANY ANY"), Rcode::REFUSED);
    assert_eq!(check("x 0 ANY ANY", "x 60 IN A 192.0.2.1"), Rcode::NXDOMAIN);
    assert_eq!(check("", "x.other. 60 IN A 192.0.2.1"), Rcode::REFUSED);
}

#[test]
fn limits_refuse_the_whole_request() {
    let mut draft = Draft::new(Arc::new(zone(SEED)));
    let packet = message("", "a 60 IN A 192.0.2.1\nb 60 IN A 192.0.2.1");
    let request = UpdateRequest::read(&Message::parse(&packet).unwrap()).unwrap();
    let bytes = draft.bytes();
    assert_eq!(draft.records(), 4);
    let few = UpdateLimits { records: 5, ..MANY };
    assert_eq!(draft.apply(&request, |_, _| true, few), Err(UpdateError::ManyRecords(5)));
    let short = UpdateLimits { bytes: bytes + 2 * (15 + 14) - 1, ..MANY };
    assert_eq!(draft.apply(&request, |_, _| true, short), Err(UpdateError::ManyBytes(short.bytes)));
    assert_eq!((draft.records(), draft.bytes(), draft.serial()), (4, bytes, 1));
    let enough = UpdateLimits { records: 6, bytes: bytes + 2 * (15 + 14) };
    assert!(matches!(draft.apply(&request, |_, _| true, enough), Ok(Applied::Changed(_))));
    assert_eq!((draft.records(), draft.bytes()), (6, enough.bytes));
    let again = Draft::new(Arc::new(draft.build(crate::Limits::default()).unwrap()));
    assert_eq!((again.records(), again.bytes()), (6, enough.bytes));
}

#[test]
fn seeds_that_updates_would_break_are_refused() {
    let check = |more: &str| check_seed(&zone(&format!("{SEED}{more}"))).map_err(|error| error.to_string());
    assert_eq!(check(""), Ok(()));
    assert_eq!(check("x DS 1 13 2 00\n"), Err("zone contains unsupported RR type DS".to_owned()));
    let conflict = Err("zone contains CNAME data conflict at x.example.org.".to_owned());
    assert_eq!(check("x CNAME ns\nx A 192.0.2.1\n"), conflict);
    assert_eq!(check("x CNAME ns\nx CNAME c\n"), conflict);
    let zero = zone(&SEED.replace("host 1 ", "host 0 "));
    assert_eq!(check_seed(&zero), Err(InvalidSeed::SerialZero));
}

/// Versions of a zone, and the journal that leads to the last one, with its length after each version.
fn journal() -> (Vec<Vec<String>>, Vec<u8>, Vec<usize>) {
    let seed = zone(SEED);
    let mut file = journal::write(&seed, &History::default());
    let mut draft = Draft::new(Arc::new(seed));
    let (mut versions, mut lengths) = (vec![built(&draft)], vec![file.len()]);
    for updates in ["a 60 IN A 192.0.2.1\nA 60 IN A 192.0.2.2", "a 30 IN A 192.0.2.3\nc 0 ANY CNAME", "a 0 ANY ANY"] {
        let packet = message("", updates);
        let request = UpdateRequest::read(&Message::parse(&packet).unwrap()).unwrap();
        let Ok(Applied::Changed(change)) = draft.apply(&request, |_, _| true, MANY) else { panic!("{updates}") };
        journal::append(&mut file, &change);
        versions.push(built(&draft));
        lengths.push(file.len());
    }
    (versions, file, lengths)
}

/// A process may end at any byte of a write.
#[test]
fn a_journal_that_was_cut_anywhere_has_the_last_complete_version() {
    let (versions, file, lengths) = journal();
    for cut in 0..=file.len() {
        let read = journal::read(&file[..cut], origin().as_ref(), crate::Limits::default());
        let complete = lengths.iter().rposition(|len| *len <= cut);
        match (read, complete) {
            (Ok(restored), Some(version)) => {
                assert_eq!(lines(&restored.zone), versions[version], "{cut}");
                assert_eq!((restored.len, restored.torn), (lengths[version], cut - lengths[version]), "{cut}");
            }
            (Err(JournalError::Format | JournalError::NoSnapshot), None) => {}
            (read, complete) => panic!("{cut} {complete:?} {:?}", read.err()),
        }
    }
}

/// Only the end of the file may be damaged, because a crash leaves nothing else. Nothing acknowledged is dropped.
#[test]
fn damage_before_the_last_entry_is_an_error() {
    let (versions, file, lengths) = journal();
    let last = lengths[lengths.len() - 2];
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x11;
        let read = journal::read(&damaged, origin().as_ref(), crate::Limits::default());
        match read {
            Ok(restored) if at >= last => assert_eq!(lines(&restored.zone), versions[versions.len() - 2], "{at}"),
            Ok(_) => panic!("{at}: damage was not found"),
            Err(_) => assert!(at < last, "{at}"),
        }
    }
}

#[test]
fn other_files_are_no_journals() {
    let (_, file, _) = journal();
    let read = |file: &[u8], origin: &str| {
        let origin = Name::from_text(origin).unwrap();
        journal::read(file, origin.as_ref(), crate::Limits::default()).err().map(|error| error.to_string())
    };
    let other = read(&file, "example.com.");
    assert_eq!(other.as_deref(), Some("database belongs to a different zone: example.org."));
    for file in [&b""[..], b"$ORIGIN example.org.\n", SEED.as_bytes()] {
        assert_eq!(read(file, "example.org.").as_deref(), Some("unrecognized database format"));
    }
    let bbolt = [&[0; 16][..], &0xED0C_DAED_u32.to_le_bytes()].concat();
    assert!(read(&bbolt, "example.org.").is_some_and(|text| text.contains("damaged bbolt")), "bbolt");
    // A second snapshot, or a change of another version, was not written by this program.
    let twice = [&file[..], &file[journal::MAGIC.len()..]].concat();
    assert!(read(&twice, "example.org.").is_some_and(|text| text.contains("damaged")), "twice");
}

/// Databases that CoreDNS 1.15.0 has written: one whose bucket is within the root page, and a larger one.
#[test]
fn databases_of_coredns_are_read() {
    let small: &[u8] = include_bytes!("../../../fuzz/corpus/journal/coredns-small");
    let large: &[u8] = include_bytes!("../../../fuzz/corpus/journal/coredns-large");
    let read = |file: &[u8]| journal::read(file, origin().as_ref(), crate::Limits::default());
    let restored = read(small).unwrap();
    assert!(restored.is_foreign);
    assert_eq!(
        lines(&restored.zone),
        [
            "c.example.org. 60 CNAME ns.example.org.",
            "example.org. 60 NS ns.example.org.",
            "example.org. 60 SOA ns.example.org. host.example.org. 3 3600 600 86400 60",
            "host.example.org. 60 A 192.0.2.7",
            "ns.example.org. 60 A 192.0.2.53",
            "t.example.org. 60 TXT \"a b\"",
        ]
    );
    let restored = read(large).unwrap();
    assert_eq!((restored.zone.len(), restored.zone.soa().unwrap().serial), (6 + 89, 5));
    let other = journal::read(small, Name::from_text("example.com.").unwrap().as_ref(), crate::Limits::default());
    assert_eq!(other.err(), Some(JournalError::OtherZone(Box::new(origin()))));
    // The meta page before the last transaction has the version before.
    let mut before = small.to_vec();
    before[0x38] ^= 1;
    assert_eq!(read(&before).unwrap().zone.soa().unwrap().serial, 2);
    // No damage leads to a panic or to another zone.
    for at in (0..large.len()).step_by(61) {
        let mut damaged = large.to_vec();
        damaged[at] ^= 0x41;
        if let Ok(restored) = read(&damaged) {
            assert_eq!(restored.zone.origin().to_string(), "example.org.");
        }
        // The last pages may be unused.
        assert!(read(&large[..at]).map_or(true, |cut| lines(&cut.zone) == lines(&restored.zone)), "{at}");
    }
}

/// Changes of a zone as an IXFR response, in messages of this size.
fn transfer(old: Arc<Zone>, new: &Zone, changes: std::collections::VecDeque<Arc<Change>>, size: usize) -> Zone {
    let mut differences = Differences::new(old);
    let mut writer = ChangeWriter::new(changes);
    let soa = new.soa_set().unwrap();
    let mut is_first = true;
    let mut soas = 2;
    let mut message = MessageBuf::new();
    while soas > 0 {
        let flags = Flags::default().with_response(true);
        message.start(Header { flags, ..Header::default() }, Some((origin().as_ref(), Type::IXFR, Class::IN)));
        message.set_limit(size);
        let push_soa = |message: &mut MessageBuf| {
            let owner = origin();
            let fixed = (Type::SOA, Class::IN, soa.ttl);
            message.push_data(Section::Answer, Owner::Name(owner.as_ref()), fixed, soa.first()).is_some()
        };
        if is_first && push_soa(&mut message) {
            (is_first, soas) = (false, 1);
        }
        if writer.write(&mut message) && push_soa(&mut message) {
            soas = 0;
        }
        message.header.flags = message.header.flags.with_truncated(false);
        differences.receive(message.finish(None, core::iter::empty())).unwrap();
    }
    differences.finish().unwrap().unwrap()
}

/// An incremental transfer from any version leads to the newest one, also after the journal was read again.
#[test]
fn changes_are_an_incremental_transfer() {
    let (versions, file, lengths) = journal();
    let read = |len: usize| journal::read(&file[..len], origin().as_ref(), crate::Limits::default()).unwrap();
    let restored = read(file.len());
    for (version, len) in lengths.iter().enumerate().take(versions.len() - 1) {
        let old = read(*len).zone;
        let serial = old.soa().unwrap().serial;
        let changes = restored.history.since(serial, usize::MAX).unwrap();
        for size in [300, 16_384] {
            let new = transfer(Arc::new(zone(&text(&old))), &restored.zone, changes.clone(), size);
            assert_eq!(lines(&new), *versions.last().unwrap(), "{version} {size}");
        }
    }
    assert_eq!(restored.history.since(99, usize::MAX), None);
    assert_eq!(restored.history.since(1, 10), None, "the zone is shorter");
    // A journal that is written again has the changes before its snapshot.
    let rewritten = journal::write(&restored.zone, &restored.history);
    let again = journal::read(&rewritten, origin().as_ref(), crate::Limits::default()).unwrap();
    assert_eq!((lines(&again.zone), &again.history), (lines(&restored.zone), &restored.history));
}

/// Zone file with the contents of a zone.
pub(super) fn text(zone: &Zone) -> String {
    let line = |line: &String| {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        format!("{} {} IN {}\n", words[0], words[1], words[2])
    };
    lines(zone).iter().map(line).collect()
}

#[test]
fn the_history_is_bounded() {
    let mut draft = Draft::new(Arc::new(zone(SEED)));
    let mut history = History::default();
    for round in 0..40 {
        let rows: String = (0..40).map(|at| format!("t{at} 60 IN TXT \"{round} {}\"\n", "x".repeat(200))).collect();
        let packet = message("", &rows);
        let request = UpdateRequest::read(&Message::parse(&packet).unwrap()).unwrap();
        let limits = UpdateLimits { records: 10_000, bytes: 1 << 23 };
        let Ok(Applied::Changed(change)) = draft.apply(&request, |_, _| true, limits) else { panic!("{round}") };
        // Four changes for each, of which each follows the one before.
        let serials = 4 * round + 1..4 * round + 5;
        serials.for_each(|from| history.push(Change { from, to: from + 1, ..change.clone() }));
    }
    assert!(history.bytes() <= journal::HISTORY_MAX && history.bytes() > journal::HISTORY_MAX / 2);
    assert_eq!(history.since(1, usize::MAX), None);
}
