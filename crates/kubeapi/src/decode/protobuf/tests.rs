//! Hand-made protobuf that no server sends.

use super::*;
use crate::decode::{Encoding, EventDecoder, ListDecoder, OBJECT_MAX};

/// Encodes a length-delimited field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
    out.extend_from_slice(bytes);
    out
}

fn enveloped(raw: &[u8]) -> Vec<u8> {
    [MAGIC, &field(2, raw)].concat()
}

fn namespace(name: &str) -> Vec<u8> {
    field(1, &field(1, name.as_bytes()))
}

fn frame(event: &[u8]) -> Vec<u8> {
    [&u32::try_from(event.len()).unwrap().to_be_bytes(), event].concat()
}

fn added(object: &[u8]) -> Vec<u8> {
    frame(&[field(1, b"ADDED"), field(2, &field(1, object))].concat())
}

/// Describes a event in a word or two.
fn describe(event: &WatchEvent<'_>) -> String {
    match event {
        WatchEvent::Applied { object, .. } => object.meta().name.to_owned(),
        WatchEvent::Unreadable { unreadable: Unreadable { name, message, .. }, .. } => format!("{name}: {message}"),
        event => format!("{event:?}"),
    }
}

fn describe_item(item: &ListItem<'_>) -> String {
    match item {
        ListItem::Object(object) => object.meta().name.to_owned(),
        ListItem::Unreadable(Unreadable { name, message, .. }) => format!("{name}: {message}"),
        ListItem::Metadata { version, token, .. } => format!("list {version}{token}"),
    }
}

/// Returns chunk sizes for a body, larger ones for a long body.
fn sizes(body: &[u8]) -> [usize; 3] {
    let least = 1 + body.len() / 4096;
    [least, 3 * least, 10 * least]
}

/// Decodes a watch in chunks of several sizes. Returns the events, and whether the decoder is out of sync and within an
/// event.
fn watch(kind: Kind, body: &[u8]) -> (Vec<String>, bool, bool) {
    let read = |size| {
        let (mut decoder, mut found) = (EventDecoder::new(Encoding::Protobuf, kind), Vec::new());
        let each = &mut |event: WatchEvent<'_>| found.push(describe(&event));
        let out_of_sync = body.chunks(size).any(|bytes| decoder.feed(bytes, each).is_err());
        (found, out_of_sync, decoder.is_within_an_event())
    };
    let found = read(body.len());
    assert!(sizes(body).map(read).iter().all(|other| *other == found), "{body:x?}");
    found
}

/// Decodes a list in chunks of several sizes. Returns the events, and whether the decoder is out of sync and the list
/// complete.
fn list(kind: Kind, body: &[u8]) -> (Vec<String>, bool, bool) {
    let read = |size| {
        let (mut decoder, mut found) = (ListDecoder::new(Encoding::Protobuf, kind), Vec::new());
        let each = &mut |item: ListItem<'_>| found.push(describe_item(&item));
        let out_of_sync = body.chunks(size).any(|bytes| decoder.feed(bytes, each).is_err());
        (found, out_of_sync, decoder.is_complete())
    };
    let found = read(body.len().max(1));
    assert!(sizes(body).map(read).iter().all(|other| *other == found), "{body:x?}");
    found
}

fn texts(found: &(Vec<String>, bool, bool)) -> (Vec<&str>, bool, bool) {
    (found.0.iter().map(String::as_str).collect(), found.1, found.2)
}

#[test]
fn skips_only_the_broken_frame() {
    let good = added(&enveloped(&namespace("good")));
    for (broken, expected) in [
        (frame(b"\x0a"), ": field extends past the end of its message"),
        (frame(b""), ": the event has no object"),
        (frame(&field(1, b"ADDED")), ": the event has no object"),
        (frame(&field(1, b"ADD\xff")), ": a text is not UTF-8"),
        (added(b"k8s"), ": it does not begin as the protobuf of Kubernetes does"),
        (added(b"{}"), ": it does not begin as the protobuf of Kubernetes does"),
        (added(b"k8s\0"), ": it has no name"),
        (added(b"k8s\0\x12\x05\x0a"), ": field extends past the end of its message"),
        (added(&[&enveloped(&namespace("a")), &field(3, b"gzip")[..]].concat()), ": it is compressed"),
        (added(&[&enveloped(&namespace("a")), &field(4, b"application/json")[..]].concat()), ": it is no protobuf"),
        (
            added(&enveloped(&[namespace("a"), b"\x12\x7f".to_vec()].concat())),
            "a: field extends past the end of its message",
        ),
        (added(&enveloped(b"\x08\x01")), ": expected a length-delimited field, found a varint"),
        (added(&enveloped(&field(1, b"\x0a\x01\xff"))), ": a text is not UTF-8"),
        (
            added(&enveloped(&field(1, &[&field(1, b"a"), &field(11, b"\x0a\x01")[..]].concat()))),
            ": field extends past the end of its message",
        ),
    ] {
        let found = watch(Kind::Namespace, &[broken, good.clone()].concat());
        assert_eq!(texts(&found), (vec![expected, "good"], false, false));
    }
}

