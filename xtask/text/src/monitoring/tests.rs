use std::collections::{BTreeMap, BTreeSet};

use super::{alerts, boards, recordings};
use crate::generate::metrics_by_part;

/// Labels that Prometheus adds, and the bound of a bucket.
const TARGET_LABELS: [&str; 3] = ["job", "instance", "le"];
/// Words of the query language that are followed by a list of labels or stand between expressions.
const KEYWORDS: [&str; 4] = ["by", "on", "unless", "and"];

/// Returns the labels of each metric that can occur in an expression.
fn known_metrics() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut known = BTreeMap::from([("up".to_owned(), BTreeSet::new())]);
    for metric in metrics_by_part().into_iter().flat_map(|(_, metrics)| metrics) {
        let suffixes: &[&str] =
            if matches!(metric.kind, metrics::Kind::Histogram(_)) { &["_bucket", "_sum", "_count"] } else { &[""] };
        for suffix in suffixes {
            known.insert(format!("{}{suffix}", metric.name), metric.labels.iter().copied().collect());
        }
    }
    for rule in recordings::ALL {
        known.insert(rule.name.to_owned(), BTreeSet::from(["rcode", "to"]));
    }
    known
}

fn expressions() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for board in boards::all().expect("boards") {
        for panel in board.rows.iter().flat_map(|row| &row.panels) {
            let of = format!("{}: {}", board.title, panel.title);
            all.extend(panel.queries.iter().map(|(expression, _)| (of.clone(), (*expression).to_owned())));
        }
    }
    all.extend(recordings::ALL.iter().map(|rule| (rule.name.to_owned(), rule.expression.to_owned())));
    all.extend(alerts::ALL.iter().map(|rule| (rule.name.to_owned(), rule.expression.to_owned())));
    all
}

/// Splits an expression into names and single characters, without strings, ranges and numbers.
fn tokens(expression: &str) -> Vec<String> {
    let (mut tokens, mut quoted): (Vec<String>, bool) = (Vec::new(), false);
    let mut open = false;
    for letter in expression.chars() {
        quoted ^= letter == '"';
        let part = letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':' | '$');
        if !quoted && part && open {
            tokens.last_mut().expect("a token").push(letter);
        } else if !quoted && letter != ' ' {
            tokens.push(letter.to_string());
        }
        open = part;
    }
    tokens
}

/// Returns the unknown names in an expression: metrics, and labels that no metric of the expression has.
fn unknown(expression: &str, known: &BTreeMap<String, BTreeSet<&str>>) -> Vec<String> {
    let tokens = tokens(expression);
    let is_name = |token: &str| token.starts_with(|first: char| first.is_ascii_lowercase());
    let labels: BTreeSet<&str> =
        tokens.iter().filter_map(|token| known.get(token)).flatten().copied().chain(TARGET_LABELS).collect();
    let (mut wrong, mut in_labels) = (Vec::new(), false);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        match token.as_str() {
            "{" => in_labels = true,
            "(" => in_labels = at > 0 && KEYWORDS.contains(&tokens[at - 1].as_str()),
            "}" | ")" => in_labels = false,
            name if !is_name(name) || KEYWORDS.contains(&name) => {}
            name if in_labels && labels.contains(name) => {}
            _ if !in_labels && (next == "(" || next == "by") => {}
            name if !in_labels && known.contains_key(name) => {}
            name => wrong.push(name.to_owned()),
        }
    }
    wrong
}

#[test]
fn expressions_use_only_metrics_and_labels_that_exist() {
    let known = known_metrics();
    for (of, expression) in expressions() {
        assert_eq!(unknown(&expression, &known), Vec::<String>::new(), "{of}: {expression}");
    }
}

#[test]
fn finds_names_that_do_not_exist() {
    let known = known_metrics();
    let wrong = |expression: &str| unknown(expression, &known);
    assert_eq!(wrong("sum(rate(nosuch_total[$W])) by (zone)"), ["nosuch_total", "zone"]);
    assert_eq!(wrong("sum by (zone, pod) (rate(coredns_dns_requests_total{$S,x=\"up\"}[5m]))"), ["pod", "x"]);
    assert_eq!(wrong("coredns_dns_request_duration_seconds"), ["coredns_dns_request_duration_seconds"]);
}

#[test]
fn names_of_alerts_and_panels_are_unique() {
    let names: BTreeSet<_> = alerts::ALL.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), alerts::ALL.len());
    for board in boards::all().expect("boards") {
        let panels: Vec<_> =
            board.rows.iter().flat_map(|row| row.panels.iter().map(|panel| (row.title, panel.title))).collect();
        assert_eq!(panels.iter().collect::<BTreeSet<_>>().len(), panels.len(), "{}", board.title);
    }
}

#[test]
fn runbooks_have_all_sections() {
    for alert in alerts::ALL {
        let path = xtask::root().join(super::RUNBOOKS).join(format!("{}.md", alert.name));
        let text = std::fs::read_to_string(&path).expect("a runbook");
        for section in ["## Meaning", "## What users see", "## Find the cause", "## What to do"] {
            let body = text.split_once(&format!("\n{section}\n")).map_or("", |(_, rest)| rest);
            let body = body.split("\n## ").next().unwrap_or_default();
            assert!(!body.trim().is_empty(), "{}: {section}", path.display());
        }
    }
}
