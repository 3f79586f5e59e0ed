//! Scenarios: text files (`*.scn`) that say what a server is given, and what must come of it.
//!
//! A file is a list of statements, one after the other in virtual time. A statement begins at the margin; indented lines
//! below belong to it. `#` begins a comment line.
//!
//! | statement | what it does |
//! |---|---|
//! | `corefile` + text | takes over a Corefile; a second one is a reload. `corefile fails`: it must not be taken over |
//! | `problem TEXT` | what was wrong with the last Corefile contains TEXT |
//! | `file PATH` + text, `no file PATH` | writes or removes a file |
//! | `variable NAME VALUE` | sets an environment variable, for Corefiles to come |
//! | `upstream ADDRESS` + table | sets the table of an upstream, see below |
//! | `upstream ADDRESS asked N` [+ queries] | so many queries came since the last look; each line is one, as `udp NAME TYPE rd edns 1232 do`, words may be left out at its end, `*` is any word |
//! | `after DURATION` | lets time pass |
//! | `ask NAME TYPE [WORDS]` + answer | asks and waits, ten seconds at most; words: `tcp`, `do`, `cd`, `ad`, `nord`, `noedns`, `bufsize N`, `version N`, `option CODE HEX`, `class CLASS`, `opcode OPCODE`, `serial N` (for IXFR), `from ADDRESS`, `port N` |
//! | `ask … as LABEL`, `answer LABEL` + answer | asks, and looks at the answer later; `pending LABEL`: there is none yet |
//! | `raw [WORDS] HEX` + answer | sends these octets |
//! | `metric SERIES VALUE` | a series has this value, or one in `LEAST..MOST`; labels in any order; what is not shown is 0 |
//! | `log TEXT`, `no log [TEXT]` | takes out a log line that contains TEXT; none is left |
//! | `page ADDRESS PATH STATUS [BODY]` [+ lines], `no page ADDRESS PATH` | a page that the server serves |
//! | `site ADDRESS PATH STATUS\|refused [delay DURATION]` | what answers when the server fetches a page, in place of itself |
//! | `needs lameduck DURATION`, `needs reload INTERVAL JITTER` | what the Corefile asks of the process |
//! | `unready NAME`, `ready NAME` | somebody whom the page of the plugin `ready` asks |
//! | `end` | the process ends |
//!
//! An **answer** is `silence`, or a line with the response code and all flags that are set (but QR), then the records of
//! the answer section, those below `authority`, those below `additional` (without OPT). `ordered`: their order matters
//! too. `ede CODE [TEXT]` and `option CODE HEX` list all EDNS options. `edns SIZE`, `took DURATION` and
//! `question NAME CLASS TYPE|none` and `messages N` (of how many the answer is) are looked at only if they are there. A word `*` in a record stands for any word.
//! Whatever it says, an answer to `ask` must have its id, question, opcode, RD and CD, have EDNS if and only if the query
//! had, and fit.
//!
//! A **table** has lines `NAME TYPE [WORDS]`, each with its answer below; `*` is any name or type, `*.zone` all names
//! below. The first line that fits is used, without one the answer is REFUSED. Words: `udp`, `tcp` (only over it),
//! `delay DURATION`, `once`, and in place of an answer `silence`, `refused`, `closed`, `broken`; `truncated` keeps the
//! answer for TCP. Behind the address of the upstream the words hold for all its lines, or for all questions if it has
//! none.

mod asking;
mod compare;
mod looking;
mod reply;
mod stage;
mod statement;
mod tables;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use engine::Slot;
use engine::setup::Capabilities;

pub use stage::Stage;
pub use statement::{Line, Problem, Statement, Words};

/// Only scenarios whose path contains the value of this variable are run.
const FILTER: &str = "SCENARIO";

/// Statements of a caller's own; each scenario has a new one.
pub trait Extension {
    /// The words that its statements begin with.
    fn words(&self) -> &'static [&'static str];

    /// Offers things to directives; called before each Corefile is taken over.
    fn provide(&self, _process: &mut Capabilities) {}

    /// Plays a statement.
    ///
    /// # Errors
    /// What is wrong with it, or what it has shown.
    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem>;
}

/// Makes an [`Extension`] for one scenario.
pub type MakeExtension = fn() -> Box<dyn Extension>;

/// Runs all scenarios below a directory, for a server that knows these directives.
///
/// # Panics
/// If one of them fails, with all that is wrong; or if there is none.
#[allow(clippy::panic, reason = "a test ends so")]
pub fn run_directory(directory: impl AsRef<Path>, slots: &[Slot], extensions: &[MakeExtension]) {
    let mut paths = Vec::new();
    collect(directory.as_ref(), &mut paths);
    paths.sort();
    let filter = std::env::var(FILTER).unwrap_or_default();
    let paths: Vec<_> = paths.into_iter().filter(|path| path.to_string_lossy().contains(&filter)).collect();
    assert!(!paths.is_empty(), "there are no scenarios below {}", directory.as_ref().display());
    let failures: Vec<_> = paths.iter().flat_map(|path| run_file(path, slots, extensions)).collect();
    if !failures.is_empty() {
        panic!("{} of {} scenarios say:\n\n{}\n", failed(&failures), paths.len(), texts(&failures));
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

/// The scenario files below a directory; one that cannot be read holds none.
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

fn run_file<'p>(path: &'p Path, slots: &[Slot], extensions: &[MakeExtension]) -> Vec<Failure<'p>> {
    let problem = |text: String| vec![Problem { line: 0, text }];
    let run = || match fs::read_to_string(path) {
        Ok(text) => run_text(&text, slots, extensions),
        Err(error) => problem(error.to_string()),
    };
    let problems = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| problem("it panicked, see above".to_owned()));
    problems.into_iter().map(|problem| (path, problem)).collect()
}

/// Runs one scenario; gives all that is wrong.
#[must_use]
pub fn run_text(text: &str, slots: &[Slot], extensions: &[MakeExtension]) -> Vec<Problem> {
    match statement::read(text) {
        Ok(statements) => stage::play(&statements, slots, extensions),
        Err(problem) => vec![problem],
    }
}

#[cfg(test)]
mod tests;
