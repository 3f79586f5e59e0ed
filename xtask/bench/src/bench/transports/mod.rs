//! Cost of the encrypted transports, beside CoreDNS: CPU time per answer, memory of idle connections, handshakes, and
//! queries forwarded over each transport.
//!
//! Both servers have the same Corefile and the same processor, and take turns under load, so that other load on the
//! machine affects both. A figure is the median of all rounds, and a ratio the median of the ratios of all rounds.
//! [`client`] has the clients. They check every answer.

mod client;
mod idle;
mod rows;
mod site;
mod table;
mod turn;
mod work;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ArgMatches;

use self::rows::Row;
use self::site::Site;
use self::table::{Measured, Table};
use self::turn::Turn;
use super::certificates::Certificates;
use super::processes;
use xtask::{Failed, results};

/// Number of rounds.
const ROUNDS: usize = 5;

/// Returns the hidden command line of the clients.
pub(crate) fn client_command() -> clap::Command {
    client::command()
}

/// Runs the clients. The benchmark starts this program again for them.
pub(crate) fn clients(options: &ArgMatches) -> Result<(), Failed> {
    client::main(options)
}

/// Measures all rows, or only one. Fails if a result misses what is required.
pub(crate) fn run(
    portolan: &Path,
    coredns: &Path,
    time: Duration,
    only: Option<&str>,
    save: bool,
) -> Result<(), Failed> {
    processes::stay_away()?;
    let version = version_of(coredns);
    if version.is_none() {
        eprintln!("skipped: cannot run `{}`, so no figure of CoreDNS is measured; see --coredns", coredns.display());
    }
    let mut table = Table::new(conditions(version.as_deref(), time));
    let coredns = version.map(|_| coredns);
    let bench = Bench { portolan, coredns, certificates: Certificates::make()?, time };
    for row in rows::ALL.iter().filter(|row| only.is_none_or(|only| only == row.name)) {
        eprintln!("{}: {}", row.name, row.what);
        // Other rows are worth something without this one.
        table.add(row, bench.measure(row).inspect_err(|what| eprintln!("{what}")));
    }
    println!("{table}");
    if save {
        println!("saved as {}", results::save("-transports", &table)?.display());
    }
    table.verdict()
}

/// Programs that are measured, and what they have in common.
struct Bench<'a> {
    portolan: &'a Path,
    /// `None` if it is missing.
    coredns: Option<&'a Path>,
    certificates: Certificates,
    /// Duration of a turn.
    time: Duration,
}

impl Bench<'_> {
    /// Measures a row with each program that has what the row is about.
    fn measure(&self, row: &Row) -> Result<Measured, Failed> {
        let mut programs = vec![("Portolan", self.portolan)];
        programs.extend(self.coredns.filter(|_| row.missing_in_coredns.is_none()).map(|path| ("CoreDNS", path)));
        let failed = |name: &str, what: Failed| format!("{name}: {what}");
        let mut contestants = Vec::new();
        for (name, path) in programs {
            let site = Site::start(&row.work, path, self.portolan, &self.certificates);
            contestants.push(Contestant { name, site: site.map_err(|what| failed(name, what))?, turns: Vec::new() });
        }
        for contestant in &contestants {
            row.work.warm_up(&contestant.site, self.time);
        }
        for _ in 0..row.work.rounds() {
            for Contestant { name, site, turns } in &mut contestants {
                let turn = row.work.measure(site, &self.certificates, self.time);
                turns.push(turn.map_err(|what| failed(name, what))?);
            }
            // The other begins the next round.
            contestants.reverse();
        }
        let turns = |name| contestants.iter().find(|contestant| contestant.name == name);
        let turns = |name| turns(name).map(|contestant| contestant.turns.clone()).unwrap_or_default();
        Ok(Measured { portolan: turns("Portolan"), coredns: turns("CoreDNS") })
    }
}

/// Server that takes turns with another.
struct Contestant {
    name: &'static str,
    site: Site,
    turns: Vec<Turn>,
}

/// Returns the name, version and commit of CoreDNS, or `None` if it cannot run.
fn version_of(coredns: &Path) -> Option<String> {
    let output = Command::new(coredns).arg("-version").output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the conditions of the measurement, for the report.
fn conditions(coredns: Option<&str>, time: Duration) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}; Linux {}; {}.\n\nOne core is for the server, so Portolan has one worker and CoreDNS `GOMAXPROCS=1`. The other is \
         for the clients and the upstream. Both servers have the same Corefile and take turns: {ROUNDS} rounds of {time:?} \
         for each row. Figures are medians. CPU is user and system time of the server. All keys of certificates are P-256.",
        cpu.map_or("unknown CPU", |(_, model)| model),
        kernel.trim(),
        coredns.unwrap_or("CoreDNS not measured"),
    )
}
