//! Formats of a log line: CoreDNS's text, or a JSON object.

use std::io::Write as _;
use std::time::Duration;

use engine::log::{Event, Level, Source};
use host::time::{rfc3339, rfc3339_nanos};

/// Log format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `[LEVEL] plugin/NAME: message`, as CoreDNS writes it.
    #[default]
    Text,
    /// One JSON object per line, with the keys of CoreDNS 1.15.0.
    Json,
}

impl Format {
    /// Returns the format with this name on the command line.
    pub fn by_name(name: &str) -> Option<Format> {
        match name {
            "text" => Some(Format::Text),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// Renders events in one format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renderer {
    pub(super) format: Format,
    /// True if text lines begin with the time, as on a terminal. Container runtimes and journald add the time
    /// themselves.
    pub(super) timestamps: bool,
}

impl Renderer {
    /// Appends one line. `repeated` is the number of identical events in the last second that got no line of their own.
    pub(super) fn line(&self, out: &mut Vec<u8>, event: &Event<'_>, repeated: u64) {
        match self.format {
            Format::Text => {
                if self.timestamps && event.source != Source::Banner {
                    // Writing to a `Vec` cannot fail.
                    let _ = write!(out, "{} ", rfc3339(event.time));
                }
                event.write_text(out);
                if repeated > 0 {
                    let _ = write!(out, " (repeated {repeated} times in the last second)");
                }
            }
            Format::Json => write_json(out, event, repeated),
        }
        out.push(b'\n');
    }
}

/// Returns the text of an error that ends the process, as a record of level FATAL with [`Format::Json`].
pub(super) fn fatal(format: Format, since_1970: Duration, text: &str) -> String {
    match format {
        Format::Text => text.to_owned(),
        Format::Json => {
            let mut out = Vec::new();
            write_members(&mut out, since_1970, "FATAL", text);
            out.push(b'}');
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// Appends the opening brace and the members that each record has.
fn write_members(out: &mut Vec<u8>, since_1970: Duration, level: &str, text: &str) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{{\"time\":\"{}\",\"level\":\"{level}\",\"msg\":", rfc3339_nanos(since_1970));
    let _ = serde_json::to_writer(&mut *out, text);
}

/// Appends an object with the keys of CoreDNS 1.15.0, because collectors are set up for them. `repeated` is ours.
fn write_json(out: &mut Vec<u8>, event: &Event<'_>, repeated: u64) {
    let level = match event.level {
        Level::Warning => "WARN",
        level => level.name(),
    };
    write_members(out, event.time, level, &event.text());
    if let Source::Plugin(_) | Source::Queries = event.source {
        let _ = write!(out, ",\"plugin\":");
        let _ = serde_json::to_writer(&mut *out, event.source.name());
    }
    if !event.fields.is_empty() {
        out.push(b',');
        out.extend_from_slice(event.fields);
    }
    if repeated > 0 {
        let _ = write!(out, ",\"repeated\":{repeated}");
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(format: Format, timestamps: bool, event: &Event<'_>, repeated: u64) -> String {
        let mut out = Vec::new();
        Renderer { format, timestamps }.line(&mut out, event, repeated);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn renders_text_and_json_lines() {
        let event = Event {
            time: Duration::from_millis(1_795_366_335_042),
            level: Level::Error,
            source: Source::Plugin("errors"),
            message: b"2 a\"b. A: \xff",
            fields: &[],
        };
        let text = "[ERROR] plugin/errors: 2 a\"b. A: ";
        assert!(line(Format::Text, false, &event, 0).starts_with(text));
        assert!(line(Format::Text, true, &event, 0).starts_with(&format!("2026-11-22T16:52:15.042Z {text}")));
        assert!(
            line(Format::Text, false, &Event { message: b"text", ..event }, 7)
                .ends_with(": text (repeated 7 times in the last second)\n")
        );
        let read: serde_json::Value = serde_json::from_str(&line(Format::Json, true, &event, 7)).expect("JSON");
        let expected = json!({
            "time": "2026-11-22T16:52:15.042000000Z", "level": "ERROR", "msg": "2 a\"b. A: \u{fffd}", "plugin": "errors",
            "repeated": 7,
        });
        assert_eq!(read, expected);
        let query =
            Event { level: Level::Warning, source: Source::Queries, fields: b"\"id\":7,\"rcode\":null", ..event };
        let read: serde_json::Value = serde_json::from_str(&line(Format::Json, true, &query, 0)).expect("JSON");
        assert_eq!((&read["level"], &read["plugin"], &read["id"]), (&json!("WARN"), &json!("log"), &json!(7)));
        assert!(read["rcode"].is_null());
        let server = Event { source: Source::Server, ..event };
        assert!(!line(Format::Json, true, &server, 0).contains("plugin"));
    }
}
