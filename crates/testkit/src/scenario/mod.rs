//! Scenarios: text files (`*.scn`) that define the input of a server and the expected results.
//!
//! A file is a list of statements, executed in order and in virtual time, from 2026-01-01T00:00:00Z on. A statement
//! starts at the margin; the indented lines below belong to it. `#` starts a comment line.
//!
//! | statement | meaning |
//! |---|---|
//! | `corefile` + text | load a Corefile; a second one is a reload. `corefile fails`: loading must fail |
//! | `problem TEXT` | the errors of the last Corefile contain TEXT |
//! | `file PATH` + text, `no file PATH` | write or remove a file |
//! | `variable NAME VALUE` | set an environment variable for later Corefiles |
//! | `upstream ADDRESS` + table | set the table of an upstream, see below |
//! | `upstream ADDRESS asked N` [+ queries] | the upstream received N queries since the last check, see below |
//! | `after DURATION` | advance time |
//! | `ask NAME TYPE [WORDS]` + answer | send a query and wait for the response, at most ten seconds; words: see below |
//! | `ask … as LABEL`, `answer LABEL` + answer | send a query and check its response later |
//! | `pending LABEL` | there is no response yet |
//! | `raw [WORDS] HEX` + answer | send these bytes |
//! | `metric SERIES VALUE` | the series has this value, or one in `LEAST..MOST`; missing series are 0 |
//! | `log TEXT` | remove a log line that contains TEXT; there must be one |
//! | `no log [TEXT]` | no log line above `[DEBUG]` is left, or none that contains TEXT |
//! | `page ADDRESS PATH STATUS [BODY]` [+ lines] | the server serves this page, with these lines |
//! | `no page ADDRESS PATH` | the server does not serve this page |
//! | `site ADDRESS PATH STATUS\|refused [delay DURATION]` | response when the server fetches this page |
//! | `no site ADDRESS PATH` | remove a `site` |
//! | `needs lameduck DURATION`, `needs reload INTERVAL JITTER` | what the Corefile requests from the process |
//! | `unready NAME`, `ready NAME` | add a participant in readiness (plugin `ready`), or change its state |
//! | `end` | shut the process down |
//!
//! The **words** of `ask` are `tcp`, `do`, `cd`, `ad`, `nord`, `noedns`, `bufsize N`, `version N`, `option CODE HEX`,
//! `class CLASS`, `opcode OPCODE`, `serial N` (for IXFR), `from ADDRESS` and `port N`.
//!
//! The **queries** below `asked` are one per line, such as `udp NAME TYPE rd edns 1232 do`. `tls`, `post` or `get` and
//! `http3` follow for encrypted upstreams. Words may be omitted at the end, and `*` matches any word.
//!
//! An **answer** is `silence`, or a line with the response code and all flags that are set (except QR), followed by
//! the records of the answer section, those below `authority` and those below `additional` (without OPT). `ede CODE
//! [TEXT]` and `option CODE HEX` list all EDNS options. Optional lines: `ordered` (the order of records matters),
//! `edns SIZE`, `took DURATION`, `question NAME CLASS TYPE|none`, and `messages N` (number of messages of the
//! response). In a record, the word `*` matches any word.
//!
//! In addition, a response to `ask` must always have the query's id, question, opcode, RD and CD, must have EDNS if
//! and only if the query had it, and must fit the client's payload size.
//!
//! A **table** has lines `NAME TYPE [WORDS]`, each with its answer below. `*` matches any name or type, and `*.zone`
//! all names below a zone. The first matching line is used; without a match, the response is REFUSED. Words: `udp` or
//! `tcp` (only over this transport), `delay DURATION`, `once`, `wrong N` (N replies with other message IDs come first),
//! and instead of an answer `silence`, `refused`, `closed`, `broken`, `overflow` (fewer records than the header counts)
//! or `opcode` (a response with another opcode). `truncated` serves the answer over TCP only, `lowercase` changes the
//! case of the question, and `cookie` adds a server cookie. Words after the upstream's address apply to all its lines,
//! or to all queries if it has no lines.

mod asking;
mod compare;
mod looking;
mod play;
mod reply;
mod stage;
mod statement;
mod tables;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use config::Directives;
use config::setup::Capabilities;

pub use stage::Stage;
pub use statement::{Line, Problem, Statement, Words};

/// Environment variable: run only scenarios whose path contains its value.
const FILTER: &str = "SCENARIO";

/// Statements added by the caller. Each scenario has its own instance.
pub trait Extension {
    /// Returns the first words of its statements.
    fn words(&self) -> &'static [&'static str];

    /// Offers capabilities to plugins. Called before each Corefile is loaded.
    fn provide(&self, _process: &mut Capabilities) {}

    /// Executes a statement.
    ///
    /// # Errors
    /// Returns a syntax error in the statement, or a failed check.
    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem>;
}

/// Creates an [`Extension`] for one scenario.
pub type MakeExtension = fn() -> Box<dyn Extension>;

/// Runs all scenarios below a directory, with a server that has these plugins.
///
/// # Panics
/// Panics if a scenario fails, with all its problems, or if there are no scenarios.
pub fn run_directory(directory: impl AsRef<Path>, directives: Directives, extensions: &[MakeExtension]) {
    run_directories(&[directory.as_ref()], directives, extensions);
}

/// Runs the scenarios of several directories like [`run_directory`].
///
/// # Panics
/// As [`run_directory`].
#[allow(clippy::panic, reason = "a test ends so")]
pub fn run_directories(directories: &[&Path], directives: Directives, extensions: &[MakeExtension]) {
    let mut paths = Vec::new();
    directories.iter().for_each(|directory| collect(directory, &mut paths));
    paths.sort();
    let filter = std::env::var(FILTER).unwrap_or_default();
    let paths: Vec<_> = paths.into_iter().filter(|path| path.to_string_lossy().contains(&filter)).collect();
    assert!(!paths.is_empty(), "there are no scenarios below {directories:?}");
    let failures: Vec<_> = paths.iter().flat_map(|path| run_file(path, directives, extensions)).collect();
    if !failures.is_empty() {
        panic!("{} of {} scenarios failed:\n\n{}\n", failed(&failures), paths.len(), texts(&failures));
    }
}

/// A problem and the file that it is in.
type Failure<'a> = (&'a Path, Problem);

fn failed(failures: &[Failure<'_>]) -> usize {
    failures.chunk_by(|one, other| one.0 == other.0).count()
}

fn texts(failures: &[Failure<'_>]) -> String {
    let texts = failures.iter().map(|(path, problem)| format!("{}:{}: {}", path.display(), problem.line, problem.text));
    texts.collect::<Vec<_>>().join("\n")
}

/// Collects the scenario files below a directory. Unreadable directories are skipped.
fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "scn") {
            paths.push(path);
        }
    }
}

fn run_file<'p>(path: &'p Path, directives: Directives, extensions: &[MakeExtension]) -> Vec<Failure<'p>> {
    let problem = |text: String| vec![Problem { line: 0, text }];
    let run = || match fs::read_to_string(path) {
        Ok(text) => run_text(&text, directives, extensions),
        Err(error) => problem(error.to_string()),
    };
    let problems = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| problem("it panicked, see above".to_owned()));
    problems.into_iter().map(|problem| (path, problem)).collect()
}

/// Runs a scenario and returns all its problems.
#[must_use]
pub fn run_text(text: &str, directives: Directives, extensions: &[MakeExtension]) -> Vec<Problem> {
    match statement::read(text) {
        Ok(statements) => play::play(&statements, directives, extensions),
        Err(problem) => vec![problem],
    }
}

#[cfg(test)]
mod tests;
