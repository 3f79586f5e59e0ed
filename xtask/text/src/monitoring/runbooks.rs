//! Generated blocks of the runbooks: the index, and the rule of each alert.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Alert, RUNBOOKS, alerts};
use crate::markdown::{escaped, read, with_block};
use xtask::Failed;

/// Returns the runbooks with their generated blocks. An alert without a runbook is an error.
pub(super) fn texts() -> Result<Vec<(PathBuf, String)>, Failed> {
    let page = |name: &str, block: &str, text: &str| {
        let path = Path::new(RUNBOOKS).join(format!("{name}.md"));
        let in_file = |error| format!("{}: {error}", path.display());
        let text = with_block(&read(&path)?, block, text).map_err(in_file)?;
        Ok((path, text))
    };
    let rules = alerts::ALL.iter().map(|alert| page(alert.name, "alert", &rule(alert)));
    std::iter::once(page("README", "alerts", &index())).chain(rules).collect()
}

fn index() -> String {
    let mut text = "| alert | severity | summary |\n|---|---|---|\n".to_owned();
    for alert in alerts::ALL {
        let (name, severity) = (alert.name, alert.severity.text());
        let _ = writeln!(text, "| [{name}]({name}.md) | {severity} | {} |", escaped(&plain(alert.summary)));
    }
    text
}

fn rule(alert: &Alert) -> String {
    format!(
        "{}\n\n~~~ promql\n{}\n~~~\n\nSeverity: {}. The alert fires after {} min.\n",
        plain(alert.summary),
        alert.expression,
        alert.severity.text(),
        alert.minutes
    )
}

/// Returns a summary with the names of its labels in place of their values.
fn plain(summary: &str) -> String {
    let label = |word: &str| match word {
        "instance" => "a replica".to_owned(),
        word => format!("`{word}`"),
    };
    let mut parts = summary.split("{{ $labels.");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" }}").unwrap_or((part, ""));
        text.push_str(&label(name));
        text.push_str(rest);
    }
    text.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
    text
}
