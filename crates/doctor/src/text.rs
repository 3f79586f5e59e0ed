//! Report as text: one line per check, then the checks that could not look, then findings and fixes.

use core::fmt;

use control::text::{counted, harmless};

use crate::report::{Mark, Report, Row, RowFinding};
use crate::{Area, checks};

/// Number of findings of a check that are shown; the rest is counted. JSON has all.
const FINDINGS_SHOWN: usize = 5;
/// Number of codes on a line.
const CODES_PER_LINE: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.as_ref().map_or("no DNS Service known".to_owned(), |name| format!("Service {name}"));
        writeln!(out, "portolan doctor {}  {}", harmless(&self.version), harmless(&service))?;
        for area in Area::ALL {
            let mut rows = self.rows.iter().filter(|row| row.area == area.name()).peekable();
            if rows.peek().is_some() {
                writeln!(out, "{}", area.title())?;
            }
            rows.try_for_each(|Row { code, title, outcome, .. }| {
                writeln!(out, "  {} {code}  {title}", outcome.character())
            })?;
        }
        self.write_unchecked(out)?;
        // What was found comes last, where a terminal shows it.
        if self.has_findings() {
            writeln!(out, "Found")?;
        }
        self.rows.iter().filter(|row| !row.findings.is_empty()).try_for_each(|row| row.write(out))?;
        if !self.cut.is_empty() {
            writeln!(out, "Only part of the cluster was read: it has more {} than that.", self.cut.join(", "))?;
        }
        let tally = |mark: Mark| format!("{} {}", mark.character(), self.count(mark));
        let tallies = [Mark::Fine, Mark::Warning, Mark::Error, Mark::Unknown].map(tally);
        writeln!(out, "{}: {}", counted(self.rows.len() as u64, "check"), tallies.join("  "))
    }
}

impl Report {
    /// Writes each reason why checks could not look, with their codes.
    fn write_unchecked(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let Some(reason) = row.reason.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, codes)) => codes.push(row.code),
                None => reasons.push((reason, vec![row.code])),
            }
        }
        if !reasons.is_empty() {
            writeln!(out, "Not checked")?;
        }
        for (reason, codes) in reasons {
            writeln!(out, "  {}:", harmless(reason))?;
            codes.chunks(CODES_PER_LINE).try_for_each(|codes| writeln!(out, "    – {}", codes.join(" ")))?;
        }
        Ok(())
    }
}

impl Row {
    /// Writes what the check found, and what to do.
    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { code, title, outcome, findings, .. } = self;
        writeln!(out, "  {} {code}  {title}", outcome.character())?;
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

impl Report {
    /// Returns all findings in full, each check with its meaning and each finding with its fix.
    #[must_use]
    pub fn fix_text(&self) -> String {
        let found = self.rows.iter().filter(|row| !row.findings.is_empty());
        let texts: Vec<String> = found.map(Row::fix_text).collect();
        if texts.is_empty() { "Nothing to fix.\n".to_owned() } else { texts.join("\n") }
    }
}

impl Row {
    fn fix_text(&self) -> String {
        let meaning = checks::all().find(|check| check.code == self.code).map_or("", |check| check.meaning);
        let mut text = format!("{} {}  {}\n\n{meaning}\n", self.outcome.character(), self.code, self.title);
        for (at, finding) in self.findings.iter().enumerate() {
            text.push_str(&format!("\n- {}\n", harmless(&finding.text)));
            let is_last_of_fix = self.findings.get(at + 1).is_none_or(|next| next.fix != finding.fix);
            if is_last_of_fix {
                text.push_str(&format!("  Fix: {}\n", harmless(&finding.fix)));
            }
        }
        text
    }
}
