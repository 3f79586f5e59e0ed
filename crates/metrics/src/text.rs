//! Text format of Prometheus (exposition format 0.0.4).

use core::fmt::Write;

use crate::declaration::{Buckets, Kind, Metric};

/// Writes the `HELP` and `TYPE` lines of a family.
pub(super) fn head(out: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    };
    let _ = writeln!(out, "# HELP {} {}\n# TYPE {0} {kind}", metric.name, metric.help);
}

/// Formats labels without braces; escapes quotes, backslashes and line feeds in the values.
pub(super) fn labels<'a>(names: &[&str], values: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for (name, value) in names.iter().zip(values) {
        let comma = if out.is_empty() { "" } else { "," };
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{comma}{name}=\"{escaped}\"");
    }
    out
}

/// Returns the value of a label in the text of [`labels`], with its escapes; empty if there is no such label.
pub(super) fn value_of(labels: &str, name: &str) -> String {
    let mut rest = labels;
    while let Some((known, quoted)) = rest.split_once("=\"") {
        let end = end_of_value(quoted);
        if known == name {
            return quoted[..end].to_owned();
        }
        rest = quoted.get(end + 2..).unwrap_or_default();
    }
    String::new()
}

/// Returns the position of the closing quote.
fn end_of_value(quoted: &str) -> usize {
    let mut is_escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    };
    quoted.bytes().position(closes).unwrap_or(quoted.len())
}

/// Puts labels in braces, unless there are no labels.
pub(super) fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

/// Writes the lines of a histogram. `counts` has one element more than there are bounds.
pub(super) fn histogram(out: &mut String, name: &str, labels: &str, buckets: &Buckets, counts: &[u64], sum: f64) {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut total = 0;
    for (bound, count) in buckets.bounds.iter().zip(counts) {
        total += count;
        #[allow(clippy::cast_precision_loss, reason = "bounds are round numbers")]
        let bound = *bound as f64 / buckets.per_unit;
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}");
    }
    total += counts.last().copied().unwrap_or(0);
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
    let braced = braced(labels);
    let _ = writeln!(out, "{name}_sum{braced} {sum}\n{name}_count{braced} {total}");
}
