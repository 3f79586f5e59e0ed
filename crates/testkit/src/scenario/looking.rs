//! Statements that check metrics, log, pages and requests to the process.

use std::collections::BTreeSet;

use super::{Problem, Stage, Statement};

/// Executes `metric NAME[{LABELS}] VALUE`, or with `LEAST..MOST` as value. A missing series has the value 0.
pub(super) fn metric(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let wrong = || statement.problem("`metric` needs a series and a value");
    let (series, value) = statement.rest(1).rsplit_once(char::is_whitespace).ok_or_else(wrong)?;
    let (least, most) = value.split_once("..").unwrap_or((value, value));
    let bound = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    let wanted_value = bound(least)?..=bound(most)?;
    let wanted = Series::read(series);
    let text = stage.server.registry.render();
    let shown = text.lines().filter(|line| !line.starts_with('#'));
    let found = shown.filter_map(|line| line.rsplit_once(' ')).find(|(series, _)| Series::read(series) == wanted);
    let got = found.map_or(Some(0.0), |(_, value)| value.parse().ok());
    if got.is_some_and(|got: f64| wanted_value.contains(&got)) {
        return Ok(());
    }
    let got = got.map_or_else(|| "no number".to_owned(), |got| got.to_string());
    Err(statement.problem(format!("expected {value}, got {got}; similar series:{}", nearest(&text, &wanted))))
}

/// Returns the series with the same name, those that share the most labels first.
fn nearest(text: &str, wanted: &Series<'_>) -> String {
    let mut family: Vec<_> = text.lines().filter(|line| Series::read(line).name == wanted.name).collect();
    let shared = |line: &&str| wanted.labels.iter().filter(|label| line.contains(*label)).count();
    family.sort_by_key(|line| core::cmp::Reverse(shared(line)));
    family.iter().take(NEAREST_MAX).map(|line| format!("\n      {line}")).collect()
}

/// Maximum number of similar series shown after a failed check.
const NEAREST_MAX: usize = 6;

/// Parsed series: its name, and its labels in any order.
#[derive(PartialEq)]
struct Series<'a> {
    name: &'a str,
    labels: BTreeSet<&'a str>,
}

impl Series<'_> {
    fn read(text: &str) -> Series<'_> {
        let (name, labels) = text.trim().split_once('{').unwrap_or((text.trim(), ""));
        let name = name.split(' ').next().unwrap_or_default();
        let labels = labels.trim_end_matches('}').split("\",").map(|label| label.trim_end_matches('"'));
        Series { name, labels: labels.filter(|label| !label.is_empty()).collect() }
    }
}

/// Executes `log TEXT`: removes a line that contains TEXT.
pub(super) fn log(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let text = statement.rest(1);
    if stage.server.io.take_log_line(text) {
        return Ok(());
    }
    Err(statement.problem(format!("no line of the log contains `{text}`:{}", log_of(stage, ""))))
}

/// Executes `no log [TEXT]`: no line is left, or none that contains TEXT. Details do not count unless TEXT names them,
/// because the server writes them only on request.
pub(super) fn no_log(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let lines: String = match statement.rest(2) {
        "" => log_of(stage, "").lines().filter(|line| !line.trim_start().starts_with("[DEBUG]")).collect(),
        text => log_of(stage, text),
    };
    if lines.is_empty() { Ok(()) } else { Err(statement.problem(format!("the log is not empty:{lines}"))) }
}

fn log_of(stage: &Stage, text: &str) -> String {
    let lines = stage.server.io.log_lines();
    lines.iter().filter(|line| line.contains(text)).map(|line| format!("\n      {line}")).collect()
}

/// Executes `page ADDRESS PATH STATUS [BODY]`. The lines below must be lines of the page.
pub(super) fn page(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let [address, path] = [1, 2].map(|at| statement.words().nth(at).unwrap_or_default());
    let status: u16 = statement.parse(statement.words().nth(3), "an HTTP status")?;
    let page = stage.server.io.page(address, path);
    let page = page.ok_or_else(|| statement.problem(format!("there is no page {path} at {address}")))?;
    statement.expect("status", &status, &page.status)?;
    let (body, shown) = (statement.rest(4), String::from_utf8_lossy(&page.body));
    if !body.is_empty() {
        statement.expect("page", &body, &shown.trim_end())?;
    }
    let missing = statement.lines().find(|line| !shown.lines().any(|shown| shown == line.text));
    missing.map_or(Ok(()), |line| {
        let text = format!("`{}` is not a line of the page:\n{shown}", line.text);
        Err(Problem { line: line.number, text })
    })
}

/// Executes `no page ADDRESS PATH`.
pub(super) fn no_page(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let [address, path] = [2, 3].map(|at| statement.words().nth(at).unwrap_or_default());
    let page = stage.server.io.page(address, path);
    page.map_or(Ok(()), |page| {
        let body = String::from_utf8_lossy(&page.body);
        Err(statement.problem(format!("there is one: {} {body}", page.status)))
    })
}

/// Executes `needs lameduck DURATION` and `needs reload INTERVAL JITTER`: checks what the Corefile requests from the
/// process.
pub(super) fn needs(stage: &mut Stage, statement: &Statement) -> Result<(), Problem> {
    let what = statement.words().nth(1);
    let mut words = statement.words_between(2, usize::MAX);
    let spans = statement.words().skip(2).map(|_| words.duration()).collect::<Result<Vec<_>, _>>()?;
    let needs = stage.server.requests().ok_or_else(|| statement.problem("there is no Corefile yet"))?;
    let got = match what {
        Some("lameduck") => vec![needs.lameduck],
        Some("reload") => needs.reload.map(|(interval, jitter)| vec![interval, jitter]).unwrap_or_default(),
        _ => return Err(statement.problem("`needs` is said of `lameduck` and `reload`")),
    };
    statement.expect("needs", &format!("{spans:?}"), &format!("{got:?}"))
}
