//! Formats of the lines of a tail.

use core::fmt::Write;

use super::{Client, ClientKind, Ended, Event, Line, SECONDS_MAX};
use crate::text::{count, duration, ede_meaning, harmless, rate};

/// Position of the time of day in a time of RFC 3339.
const TIME_OF_DAY: core::ops::Range<usize> = 11..23;

/// Format of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One line per query, for a terminal.
    #[default]
    Line,
    /// The same with the address and port of the client, the transport, the zone and the upstream.
    Wide,
    /// JSON as the server sends it.
    Json,
    /// `key=value`.
    Logfmt,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Line, Format::Wide, Format::Json, Format::Logfmt];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Line => "line",
            Format::Wide => "wide",
            Format::Json => "json",
            Format::Logfmt => "logfmt",
        }
    }
}

impl Line {
    /// Formats a line, without a line feed at the end.
    #[must_use]
    pub fn text(&self, format: Format) -> String {
        match (self, format) {
            (_, Format::Json) => serde_json::to_string(self).unwrap_or_default(),
            (Line::Query(event), Format::Line) => event.line(),
            (Line::Query(event), Format::Wide) => event.wide(),
            (Line::Query(event), Format::Logfmt) => event.logfmt(),
            (Line::Sampled(sampled), _) => match (sampled.one_of, sampled.per_second) {
                (1, _) => "# showing all".to_owned(),
                (one_of, None) => format!("# showing 1 of {}", count(one_of)),
                (one_of, Some(per_second)) => {
                    format!("# showing 1 of {} ({}/s match)", count(one_of), rate(per_second))
                }
            },
            (Line::LeftOut(left_out), _) => {
                let verb = if left_out.lines == 1 { "line" } else { "lines" };
                format!("# {} {verb} left out", count(left_out.lines))
            }
            (Line::Ended(Ended { after_seconds: SECONDS_MAX.. }), _) => {
                format!("# the server ends a stream after {SECONDS_MAX} s; start again")
            }
            (Line::Ended(Ended { after_seconds }), _) => format!("# ended after {after_seconds} s (`--for`)"),
        }
    }
}

impl Event {
    fn line(&self) -> String {
        let Event { name, answers, .. } = self;
        let time = self.time.get(TIME_OF_DAY).unwrap_or(&self.time);
        let mut out = format!(
            "{}  {:<22}  {:<5}  {:<44}  {:<8}  {:<11}",
            harmless(time),
            self.client.text(),
            harmless(self.qtype.as_deref().unwrap_or("-")),
            if name.is_empty() { "(unreadable)".to_owned() } else { harmless(name) },
            self.outcome(),
            harmless(self.plugin.as_deref().unwrap_or("-")),
        );
        let records = if *answers == 0 { String::new() } else { format!("{} rr", count(*answers)) };
        let _ = write!(out, "  {records:<5}  {:>6}", duration(self.took_seconds));
        let failed = self.rcode.as_deref() != Some("NOERROR");
        if let Some(ede) = self.ede {
            // The text of this case says more than the meaning of the code.
            let text = self.ede_text.as_deref().or(ede_meaning(ede));
            let text = text.map_or(String::new(), |text| format!(" ({})", harmless(text)));
            let _ = write!(out, "  EDE {ede}{text}");
        }
        let attempts = self.upstream_attempts;
        if let Some(upstream) = self.upstream.as_deref().filter(|_| failed || attempts > 1) {
            let _ = write!(out, "  {}", harmless(upstream));
            if attempts > 1 {
                let _ = write!(out, " (attempt {attempts})");
            }
        }
        if self.rewritten {
            out.push_str("  rewritten");
        }
        if self.truncated {
            out.push_str("  truncated");
        }
        out
    }

    fn wide(&self) -> String {
        let Client { address, port, .. } = &self.client;
        let socket = if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
        let [zone, upstream] = [&self.zone, &self.upstream].map(|text| harmless(text.as_deref().unwrap_or("-")));
        format!(
            "{}  {}  {}  zone {zone}  upstream {upstream}",
            self.line(),
            harmless(&socket),
            harmless(&self.transport)
        )
    }

