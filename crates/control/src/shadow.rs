//! Comparison with the server that this one replaces.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{count, counted, duration, harmless};

/// Number of decimals of the agreement. `99.998 %` and `100 %` are different decisions.
const DECIMALS: usize = 3;
/// Ten to the power of [`DECIMALS`].
const SCALE: f64 = 1_000.0;

/// Comparisons, one per line of *shadow*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shadows {
    /// Comparisons.
    pub comparisons: Vec<Comparison>,
}

/// Comparison of the answers of a server block with those of another server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Address of the other server.
    pub to: String,
    /// Server block: its addresses and zones.
    pub block: String,
    /// Time since the first result in seconds; `null` without a result.
    pub since_seconds: Option<f64>,
    /// Share of the compared answers that are equal or have known differences, in percent; `null` without any.
    pub agreement_percent: Option<f64>,
    /// Counts of results.
    pub counts: Counts,
    /// Differences by zone, type and response codes, the most frequent first.
    pub groups: Vec<Group>,
    /// Number of differences without a group, because there are too many groups.
    pub ungrouped: u64,
}

/// Counts of sampled queries by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Equal answers.
    pub same: u64,
    /// Answers with known differences only.
    pub known: u64,
    /// Answers with other differences.
    pub different: u64,
    /// Queries that the other server did not answer in time.
    pub timeout: u64,
    /// Queries that could not be sent, or whose reply cannot be read.
    pub error: u64,
    /// Queries that found the queue full.
    pub dropped: u64,
    /// Queries that are not compared, such as zone transfers.
    pub skipped: u64,
}

/// Differences of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// Zone.
    pub zone: String,
    /// Record type in the questions.
    pub qtype: String,
    /// Response code of the other server.
    pub old_rcode: String,
    /// Response code of this server.
    pub new_rcode: String,
    /// Reason of a known difference; `null` for others.
    pub known: Option<Known>,
    /// Number of differences.
    pub count: u64,
    /// First differences, oldest first.
    pub examples: Vec<Example>,
}

/// Reason of a known difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Known {
    /// Stable code.
    pub code: String,
    /// Section of `docs/differences.md`.
    pub section: String,
}

/// Query with different answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Example {
    /// Time of the query (RFC 3339).
    pub time: String,
    /// Name in the question.
    pub name: String,
    /// Address of the client.
    pub client: String,
    /// Parts that differ, such as `rcode` or `answer`.
    pub differs: Vec<String>,
    /// Answer of the other server.
    pub old: Answer,
    /// Answer of this server.
    pub new: Answer,
    /// Explanation of the answer that this server would give now. `null` for a known difference, or if names are
    /// hidden.
    pub explained: Option<Explanation>,
}

/// Answer in brief.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Response code.
    pub rcode: String,
    /// Flags that are set, in lower case.
    pub flags: Vec<String>,
    /// First records of the answer section, in presentation format.
    pub answer: Vec<String>,
    /// First records of the authority section, in presentation format.
    pub authority: Vec<String>,
    /// Number of further records of both sections.
    pub more: u64,
    /// Extended DNS Error (RFC 8914): code and text.
    pub ede: Option<String>,
}

/// Explanation in brief. `portolan explain` prints the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Response code and records.
    pub result: String,
    /// Server block, plugin, its line, and the data.
    pub origin: String,
    /// Code of the reason. `docs/explain.md` lists all codes.
    pub code: String,
    /// Reason.
    pub why: String,
    /// Advice; `null` if nothing is wrong.
    #[serde(rename = "do")]
    pub advice: Option<String>,
}

impl Counts {
    /// Returns the number of answers that were compared.
    #[must_use]
    pub const fn compared(&self) -> u64 {
        self.same + self.known + self.different
    }

    /// Returns the share of compared answers without unknown differences in percent.
    #[must_use]
    pub fn agreement_percent(&self) -> Option<f64> {
        let compared = self.compared();
        (compared > 0).then(|| (compared - self.different) as f64 * 100.0 / compared as f64)
    }
}

impl Comparison {
    /// Returns true if answers differ in a way that is not known.
    #[must_use]
    pub const fn has_differences(&self) -> bool {
        self.counts.different > 0
    }
}

impl fmt::Display for Shadows {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comparisons.is_empty() {
            return writeln!(out, "no server block has the directive shadow");
        }
        for (at, comparison) in self.comparisons.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            comparison.fmt(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}  beside {}", harmless(&self.to), harmless(&self.block))?;
        if let Some(percent) = self.agreement_percent {
            write!(out, "   agreement {} %", agreement(percent))?;
        }
        match self.since_seconds {
            Some(seconds) => writeln!(out, "   for {}", duration(seconds))?,
            None => writeln!(out, "   no result yet")?,
        }
        let Counts { same, known, different, timeout, error, dropped, skipped } = self.counts;
        let compared = counted(self.counts.compared(), "answer");
        let [same, known, different] = [same, known, different].map(count);
        writeln!(out, "  {compared} compared: {same} same, {known} known, {different} different")?;
        let others = [timeout, error, dropped, skipped];
        if others.iter().any(|number| *number > 0) {
            let [timeout, error, dropped, skipped] = others.map(count);
            writeln!(out, "  not compared: {timeout} timeout, {error} error, {dropped} dropped, {skipped} skipped")?;
        }
        self.groups.iter().filter(|group| group.known.is_none()).try_for_each(|group| group.fmt(out))?;
        self.groups.iter().filter(|group| group.known.is_some()).try_for_each(|group| group.fmt(out))?;
        match self.ungrouped {
            0 => Ok(()),
            more => writeln!(out, "  … and {} of other zones, types or response codes", counted(more, "difference")),
        }
    }
}

