//! Protobuf encoder for objects in JSON, with the field numbers in `schema.txt`.
//!
//! Fields that are not in the schema are omitted. A JSON value of the wrong type is encoded by its own type, so the
//! protobuf is invalid in the same way.

mod schema;

use serde_json::Value;

use schema::{Field, FieldType, Message};

/// `Content-Type` of an object or a list. Watches append `;stream=watch`.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Returns true if the schema contains the kind.
#[must_use]
pub fn is_known(kind: &str) -> bool {
    schema::message(kind).is_some()
}

/// Encodes an object with its magic bytes and envelope. `kind` is used if the object does not state its kind.
#[must_use]
pub fn object(kind: &str, object: &Value) -> Vec<u8> {
    let kind = object["kind"].as_str().unwrap_or(kind);
    let raw = schema::message(kind).map_or_else(Vec::new, |message| fields(message, object));
    envelope(kind, object["apiVersion"].as_str().unwrap_or("v1"), &raw)
}

/// Encodes a list of objects of a kind.
#[must_use]
pub fn list(kind: &str, api_version: &str, metadata: &Value, items: &[&Value]) -> Vec<u8> {
    let mut raw = Vec::new();
    delimited(&mut raw, 1, &schema::message("ListMeta").map_or_else(Vec::new, |message| fields(message, metadata)));
    for item in items {
        delimited(&mut raw, 2, &schema::message(kind).map_or_else(Vec::new, |message| fields(message, item)));
    }
    envelope(&format!("{kind}List"), api_version, &raw)
}

/// Encodes a framed watch event. A null object is omitted.
#[must_use]
pub fn event(kind: &str, event_type: &str, subject: &Value) -> Vec<u8> {
    let mut event = Vec::new();
    delimited(&mut event, 1, event_type.as_bytes());
    if !subject.is_null() {
        let mut extension = Vec::new();
        delimited(&mut extension, 1, &object(kind, subject));
        delimited(&mut event, 2, &extension);
    }
    frame(&event)
}

/// Prefixes bytes with their length.
#[must_use]
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a frame is short");
    [&length.to_be_bytes(), bytes].concat()
}

fn envelope(kind: &str, api_version: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    delimited(&mut type_meta, 1, api_version.as_bytes());
    delimited(&mut type_meta, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    delimited(&mut out, 1, &type_meta);
    delimited(&mut out, 2, raw);
    delimited(&mut out, 3, b"");
    delimited(&mut out, 4, b"");
    out
}

fn fields(message: &Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for Field { name, number, kind } in message {
        let number = *number;
        match (&value[name], kind) {
            (Value::Null, FieldType::Text { always: true } | FieldType::Time { always: true }) => {
                delimited(&mut out, number, b"");
            }
            (Value::Null, FieldType::Number { always: true }) => varint_field(&mut out, number, 0),
            (Value::Null, _) => {}
            (Value::Array(values), _) => values.iter().for_each(|value| field(&mut out, number, kind, value)),
            (Value::Object(entries), FieldType::Map) => {
                for (key, value) in entries {
                    let mut entry = Vec::new();
                    delimited(&mut entry, 1, key.as_bytes());
                    field(&mut entry, 2, &FieldType::Text { always: true }, value);
                    delimited(&mut out, number, &entry);
                }
            }
            (value, _) => field(&mut out, number, kind, value),
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u64, kind: &FieldType, value: &Value) {
    match (value, kind) {
        // No reader of this protobuf looks at the time.
        (_, FieldType::Time { .. }) => delimited(out, number, b"\x08\x01\x10\x00"),
        (_, FieldType::Port) => delimited(out, number, &port(value)),
        (_, FieldType::Json) => {
            let mut bytes = Vec::new();
            delimited(&mut bytes, 1, value.to_string().as_bytes());
            delimited(out, number, &bytes);
        }
        (Value::Object(_), FieldType::Message(name)) => {
            let message = schema::message(name).unwrap_or_else(|| panic!("there is no message {name}"));
            delimited(out, number, &fields(message, value));
        }
        (Value::Bool(truth), _) => varint_field(out, number, u64::from(*truth)),
        (Value::Number(value), _) => varint_field(out, number, integer(value)),
        (Value::String(text), _) => delimited(out, number, text.as_bytes()),
        (Value::Null, _) => delimited(out, number, b""),
        (Value::Array(_) | Value::Object(_), _) => delimited(out, number, value.to_string().as_bytes()),
    }
}

/// Encodes an IntOrString.
fn port(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    varint_field(&mut out, 1, u64::from(value.is_string()));
    varint_field(&mut out, 2, value.as_u64().unwrap_or_default());
    delimited(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
    out
}

/// Returns an integer as a protobuf varint: negative numbers in 64-bit two's complement.
fn integer(value: &serde_json::Number) -> u64 {
    value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned)).unwrap_or(u64::MAX)
}

fn delimited(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint_field(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn encodes_objects_lists_and_events_like_kubernetes() {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a", "labels": { "k": "v" } } });
        let metadata = b"\x0a\x01a\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x5a\x06\x0a\x01k\x12\x01v";
        let raw = [b"\x0a\x19", &metadata[..]].concat();
        let expected = [b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b", &raw[..], b"\x1a\0\x22\0"].concat();
        assert_eq!(object("Namespace", &namespace), expected);
        let listed = list("Namespace", "v1", &json!({ "resourceVersion": "7" }), &[&namespace]);
        let items = [b"\x0a\x07\x0a\0\x12\x017\x1a\0\x12\x1b", &raw[..]].concat();
        assert_eq!(
            listed,
            [b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dNamespaceList\x12\x26", &items[..], b"\x1a\0\x22\0"].concat()
        );
        let framed = event("Namespace", "ADDED", &namespace);
        assert_eq!(framed[..11], *b"\0\0\0\x41\x0a\x05ADDED");
        assert_eq!(framed[11..], [b"\x12\x38\x0a\x36", &expected[..]].concat());
    }

    #[test]
    fn schema_defines_every_message_it_refers_to() {
        for kind in ["Namespace", "Service", "EndpointSlice", "Pod", "Node", "Status"] {
            assert!(is_known(kind), "{kind}");
        }
        assert!(!is_known("ServiceImport") && !is_known("ConfigMap"));
        schema::check();
    }
}
