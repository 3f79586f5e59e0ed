//! Table of the results, with medians, ratios and requirements.

use std::fmt;

use super::rows::{Required, Row, Unit};
use super::turn::Turn;
use xtask::Failed;

/// Turns of both servers in one row, in the order of the rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) portolan: Vec<Turn>,
    /// Empty if it was not measured.
    pub(crate) coredns: Vec<Turn>,
}

impl Measured {
    /// Returns the median of the ratios of all rounds.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.portolan.iter().zip(&self.coredns);
        median(pairs.map(|(our, their)| our.figure / their.figure).collect())
    }
}

/// Table of the results.
pub(crate) struct Table {
    /// Description of the measurement.
    heading: String,
    rows: Vec<(&'static Row, Measured)>,
    /// Rows that could not be measured, with the reasons.
    failed: Vec<(&'static Row, Failed)>,
}

impl Table {
    pub(crate) fn new(heading: String) -> Table {
        Table { heading, rows: Vec::new(), failed: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: &'static Row, measured: Result<Measured, Failed>) {
        match measured {
            Ok(measured) => self.rows.push((row, measured)),
            Err(failed) => self.failed.push((row, failed)),
        }
    }

    /// # Errors
    /// The rows that miss what is required, or could not be measured.
    pub(crate) fn verdict(&self) -> Result<(), Failed> {
        let missed = self.rows.iter().filter(|(row, measured)| self.is_reached(row, measured) == Some(false));
        let failed = self.failed.iter().map(|(row, _)| row.name);
        let missed: Vec<&str> = missed.map(|(row, _)| row.name).chain(failed).collect();
        if missed.is_empty() { Ok(()) } else { Err(format!("not reached: {}", missed.join(", "))) }
    }

    /// Returns `None` if nothing is required, or if what it depends on was not measured.
    fn is_reached(&self, row: &Row, measured: &Measured) -> Option<bool> {
        let figure = middle(&measured.portolan)?;
        match row.required {
            Required::Nothing(_) => None,
            Required::AtMost(most) => Some(figure <= most),
            Required::AtLeast(least) => Some(figure >= least),
            Required::PartOfCoreDns(parts) => Some(measured.ratio()? <= 1.0 / parts),
            Required::TimesCoreDns(times) => Some(measured.ratio()? >= times),
            Required::TimesRow(name, times) => {
                let (_, other) = self.rows.iter().find(|(row, _)| row.name == name)?;
                Some(figure <= times * middle(&other.portolan)?)
            }
        }
    }

    fn write_row(&self, f: &mut fmt::Formatter<'_>, row: &Row, measured: &Measured) -> fmt::Result {
        let unit = row.work.unit();
        let cell = |turns: &[Turn]| middle(turns).map_or_else(|| "–".to_owned(), |figure| show(figure, unit));
        let coredns = row.missing_in_coredns.map_or_else(|| cell(&measured.coredns), str::to_owned);
        let ratio = measured.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
        let reached = match self.is_reached(row, measured) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        writeln!(
            f,
            "| {}: {} | {} | {coredns} | {ratio} | {} | {reached} | {} | {} |",
            row.name,
            row.what,
            cell(&measured.portolan),
            require(row.required, unit),
            load(&measured.portolan),
            load(&measured.coredns),
        )
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.heading)?;
        writeln!(
            f,
            "| measurement | Portolan | CoreDNS | ratio | required | reached | load: Portolan | load: CoreDNS |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for (row, measured) in &self.rows {
            self.write_row(f, row, measured)?;
        }
        for (row, failed) in &self.failed {
            writeln!(f, "| {}: {} | failed: {failed} | | | | **no** | | |", row.name, row.what)?;
        }
        writeln!(
            f,
            "\nTimes are CPU µs per answer. *Load* has the answers per second, and how busy the core of the server was."
        )
    }
}

/// Returns the median of the figures.
fn middle(turns: &[Turn]) -> Option<f64> {
    median(turns.iter().map(|turn| turn.figure).collect())
}

/// Returns the median, which is the upper one of an even number.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

fn show(figure: f64, unit: Unit) -> String {
    match unit {
        Unit::Micros => format!("{figure:.2} µs"),
        Unit::PerCoreSecond => format!("{figure:.0}/core-s"),
        Unit::Percent => format!("{figure:.1} %"),
        Unit::Kibibytes => format!("{figure:.1} KiB"),
    }
}

fn require(required: Required, unit: Unit) -> String {
    match required {
        Required::Nothing(why) => why.to_owned(),
        Required::AtMost(most) => format!("≤ {}", show(most, unit)),
        Required::AtLeast(least) => format!("≥ {}", show(least, unit)),
        Required::PartOfCoreDns(parts) => format!("≤ 1/{parts} of CoreDNS"),
        Required::TimesCoreDns(times) => format!("≥ {times} × CoreDNS"),
        Required::TimesRow(name, times) => format!("≤ {times} × {name}"),
    }
}

/// Returns the medians of the answers per second and of the load of the core.
fn load(turns: &[Turn]) -> String {
    let of = |part: fn((f64, f64)) -> f64| median(turns.iter().filter_map(|turn| turn.load.map(part)).collect());
    match (of(|(answers, _)| answers), of(|(_, busy)| busy)) {
        (Some(answers), Some(busy)) => format!("{answers:.0}/s, {:.0} %", busy * 100.0),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Transport;
    use super::super::rows::{self, Work};
    use super::*;

    fn turns(figures: &[f64]) -> Vec<Turn> {
        figures.iter().map(|figure| Turn { figure: *figure, load: Some((1000.0, 0.5)) }).collect()
    }

    fn table(required: Required, portolan: &[f64], coredns: &[f64]) -> Table {
        static TCP: Row = Row {
            name: "tcp",
            what: "TCP",
            work: Work::Load(Transport::Tcp, 1, 1),
            required: Required::Nothing("–"),
            missing_in_coredns: None,
        };
        let row = Row { name: "row", what: "a row", work: Work::Udp, required, missing_in_coredns: None };
        let mut table = Table::new("Heading.".to_owned());
        table.add(&TCP, Ok(Measured { portolan: turns(&[2.0]), coredns: Vec::new() }));
        table.add(Box::leak(Box::new(row)), Ok(Measured { portolan: turns(portolan), coredns: turns(coredns) }));
        table
    }

    #[test]
    fn compares_with_what_is_required() {
        let is_reached = |required, portolan: &[f64], coredns: &[f64]| {
            let table = table(required, portolan, coredns);
            let (row, measured) = &table.rows[1];
            table.is_reached(row, measured)
        };
        assert_eq!(is_reached(Required::Nothing("–"), &[1.0], &[1.0]), None);
        assert_eq!(is_reached(Required::AtMost(2.0), &[1.0, 9.0, 2.0], &[]), Some(true));
        assert_eq!(is_reached(Required::AtLeast(95.0), &[94.0], &[]), Some(false));
        assert_eq!(is_reached(Required::PartOfCoreDns(4.0), &[1.0], &[4.0]), Some(true));
        assert_eq!(is_reached(Required::PartOfCoreDns(4.0), &[1.0], &[3.9]), Some(false));
        assert_eq!(is_reached(Required::PartOfCoreDns(4.0), &[1.0], &[]), None);
        assert_eq!(is_reached(Required::TimesCoreDns(1.5), &[3.0], &[2.0]), Some(true));
        assert_eq!(is_reached(Required::TimesCoreDns(1.5), &[2.9], &[2.0]), Some(false));
        assert_eq!(is_reached(Required::TimesRow("tcp", 1.5), &[3.0], &[]), Some(true));
        assert_eq!(is_reached(Required::TimesRow("tcp", 1.5), &[3.1], &[]), Some(false));
        assert_eq!(is_reached(Required::TimesRow("missing", 1.5), &[3.0], &[]), None);
    }

    #[test]
    fn a_ratio_is_the_median_of_the_ratios_of_all_rounds() {
        let measured = Measured { portolan: turns(&[1.0, 2.0, 3.0]), coredns: turns(&[2.0, 8.0, 3.0]) };
        assert_eq!(measured.ratio(), Some(0.5));
        assert_eq!(Measured::default().ratio(), None);
    }

    #[test]
    fn the_verdict_names_what_is_not_reached() {
        assert_eq!(table(Required::AtMost(2.0), &[1.0], &[]).verdict(), Ok(()));
        let mut table = table(Required::AtMost(2.0), &[3.0], &[]);
        assert_eq!(table.verdict(), Err("not reached: row".to_owned()));
        table.add(&rows::ALL[0], Err("no answer".to_owned()));
        assert_eq!(table.verdict(), Err("not reached: row, udp".to_owned()));
        assert!(table.to_string().contains("| failed: no answer |"), "{table}");
    }

    #[test]
    fn shows_figures_requirements_and_load() {
        let text = table(Required::PartOfCoreDns(8.0), &[1.0], &[4.0]).to_string();
        let row =
            "| row: a row | 1.00 µs | 4.00 µs | 0.250 | ≤ 1/8 of CoreDNS | **no** | 1000/s, 50 % | 1000/s, 50 % |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| tcp: TCP | 2.00 µs | – | – | – | – | 1000/s, 50 % | – |"), "{text}");
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let mut names: Vec<&str> = rows::ALL.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows::ALL.len());
    }
}
