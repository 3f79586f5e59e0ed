//! Rules as a file for Prometheus, as a PrometheusRule for its operator, and unit tests for `promtool test rules`.

use std::fmt::Write as _;

use super::{Alert, NOTE, RUNBOOKS, alerts, recordings};

/// Minutes of input in a unit test: longer than any alert waits, and than any range.
const MINUTES: u32 = 60;

/// Returns the rules as a file that Prometheus loads.
pub(super) fn prometheus() -> String {
    format!("{NOTE}{}", groups(""))
}

/// Returns the rules as an object for the operator of Prometheus.
pub(super) fn kubernetes_object() -> String {
    format!(
        "{NOTE}apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: portolan\n  \
         namespace: kube-system\nspec:\n{}",
        groups("  ")
    )
}

fn groups(indent: &str) -> String {
    let mut text = "groups:\n  - name: portolan-recordings\n    rules:\n".to_owned();
    for rule in recordings::ALL {
        let _ = writeln!(text, "      - record: {}\n        expr: {}", rule.name, quoted(rule.expression));
    }
    text.push_str("  - name: portolan-alerts\n    rules:\n");
    for alert in alerts::ALL {
        let _ = write!(
            text,
            "      - alert: {}\n        expr: {}\n        for: {}m\n        labels:\n          severity: {}\n        \
             annotations:\n          summary: {}\n          runbook: {}\n",
            alert.name,
            quoted(alert.expression),
            alert.minutes,
            alert.severity.text(),
            quoted(alert.summary),
            runbook(alert),
        );
    }
    text.lines().map(|line| format!("{indent}{line}\n")).collect()
}

/// Returns two tests of each alert: its fault fires it, and a healthy state does not.
pub(super) fn unit_tests() -> String {
    let mut text = format!("{NOTE}rule_files: [../helm/portolan/files/rules.yaml]\nevaluation_interval: 1m\ntests:\n");
    for alert in alerts::ALL {
        text.push_str(&unit_test(alert, "fires", alert.fires, &expected(alert)));
        text.push_str(&unit_test(alert, "is quiet", alert.quiet, " []\n"));
    }
    text
}

fn unit_test(alert: &Alert, what: &str, series: &[(&str, &str)], expected: &str) -> String {
    let mut text = format!("  - name: {} {what}\n    interval: 1m\n    input_series:", alert.name);
    text.push_str(if series.is_empty() { " []\n" } else { "\n" });
    for (name, values) in series {
        let _ = writeln!(text, "      - series: {}\n        values: {}", quoted(name), quoted(values));
    }
    let _ = write!(
        text,
        "    alert_rule_test:\n      - eval_time: {MINUTES}m\n        alertname: {}\n        exp_alerts:{expected}",
        alert.name
    );
    text
}

/// Returns the alert that a test expects, with its labels in the summary.
fn expected(alert: &Alert) -> String {
    let mut text = format!("\n          - exp_labels:\n              severity: {}\n", alert.severity.text());
    let mut summary = alert.summary.to_owned();
    for (name, value) in alert.target.labels().iter().chain(alert.labels) {
        let _ = writeln!(text, "              {name}: {}", quoted(value));
        summary = summary.replace(&format!("{{{{ $labels.{name} }}}}"), value);
    }
    let _ = write!(
        text,
        "            exp_annotations:\n              summary: {}\n              runbook: {}\n",
        quoted(&summary),
        runbook(alert)
    );
    text
}

/// Returns the path of the runbook of an alert in the repository.
fn runbook(alert: &Alert) -> String {
    format!("{RUNBOOKS}/{}.md", alert.name)
}

/// Writes text as a single-quoted YAML scalar.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
