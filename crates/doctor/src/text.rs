//! Report as text: one line per check, with findings and fixes below.

use core::fmt;

use control::text::{counted, harmless};

use crate::Area;
use crate::report::{Mark, Report, Row, RowFinding};

/// Number of findings of a check that are shown; the rest is counted. JSON has all.
const FINDINGS_SHOWN: usize = 5;

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.as_ref().map_or("no DNS Service known".to_owned(), |name| format!("Service {name}"));
        writeln!(out, "portolan doctor {}  {}", harmless(&self.version), harmless(&service))?;
        for area in Area::ALL {
            let mut rows = self.rows.iter().filter(|row| row.area == area.name()).peekable();
            if rows.peek().is_some() {
                writeln!(out, "{}", area.title())?;
            }
            rows.try_for_each(|row| row.write(out))?;
        }
        if !self.cut.is_empty() {
            writeln!(out, "Only part of the cluster was read: it has more {} than that.", self.cut.join(", "))?;
        }
        let tally = |mark: Mark| format!("{} {}", mark.character(), self.count(mark));
        let tallies = [Mark::Fine, Mark::Warning, Mark::Error, Mark::Unknown].map(tally);
        writeln!(out, "{}: {}", counted(self.rows.len() as u64, "check"), tallies.join("  "))
    }
}

impl Row {
    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { code, title, outcome, reason, findings, .. } = self;
        writeln!(out, "  {} {code}  {title}", outcome.character())?;
        if let Some(reason) = reason {
            writeln!(out, "            not checked: {}", harmless(reason))?;
        }
        let mut last_fix = "";
        for (at, RowFinding { text, fix, .. }) in findings.iter().take(FINDINGS_SHOWN).enumerate() {
            // A fix follows the last of the findings that share it.
            if at > 0 && fix != last_fix {
                writeln!(out, "            do: {}", harmless(last_fix))?;
            }
            writeln!(out, "            {}", harmless(text))?;
            last_fix = fix;
        }
        if findings.len() > FINDINGS_SHOWN {
            writeln!(out, "            … and {} more; --json has all", findings.len() - FINDINGS_SHOWN)?;
        }
        if last_fix.is_empty() { Ok(()) } else { writeln!(out, "            do: {}", harmless(last_fix)) }
    }
}