    fn logfmt(&self) -> String {
        let mut out = String::new();
        let mut pair = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let gap = if out.is_empty() { "" } else { " " };
                let _ = write!(out, "{gap}{key}={}", quoted(value));
            }
        };
        let Client { address, port, namespace, pod, service, kind } = &self.client;
        pair("time", Some(&self.time));
        pair("client", Some(address));
        pair("port", Some(&port.to_string()));
        pair("kind", Some(kind.name()));
        pair("namespace", namespace.as_deref());
        pair("pod", pod.as_deref());
        pair("service", service.as_deref());
        pair("transport", Some(&self.transport));
        pair("name", Some(&self.name));
        pair("type", self.qtype.as_deref());
        pair("rcode", self.rcode.as_deref().or(Some(DROPPED)));
        pair("plugin", self.plugin.as_deref());
        pair("zone", self.zone.as_deref());
        pair("answers", Some(&self.answers.to_string()));
        pair("truncated", Some(if self.truncated { "true" } else { "false" }));
        pair("took", Some(&format!("{:.6}", self.took_seconds)));
        pair("ede", self.ede.map(|ede| ede.to_string()).as_deref());
        pair("ede_text", self.ede_text.as_deref());
        pair("upstream", self.upstream.as_deref());
        let attempts = (self.upstream_attempts > 0).then(|| self.upstream_attempts.to_string());
        pair("upstream_attempts", attempts.as_deref());
        pair("rewritten", self.rewritten.then_some("true"));
        out
    }

    fn outcome(&self) -> String {
        harmless(self.rcode.as_deref().unwrap_or(DROPPED))
    }
}

/// Word for the outcome of a query without a response.
const DROPPED: &str = "DROPPED";

impl ClientKind {
    const fn name(self) -> &'static str {
        match self {
            ClientKind::Pod => "pod",
            ClientKind::Node => "node",
            ClientKind::Host => "host",
            ClientKind::Outside => "outside",
            ClientKind::Probe => "probe",
            ClientKind::Unknown => "unknown",
        }
    }
}

impl Client {
    /// Describes the client: its pod, or its address and what is known about it.
    #[must_use]
    pub fn text(&self) -> String {
        let address = harmless(&self.address);
        let inside = |namespace: &String| match (&self.pod, &self.service) {
            (Some(pod), _) => harmless(&format!("{namespace}/{pod}")),
            (None, Some(service)) => harmless(&format!("{namespace}/{service} {address}")),
            (None, None) => harmless(&format!("{namespace}/ {address}")),
        };
        match (self.kind, &self.namespace) {
            (ClientKind::Pod, Some(namespace)) => inside(namespace),
            (ClientKind::Node, _) => format!("{address} (node)"),
            (ClientKind::Host, _) => format!("{address} (host)"),
            (ClientKind::Outside, _) => format!("{address} (no pod)"),
            (ClientKind::Probe, _) => format!("{address} (probe)"),
            _ => address,
        }
    }
}

