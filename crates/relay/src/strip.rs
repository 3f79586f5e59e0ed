//! Stripping of an object to the fields of a profile, and its conversion to JSON, both from the bytes of its protobuf.

use std::fmt::Write;

use crate::table::{Content, Kept, Keys, Kind, endpoint};
use crate::wire::{Fields, Value, WireError, entry, put_bytes};

/// Returns the object with the kept fields alone. [`to_json`] accepts the result.
///
/// # Errors
/// Bytes that are not a message of this kind.
pub fn strip(kind: Kind, object: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(object.len() / 4);
    strip_message(kind.fields(), object, &mut out)?;
    Ok(out)
}

/// Leaves the names of ready pods out of a stripped object. They are random, so that they would be a third of what
/// remains of a change after compression, and answers need them with `endpoint_pod_names` alone. The names of pods that
/// are not ready explain why an answer is without them.
pub(crate) fn leave_out_pods(kind: Kind, object: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(object.len());
    for field in Fields::of(object) {
        let field = field?;
        if kind != Kind::EndpointSlice || field.number != endpoint::LIST {
            out.extend_from_slice(field.raw);
            continue;
        }
        let message = field.value.bytes()?;
        let is_ready = is_ready(message)?;
        let mut content = Vec::with_capacity(message.len());
        for field in Fields::of(message) {
            let field = field?;
            if !is_ready || field.number != endpoint::TARGET {
                content.extend_from_slice(field.raw);
            }
        }
        put_bytes(&mut out, endpoint::LIST, &content);
    }
    Ok(out)
}

/// Returns true for an endpoint that is ready, or of which this is not known (EndpointSlice API: then it counts as
/// ready). Of several values, the last one wins.
fn is_ready(message: &[u8]) -> Result<bool, WireError> {
    let mut is_ready = true;
    for field in Fields::of(message) {
        let field = field?;
        if field.number == endpoint::CONDITIONS {
            for field in Fields::of(field.value.bytes()?) {
                let field = field?;
                if field.number == endpoint::READY {
                    is_ready = field.value.number()? != 0;
                }
            }
        }
    }
    Ok(is_ready)
}

fn strip_message(kept: &[Kept], message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    for field in Fields::of(message) {
        let field = field?;
        let Some(kept) = kept.iter().find(|kept| kept.number == field.number) else { continue };
        match kept.content {
            // Go writes texts that are not set, too.
            Content::Text if field.value.text()?.is_empty() && !kept.is_list => {}
            Content::Text => out.extend_from_slice(field.raw),
            Content::Time => {
                seconds(field.value.bytes()?)?;
                out.extend_from_slice(field.raw);
            }
            Content::Number | Content::Boolean => {
                field.value.number()?;
                out.extend_from_slice(field.raw);
            }
            Content::Map(keys) => {
                if keys.keep(entry(field.value.bytes()?)?.0) {
                    out.extend_from_slice(field.raw);
                }
            }
            Content::Message(inner) => {
                let mut content = Vec::new();
                strip_message(inner, field.value.bytes()?, &mut content)?;
                put_bytes(out, field.number, &content);
            }
        }
    }
    Ok(())
}

/// Returns an object as JSON, with the kept fields alone.
///
/// # Errors
/// Bytes that are not a message of this kind.
pub fn to_json(kind: Kind, object: &[u8]) -> Result<String, WireError> {
    let head = format!("\"kind\":\"{}\",\"apiVersion\":\"{}\"", kind.name(), kind.api_version());
    let mut out = format!("{{{head}");
    members(kind.fields(), object, &mut out, false)?;
    out.push('}');
    Ok(out)
}

/// Appends the members of a JSON object. `is_first` is true before the first member.
fn members(kept: &[Kept], message: &[u8], out: &mut String, mut is_first: bool) -> Result<(), WireError> {
    for kept in kept {
        let mut values = Vec::new();
        for field in Fields::of(message) {
            let field = field?;
            if field.number == kept.number && is_written(kept, field.value)? {
                values.push(field.value);
            }
        }
        if values.is_empty() {
            continue;
        }
        if !is_first {
            out.push(',');
        }
        is_first = false;
        quote(kept.name, out);
        out.push(':');
        write_field(kept, &values, out)?;
    }
    Ok(())
}

