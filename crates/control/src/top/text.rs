//! Tables of the largest groups of queries.

use core::fmt;

use super::{By, Counts, Row, Top};
use crate::text::{count, counted, duration, harmless, percent, rate, shortened};

/// Width of the column with the group.
const KEY_WIDTH: usize = 30;
/// Maximum width of a group or a name in a table; the middle of longer ones is left out.
const NAME_WIDTH: usize = 48;

/// A count whose error is larger than one of this number of its queries is shown as a lower bound.
const VAGUE: u64 = 20;

/// Column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub title: &'static str,
    /// Width in characters.
    pub width: usize,
    /// True for a number, which ends at the right edge.
    pub is_number: bool,
}

/// Content of a cell.
pub type Cell = String;

/// Returns the columns of a table.
#[must_use]
pub fn columns(by: By) -> Vec<Column> {
    let number = |title, width| Column { title, width, is_number: true };
    let title = match by {
        By::Pod | By::Waste => "POD",
        By::Ns => "NAMESPACE",
        By::Name => "NAME",
        By::Zone => "ZONE",
        By::Domain => "DOMAIN",
        By::Rcode => "RCODE",
        By::Upstream => "UPSTREAM",
    };
    let mut columns = vec![
        Column { title, width: if by == By::Name { NAME_WIDTH } else { KEY_WIDTH }, is_number: false },
        number("Q/S", 8),
        number("%", 6),
        number("NXDOMAIN", 8),
        number("SERVFAIL", 8),
        number("P99", 9),
        number("WASTE", 6),
    ];
    if has_names(by) {
        columns.push(Column { title: "TOP NAME", width: NAME_WIDTH, is_number: false });
    }
    columns
}

const fn has_names(by: By) -> bool {
    matches!(by, By::Pod | By::Waste)
}

impl Top {
    /// Returns the first line: the numbers of all queries, without a line feed.
    #[must_use]
    pub fn headline(&self) -> String {
        let Counts { queries, per_second, nxdomain, servfail, p99_seconds, .. } = self.total;
        let mut parts = vec![
            harmless(&self.host),
            format!("{} q/s", rate(per_second)),
            format!("p99 {}", bound(p99_seconds)),
            format!("NXDOMAIN {} %", percent(nxdomain, queries)),
            format!("SERVFAIL {} %", percent(servfail, queries)),
        ];
        if self.refused > 0 {
            parts.push(format!("REFUSED {} %", percent(self.refused, queries)));
        }
        parts.extend([
            format!("cache {} %", percent(self.from_cache, queries)),
            format!("window {} ({})", self.window.name(), duration(self.covered_seconds)),
        ]);
        if self.sampled_one_of > 1 {
            parts.push(format!("1 of {} counted", count(self.sampled_one_of)));
        }
        // A sample misses some of those that ask rarely.
        let at_least = if self.sampled_one_of > 1 { "≥ " } else { "" };
        let (names, clients) = (counted(self.names, "name"), counted(self.clients, "client"));
        parts.push(format!("{at_least}{names}, {at_least}{clients}"));
        parts.push(format!("by {}", self.by.name()));
        parts.join(" · ")
    }

    /// Returns the cells of a row, as many as there are columns.
    #[must_use]
    pub fn cells(&self, row: &Row) -> Vec<Cell> {
        let Counts { queries, per_second, nxdomain, servfail, waste, p99_seconds, .. } = row.counts;
        let key = harmless(&row.key);
        let clients = if row.clients > 1 { format!(" ({} pods)", count(row.clients)) } else { String::new() };
        let mut cells = vec![
            shortened(&(key + &clients), NAME_WIDTH),
            if row.error * VAGUE > queries { format!("≥ {}", rate(per_second)) } else { rate(per_second) },
            percent(queries, self.total.queries),
            share(nxdomain, queries),
            share(servfail, queries),
            bound(p99_seconds),
            waste.map_or_else(|| "∞".to_owned(), |waste| format!("{waste:.1}×")),
        ];
        if has_names(self.by) {
            cells.push(shortened(&harmless(row.top_name.as_deref().unwrap_or_default()), NAME_WIDTH));
        }
        cells
    }
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 { "0".to_owned() } else { format!("{} %", percent(part, whole)) }
}