/// Returns a value of logfmt, in quotes if it needs them.
fn quoted(value: &str) -> String {
    let value = harmless(value);
    if value.is_empty() || value.contains([' ', '"', '=', '\\']) {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ended, LeftOut, Sampled};
    use super::*;

    fn event() -> Event {
        Event {
            time: "2026-11-23T10:04:11.207Z".to_owned(),
            client: Client {
                address: "10.244.1.17".to_owned(),
                port: 40_000,
                kind: ClientKind::Pod,
                namespace: Some("shop".to_owned()),
                pod: Some("web-7d9f".to_owned()),
                service: None,
            },
            transport: "udp".to_owned(),
            name: "git.corp.".to_owned(),
            qtype: Some("AAAA".to_owned()),
            rcode: Some("SERVFAIL".to_owned()),
            plugin: Some("forward".to_owned()),
            zone: Some(".".to_owned()),
            answers: 0,
            truncated: false,
            took_seconds: 5.0,
            ede: Some(22),
            ede_text: None,
            upstream: Some("10.0.0.2:53".to_owned()),
            upstream_attempts: 3,
            rewritten: true,
        }
    }

    #[test]
    fn formats_a_query() {
        let line = Line::Query(Box::new(event()));
        let name = format!("{:<44}", "git.corp.");
        let short = format!(
            "10:04:11.207  shop/web-7d9f           AAAA   {name}  SERVFAIL  forward              5.0 s  EDE 22 (no \
             usable answer of an upstream)  10.0.0.2:53 (attempt 3)  rewritten"
        );
        assert_eq!(line.text(Format::Line), short);
        assert_eq!(line.text(Format::Wide), format!("{short}  10.244.1.17:40000  udp  zone .  upstream 10.0.0.2:53"));
        assert_eq!(
            line.text(Format::Logfmt),
            "time=2026-11-23T10:04:11.207Z client=10.244.1.17 port=40000 kind=pod namespace=shop pod=web-7d9f transport=udp \
             name=git.corp. type=AAAA rcode=SERVFAIL plugin=forward zone=. answers=0 truncated=false took=5.000000 ede=22 \
             upstream=10.0.0.2:53 upstream_attempts=3 rewritten=true"
        );
        let json: Line = serde_json::from_str(&line.text(Format::Json)).expect("JSON");
        assert_eq!(json, line);
    }

    #[test]
    fn an_error_with_a_text_shows_it() {
        let event = Event { ede: Some(0), ede_text: Some("forwarding loop detected".to_owned()), ..event() };
        let line = Line::Query(Box::new(event));
        assert!(line.text(Format::Line).contains("  EDE 0 (forwarding loop detected)  "));
        assert!(line.text(Format::Logfmt).contains(" ede=0 ede_text=\"forwarding loop detected\" "));
    }

    #[test]
    fn says_what_is_known_about_a_client() {
        let mut client = event().client;
        assert_eq!(client.text(), "shop/web-7d9f");
        (client.pod, client.service) = (None, Some("web".to_owned()));
        assert_eq!(client.text(), "shop/web 10.244.1.17");
        client.kind = ClientKind::Node;
        assert_eq!(client.text(), "10.244.1.17 (node)");
        client.kind = ClientKind::Unknown;
        assert_eq!(client.text(), "10.244.1.17");
    }

    #[test]
    fn formats_notices_as_comments() {
        let sampled = |one_of, per_second| Line::Sampled(Sampled { one_of, per_second }).text(Format::Line);
        assert_eq!(sampled(8, Some(160_000.0)), "# showing 1 of 8 (160.0k/s match)");
        assert_eq!((sampled(100, None), sampled(1, Some(9.0))), ("# showing 1 of 100".into(), "# showing all".into()));
        assert_eq!(Line::LeftOut(LeftOut { lines: 1 }).text(Format::Wide), "# 1 line left out");
        assert_eq!(Line::LeftOut(LeftOut { lines: 1200 }).text(Format::Logfmt), "# 1,200 lines left out");
        let ended = Line::Ended(Ended { after_seconds: 3600 });
        assert_eq!(ended.text(Format::Line), "# the server ends a stream after 3600 s; start again");
        let ended = Line::Ended(Ended { after_seconds: 1 });
        assert_eq!(ended.text(Format::Line), "# ended after 1 s (`--for`)");
    }

    #[test]
    fn a_hostile_name_cannot_change_the_terminal_or_add_a_field() {
        let event = Event { name: "a\u{1b}[2J b\" rcode=x".to_owned(), ..event() };
        let line = Line::Query(Box::new(event));
        assert!(line.text(Format::Line).contains("a\\u{1b}[2J b\" rcode=x"));
        assert!(line.text(Format::Logfmt).contains(" name=\"a\\\\u{1b}[2J b\\\" rcode=x\" "));
    }
}
