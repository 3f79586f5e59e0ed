//! What became of one query, step by step: the spans, and their text for collectors.
//!
//! A step's span reaches from the moment when the query comes to it to the moment when the answer has left it upwards, as
//! if each step called the next one.

use core::cell::RefCell;
use core::fmt::Write;
use core::net::SocketAddr;
use core::time::Duration;

use engine::{Moment, Query, Response};

use super::config::Form;
use crate::common::quote_json;
use crate::placeholders::write_rcode;

/// Spans of one query: the longest chain and some attempts at upstreams.
const SPANS_MAX: usize = 96;
/// The span of the query itself, as CoreDNS names it.
const ROOT: &str = "servedns";

/// The spans of one query.
pub(super) struct Trace {
    /// The upper half of the trace's id, and the id of its first span, which is the lower half too.
    id: (u64, u64),
    start: Moment,
    start_since_1970: Duration,
    spans: RefCell<Vec<Span>>,
}

struct Span {
    name: &'static str,
    /// Which one it lies in; the first one, in itself.
    parent: usize,
    start: Moment,
    end: Option<Moment>,
    /// Whom it asked.
    peer: Option<SocketAddr>,
}

impl Trace {
    /// Begins with the query itself.
    pub(super) fn new(id: (u64, u64), start: Moment, start_since_1970: Duration) -> Trace {
        let spans = RefCell::new(vec![Span { name: ROOT, parent: 0, start, end: None, peer: None }]);
        // No id is zero.
        Trace { id: (id.0, id.1.max(1)), start, start_since_1970, spans }
    }

    /// The id, as others show it.
    pub(super) fn id(&self) -> String {
        match self.id {
            (0, lower) => format!("{lower:016x}"),
            (upper, lower) => format!("{upper:016x}{lower:016x}"),
        }
    }

    /// The query has come to a step.
    pub(super) fn enter(&self, name: &'static str, now: Moment) {
        self.push(name, now, None, None);
    }

    /// An upstream was asked.
    pub(super) fn ask(&self, peer: SocketAddr, sent: Moment, took: Duration) {
        self.push("connect", sent, Some(sent + took), Some(peer));
    }

    fn push(&self, name: &'static str, start: Moment, end: Option<Moment>, peer: Option<SocketAddr>) {
        let mut spans = self.spans.borrow_mut();
        if spans.len() < SPANS_MAX {
            let parent = spans.iter().rposition(|span| span.end.is_none()).unwrap_or(0);
            spans.push(Span { name, parent, start, end, peer });
        }
    }

    /// The answer has come up to a step: all below it is over.
    pub(super) fn come_up_to(&self, name: &'static str, now: Moment) {
        let mut spans = self.spans.borrow_mut();
        let below = spans.iter().rposition(|span| span.name == name && span.end.is_none()).map_or(1, |at| at + 1);
        spans.iter_mut().skip(below).for_each(|span| span.end = span.end.or(Some(now)));
    }

    /// The answer leaves a step.
    pub(super) fn leave(&self, name: &'static str, now: Moment) {
        let mut spans = self.spans.borrow_mut();
        let left = spans.iter_mut().rfind(|span| span.name == name && span.end.is_none());
        left.into_iter().for_each(|span| span.end = Some(now));
    }

    /// Writes all spans, each with a comma behind it, for a query that is answered now.
    pub(super) fn write(
        &self,
        form: Form,
        service: &str,
        (query, response): (&Query, &Response),
        now: Moment,
        text: &mut String,
    ) {
        let spans = self.spans.borrow();
        for (at, span) in spans.iter().enumerate() {
            let tags = if at == 0 { tags(query, response) } else { Vec::new() };
            let peer = span.peer.map(|peer| ("peer.address", peer.to_string()));
            let tags: Vec<_> = tags.into_iter().chain(peer).collect();
            // Writing into memory does not fail.
            let _ = match form {
                Form::Otlp => self.write_otlp(at, span, &tags, now, text),
                Form::Zipkin => self.write_zipkin(at, span, &tags, (service, now), text),
            };
        }
    }

    /// A span in Zipkin's JSON, version 2.
    fn write_zipkin(
        &self,
        at: usize,
        span: &Span,
        tags: &[(&str, String)],
        (service, now): (&str, Moment),
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
        text.push('}');
        for (number, (key, value)) in tags.iter().enumerate() {
            write!(text, "{}\"{key}\":", if number == 0 { ",\"tags\":{" } else { "," })?;
            quote_json(text, value);
        }
        text.push_str(if tags.is_empty() { "}," } else { "}}," });
        Ok(())
    }

    /// A span in OTLP's JSON.
    fn write_otlp(
        &self,
        at: usize,
        span: &Span,
        tags: &[(&str, String)],
        now: Moment,
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

    /// When a span began, since 1970, and how long it took.
    fn times(&self, span: &Span, now: Moment) -> (Duration, Duration) {
        let since_1970 = self.start_since_1970 + span.start.since(self.start);
        (since_1970, span.end.unwrap_or(now).since(span.start))
    }

    /// The id of a span: that of the first one, and numbers that follow from it (splitmix64).
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

/// What is said about a query and its answer, by CoreDNS's names.
fn tags(query: &Query, response: &Response) -> Vec<(&'static str, String)> {
    let mut rcode = Vec::new();
    if !response.is_dropped() {
        let _ = write_rcode(&mut rcode, response);
    }
    vec![
        ("coredns.io/name", query.request.name.clone().into_lowercase().to_string()),
        ("coredns.io/type", query.request.qtype.to_string()),
        ("coredns.io/rcode", String::from_utf8(rcode).unwrap_or_default()),
        ("coredns.io/proto", query.path.transport.label().to_owned()),
        ("coredns.io/remote", query.path.peer.ip().to_canonical().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let mut json = String::new();
        quote_json(&mut json, "a\"b\\c\u{1}\u{e9}");
        assert_eq!(json, r#""a\"b\\c\u0001é""#);
    }

    #[test]
    fn spans_lie_in_each_other() {
        let at = Moment::from_nanos;
        let trace = Trace::new((0, 7), at(0), Duration::ZERO);
        trace.enter("cache", at(1));
        trace.enter("forward", at(2));
        trace.ask("192.0.2.1:53".parse().unwrap(), at(3), Duration::from_nanos(2));
        trace.come_up_to("cache", at(6));
        trace.leave("cache", at(7));
        trace.enter("late", at(8));
        let spans = trace.spans.borrow();
        let seen: Vec<_> = spans.iter().map(|span| (span.name, span.parent, span.end.map(Moment::nanos))).collect();
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