/// Formats the agreement. It is rounded down, so that 100 means that all answers agree.
fn agreement(percent: f64) -> String {
    let text = format!("{:.DECIMALS$}", (percent * SCALE).floor() / SCALE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Group {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group { qtype, old_rcode, new_rcode, .. } = self;
        let (zone, number) = (harmless(&self.zone), count(self.count));
        write!(out, "\n{zone}  {qtype}  {old_rcode} → {new_rcode}  {number}×")?;
        match &self.known {
            // One example shows what is meant; the reason is known.
            Some(known) => {
                writeln!(out, "   known: {} (docs/differences.md#{})", known.code, known.section)?;
                self.examples.iter().take(1).try_for_each(|example| example.write(qtype, out))
            }
            None => {
                writeln!(out)?;
                self.examples.iter().try_for_each(|example| example.write(qtype, out))
            }
        }
    }
}

impl Example {
    fn write(&self, qtype: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, differs) = (harmless(&self.name), self.differs.join(", "));
        writeln!(out, "  {}  {name} {qtype}  from {}   differs: {differs}", self.time, harmless(&self.client))?;
        writeln!(out, "    old   {}", self.old)?;
        writeln!(out, "    new   {}", self.new)?;
        let Some(explained) = &self.explained else { return Ok(()) };
        writeln!(out, "    now   {}   {}", harmless(&explained.result), harmless(&explained.origin))?;
        writeln!(out, "    why   {} [{}]", harmless(&explained.why), explained.code)?;
        explained.advice.iter().try_for_each(|advice| writeln!(out, "    do    {}", harmless(advice)))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.rcode, self.flags.join(" "))?;
        self.answer.iter().try_for_each(|record| write!(out, "  {}", harmless(record)))?;
        self.authority.iter().try_for_each(|record| write!(out, "  authority {}", harmless(record)))?;
        if self.more > 0 {
            write!(out, "  and {} more", counted(self.more, "record"))?;
        }
        match &self.ede {
            Some(ede) => write!(out, "  EDE {}", harmless(ede)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_rounded_down() {
        assert_eq!(agreement(100.0), "100");
        assert_eq!(agreement(99.999_9), "99.999");
        assert_eq!(agreement(99.5), "99.5");
        let counts = Counts { same: 99_998, known: 1, different: 1, ..Counts::default() };
        assert_eq!(counts.agreement_percent().map(agreement).as_deref(), Some("99.999"));
        assert_eq!(Counts { timeout: 3, ..Counts::default() }.agreement_percent(), None);
    }

    #[test]
    fn prints_differences_before_known_ones() {
        let answer = |rcode: &str, records: &[&str]| Answer {
            rcode: rcode.to_owned(),
            flags: vec!["aa".to_owned(), "rd".to_owned()],
            answer: records.iter().map(|record| (*record).to_owned()).collect(),
            ..Answer::default()
        };
        let example = |old: Answer, new: Answer| Example {
            time: "2026-01-02T03:04:05.678Z".to_owned(),
            name: "db.shop.svc.cluster.local.".to_owned(),
            client: "10.244.1.17".to_owned(),
            differs: vec!["rcode".to_owned(), "answer".to_owned()],
            old,
            new,
            explained: None,
        };
        let group = |known: Option<&str>, count, example: Example| Group {
            zone: "cluster.local.".to_owned(),
            qtype: "A".to_owned(),
            old_rcode: example.old.rcode.clone(),
            new_rcode: example.new.rcode.clone(),
            known: known.map(|code| Known { code: code.to_owned(), section: "kubernetes".to_owned() }),
            count,
            examples: vec![example],
        };
        let explained = Some(Explanation {
            result: "NOERROR  10.96.44.7".to_owned(),
            origin: ".:53 › kubernetes   Corefile:2   Service shop/db".to_owned(),
            code: "found".to_owned(),
            why: "the name exists".to_owned(),
            advice: None,
        });
        let changed =
            example(answer("NXDOMAIN", &[]), answer("NOERROR", &["db.shop.svc.cluster.local. 5 IN A 10.96.44.7"]));
        let known = example(answer("NXDOMAIN", &[]), answer("NOERROR", &[]));
        let comparison = Comparison {
            to: "10.96.0.10:53".to_owned(),
            block: "dns://:53 .".to_owned(),
            since_seconds: Some(7_440.0),
            agreement_percent: Some(99.9),
            counts: Counts { same: 1_997, known: 1, different: 2, timeout: 3, ..Counts::default() },
            groups: vec![group(Some("nodata"), 1, known), group(None, 2, Example { explained, ..changed })],
            ungrouped: 1,
        };
        let text = Shadows { comparisons: vec![comparison] }.to_string();
        let expected = "\
10.96.0.10:53  beside dns://:53 .   agreement 99.9 %   for 2 h 4 m
  2,000 answers compared: 1,997 same, 1 known, 2 different
  not compared: 3 timeout, 0 error, 0 dropped, 0 skipped

cluster.local.  A  NXDOMAIN → NOERROR  2×
  2026-01-02T03:04:05.678Z  db.shop.svc.cluster.local. A  from 10.244.1.17   differs: rcode, answer
    old   NXDOMAIN aa rd
    new   NOERROR aa rd  db.shop.svc.cluster.local. 5 IN A 10.96.44.7
    now   NOERROR  10.96.44.7   .:53 › kubernetes   Corefile:2   Service shop/db
    why   the name exists [found]

cluster.local.  A  NXDOMAIN → NOERROR  1×   known: nodata (docs/differences.md#kubernetes)
  2026-01-02T03:04:05.678Z  db.shop.svc.cluster.local. A  from 10.244.1.17   differs: rcode, answer
    old   NXDOMAIN aa rd
    new   NOERROR aa rd
  … and 1 difference of other zones, types or response codes
";
        assert_eq!(text, expected);
    }
}
