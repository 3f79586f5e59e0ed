//! Trace of one query: its spans, and their text for collectors.
//!
//! The span of a plugin starts when the query reaches it and ends when the response has left it upwards, as if each
//! plugin called the next one.

use core::cell::RefCell;
use core::fmt::Write;
use core::net::SocketAddr;
use core::time::Duration;

use engine::{Instant, Query, Response};

use super::manifest::Form;
use common_plugins::shared::log_format::write_rcode;
use common_plugins::shared::option_helpers::quote_json;

/// Maximum number of spans of a query: the longest chain and some upstream attempts.
const SPANS_MAX: usize = 96;
/// Name of the root span, as in CoreDNS.
const ROOT: &str = "servedns";

/// Spans of one query.
pub(super) struct Trace {
    /// Upper half of the trace ID, and the ID of the root span, which is also the lower half of the trace ID.
    id: (u64, u64),
    start: Instant,
    start_since_1970: Duration,
    spans: RefCell<Vec<Span>>,
}

struct Span {
    name: &'static str,
    /// Index of the parent span. The root span is its own parent.
    parent: usize,
    start: Instant,
    end: Option<Instant>,
    /// Upstream that the span is an exchange with.
    peer: Option<SocketAddr>,
}

impl Trace {
    /// Starts a trace with its root span.
    pub(super) fn new(id: (u64, u64), start: Instant, start_since_1970: Duration) -> Trace {
        let spans = RefCell::new(vec![Span { name: ROOT, parent: 0, start, end: None, peer: None }]);
        // Span IDs must not be zero.
        Trace { id: (id.0, id.1.max(1)), start, start_since_1970, spans }
    }

    /// Trace ID as hexadecimal text.
    pub(super) fn id(&self) -> String {
        match self.id {
            (0, lower) => format!("{lower:016x}"),
            (upper, lower) => format!("{upper:016x}{lower:016x}"),
        }
    }

    /// Records that the query has reached a plugin.
    pub(super) fn enter(&self, name: &'static str, now: Instant) {
        self.push(name, now, None, None);
    }

    /// Records an exchange with an upstream.
    pub(super) fn ask(&self, peer: SocketAddr, sent: Instant, took: Duration) {
        self.push("connect", sent, Some(sent + took), Some(peer));
    }

    fn push(&self, name: &'static str, start: Instant, end: Option<Instant>, peer: Option<SocketAddr>) {
        let mut spans = self.spans.borrow_mut();
        if spans.len() < SPANS_MAX {
            let parent = spans.iter().rposition(|span| span.end.is_none()).unwrap_or(0);
            spans.push(Span { name, parent, start, end, peer });
        }
    }

    /// Records that the response has reached a plugin, which ends all spans below.
    pub(super) fn come_up_to(&self, name: &'static str, now: Instant) {
        let mut spans = self.spans.borrow_mut();
        let below = spans.iter().rposition(|span| span.name == name && span.end.is_none()).map_or(1, |at| at + 1);
        spans.iter_mut().skip(below).for_each(|span| span.end = span.end.or(Some(now)));
    }

    /// Records that the response leaves a plugin.
    pub(super) fn leave(&self, name: &'static str, now: Instant) {
        let mut spans = self.spans.borrow_mut();
        let left = spans.iter_mut().rfind(|span| span.name == name && span.end.is_none());
        left.into_iter().for_each(|span| span.end = Some(now));
    }

    /// Writes all spans, each followed by a comma. The query is answered at `now`.
    pub(super) fn write(
        &self,
        form: Form,
        service: &str,
        (query, response): (&Query, &Response),
        now: Instant,
        text: &mut String,
    ) {
        let spans = self.spans.borrow();
        for (at, span) in spans.iter().enumerate() {
            let tags = if at == 0 { tags(query, response) } else { Vec::new() };
            let peer = span.peer.map(|peer| ("peer.address", peer.to_string()));
            let tags: Vec<_> = tags.into_iter().chain(peer).collect();
            // Writing to a `String` does not fail.
            let _ = match form {
                Form::Otlp => self.write_otlp(at, span, &tags, now, text),
                Form::Zipkin => self.write_zipkin(at, span, &tags, (service, query.peer.local, now), text),
            };
        }
    }

