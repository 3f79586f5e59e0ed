//! Encoding of responses: JSON, or protobuf if the client prefers it and the kind has a schema.

use serde_json::{Value, json};

use crate::protobuf;

/// Encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Protobuf,
}

impl Format {
    /// Returns the format that a client prefers, by its `Accept` header.
    pub(crate) fn preferred(accept: &str) -> Format {
        let media_types = accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim());
        let known = media_types.filter_map(|media_type| match media_type {
            protobuf::CONTENT_TYPE => Some(Format::Protobuf),
            "application/json" | "application/*" | "*/*" => Some(Format::Json),
            _ => None,
        });
        known.into_iter().next().unwrap_or(Format::Json)
    }

    /// Returns the format, or JSON if the kind has no protobuf schema.
    pub(crate) fn of_kind(self, kind: &str) -> Format {
        if protobuf::is_known(kind) { self } else { Format::Json }
    }

    pub(crate) fn content_type(self, is_watch: bool) -> &'static str {
        match (self, is_watch) {
            (Format::Json, _) => "application/json",
            (Format::Protobuf, false) => protobuf::CONTENT_TYPE,
            (Format::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    pub(crate) fn object(self, object: &Value) -> Vec<u8> {
        match self {
            Format::Json => object.to_string().into_bytes(),
            Format::Protobuf => protobuf::object("", object),
        }
    }

    pub(crate) fn list(self, kind: &str, api_version: &str, metadata: &Value, items: &[&Value]) -> Vec<u8> {
        match self {
            Format::Protobuf => protobuf::list(kind, api_version, metadata, items),
            Format::Json => {
                let kind = format!("{kind}List");
                let list = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items });
                serde_json::to_vec(&list).unwrap()
            }
        }
    }

    /// Encodes a watch event of a kind.
    pub(crate) fn event(self, kind: &str, what: &str, object: &Value) -> Vec<u8> {
        match self {
            Format::Protobuf => protobuf::event(kind, what, object),
            Format::Json => line(&serde_json::to_string(&json!({ "type": what, "object": object })).unwrap()),
        }
    }

    /// Encodes a line injected by a test: JSON, or arbitrary bytes.
    pub(crate) fn raw(self, kind: &str, text: &str) -> Vec<u8> {
        match (self, serde_json::from_str::<Value>(text)) {
            (Format::Json, _) => line(text),
            (Format::Protobuf, Ok(event)) if event.is_object() => {
                protobuf::event(kind, event["type"].as_str().unwrap_or_default(), &event["object"])
            }
            (Format::Protobuf, _) => protobuf::frame(text.as_bytes()),
        }
    }
}

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}
