//! Encoding of events and lists, in protobuf and in JSON.

use std::borrow::Cow;
use std::fmt::Write;

use host::invariant::{Expected as _, holds};

use crate::object::Stored;
use crate::strip::{strip, to_json};
use crate::table::Kind;
use crate::wire::{head_size, put_bytes, put_head};

/// Encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    Json,
    /// Kubernetes protobuf.
    Protobuf,
}

/// Form of the objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Protobuf as the API server sent it.
    Full,
    /// Protobuf with the fields of the profile `dns-1`.
    Stripped,
    /// Protobuf with the fields of the profile `dns-pods-1`.
    WithPods,
    /// JSON with the fields of the profile `dns-pods-1`.
    Json,
}

impl Form {
    /// Returns the encoding.
    #[must_use]
    pub const fn encoding(self) -> Encoding {
        if matches!(self, Form::Json) { Encoding::Json } else { Encoding::Protobuf }
    }

    fn bytes(self, kind: Kind, object: &Stored) -> Cow<'_, [u8]> {
        match self {
            Form::Full => Cow::Borrowed(&object.full),
            Form::Stripped => Cow::Borrowed(&object.stripped),
            // Few subscribers want the names of pods, so that they are not stored in this form.
            Form::WithPods | Form::Json => {
                let stripped = strip(kind, &object.full).ok().expected("an object that was valid when it was stored");
                Cow::Owned(stripped.unwrap_or_default())
            }
        }
    }
}

/// Magic bytes before every object and list.
const MAGIC: &[u8] = b"k8s\0";

/// Type of a watch event (`type` in the Kubernetes API).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// The object is new, or new for the selection.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone, or no longer selected.
    Deleted,
}

impl EventType {
    const fn name(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

/// Appends an event.
pub(crate) fn put_event(out: &mut Vec<u8>, kind: Kind, form: Form, what: EventType, object: &Stored) {
    if form == Form::Json {
        let Some(object) = json(kind, object) else { return };
        out.extend_from_slice(format!("{{\"type\":\"{}\",\"object\":{object}}}\n", what.name()).as_bytes());
    } else {
        event(out, what.name(), kind.name(), kind.api_version(), &form.bytes(kind, object));
    }
}

/// Returns a stored object as JSON.
fn json(kind: Kind, object: &Stored) -> Option<String> {
    to_json(kind, &Form::Json.bytes(kind, object)).ok().expected("the JSON of a stored object")
}

/// Appends a bookmark. `ends_list` marks the end of the initial events.
pub(crate) fn put_bookmark(out: &mut Vec<u8>, kind: Kind, form: Form, version: u64, ends_list: bool) {
    const END: &str = "k8s.io/initial-events-end";
    if form == Form::Json {
        let annotations = if ends_list { format!(",\"annotations\":{{\"{END}\":\"true\"}}") } else { String::new() };
        let text = format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\
             \"resourceVersion\":\"{version}\"{annotations}}}}}}}\n",
            kind.name(),
            kind.api_version()
        );
        return out.extend_from_slice(text.as_bytes());
    }
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 6, version.to_string().as_bytes());
    if ends_list {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, END.as_bytes());
        put_bytes(&mut entry, 2, b"true");
        put_bytes(&mut metadata, 12, &entry);
    }
    let mut object = Vec::new();
    put_bytes(&mut object, 1, &metadata);
    event(out, "BOOKMARK", kind.name(), kind.api_version(), &object);
}

/// Appends an event with an object in protobuf: length prefix, metav1.WatchEvent, and the object in its envelope.
pub(crate) fn event(out: &mut Vec<u8>, what: &str, kind: &str, api_version: &str, object: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_bytes(out, 1, what.as_bytes());
    let type_meta = type_meta(kind, api_version);
    let enveloped = MAGIC.len() + envelope_size(&type_meta, object);
    put_head(out, 2, head_size(enveloped) + enveloped);
    put_head(out, 1, enveloped);
    let body = out.len();
    put_envelope(out, &type_meta, object);
    holds(out.len() - body == enveloped, "an envelope has the size that its heads announce");
    let length = u32::try_from(out.len() - start - 4).ok().expected("the length of an event").unwrap_or(u32::MAX);
    if let Some(prefix) = out.get_mut(start..start + 4) {
        prefix.copy_from_slice(&length.to_be_bytes());
    }
}