    /// Writes a span in Zipkin's JSON, version 2.
    fn write_zipkin(
        &self,
        at: usize,
        span: &Span,
        tags: &[(&str, String)],
        (service, local, now): (&str, SocketAddr, Instant),
        text: &mut String,
    ) -> core::fmt::Result {
        let (since_1970, took) = self.times(span, now);
        write!(text, "{{\"traceId\":\"{}\",\"id\":\"{:016x}\"", self.id(), self.span_id(at))?;
        if at > 0 {
            write!(text, ",\"parentId\":\"{:016x}\"", self.span_id(span.parent))?;
        }
        write!(text, ",\"name\":\"{}\"", span.name)?;
        text.push_str(if at == 0 { ",\"kind\":\"SERVER\"" } else { "" });
        write!(text, ",\"timestamp\":{},\"duration\":{}", since_1970.as_micros(), took.as_micros().max(1))?;
        text.push_str(",\"localEndpoint\":{\"serviceName\":");
        quote_json(text, service);
        let ip = local.ip().to_canonical();
        if !ip.is_unspecified() {
            let family = if ip.is_ipv4() { "ipv4" } else { "ipv6" };
            write!(text, ",\"{family}\":\"{ip}\",\"port\":{}", local.port())?;
        }
        text.push('}');
        for (number, (key, value)) in tags.iter().enumerate() {
            write!(text, "{}\"{key}\":", if number == 0 { ",\"tags\":{" } else { "," })?;
            quote_json(text, value);
        }
        text.push_str(if tags.is_empty() { "}," } else { "}}," });
        Ok(())
    }

    /// Writes a span in OTLP's JSON.
    fn write_otlp(
        &self,
        at: usize,
        span: &Span,
        tags: &[(&str, String)],
        now: Instant,
        text: &mut String,
    ) -> core::fmt::Result {
        const KIND_INTERNAL: u8 = 1;
        const KIND_SERVER: u8 = 2;
        const KIND_CLIENT: u8 = 3;
        let (start, took) = self.times(span, now);
        let kind = match (at, span.peer) {
            (0, _) => KIND_SERVER,
            (_, Some(_)) => KIND_CLIENT,
            (_, None) => KIND_INTERNAL,
        };
        write!(
            text,
            "{{\"traceId\":\"{:016x}{:016x}\",\"spanId\":\"{:016x}\"",
            self.id.0,
            self.id.1,
            self.span_id(at)
        )?;
        if at > 0 {
            write!(text, ",\"parentSpanId\":\"{:016x}\"", self.span_id(span.parent))?;
        }
        write!(text, ",\"name\":\"{}\",\"kind\":{kind}", span.name)?;
        let (start, end) = (start.as_nanos(), (start + took).as_nanos());
        write!(text, ",\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":[")?;
        for (number, (key, value)) in tags.iter().enumerate() {
            write!(text, "{}{{\"key\":\"{key}\",\"value\":{{\"stringValue\":", if number == 0 { "" } else { "," })?;
            quote_json(text, value);
            text.push_str("}}");
        }
        text.push_str("]},");
        Ok(())
    }

    /// Start of a span since the Unix epoch, and its duration.
    fn times(&self, span: &Span, now: Instant) -> (Duration, Duration) {
        let since_1970 = self.start_since_1970 + span.start.since(self.start);
        (since_1970, span.end.unwrap_or(now).since(span.start))
    }

    /// ID of a span: the root's, or a number derived from it (splitmix64).
    fn span_id(&self, at: usize) -> u64 {
        if at == 0 {
            return self.id.1;
        }
        let step = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.id.1.wrapping_add(step);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).max(1)
    }
}

/// Tags of the root span, with CoreDNS's names.
fn tags(query: &Query, response: &Response) -> Vec<(&'static str, String)> {
    let mut rcode = Vec::new();
    if !response.is_dropped() {
        let _ = write_rcode(&mut rcode, response);
    }
    vec![
        ("coredns.io/name", query.request.name.clone().into_lowercase().to_string()),
        ("coredns.io/type", query.request.qtype.to_string()),
        ("coredns.io/rcode", String::from_utf8(rcode).unwrap_or_default()),
        ("coredns.io/proto", query.peer.transport.label().to_owned()),
        ("coredns.io/remote", query.peer.address.ip().to_canonical().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_json_strings() {
        let mut json = String::new();
        quote_json(&mut json, "a\"b\\c\u{1}\u{e9}");
        assert_eq!(json, r#""a\"b\\c\u0001é""#);
    }

    #[test]
    fn nests_spans() {
        let at = Instant::from_nanos;
        let trace = Trace::new((0, 7), at(0), Duration::ZERO);
        trace.enter("cache", at(1));
        trace.enter("forward", at(2));
        trace.ask("192.0.2.1:53".parse().unwrap(), at(3), Duration::from_nanos(2));
        trace.come_up_to("cache", at(6));
        trace.leave("cache", at(7));
        trace.enter("late", at(8));
        let spans = trace.spans.borrow();
        let seen: Vec<_> = spans.iter().map(|span| (span.name, span.parent, span.end.map(Instant::nanos))).collect();
        let expected = [
            (ROOT, 0, None),
            ("cache", 0, Some(7)),
            ("forward", 1, Some(6)),
            ("connect", 2, Some(5)),
            ("late", 0, None),
        ];
        assert_eq!(seen, expected);
    }
}
