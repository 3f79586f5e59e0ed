//! Report as text: findings and fixes, then the checks that found nothing, those that could not look, and those that do
//! not apply.

use core::fmt;

use control::text::{counted, harmless};

use crate::report::{Mark, Report, Row, RowFinding};
use crate::{Area, checks};

/// Number of findings of a check that are shown; the rest is counted. JSON has all.
const FINDINGS_SHOWN: usize = 5;
/// Indentation of the lines below a code.
const INDENT: &str = "            ";

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.as_ref().map_or("no DNS Service known".to_owned(), |name| format!("Service {name}"));
        writeln!(out, "portolan doctor {}  {}", harmless(&self.version), harmless(&service))?;
        if self.has_findings() {
            writeln!(out, "Found")?;
        }
        for severity in [Mark::Error, Mark::Warning] {
            self.rows.iter().filter(|row| row.outcome == severity).try_for_each(|row| row.write(out))?;
        }
        for area in Area::ALL {
            let is_fine = |row: &&Row| row.area == area.name() && row.outcome == Mark::Fine;
            let mut rows = self.rows.iter().filter(is_fine).peekable();
            if rows.peek().is_some() {
                writeln!(out, "{}", area.title())?;
            }
            rows.try_for_each(|Row { code, title, outcome, evidence, .. }| {
                let evidence = evidence.as_deref().unwrap_or_default();
                writeln!(out, "  {} {code}  {title} ({})", outcome.character(), harmless(evidence))
            })?;
        }
        out.write_str(&self.unchecked())?;
        out.write_str(&self.inapplicable())?;
        if !self.cut.is_empty() {
            writeln!(out, "Only part of the cluster was read: it has more {} than that.", self.cut.join(", "))?;
        }
        let tally = |mark: Mark| format!("{} {}", mark.character(), self.count(mark));
        let tallies = [Mark::Fine, Mark::Warning, Mark::Error, Mark::Unknown, Mark::NotApplicable].map(tally);
        writeln!(out, "{}: {}", counted(self.rows.len() as u64, "check"), tallies.join("  "))
    }
}

impl Report {
    /// Returns each reason why checks could not look, with their codes.
    fn unchecked(&self) -> String {
        self.reasons("Not checked", Mark::Unknown, Row::is_incomplete)
    }

    /// Returns each reason why checks do not apply, with their codes.
    fn inapplicable(&self) -> String {
        self.reasons("Does not apply", Mark::NotApplicable, |row| row.outcome == Mark::NotApplicable)
    }

    fn reasons(&self, heading: &str, mark: Mark, is_listed: fn(&Row) -> bool) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in self.rows.iter().filter(|row| is_listed(row)) {
            let Some(reason) = row.reason.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, codes)) => codes.push(row.code),
                None => reasons.push((reason, vec![row.code])),
            }
        }
        let mark = mark.character();
        let line = |(reason, codes): (&str, Vec<&str>)| format!("  {mark} {}: {}\n", harmless(reason), codes.join(" "));
        let heading = if reasons.is_empty() { String::new() } else { format!("{heading}\n") };
        core::iter::once(heading).chain(reasons.into_iter().map(line)).collect()
    }
}

impl Row {
    /// Writes what the check found, and what to do. The title says what is true if all is well, so it is left out.
    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { code, outcome, findings, .. } = self;
        let mut last_fix = "";
        for (at, RowFinding { text, fix, .. }) in findings.iter().take(FINDINGS_SHOWN).enumerate() {
            // A fix follows the last of the findings that share it.
            if at > 0 && fix != last_fix {
                writeln!(out, "{INDENT}do: {}", harmless(last_fix))?;
            }
            if at == 0 {
                writeln!(out, "  {} {code}  {}", outcome.character(), harmless(text))?;
            } else {
                writeln!(out, "{INDENT}{}", harmless(text))?;
            }
            last_fix = fix;
        }
        if findings.len() > FINDINGS_SHOWN {
            writeln!(out, "{INDENT}… and {} more; --json has all", findings.len() - FINDINGS_SHOWN)?;
        }
        if last_fix.is_empty() { Ok(()) } else { writeln!(out, "{INDENT}do: {}", harmless(last_fix)) }
    }
}

impl Report {
    /// Returns all findings in full, each check with its meaning and each finding with its fix.
    #[must_use]
    pub fn fix_text(&self) -> String {
        let found = self.rows.iter().filter(|row| !row.findings.is_empty());
        let texts: Vec<String> = found.map(Row::fix_text).collect();
        if !texts.is_empty() {
            return texts.join("\n");
        }
        let result = match () {
            () if self.is_blind() => "Nothing was checked.\n",
            () if self.is_incomplete() => "Nothing to fix was found, but not everything could be checked.\n",
            () => "Nothing to fix.\n",
        };
        format!("{result}{}", self.unchecked())
    }
}

impl Row {
    fn fix_text(&self) -> String {
        let meaning = checks::all().find(|check| check.code == self.code).map_or("", |check| check.meaning);
        let mut text = format!("{} {}  expected: {}\n\n{meaning}\n", self.outcome.character(), self.code, self.title);
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
