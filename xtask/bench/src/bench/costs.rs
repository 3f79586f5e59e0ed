//! Cost of single plugins: compares a server with a plugin to one without it. Both are loaded in turns, so that they
//! run under the same conditions. The result is the median of the ratios of all rounds.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::findings::Findings;
use super::processes::{self, Pinned};
use super::{Corefile, Folder, load};
use xtask::{Failed, results};

/// Number of rounds.
const ROUNDS: usize = 31;
/// Divisor of the given duration for one turn. Turns are short, so that other load on the machine affects both servers.
const TURN: u32 = 10;
/// Maximum number of attempted rounds. A round without answers does not count.
const TRIES: usize = 2 * ROUNDS;
/// Warm-up before measuring.
const WARM_UP: Duration = Duration::from_millis(300);
/// Number of networks in the longest `acl`.
const NETWORKS: u32 = 10_000;
/// Number of names in the largest hosts file.
const HOSTS: u32 = 100_000;
/// Number of rules in the longest `rewrite`.
const RULES: u32 = 200;
/// Number of queries in a list.
const QUERIES: u32 = 8000;
const HEADING: &str = "CPU time per query with a plugin or setting, as a ratio to that without it: median of 31 rounds, with \
    the quartiles in parentheses. Each round loads both servers and the bare echo, one after the other. One core is for the \
    servers, the other for the load.";

/// Two servers that differ in one property.
struct Pair {
    name: &'static str,
    what: &'static str,
    /// Maximum ratio of the CPU time per query.
    limit: f64,
    /// Content of the server block without and with the property. Functions may write files to the folder.
    blocks: [fn(&Path) -> String; 2],
    /// Queries for each server.
    queries: [fn() -> Vec<String>; 2],
}

const PAIRS: [Pair; 7] = [
    Pair {
        name: "log",
        what: "a log line for each query, to a file",
        limit: 1.35,
        blocks: [one_host, |folder| format!("log\n{}", one_host(folder))],
        queries: [one_name, one_name],
    },
    Pair {
        name: "chain",
        what: "twelve plugins that do not apply, compared with two",
        limit: 1.1,
        blocks: [
            |folder| format!("errors\nloadbalance\n{}", one_host(folder)),
            |folder| format!("{TEN_THAT_PASS}errors\nloadbalance\n{}", one_host(folder)),
        ],
        queries: [one_name, one_name],
    },
    Pair {
        name: "acl",
        what: "10,000 networks that do not contain the client",
        limit: 1.3,
        blocks: [one_host, |folder| format!("acl {{\n{}}}\n{}", networks(), one_host(folder))],
        queries: [one_name, one_name],
    },
    Pair {
        name: "hosts",
        what: "names among 100,000, compared with a single name",
        limit: 1.3,
        blocks: [one_host, many_hosts],
        queries: [one_name, listed_names],
    },
    Pair {
        name: "hosts-pass",
        what: "names that are not among 100,000, compared with no `hosts`",
        limit: 1.3,
        blocks: [|_| WHOAMI.to_owned(), |folder| format!("{}{WHOAMI}", many_hosts(folder))],
        queries: [other_names, other_names],
    },
    Pair {
        name: "rewrite",
        what: "200 exact names that no query has",
        limit: 1.3,
        blocks: [one_host, |folder| format!("{}{}", rules(), one_host(folder))],
        queries: [one_name, one_name],
    },
    Pair {
        name: "rewrite-last",
        what: "the last of 200 exact names, with the answer rewritten back",
        limit: 1.3,
        blocks: [one_host, |folder| format!("{}{}", rules(), one_host(folder))],
        queries: [one_name, last_rule],
    },
];

/// Directives that do not apply to [`one_name`].
const TEN_THAT_PASS: &str = "nsid x
bufsize 1232
local
dns64
any
chaos
rewrite name exact a.test b.test
acl {
    block net 192.0.2.0/24
}
template IN MX {
    rcode NXDOMAIN
}
minimal
";
const WHOAMI: &str = "whoami\n";

/// Measures all pairs, or only one. Fails if a ratio exceeds its limit.
pub(crate) fn run(server: &Path, time: Duration, only: Option<&str>, save: bool) -> Result<(), Failed> {
    processes::stay_away()?;
    let mut findings = Findings::new(HEADING);
    for pair in PAIRS.iter().filter(|pair| only.is_none_or(|only| only == pair.name)) {
        let rounds = Measured::start(server, pair)?.rounds(time)?;
        findings.add(
            format!("{}: {}", pair.name, pair.what),
            rounds.to_string(),
            pair.limit.to_string(),
            rounds.middle(Turn::ratio) <= pair.limit,
        );
    }
    println!("{findings}");
    if save {
        println!("saved as {}", results::save("-costs", &findings)?.display());
    }
    findings.verdict()
}

/// Servers of a pair, and the echo.
struct Measured<'a> {
    pair: &'a Pair,
    servers: [Served; 2],
    echo: Pinned,
    _folder: Folder,
}

struct Served {
    server: Pinned,
    queries: Vec<String>,
    _corefile: Corefile,
}

