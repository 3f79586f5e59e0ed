//! `portolan top --all`: the largest groups of all replicas in one table.

use control::text::harmless;
use control::top::{By, Column, Row, Top, columns};
use serde_json::json;

use super::super::top::Options;
use super::super::{as_json, print_text};
use super::{Answer, Replicas, TITLE, code, document, unreached, width};
use crate::client::ControlError;

pub(in super::super) fn run(own: &Options, replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    let answers: Vec<Answer<Top>> = replicas.ask(&own.words())?;
    print_text(&if json {
        as_json(&document(replicas, &answers, |top| json!({ "top": top })))?
    } else {
        text(own, &answers)
    })?;
    Ok(code(&answers, |_| true))
}

fn text(own: &Options, answers: &[Answer<Top>]) -> String {
    let width = width(answers.iter().map(|answer| &answer.replica));
    let found = || answers.iter().filter_map(|answer| Some((harmless(&answer.replica), answer.outcome.as_ref().ok()?)));
    let mut out: String = found().map(|(replica, top)| format!("{replica}  {}\n", top.headline())).collect();
    let columns = columns(own.by());
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    out.push_str(&line(width, TITLE, &columns, &titles));
    let mut rows: Vec<(String, &Top, &Row)> =
        found().flat_map(|(replica, top)| top.rows.iter().map(move |row| (replica.clone(), top, row))).collect();
    host::sorting::sort_by_key(&mut rows, |(_, _, row)| core::cmp::Reverse(weight(own.by(), row)));
    for (replica, top, row) in rows.iter().take(own.rows()) {
        out.push_str(&line(width, replica, &columns, &top.cells(row)));
    }
    if rows.is_empty() {
        out.push_str(" no queries\n");
    }
    out + &unreached(answers)
}

/// Returns the number that the rows of a table are sorted by.
fn weight(by: By, row: &Row) -> u64 {
    let useful = if by == By::Waste { row.counts.useful } else { 0 };
    row.counts.queries.saturating_sub(useful)
}

fn line(width: usize, replica: &str, columns: &[Column], cells: &[String]) -> String {
    let padded = columns.iter().zip(cells).map(|(column, cell)| {
        let width = column.width;
        if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    let line = format!(" {replica:<width$}  {}", padded.collect::<Vec<_>>().join(" "));
    format!("{}\n", line.trim_end())
}
