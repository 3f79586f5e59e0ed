//! Results with their limits.

use std::fmt;

use xtask::Failed;

/// Results of one suite.
pub(crate) struct Findings {
    /// Description of the measurement.
    heading: &'static str,
    found: Vec<Finding>,
}

struct Finding {
    what: String,
    measured: String,
    required: String,
    is_good: bool,
}

impl Findings {
    pub(crate) fn new(heading: &'static str) -> Findings {
        Findings { heading, found: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        what: impl Into<String>,
        measured: String,
        required: impl Into<String>,
        is_good: bool,
    ) {
        self.found.push(Finding { what: what.into(), measured, required: required.into(), is_good });
    }

    /// # Errors
    /// The results that exceed their limits.
    pub(crate) fn verdict(&self) -> Result<(), Failed> {
        let bad: Vec<&str> =
            self.found.iter().filter(|found| !found.is_good).map(|found| found.what.as_str()).collect();
        if bad.is_empty() { Ok(()) } else { Err(format!("over the limit: {}", bad.join("; "))) }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.heading)?;
        writeln!(f, "| measurement | result | limit | met |\n|---|---|---|---|")?;
        for Finding { what, measured, required, is_good } in &self.found {
            writeln!(f, "| {what} | {measured} | {required} | {} |", if *is_good { "yes" } else { "**no**" })?;
        }
        Ok(())
    }
}