impl<'a> Measured<'a> {
    fn start(binary: &Path, pair: &'a Pair) -> Result<Measured<'a>, Failed> {
        let folder = Folder::make(pair.name)?;
        let start = |at: usize| {
            let text = format!(".:{{PORT}} {{\nbind 127.0.0.1\n{}}}\n", pair.blocks[at](folder.path()));
            let corefile = Corefile::write(&text, "", 0)?;
            let output = File::create(folder.path().join(format!("output-{at}"))).map_err(|error| error.to_string())?;
            let server = Pinned::serve_into(binary, &corefile, Stdio::from(output))?;
            Ok::<_, Failed>(Served { server, queries: pair.queries[at](), _corefile: corefile })
        };
        let servers = [start(0)?, start(1)?];
        let echo = Pinned::start(processes::SERVER_CPU, &["respond", "echo"])?;
        Ok(Measured { pair, servers, echo, _folder: folder })
    }

    fn rounds(&self, time: Duration) -> Result<Rounds, Failed> {
        for served in &self.servers {
            let load = load::run(&served.server, &served.queries, WARM_UP)?;
            let other = load.rcodes.iter().skip(1).sum::<u64>();
            if other > 0 {
                return Err(format!("{}: {other} answers have an error code", self.pair.name));
            }
        }
        let turns = (0..TRIES)
            .map(|at| self.turn(time / TURN, at % 2 == 0))
            .filter(|turn| turn.as_ref().map_or(true, Turn::says_something));
        let turns: Vec<Turn> = turns.take(ROUNDS).collect::<Result<_, Failed>>()?;
        if turns.len() < ROUNDS {
            return Err(format!("{}: too few rounds in which all servers answered", self.pair.name));
        }
        Ok(Rounds(turns))
    }

    /// Loads all three. The server with the property comes first or last.
    fn turn(&self, time: Duration, is_last: bool) -> Result<Turn, Failed> {
        let [without, with] = &self.servers;
        let cpu = |server: &Pinned, queries: &[String]| load::run(server, queries, time).map(|load| load.cpu_each);
        let with = || cpu(&with.server, &with.queries);
        let first = if is_last { None } else { Some(with()?) };
        Ok(Turn {
            without: cpu(&without.server, &without.queries)?,
            with: first.map_or_else(with, Ok)?,
            echo: cpu(&self.echo, &without.queries)?,
        })
    }
}

/// CPU time per answer in microseconds.
struct Turn {
    echo: f64,
    without: f64,
    with: f64,
}

impl Turn {
    /// Returns true if all three answered. On a shared machine, a process may be suspended for a while.
    fn says_something(&self) -> bool {
        [self.echo, self.without, self.with].iter().all(|cpu| *cpu > 0.0)
    }

    fn ratio(&self) -> f64 {
        self.with / self.without
    }
}

struct Rounds(Vec<Turn>);

impl Rounds {
    fn sorted(&self, figure: fn(&Turn) -> f64) -> Vec<f64> {
        let mut figures: Vec<f64> = self.0.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    fn middle(&self, figure: fn(&Turn) -> f64) -> f64 {
        self.sorted(figure)[self.0.len() / 2]
    }
}

impl std::fmt::Display for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ratios = self.sorted(Turn::ratio);
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        write!(f, "{:.2} ({low:.2} to {high:.2})", self.middle(Turn::ratio))?;
        let [without, with] = [self.middle(|turn| turn.without), self.middle(|turn| turn.with)];
        write!(f, "; CPU µs per query {without:.2}, {with:.2}")?;
        let [without, with] = [self.middle(|turn| turn.without / turn.echo), self.middle(|turn| turn.with / turn.echo)];
        write!(f, "; ratio to the echo {without:.2}, {with:.2}")
    }
}

fn one_host(_: &Path) -> String {
    "hosts /dev/null {\n192.0.2.1 www.host.test\n}\n".to_owned()
}

fn one_name() -> Vec<String> {
    vec!["www.host.test. A".to_owned()]
}

fn networks() -> String {
    (0..NETWORKS).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "block net 10.{}.{}.0/25", number >> 8, number & 255);
        text
    })
}

fn many_hosts(folder: &Path) -> String {
    let lines = (0..HOSTS).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "10.{}.{}.{} h{number}.host.test", number >> 16, number >> 8 & 255, number & 255);
        text
    });
    let path = folder.join("hosts");
    // On an error, the server does not answer, and the benchmark fails.
    let _ = std::fs::write(&path, lines);
    format!("hosts {} {{\nfallthrough\n}}\n", path.display())
}

fn listed_names() -> Vec<String> {
    (0..QUERIES).map(|number| format!("h{}.host.test. A", number * (HOSTS / QUERIES))).collect()
}

fn other_names() -> Vec<String> {
    (0..QUERIES).map(|number| format!("o{number}.host.test. A")).collect()
}

fn rules() -> String {
    let rules = (1..RULES).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "rewrite name exact r{number}.old.test r{number}.host.test");
        text
    });
    format!("{rules}rewrite name exact www.old.test www.host.test\n")
}

fn last_rule() -> Vec<String> {
    vec!["www.old.test. A".to_owned()]
}