#[test]
fn a_truncated_watch_is_within_an_event() {
    let body = [added(&enveloped(&namespace("a"))), added(&enveloped(&namespace("b")))].concat();
    let first = body.len() / 2;
    for end in 1..body.len() {
        let (found, out_of_sync, within) = watch(Kind::Namespace, &body[..end]);
        assert_eq!((found.len(), out_of_sync, within), (end / first, false, end % first != 0), "{end}");
    }
}

#[test]
fn an_implausible_frame_length_ends_the_watch() {
    let good = added(&enveloped(&namespace("good")));
    let found = watch(Kind::Namespace, &[&good[..], b"\xff\xff\xff\xff", &good].concat());
    assert_eq!(texts(&found), (vec!["good", ": a frame is longer than any object"], true, true));
}

#[test]
fn reads_a_list_to_its_end() {
    let metadata = field(1, &[field(2, b"7"), field(3, b"+")].concat());
    let item = |name| field(2, &namespace(name));
    let whole =
        [metadata.clone(), item("a"), b"\x18\x01\x25abcd\x29abcdefgh".to_vec(), field(9, b"new"), item("b")].concat();
    let around = [MAGIC, &field(1, b"type"), &field(2, &whole), b"\x1a\x00\x22\x00"].concat();
    assert_eq!(texts(&list(Kind::Namespace, &around)), (vec!["list 7+", "a", "b"], false, true));
    assert_eq!(texts(&list(Kind::Namespace, &enveloped(&metadata))), (vec!["list 7+"], false, true));
    assert_eq!(texts(&list(Kind::Namespace, &enveloped(b""))), (vec![], false, true));
    let end_of_list = around.len() - 4;
    for end in 0..around.len() {
        let is_whole = end >= end_of_list && (end - end_of_list) % 2 == 0;
        assert_eq!(list(Kind::Namespace, &around[..end]).2, is_whole, "{end}");
    }
}

#[test]
fn skips_a_broken_item_and_stops_at_a_broken_list() {
    let item = |name| field(2, &namespace(name));
    let broken = [field(2, b"\x0a\x7f"), item("a"), field(2, b""), item("b")].concat();
    let found = list(Kind::Namespace, &enveloped(&broken));
    assert_eq!(
        texts(&found),
        (vec![": field extends past the end of its message", "a", ": it has no name", "b"], false, true)
    );
    let no_magic = ": it does not begin as the protobuf of Kubernetes does";
    for (body, expected) in [
        (b"{\"items\":[]}".to_vec(), &[no_magic][..]),
        (b"k8s\x01\x12\x00".to_vec(), &[no_magic]),
        (enveloped(&[item("a"), b"\x0b".to_vec()].concat()), &["a", ": a field has no number, or no type"]),
        (enveloped(&[item("a"), b"\x12\x7fab".to_vec()].concat()), &["a", ": an item is longer than the list"]),
        (enveloped(&[item("a"), b"\x22\x7fab".to_vec()].concat()), &["a", ": an item is longer than the list"]),
        (enveloped(&[item("a"), b"\x80".repeat(10)].concat()), &["a", ": varint is longer than 10 bytes"]),
        (enveloped(&item("a")).into_iter().chain(*b"\x0f").collect(), &["a", ": a field has no number, or no type"]),
        ([MAGIC, b"\x0f"].concat(), &[": a field has no number, or no type"]),
        ([MAGIC, b"\x12", &b"\xff".repeat(11)].concat(), &[": varint is longer than 10 bytes"]),
    ] {
        assert_eq!(texts(&list(Kind::Namespace, &[body, item("lost")].concat())), (expected.to_vec(), true, false));
    }
}

#[test]
fn refuses_more_endpoints_than_the_api_allows() {
    let address = field(2, &field(1, b""));
    let slice = |count| enveloped(&[namespace("a"), address.repeat(count), field(4, b"IPv4")].concat());
    assert_eq!(watch(Kind::EndpointSlice, &added(&slice(100_000))).0, ["a"]);
    assert_eq!(watch(Kind::EndpointSlice, &added(&slice(100_001))).0, ["a: it has more entries than any object has"]);
    let frame = frame(&vec![0; OBJECT_MAX + 1]);
    assert_eq!(watch(Kind::EndpointSlice, &frame).0, [format!(": it is longer than {OBJECT_MAX} bytes")]);
}

#[test]
fn reads_a_status_in_its_envelope() {
    let raw = [field(3, b"too old"), b"\x30\x9a\x03".to_vec()].concat();
    let read = Status { code: 410, message: "too old".to_owned() };
    assert_eq!(Status::read(Encoding::Protobuf, &enveloped(&raw)), Some(read));
    assert_eq!(Status::read(Encoding::Protobuf, &raw), None);
    let event = frame(&[field(1, b"ERROR"), field(2, &field(1, &enveloped(&raw)))].concat());
    assert_eq!(watch(Kind::Pod, &event).0, ["Refused { code: 410, message: \"too old\" }"]);
    let nothing = frame(&[field(1, b"ERROR"), field(2, b"\xff")].concat());
    assert_eq!(watch(Kind::Pod, &nothing).0, [": field extends past the end of its message"]);
}

#[test]
fn refuses_custom_resources_in_protobuf() {
    let expected = "a: a resource that was defined in the cluster has no protobuf";
    assert_eq!(watch(Kind::ServiceImport, &added(&enveloped(&namespace("a")))).0, [expected]);
}
