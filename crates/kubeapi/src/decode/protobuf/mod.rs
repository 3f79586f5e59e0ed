//! Decoder for Kubernetes protobuf (kubernetes.io/docs/reference/using-api/api-concepts, "Protobuf encoding").
//!
//! It walks the wire format without generated code. Fields that answers need are borrowed from the bytes, and others
//! are skipped. The field numbers are those of `generated.proto` in k8s.io/api and k8s.io/apimachinery. They never
//! change.

mod fields;
mod frames;
mod list;
mod objects;
mod raw;
mod stream;

use cluster::Kind;
use cluster::object::Meta;
use fields::{Fields, Value};
use objects::Metadata;

use super::{Decoded, ListItem, PROTOBUF, Status, Unreadable, UnreadableReason, WatchEvent, decoded};

pub(super) use frames::Frames;
pub(super) use list::List;
pub use raw::{RawEvent, RawEvents, RawItem, RawList};

/// Magic bytes before every object and list.
const MAGIC: &[u8] = b"k8s\0";
/// Field numbers of the envelope after them, runtime.Unknown.
const ENVELOPE_RAW: u64 = 2;
const ENVELOPE_ENCODING: u64 = 3;
const ENVELOPE_TYPE: u64 = 4;
/// Field number of the bytes in a runtime.RawExtension.
const RAW: u64 = 1;

/// Decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtobufError {
    /// Not valid protobuf.
    Syntax(&'static str),
    /// Valid protobuf, but not the expected message.
    Shape(&'static str),
    /// More entries than any valid object has.
    TooMany,
}

const NO_MAGIC: ProtobufError = ProtobufError::Syntax("it does not begin as the protobuf of Kubernetes does");

impl ProtobufError {
    const fn reason(self) -> UnreadableReason {
        match self {
            ProtobufError::Syntax(_) => UnreadableReason::Syntax,
            ProtobufError::Shape(_) => UnreadableReason::Shape,
            ProtobufError::TooMany => UnreadableReason::TooLong,
        }
    }
}

impl core::fmt::Display for ProtobufError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            ProtobufError::Syntax(message) | ProtobufError::Shape(message) => message,
            ProtobufError::TooMany => "it has more entries than any object has",
        })
    }
}

impl core::error::Error for ProtobufError {}

/// Decodes a Status in its envelope.
pub(super) fn status(bytes: &[u8]) -> Option<Status> {
    let (code, message) = objects::status(envelope(bytes).ok()?).ok()?;
    Some(Status { code, message: message.to_owned() })
}

/// Decodes a watch event, metav1.WatchEvent.
fn event(kind: Kind, frame: &[u8], each: &mut dyn FnMut(WatchEvent<'_>)) {
    let (what, enveloped) = match what_and_object(frame) {
        Ok(event) => event,
        Err(error) => return each(WatchEvent::unreadable(nameless(error))),
    };
    let bytes = enveloped.ok_or(ProtobufError::Shape("the event has no object")).and_then(envelope);
    if what == "ERROR" {
        let (code, message) = bytes.and_then(objects::status).unwrap_or_default();
        return each(WatchEvent::Refused { code, message });
    }
    match bytes {
        Ok(bytes) => event_of(kind, what, bytes, each),
        Err(error) => each(WatchEvent::applied(what, Err(nameless(error)))),
    }
}

/// Returns the fields of a WatchEvent: `type`, and the bytes in `object`.
fn what_and_object(frame: &[u8]) -> Result<(&str, Option<&[u8]>), ProtobufError> {
    let (mut what, mut object) = ("", None);
    for field in Fields::of(frame) {
        match field? {
            (1, value) => what = value.text()?,
            (2, value) => object = value.field(RAW)?.map(Value::as_bytes).transpose()?,
            _ => {}
        }
    }
    Ok((what, object))
}

fn event_of(kind: Kind, what: &str, bytes: &[u8], each: &mut dyn FnMut(WatchEvent<'_>)) {
    if matches!(what, "ADDED" | "MODIFIED") {
        return each(WatchEvent::applied(what, object(kind, bytes)));
    }
    match (Metadata::of(bytes), what) {
        (Ok(metadata), "DELETED") => each(WatchEvent::deleted(metadata.meta)),
        (Ok(metadata), "BOOKMARK") => each(WatchEvent::bookmark(metadata.meta, metadata.ends_list)),
        (Ok(metadata), _) => each(WatchEvent::unknown(metadata.meta, what)),
        (Err(error), _) => each(WatchEvent::unreadable(nameless(error))),
    }
}

/// Returns the content of an envelope.
fn envelope(bytes: &[u8]) -> Result<&[u8], ProtobufError> {
    let mut raw = &b""[..];
    for field in Fields::of(bytes.strip_prefix(MAGIC).ok_or(NO_MAGIC)?) {
        match field? {
            (ENVELOPE_RAW, value) => raw = value.as_bytes()?,
            (ENVELOPE_ENCODING, value) if !value.as_bytes()?.is_empty() => {
                return Err(ProtobufError::Shape("it is compressed"));
            }
            (ENVELOPE_TYPE, value) if !matches!(value.text()?, "" | PROTOBUF) => {
                return Err(ProtobufError::Shape("it is no protobuf"));
            }
            _ => {}
        }
    }
    Ok(raw)
}

/// Decodes an object. If that fails, the error has its name where possible.
fn object(kind: Kind, bytes: &[u8]) -> Decoded<'_> {
    match objects::object(kind, bytes) {
        Ok((object, trigger)) => decoded(object, trigger),
        Err(error) => {
            let meta = Metadata::of(bytes).map_or_else(|_| Meta::default(), |metadata| metadata.meta);
            Err(Unreadable::new(meta, error.reason(), error.to_string()))
        }
    }
}

fn list_metadata(bytes: &[u8]) -> ListItem<'_> {
    match objects::list_metadata(bytes) {
        Ok((version, token, left)) => ListItem::Metadata { version, token, left },
        Err(error) => ListItem::Unreadable(nameless(error)),
    }
}

fn nameless(error: ProtobufError) -> Unreadable<'static> {
    Unreadable::nameless(error.reason(), error.to_string())
}

#[cfg(test)]
mod tests;