/// Returns an object or a list in its envelope, runtime.Unknown.
pub(crate) fn envelope(kind: &str, api_version: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = type_meta(kind, api_version);
    let mut out = Vec::with_capacity(object.len() + 64);
    put_envelope(&mut out, &type_meta, object);
    out
}

fn type_meta(kind: &str, api_version: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, api_version.as_bytes());
    put_bytes(&mut out, 2, kind.as_bytes());
    out
}

const fn envelope_size(type_meta: &[u8], object: &[u8]) -> usize {
    // The last four bytes are the empty contentEncoding and contentType, which Go writes too.
    head_size(type_meta.len()) + type_meta.len() + head_size(object.len()) + object.len() + 4
}

fn put_envelope(out: &mut Vec<u8>, type_meta: &[u8], object: &[u8]) {
    out.extend_from_slice(MAGIC);
    put_bytes(out, 1, type_meta);
    put_bytes(out, 2, object);
    put_bytes(out, 3, b"");
    put_bytes(out, 4, b"");
}

/// Returns a list.
pub(crate) fn list<'a>(kind: Kind, form: Form, version: u64, objects: impl Iterator<Item = &'a Stored>) -> Vec<u8> {
    let name = format!("{}List", kind.name());
    if form == Form::Json {
        let mut text = format!("{{\"kind\":\"{name}\",\"apiVersion\":\"{}\",", kind.api_version());
        let _ = write!(text, "\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[");
        for (at, object) in objects.filter_map(|object| json(kind, object)).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(text, "{comma}{object}");
        }
        text.push_str("]}");
        return text.into_bytes();
    }
    let (mut raw, mut metadata) = (Vec::new(), Vec::new());
    put_bytes(&mut metadata, 2, version.to_string().as_bytes());
    put_bytes(&mut raw, 1, &metadata);
    for object in objects {
        put_bytes(&mut raw, 2, &form.bytes(kind, object));
    }
    envelope(&name, kind.api_version(), &raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Stored {
        let (mut metadata, mut object) = (Vec::new(), Vec::new());
        put_bytes(&mut metadata, 1, b"a");
        put_bytes(&mut metadata, 6, b"7");
        put_bytes(&mut object, 1, &metadata);
        Stored::new(Kind::Namespace, &object).unwrap()
    }

    #[test]
    fn encodes_as_the_api_server_does() {
        let stored = object();
        let raw = &stored.full;
        let mut out = Vec::new();
        put_event(&mut out, Kind::Namespace, Form::Full, EventType::Added, &stored);
        let enveloped = [b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x08", &raw[..], b"\x1a\0\x22\0"].concat();
        let expected = [b"\0\0\0\x2e\x0a\x05ADDED\x12\x25\x0a\x23", &enveloped[..]].concat();
        assert_eq!(out, expected);
        let listed = list(Kind::Namespace, Form::Stripped, 9, [&stored].into_iter());
        let body = [b"\x0a\x03\x12\x019\x12\x08", &raw[..]].concat();
        assert_eq!(
            listed,
            [b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dNamespaceList\x12\x0f", &body[..], b"\x1a\0\x22\0"].concat()
        );
    }

    #[test]
    fn encodes_json() {
        let stored = object();
        let mut out = Vec::new();
        put_event(&mut out, Kind::Namespace, Form::Json, EventType::Deleted, &stored);
        put_bookmark(&mut out, Kind::Namespace, Form::Json, 9, true);
        let lines: Vec<serde_json::Value> =
            out.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(lines[0]["object"]["metadata"]["resourceVersion"], "7");
        assert_eq!(lines[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        let listed: serde_json::Value =
            serde_json::from_slice(&list(Kind::Namespace, Form::Json, 9, [&stored, &stored].into_iter())).unwrap();
        assert_eq!((listed["items"].as_array().unwrap().len(), listed["kind"].as_str()), (2, Some("NamespaceList")));
    }
}
