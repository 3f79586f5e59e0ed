//! Four figures with the history of the last ten minutes: rate, latency, failures, memory.

use core::fmt::Write;

use control::status::{Latency, Status};
use control::text::{duration, mebibytes, percent, rate};
use maud::{Markup, html};

use super::super::super::history::{POINTS_MAX, Point};

/// Width of a picture in units of its own.
const WIDTH: usize = 4 * (POINTS_MAX - 1);
/// Height of a picture.
const HEIGHT: f64 = 40.0;
/// Room above and below the line, so that its whole width is visible.
const MARGIN: f64 = 2.0;

/// Figure with its history.
struct Figure<'a> {
    name: &'a str,
    /// Current value.
    value: String,
    /// Second line: what the value is about.
    note: String,
    history: Vec<Option<f64>>,
    /// Formats a value of the history.
    format: fn(f64) -> String,
    is_bad: bool,
}

/// Renders the figures.
pub(super) fn part(status: &Status, history: &[Point]) -> Markup {
    html! { .figures { @for figure in figures(status, history) { (figure.render()) } } }
}

fn figures<'a>(status: &Status, history: &[Point]) -> [Figure<'a>; 4] {
    let values = |of: fn(&Point) -> Option<f64>| history.iter().map(of).collect();
    let answers = &status.answers;
    let (total, failed) = answers.codes.iter().fold((0, 0), |(total, failed), code| {
        (total + code.answers, failed + if code.code == "SERVFAIL" { code.answers } else { 0 })
    });
    let unknown = || "–".to_owned();
    let window = duration(answers.window_seconds);
    let p50 = answers.p50.map_or_else(String::new, |p50| format!("p50 {}", p50.text()));
    let limit =
        status.resources.memory_limit_bytes.map_or("no limit".to_owned(), |limit| format!("of {}", mebibytes(limit)));
    let about =
        if answers.per_second.is_some() { format!("last {window}") } else { "not counted: no `prometheus`".to_owned() };
    [
        Figure {
            name: "Answers",
            value: answers.per_second.map_or_else(unknown, |per_second| format!("{} q/s", rate(per_second))),
            note: about,
            history: values(|point| point.rate),
            format: rate,
            is_bad: false,
        },
        Figure {
            name: "Latency, p99",
            value: answers.p99.map_or_else(unknown, Latency::text),
            note: p50,
            history: values(|point| point.p99),
            format: duration,
            is_bad: false,
        },
        Figure {
            name: "Failures",
            value: if total > 0 { format!("{} %", percent(failed, total)) } else { unknown() },
            note: "answers with SERVFAIL".to_owned(),
            history: values(|point| point.failures),
            format: share_text,
            is_bad: failed > 0 && failed * 100 >= total,
        },
        Figure {
            name: "Memory",
            value: status.resources.memory_bytes.map_or_else(unknown, mebibytes),
            note: limit,
            history: values(|point| point.memory),
            format: |bytes| mebibytes(whole(bytes)),
            is_bad: false,
        },
    ]
}

/// Formats a share in percent with two significant digits.
fn share_text(share: f64) -> String {
    if share > 0.0 && share < 0.995 { format!("{share:.2} %") } else { format!("{share:.0} %") }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a saturating cast of a number of bytes")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

impl Figure<'_> {
    fn render(&self) -> Markup {
        let known = || self.history.iter().flatten().copied();
        let bounds = known().reduce(f64::min).zip(known().reduce(f64::max));
        html! {
            .figure.bad[self.is_bad] {
                h3 { (self.name) }
                p.value { (self.value) }
                p.note { (self.note) }
                @if let Some((lowest, highest)) = bounds {
                    @let range = format!("{} to {}", (self.format)(lowest), (self.format)(highest));
                    svg.spark viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                        aria-label=(format!("{}: {range} in the last 10 minutes", self.name)) {
                        path d=(path(&self.history, highest)) vector-effect="non-scaling-stroke" {}
                    }
                    p.note.range { span { "10 min" } span { (range) } }
                } @else {
                    p.note { "No history yet: the first point appears after 10 seconds." }
                }
            }
        }
    }
}

/// Returns the line of a history, the latest value at the right edge. It has a gap where a value is unknown.
fn path(history: &[Option<f64>], highest: f64) -> String {
    let mut path = String::new();
    let first = POINTS_MAX.saturating_sub(history.len());
    let mut pen_is_down = false;
    for (at, value) in history.iter().enumerate() {
        let Some(value) = value else {
            pen_is_down = false;
            continue;
        };
        let share = if highest > 0.0 { value / highest } else { 0.0 };
        let (x, y) = (4 * (first + at), HEIGHT - MARGIN - share * (HEIGHT - 2.0 * MARGIN));
        // A single value is a dot: a line of no length.
        let letter = if pen_is_down { "L" } else { "M" };
        let _ = write!(path, "{letter}{x} {y:.1}");
        if !pen_is_down {
            let _ = write!(path, "h0");
        }
        pen_is_down = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_latest_value_at_the_right_edge_and_leaves_gaps() {
        assert_eq!(path(&[Some(1.0), None, Some(2.0), Some(0.0)], 2.0), "M224 20.0h0M232 2.0h0L236 38.0");
        assert_eq!(path(&[Some(0.0); 2], 0.0), "M232 38.0h0L236 38.0");
        assert_eq!(path(&[], 0.0), "");
    }
}
