//! Regular expressions of a configuration draw from one budget, in whatever directive they are written.

use std::path::Path;

use config::{Planning, plan};
use corefile::NoFiles;
use gotext::regexp::Budget;

/// Expression that fits into the memory of one expression, but not into the smallest budget.
const LARGE: &str = r"\pL{1,150}";

/// Server blocks with the expression in each place that takes one.
const PLACES: [&str; 7] = [
    "rewrite name regex REGEX a.test",
    "rewrite stop {\n name regex a a.test\n answer name REGEX b.test\n}",
    "template IN A {\n match REGEX\n rcode NXDOMAIN\n}",
    "errors {\n consolidate 5m REGEX\n}",
    "auto a.test {\n directory /nonexistent (REGEX) {1}\n}",
    "view large {\n expr name() matches `REGEX`\n}",
    "rewrite stop {\n name regex a a.test\n answer value REGEX b.test\n}",
];

fn messages(text: &str) -> Vec<String> {
    let parsed = corefile::parse(Path::new("Corefile"), text.to_owned(), &NoFiles);
    let mut problems = parsed.diagnostics;
    let interface = |_: &str| None;
    let planning =
        Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &interface, memory: None };
    plan(&parsed.corefile, &planning, &mut problems);
    let errors = problems.into_iter().filter(corefile::Diagnostic::is_error);
    errors.map(|problem| format!("{} {}", problem.message, problem.help.unwrap_or_default())).collect()
}

#[test]
fn each_place_draws_from_the_budget() {
    for place in PLACES {
        let text = format!(". {{\n{}\n}}\n", place.replace("REGEX", LARGE));
        assert_eq!(messages(&text), [""; 0], "without a budget: {place}");
        let _budget = Budget::begin(Some(0));
        let messages = messages(&text);
        let is_refused = messages.iter().any(|message| message.contains("together may use 4096 KiB"));
        assert!(is_refused, "{place}: {messages:?}");
    }
}

#[test]
fn server_blocks_share_the_budget() {
    let block = |number: usize| format!("z{number}.test {{\nrewrite name regex \\pL{{1,50}} a.test\n}}\n");
    let text: String = (0..8).map(block).collect();
    let _budget = Budget::begin(Some(0));
    let messages = messages(&text);
    assert!((5..8).contains(&messages.len()), "{messages:?}");
    assert!(messages.iter().all(|message| message.contains("this regular expression is too large")), "{messages:?}");
}
