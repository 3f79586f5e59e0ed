//! Ten thousand malformed objects among good ones. Each must yield one error and affect no other object, in lists and
//! watches.

use std::collections::BTreeMap;

use cluster::Kind;
use fakeapi::protobuf;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::*;

const MALFORMED: usize = 10_000;
/// Number of malformed objects before each good one.
const RUN: usize = 10;

/// Counts of the events by type or reason, and the good objects.
#[derive(Default)]
struct Counts {
    by_reason: BTreeMap<String, usize>,
    good: Vec<String>,
}

impl Counts {
    fn take(&mut self, event: &WatchEvent<'_>) {
        match event {
            WatchEvent::Applied { object, .. } => self.take_object(object),
            WatchEvent::Unreadable { unreadable, .. } => self.add(unreadable.reason.label()),
            _ => self.add("other"),
        }
    }

    fn take_item(&mut self, item: &ListItem<'_>) {
        match item {
            ListItem::Object(object) => self.take_object(object),
            ListItem::Unreadable(unreadable) => self.add(unreadable.reason.label()),
            ListItem::Metadata { .. } => self.add("other"),
        }
    }

    fn take_object(&mut self, object: &Object<'_>) {
        if object.meta().name.starts_with("good-") {
            self.good.push(format!("{object:?}"));
        } else {
            self.add("applied");
        }
    }

    fn add(&mut self, word: &str) {
        *self.by_reason.entry(word.to_owned()).or_default() += 1;
    }

    fn count(&self, words: &[&str]) -> usize {
        words.iter().filter_map(|word| self.by_reason.get(*word)).sum()
    }
}

fn slice(name: &str) -> Value {
    let mut slice = fakeapi::slice("shop", "web", &["10.1.0.5", "10.1.0.6", "10.1.0.7"]);
    slice["metadata"]["name"] = name.into();
    slice["metadata"]["resourceVersion"] = "7".into();
    slice["endpoints"][0] = json!({
        "addresses": ["10.1.0.5"], "conditions": { "ready": true }, "hostname": "web-0", "zone": "west",
        "targetRef": { "kind": "Pod", "name": "web-0" },
    });
    slice
}

/// Changes, removes, doubles or cuts off some bytes. The result contains no line break.
fn mutated(bytes: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes.truncate(at + 1),
            1 => bytes.insert(at, bytes[at]),
            2 if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => bytes[at] = random.random(),
        }
    }
    bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    bytes
}

/// Encodes a length-delimited field with a number below 16.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let [low, high] = [length & 0x7f, length >> 7].map(|part| u8::try_from(part).unwrap());
    [&[number << 3 | 2, low | 0x80, high], bytes].concat()
}

/// Returns the decoded good objects.
fn expected() -> Vec<String> {
    let mut counts = Counts::default();
    for at in 0..MALFORMED / RUN {
        let line = format!("{}\n", json!({ "type": "ADDED", "object": slice(&format!("good-{at}")) }));
        let mut decoder = EventDecoder::new(Encoding::Json, Kind::EndpointSlice);
        decoder.feed(line.as_bytes(), &mut |event| counts.take(&event)).unwrap();
    }
    counts.good
}

/// Builds a body of malformed parts with a good part after each run of them.
fn body(good: impl Fn(&str) -> Vec<u8>, mut malformed: impl FnMut() -> Vec<u8>) -> Vec<u8> {
    let run = |at: usize| {
        let mut run: Vec<Vec<u8>> = (0..RUN).map(|_| malformed()).collect();
        run.push(good(&format!("good-{at}")));
        run.concat()
    };
    (0..MALFORMED / RUN).flat_map(run).collect()
}

fn watched(encoding: Encoding, body: &[u8]) -> Counts {
    let (mut decoder, mut counts) = (EventDecoder::new(encoding, Kind::EndpointSlice), Counts::default());
    for bytes in body.chunks(4096) {
        decoder.feed(bytes, &mut |event| counts.take(&event)).unwrap();
    }
    assert!(!decoder.is_within_an_event());
    counts
}

