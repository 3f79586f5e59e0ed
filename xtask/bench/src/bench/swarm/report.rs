//! Figures with their bars, as a table and as JSON.

use core::fmt;

use serde_json::{Map, Value, json};

use super::super::findings::Findings;
use xtask::Failed;

/// Description of the measurement.
const HEADING: &str = "Relays have one core; the nodes, the API server and the writer share the other one.";

/// Figures of a measurement.
pub(crate) struct Report {
    findings: Findings,
    json: Map<String, Value>,
}

/// Bar that a figure must not exceed.
pub(crate) enum Bar {
    AtMost(f64),
    None,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { findings: Findings::new(HEADING), json: Map::new() }
    }

    /// Adds a setting of the measurement.
    pub(crate) fn set(&mut self, name: &str, value: usize) {
        self.json.insert(name.to_owned(), value.into());
    }

    /// Adds a figure. `key` is its name in JSON, with the unit.
    pub(crate) fn add(&mut self, key: &str, what: &str, value: f64, unit: &str, bar: &Bar) {
        let rounded = (value * 1000.0).round() / 1000.0;
        let (required, is_good) = match bar {
            Bar::AtMost(most) => (format!("≤ {most} {unit}"), value <= *most),
            Bar::None => ("–".to_owned(), true),
        };
        self.json.insert(key.to_owned(), json!(rounded));
        let measured = format!("{} {unit}", digits(rounded));
        self.findings.add(what, measured.trim().to_owned(), required.trim().to_owned(), is_good);
    }

    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.json.clone())
    }

    /// # Errors
    /// The figures that miss their bars.
    pub(crate) fn verdict(&self) -> Result<(), Failed> {
        self.findings.verdict()
    }
}

/// Formats a figure with as many digits as a reader needs.
fn digits(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_figures_with_bars() {
        let mut report = Report::new();
        report.set("nodes", 7);
        report.add("cpu_cores", "CPU", 0.123_456, "cores", &Bar::AtMost(1.0));
        assert_eq!(report.verdict(), Ok(()));
        report.add("p99_ms", "p99", 120.4, "ms", &Bar::AtMost(100.0));
        assert!(report.verdict().is_err());
        assert_eq!(report.to_json(), json!({ "nodes": 7, "cpu_cores": 0.123, "p99_ms": 120.4 }));
        assert!(report.to_string().contains("| CPU | 0.12 cores | ≤ 1 cores | yes |"));
    }
}