fn bound(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("≤ {}", duration(seconds)))
}

impl fmt::Display for Top {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.headline())?;
        let columns = columns(self.by);
        let rows: Vec<Vec<Cell>> = self.rows.iter().map(|row| self.cells(row)).collect();
        let titles = columns.iter().map(|column| column.title.to_owned()).collect();
        for cells in core::iter::once(&titles).chain(&rows) {
            writeln!(out, "{}", line(&columns, cells))?;
        }
        if self.rows.is_empty() {
            writeln!(out, " no queries")?;
        }
        Ok(())
    }
}

fn line(columns: &[Column], cells: &[Cell]) -> String {
    let padded = columns.iter().zip(cells).map(|(column, cell)| {
        let width = column.width;
        if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    let line = format!(" {}", padded.collect::<Vec<_>>().join(" "));
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Window;
    use super::*;

    /// Table of two pods.
    fn top(by: By) -> Top {
        let counts = |queries: u64, nxdomain, useful| Counts {
            queries,
            per_second: queries as f64 / 10.0,
            nxdomain,
            servfail: 0,
            useful,
            waste: (useful > 0).then(|| queries as f64 / useful as f64),
            p99_seconds: Some(32e-6),
        };
        let row = |key: &str, clients, counts, name: &str| Row {
            key: key.to_owned(),
            clients,
            counts,
            error: 0,
            top_name: (!name.is_empty()).then(|| name.to_owned()),
        };
        Top {
            host: "portolan-6c9".to_owned(),
            by,
            window: Window::Medium,
            covered_seconds: 84.0,
            sampled_one_of: 16,
            total: counts(421_000, 130_000, 200_000),
            refused: 0,
            from_cache: 370_000,
            names: 812,
            clients: 40,
            groups_max: 256,
            rows: vec![
                row("shop/web", 12, counts(112_040, 82_909, 14_005), "api.stripe.com."),
                row("logging/\u{1b}[31mx", 1, counts(60, 0, 0), &format!("{}.example.org.", "a".repeat(60))),
            ],
        }
    }

    #[test]
    fn prints_a_table() {
        let expected = "\
portolan-6c9 · 42.1k q/s · p99 ≤ 32 µs · NXDOMAIN 31 % · SERVFAIL 0 % · cache 88 % · window 1m (1 m 24 s) · 1 of 16 counted · ≥ 812 names, ≥ 40 clients · by pod
 POD                                 Q/S      % NXDOMAIN SERVFAIL       P99  WASTE TOP NAME
 shop/web (12 pods)                11.2k     27     74 %        0   ≤ 32 µs   8.0× api.stripe.com.
 logging/\\u{1b}[31mx                 6.0   0.01        0        0   ≤ 32 µs      ∞ aaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaa.example.org.
";
        assert_eq!(top(By::Pod).to_string(), expected);
    }

    #[test]
    fn says_that_answers_are_refused() {
        let refused = Top { refused: 4_210, ..top(By::Pod) }.headline();
        assert!(refused.contains(" · SERVFAIL 0 % · REFUSED 1 % · cache 88 % · "), "{refused}");
    }

    #[test]
    fn marks_a_count_that_may_be_much_larger() {
        let mut top = top(By::Name);
        let queries = top.rows[1].counts.queries;
        for (error, expected) in [(queries / VAGUE, "6.0"), (queries / VAGUE + 1, "≥ 6.0")] {
            top.rows[1].error = error;
            assert_eq!(top.cells(&top.rows[1])[1], expected);
        }
    }

    #[test]
    fn names_the_groups_and_says_that_there_are_none() {
        for (by, title) in [(By::Name, " NAME "), (By::Upstream, " UPSTREAM "), (By::Ns, " NAMESPACE ")] {
            let empty = Top { rows: Vec::new(), ..top(by) };
            let text = empty.to_string();
            assert!(text.contains(title) && !text.contains("TOP NAME") && text.ends_with("\n no queries\n"), "{text}");
        }
    }
}
