//! Dashboards, from the Markdown files in `boards`. A file has the title and the summary of a dashboard, then its rows:
//!
//! ```text
//! ## Row
//!
//! ### Panel (UNIT)
//!
//! Help text.
//!
//! - LEGEND: `EXPRESSION`
//! ```
//!
//! UNIT is a unit of Grafana.

use super::{Board, Panel, Row};
use xtask::Failed;

/// Names of the dashboards with their text.
const FILES: [(&str, &str); 3] = [
    ("overview", include_str!("boards/overview.md")),
    ("kubernetes", include_str!("boards/kubernetes.md")),
    ("upstreams", include_str!("boards/upstreams.md")),
];

/// Returns all dashboards.
pub(super) fn all() -> Result<Vec<Board<'static>>, Failed> {
    FILES.iter().map(|(name, text)| board(name, text).ok_or_else(|| format!("boards/{name}.md: no title"))).collect()
}

fn board<'t>(name: &'t str, text: &'t str) -> Option<Board<'t>> {
    let (head, rows) = text.split_once("\n## ")?;
    let (title, summary) = head.strip_prefix("# ")?.split_once('\n')?;
    let rows = rows.split("\n## ").map(row).collect::<Option<_>>()?;
    Some(Board { name, title, summary: summary.trim(), rows })
}

fn row(text: &str) -> Option<Row<'_>> {
    let (title, panels) = text.split_once("\n\n### ")?;
    Some(Row { title, panels: panels.split("\n### ").map(panel).collect::<Option<_>>()? })
}

fn panel(text: &str) -> Option<Panel<'_>> {
    let (head, rest) = text.split_once(")\n")?;
    let (title, unit) = head.rsplit_once(" (")?;
    let (help, queries) = rest.split_once("\n- ")?;
    Some(Panel { title, unit, help: help.trim(), queries: queries.split("\n- ").map(query).collect::<Option<_>>()? })
}

/// Parses ``LEGEND: `EXPRESSION` ``.
fn query(text: &str) -> Option<(&str, &str)> {
    let (legend, expression) = text.trim().strip_suffix('`')?.split_once(": `")?;
    Some((expression, legend))
}
