//! Decoder of a watch in protobuf with gzip, which keeps no objects: only their versions.

use flate2::{Decompress, FlushDecompress};

/// Size of the header of gzip that a relay sends (RFC 1952 §2.3).
const HEADER: usize = 10;
/// Room for decompressed bytes that is added at once.
const ROOM: usize = 64 << 10;
/// Field numbers: type and object of a WatchEvent, value of a RawExtension and of an Unknown, metadata of an object,
/// resource version of ObjectMeta and its annotations, and code of a Status.
const EVENT_TYPE: u64 = 1;
const EVENT_OBJECT: u64 = 2;
const EXTENSION_RAW: u64 = 1;
const UNKNOWN_RAW: u64 = 2;
const METADATA: u64 = 1;
const VERSION: u64 = 6;
const ANNOTATIONS: u64 = 12;
/// Length of the magic bytes before an Unknown.
const MAGIC: usize = 4;

/// Event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An object with this resource version has changed.
    Object(u64),
    /// Everything up to this version has been sent. `ends_list` is true after the initial events.
    Bookmark { version: u64, ends_list: bool },
    /// The watch cannot continue.
    Refused,
}

/// Decoder of one response.
pub(crate) struct Decoder {
    header: usize,
    inflate: Decompress,
    /// Decompressed bytes that are not a whole event yet.
    rest: Vec<u8>,
}

/// Response that is not a watch in protobuf with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { header: HEADER, inflate: Decompress::new(false), rest: Vec::new() }
    }

    /// Decodes bytes of the body.
    ///
    /// # Errors
    /// Fails if they cannot be decoded.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), Malformed> {
        let skipped = self.header.min(bytes.len());
        self.header -= skipped;
        self.inflate(&bytes[skipped..])?;
        let mut read = 0;
        while let Some((frame, length)) = frame(&self.rest[read..]) {
            each(event(frame).ok_or(Malformed)?);
            read += length;
        }
        self.rest.drain(..read);
        Ok(())
    }

    fn inflate(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        loop {
            self.rest.reserve(ROOM);
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let outcome = self.inflate.decompress_vec(bytes, &mut self.rest, FlushDecompress::Sync);
            outcome.map_err(|_| Malformed)?;
            let read = usize::try_from(self.inflate.total_in() - before.0).map_err(|_| Malformed)?;
            bytes = bytes.get(read..).ok_or(Malformed)?;
            let has_progressed = (self.inflate.total_in(), self.inflate.total_out()) != before;
            if !has_progressed || bytes.is_empty() && self.rest.len() < self.rest.capacity() {
                return Ok(());
            }
        }
    }
}

/// Returns the first frame with its length and that of its prefix, if it is complete.
fn frame(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    Some((rest.get(..length)?, length + 4))
}

fn event(frame: &[u8]) -> Option<Event> {
    let what = field(frame, EVENT_TYPE)?;
    if what == b"ERROR" {
        return Some(Event::Refused);
    }
    let unknown = field(field(frame, EVENT_OBJECT)?, EXTENSION_RAW)?.get(MAGIC..)?;
    let metadata = field(field(unknown, UNKNOWN_RAW)?, METADATA)?;
    let version = core::str::from_utf8(field(metadata, VERSION)?).ok()?.parse().ok()?;
    if what == b"BOOKMARK" {
        return Some(Event::Bookmark { version, ends_list: field(metadata, ANNOTATIONS).is_some() });
    }
    Some(Event::Object(version))
}

/// Returns the bytes of the first field of a message with this number.
fn field(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let value = varint(&mut message)?;
        match key & 7 {
            0 => {}
            2 => {
                let (bytes, rest) = message.split_at_checked(usize::try_from(value).ok()?)?;
                if key >> 3 == wanted {
                    return Some(bytes);
                }
                message = rest;
            }
            _ => return None,
        }
    }
    None
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn events(body: &[u8]) -> Result<Vec<Event>, Malformed> {
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        for part in body.chunks(7) {
            decoder.feed(part, |event| events.push(event))?;
        }
        Ok(events)
    }

    #[test]
    fn decodes_events_in_parts() {
        let end = json!({ "k8s.io/initial-events-end": "true" });
        let object = |version: &str, annotations| {
            let metadata = json!({ "resourceVersion": version, "annotations": annotations });
            json!({ "kind": "Service", "metadata": metadata })
        };
        let plain = [
            fakeapi::protobuf::event("Service", "ADDED", &object("7", json!({}))),
            fakeapi::protobuf::event("Service", "BOOKMARK", &object("8", end)),
            fakeapi::protobuf::event("Service", "BOOKMARK", &object("9", json!({}))),
            fakeapi::protobuf::event("Service", "ERROR", &json!({ "kind": "Status", "code": 410 })),
        ];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        assert!(gzip.write_all(&plain.concat()).is_ok());
        let expected = vec![
            Event::Object(7),
            Event::Bookmark { version: 8, ends_list: true },
            Event::Bookmark { version: 9, ends_list: false },
            Event::Refused,
        ];
        assert_eq!(gzip.finish().map(|body| events(&body)).ok(), Some(Ok(expected)));
        assert_eq!(events(&[0xff; 100]), Err(Malformed));
    }
}
