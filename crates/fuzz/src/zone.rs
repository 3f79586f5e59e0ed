//! Fuzz targets for zones, from files and from transfers.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::zone::text::is_well_formed;
use ::zone::update::journal::{self, History};
use ::zone::update::{Applied, Draft, UpdateLimits, UpdateRequest, check_seed};
use ::zone::{Differences, Incoming, Limits, Question, TransferError, Zone, load};
use wire::{Class, Header, Message, MessageBuf, Name, Type};

/// Maximum number of names queried per zone. Fuzzing uses small zones.
const ASKED_MAX: usize = 64;

/// Zone file. An error must have a position in the file, and a valid zone must answer queries.
pub fn file(input: &[u8]) {
    let path = Path::new("zone");
    let mut read = |asked: &Path| if asked == path { Ok(input.to_vec()) } else { Err(io::ErrorKind::NotFound.into()) };
    match load(origin().as_ref(), path, &mut read) {
        Ok(loaded) => ask(&loaded.zone),
        Err(error) => {
            let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!(error.position.is_none_or(|(line, _)| (1..=lines).contains(&(line as usize))), "{error}");
        }
    }
}

/// Messages of an AXFR response, each preceded by its length in two bytes.
pub fn transfer(input: &[u8]) {
    let mut incoming = Incoming::new(origin().as_ref());
    if give(input, |message| incoming.receive(message))
        && let Ok(zone) = incoming.finish()
    {
        ask(&zone);
    }
}

/// Messages of an IXFR response, in the same format.
pub fn differences(input: &[u8]) {
    let old = old();
    let serial = old.soa().map(|soa| soa.serial);
    let mut differences = Differences::new(Arc::new(old));
    if give(input, |message| differences.receive(message))
        && let Ok(Some(zone)) = differences.finish()
    {
        assert_ne!(zone.soa().map(|soa| soa.serial), serial);
        ask(&zone);
    }
}

/// UPDATE message. A zone that was changed must stay valid, and its journal must lead to the same zone.
pub fn update(input: &[u8]) {
    let Ok(message) = Message::parse(input) else { return };
    let Ok(request) = UpdateRequest::read(&message) else { return };
    let old = Arc::new(old());
    let mut draft = Draft::new(Arc::clone(&old));
    let limits = UpdateLimits { records: 100, bytes: 10_000 };
    let Ok(Applied::Changed(change)) = draft.apply(&request, |_, _| true, limits) else { return };
    let zone = draft.build(Limits::default()).expect("a zone");
    assert_eq!(check_seed(&zone), Ok(()));
    assert_eq!((zone.len(), zone.soa().map(|soa| soa.serial)), (draft.records(), Some(change.to)));
    ask(&zone);
    let mut file = journal::write(&old, &History::default());
    journal::append(&mut file, &change);
    let restored = journal::read(&file, origin().as_ref(), Limits::default()).expect("a journal");
    let (file, again) =
        (journal::write(&zone, &History::default()), journal::write(&restored.zone, &History::default()));
    assert_eq!((restored.torn, restored.zone.len(), file.len()), (0, zone.len(), again.len()));
}

/// Journal of a dynamic zone, from the disk. It must lead to a zone or an error.
pub fn journal(input: &[u8]) {
    let file = [journal::MAGIC, input].concat();
    for file in [input, &file] {
        if let Ok(restored) = journal::read(file, origin().as_ref(), Limits::default()) {
            assert!(restored.is_foreign || restored.len + restored.torn == file.len());
            ask(&restored.zone);
        }
    }
}

fn old() -> Zone {
    load(origin().as_ref(), Path::new("zone"), &mut |_| Ok(OLD.as_bytes().to_vec())).expect("a zone").zone
}

const OLD: &str = "$TTL 60\n@ SOA ns h 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.9\n";

/// Passes messages to `take` until it needs no more. Returns true unless it rejects one.
fn give(input: &[u8], mut take: impl FnMut(&[u8]) -> Result<bool, TransferError>) -> bool {
    let mut rest = input;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (message, after) = after.split_at(length);
        rest = after;
        match take(message) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return false,
        }
    }
    true
}

fn origin() -> Name {
    Name::from_text("example.org.").expect("a name")
}

/// Queries the names in a zone, and a name below each.
fn ask(zone: &Zone) {
    assert!(zone.soa().is_some());
    for (_, owner, set) in zone.sets_from(0).take(ASKED_MAX) {
        assert!(set.data().all(|rdata| is_well_formed(set.rtype, rdata)), "{owner} {}", set.rtype);
        let mut below = Name::root();
        let fits = below.push_label(b"x").and_then(|()| below.append(owner.as_ref())).is_ok();
        for name in [Some(&owner), fits.then_some(&below)].into_iter().flatten() {
            for qtype in [set.rtype, Type::A, Type::NS, Type::DS] {
                answer(zone, name, qtype);
            }
        }
    }
}

fn answer(zone: &Zone, name: &Name, qtype: Type) {
    for dnssec_ok in [false, true] {
        let mut message = MessageBuf::new();
        message.start(Header::default(), Some((name.as_ref(), qtype, Class::IN)));
        let reply = zone.answer(Question { name: name.as_ref(), qtype, dnssec_ok }, &mut message);
        assert!(reply.is_some(), "{name} is in the zone");
        let bytes = message.finish(None, core::iter::empty());
        let message = Message::parse(bytes).expect("an answer is a message");
        assert!(message.records().all(|record| record.owner().is_ok()), "{name} {qtype}");
    }
}