fn listed(encoding: Encoding, body: &[u8]) -> Counts {
    let (mut decoder, mut counts) = (ListDecoder::new(encoding, Kind::EndpointSlice), Counts::default());
    for bytes in body.chunks(4096) {
        decoder.feed(bytes, &mut |item| counts.take_item(&item)).unwrap();
    }
    assert!(decoder.is_complete());
    counts
}

/// Checks that every malformed object yielded one event, that enough of them were detected, and that no good one is
/// missing.
fn check(counts: &Counts) {
    let unreadable = counts.count(&["syntax", "shape", "unnamed", "event", "too_long"]);
    assert_eq!(unreadable + counts.count(&["applied", "other"]), MALFORMED, "{:?}", counts.by_reason);
    assert!(unreadable > MALFORMED / 4, "{:?}", counts.by_reason);
    assert_eq!(counts.good, expected());
}

#[test]
fn skips_ten_thousand_malformed_json_events() {
    let random = &mut StdRng::seed_from_u64(1);
    let line = |name: &str| json!({ "type": "ADDED", "object": slice(name) }).to_string().into_bytes();
    let with_end = |bytes: &[u8]| [bytes, b"\n"].concat();
    let body = body(|name| with_end(&line(name)), || with_end(&mutated(&line("bad"), random)));
    check(&watched(Encoding::Json, &body));
}

#[test]
fn skips_ten_thousand_malformed_protobuf_events() {
    let random = &mut StdRng::seed_from_u64(2);
    let event = |name: &str| protobuf::event("EndpointSlice", "ADDED", &slice(name));
    let body = body(event, || protobuf::frame(&mutated(&event("bad")[4..], random)));
    check(&watched(Encoding::Protobuf, &body));
}

#[test]
fn skips_ten_thousand_malformed_protobuf_items() {
    let random = &mut StdRng::seed_from_u64(3);
    // The offsets skip the magic bytes, the type meta, and tag and length of the `raw` field.
    let raw = |name: &str| {
        let object = protobuf::object("EndpointSlice", &slice(name));
        let about = 4 + 2 + usize::from(object[5]);
        object[about + 3..object.len() - 4].to_vec()
    };
    let items = body(|name| field(2, &raw(name)), || field(2, &mutated(&raw("bad"), random)));
    let mut list = b"k8s\0\x12".to_vec();
    let mut length = items.len();
    while length >= 0x80 {
        list.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    list.push(length.to_le_bytes()[0]);
    list.extend(items);
    check(&listed(Encoding::Protobuf, &list));
}

#[test]
fn skips_ten_thousand_malformed_json_items() {
    let random = &mut StdRng::seed_from_u64(4);
    // The JSON as a whole must be well-formed, so only values can be wrong.
    let wrong = [json!(7), json!("x"), json!([[]]), json!({ "a": {} }), json!(true), json!(-1.5)];
    let paths = [
        "/metadata",
        "/metadata/name",
        "/metadata/labels",
        "/addressType",
        "/endpoints",
        "/endpoints/0",
        "/ports/0/port",
    ];
    let item = |object: &Value| format!("{object},").into_bytes();
    let malformed = || {
        let mut object = slice("bad");
        let path = paths[random.random_range(0..paths.len())];
        *object.pointer_mut(path).unwrap() = wrong[random.random_range(0..wrong.len())].clone();
        item(&object)
    };
    let items = body(|name| item(&slice(name)), malformed);
    let list = [b"{\"metadata\":{},\"items\":[", &items[..items.len() - 1], b"]}"].concat();
    let mut counts = listed(Encoding::Json, &list);
    // Do not count `metadata` of the list.
    *counts.by_reason.get_mut("other").unwrap() -= 1;
    check(&counts);
}