fn is_written(kept: &Kept, value: Value<'_>) -> Result<bool, WireError> {
    Ok(match kept.content {
        Content::Text => kept.is_list || !value.text()?.is_empty(),
        Content::Map(keys) => keys.keep(entry(value.bytes()?)?.0),
        Content::Number | Content::Boolean | Content::Time | Content::Message(_) => true,
    })
}

fn write_field(kept: &Kept, values: &[Value<'_>], out: &mut String) -> Result<(), WireError> {
    match (kept.content, kept.is_list) {
        (Content::Map(keys), _) => write_map(keys, values, out),
        (content, true) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(content, *value, out)?;
            }
            out.push(']');
            Ok(())
        }
        // The last one wins.
        (content, false) => values.last().map_or(Ok(()), |value| write_value(content, *value, out)),
    }
}

fn write_map(keys: Keys, values: &[Value<'_>], out: &mut String) -> Result<(), WireError> {
    out.push('{');
    let mut is_first = true;
    for value in values {
        let (key, content) = entry(value.bytes()?)?;
        if keys.keep(key) {
            if !is_first {
                out.push(',');
            }
            is_first = false;
            quote(key, out);
            out.push(':');
            quote(content, out);
        }
    }
    out.push('}');
    Ok(())
}

fn write_value(content: Content, value: Value<'_>, out: &mut String) -> Result<(), WireError> {
    match content {
        Content::Text | Content::Map(_) => quote(value.text()?, out),
        // An int32 below zero is a varint of 64 bits.
        Content::Number => drop(write!(out, "{}", value.number()?.cast_signed())),
        Content::Boolean => out.push_str(if value.number()? == 0 { "false" } else { "true" }),
        Content::Time => quote(&time(value.bytes()?)?, out),
        Content::Message(inner) => {
            out.push('{');
            members(inner, value.bytes()?, out, true)?;
            out.push('}');
        }
    }
    Ok(())
}

/// Appends a JSON string.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => drop(write!(out, "\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Returns the seconds of a metav1.Time since 1970.
fn seconds(bytes: &[u8]) -> Result<i64, WireError> {
    let mut seconds = 0;
    for field in Fields::of(bytes) {
        let field = field?;
        if field.number == 1 {
            seconds = field.value.number()?.cast_signed();
        }
    }
    Ok(seconds)
}

/// Returns a metav1.Time in the form of RFC 3339, in whole seconds, as the API server does.
fn time(bytes: &[u8]) -> Result<String, WireError> {
    let seconds = seconds(bytes)?;
    // Four digits of the year are all that RFC 3339 has.
    let seconds = seconds.clamp(-62_135_596_800, 253_402_300_799);
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Days to a date: Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    /// Returns the bytes of an object, without magic bytes and envelope.
    fn raw(object: &Json) -> Vec<u8> {
        let enveloped = fakeapi::protobuf::object("", object);
        let found = Fields::of(&enveloped[4..]).map(Result::unwrap).find(|field| field.number == 2).unwrap();
        found.value.bytes().unwrap().to_vec()
    }

    fn slice() -> Json {
        json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
            "metadata": {
                "name": "web-1", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": { "kubernetes.io/service-name": "web", "other": "x" },
                "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "t", "other": "x" },
                "managedFields": [{ "manager": "m", "fieldsV1": { "f:x": {} } }],
            },
            "endpoints": [{
                "addresses": ["10.0.0.1", "10.0.0.2"], "conditions": { "ready": false, "serving": true },
                "hostname": "a\"b", "nodeName": "n", "zone": "z",
                "targetRef": { "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u" },
            }],
            "ports": [{ "name": "", "protocol": "TCP", "port": 80 }],
        })
    }

    #[test]
    fn keeps_what_answers_need() {
        let full = raw(&slice());
        let stripped = strip(Kind::EndpointSlice, &full).unwrap();
        let expected = json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
            "metadata": {
                "name": "web-1", "namespace": "shop", "resourceVersion": "7",
                "labels": { "kubernetes.io/service-name": "web" },
                "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "t" },
            },
            "endpoints": [{
                "addresses": ["10.0.0.1", "10.0.0.2"], "conditions": { "ready": false }, "hostname": "a\"b",
                "zone": "z", "targetRef": { "kind": "Pod", "name": "web-0" },
            }],
            "ports": [{ "protocol": "TCP", "port": 80 }],
        });
        for bytes in [&full, &stripped] {
            let json: Json = serde_json::from_str(&to_json(Kind::EndpointSlice, bytes).unwrap()).unwrap();
            assert_eq!(json, expected);
        }
        assert_eq!(strip(Kind::EndpointSlice, &stripped).unwrap(), stripped);
        assert!(stripped.len() * 4 < full.len() * 3, "{} of {}", stripped.len(), full.len());
    }

    /// Returns an endpoint of a pod with these conditions.
    fn endpoint(pod: &str, conditions: &Json) -> Json {
        json!({
            "addresses": ["10.0.0.1"], "conditions": conditions, "zone": "z",
            "targetRef": { "kind": "Pod", "name": pod },
        })
    }

    #[test]
    fn keeps_the_names_of_pods_that_are_not_ready() {
        let mut slice = slice();
        slice["endpoints"] = json!([
            endpoint("a", &json!({ "ready": true })),
            endpoint("b", &json!({ "ready": false, "serving": true })),
            endpoint("c", &json!({})),
        ]);
        let stripped = strip(Kind::EndpointSlice, &raw(&slice)).unwrap();
        let bytes = leave_out_pods(Kind::EndpointSlice, &stripped).unwrap();
        let json: Json = serde_json::from_str(&to_json(Kind::EndpointSlice, &bytes).unwrap()).unwrap();
        let endpoints = json["endpoints"].as_array().unwrap();
        let names: Vec<Option<&str>> =
            endpoints.iter().map(|endpoint| endpoint["targetRef"]["name"].as_str()).collect();
        assert_eq!(names, [None, Some("b"), None]);
        assert!(endpoints.iter().all(|endpoint| endpoint["zone"] == "z" && endpoint["addresses"][0] == "10.0.0.1"));
        assert_eq!(json["ports"][0]["port"], 80);
        assert_eq!(leave_out_pods(Kind::EndpointSlice, &bytes).unwrap(), bytes);
        assert_eq!(leave_out_pods(Kind::Service, &stripped).unwrap(), stripped, "of other kinds nothing is left out");
    }

    #[test]
    fn keeps_all_labels_of_pods() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a", "labels": { "app": "x" } },
            "spec": { "hostNetwork": true, "nodeName": "n" },
            "status": { "podIP": "1.2.3.4", "podIPs": [{ "ip": "1.2.3.4" }] },
        });
        let json: Json = serde_json::from_str(&to_json(Kind::Pod, &raw(&pod)).unwrap()).unwrap();
        assert_eq!((&json["metadata"]["labels"]["app"], &json["spec"]["hostNetwork"]), (&json!("x"), &json!(true)));
        assert_eq!((&json["status"]["podIPs"][0]["ip"], &json["spec"]["nodeName"]), (&json!("1.2.3.4"), &Json::Null));
    }

    #[test]
    fn refuses_other_bytes() {
        // The last one has a time whose field has no number.
        let no_time = b"\x0a\x08\x4a\x06\x88\x80\x80\x80\x80\x80";
        for bytes in [&b"\x0a\x7f"[..], b"\x08\x01", b"\x0b", b"\x0a\x03\x0a\x01\xff", no_time] {
            assert!(strip(Kind::Service, bytes).is_err(), "{bytes:?}");
            assert!(to_json(Kind::Service, bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn writes_times_as_the_api_server_does() {
        let at = |seconds: i64| {
            let mut bytes = Vec::new();
            crate::wire::put_number(&mut bytes, 1, seconds.cast_unsigned());
            time(&bytes).unwrap()
        };
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(1_709_164_800), "2024-02-29T00:00:00Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59Z");
        assert_eq!((at(i64::MIN), at(i64::MAX)), ("0001-01-01T00:00:00Z".into(), "9999-12-31T23:59:59Z".into()));
    }
}
