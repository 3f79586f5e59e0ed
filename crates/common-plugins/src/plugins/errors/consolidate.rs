//! Errors that are counted and logged as a summary.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::options::{Args, Problem};
use engine::log::Level;
use engine::{Instant, Io};

use crate::shared::option_helpers::regular_expression;
use gotext::regexp::Regexp;

/// Interval at which counts are checked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Counter for errors whose text matches a pattern.
pub(super) struct Rule {
    period: Duration,
    pattern: Regexp,
    level: Level,
    show_first: bool,
    count: AtomicU64,
    /// Time of the first error of this count, in nanoseconds.
    since: AtomicU64,
}

impl Rule {
    pub(super) fn read(args: &mut Args<'_>) -> Result<Rule, Problem> {
        let period = args.duration()?;
        let word = args.word()?;
        let pattern = regular_expression(args, word)?;
        let words = args.take_rest();
        let level = |text: &str| LEVELS.iter().find(|(name, _)| *name == text).map(|(_, level)| *level);
        let (level, show_first) = match words {
            [] => (LEVELS[0].1, false),
            [first] if first.text == "show_first" => (LEVELS[0].1, true),
            [first, second, ..] if first.text == "show_first" => {
                return Err(args.bad(second, "expected here: `show_first` must be last"));
            }
            [first] => (level(&first.text).ok_or_else(|| args.bad(first, WANTED))?, false),
            [first, second, ..] => {
                let level = level(&first.text).ok_or_else(|| args.bad(first, WANTED))?;
                if second.text != "show_first" {
                    return Err(args.bad(second, "`show_first`"));
                }
                (level, true)
            }
        };
        Ok(Rule { period, pattern, level, show_first, count: AtomicU64::new(0), since: AtomicU64::new(0) })
    }

    /// Counts an error. Returns true if it is the first of this count.
    fn count(&self, now: Instant) -> bool {
        let first = self.count.fetch_add(1, Ordering::Relaxed) == 0;
        if first {
            self.since.store(now.nanos(), Ordering::Relaxed);
        }
        first
    }

    /// Returns the summary if it is due. At shutdown (`ending`) every count is due.
    fn due(&self, now: Instant, ending: bool) -> Option<(Level, String)> {
        let since = Instant::from_nanos(self.since.load(Ordering::Relaxed));
        if self.count.load(Ordering::Relaxed) == 0 || (now.since(since) < self.period && !ending) {
            return None;
        }
        let count = self.count.swap(0, Ordering::Relaxed);
        let shown = u64::from(self.show_first);
        let Rule { level, pattern, period, .. } = self;
        let period = gotext::format_duration(*period);
        (count > shown).then(|| (*level, format!("{count} errors like '{pattern}' occurred in last {period}")))
    }
}

const LEVELS: [(&str, Level); 4] =
    [("error", Level::Error), ("warning", Level::Warning), ("info", Level::Info), ("debug", Level::Debug)];
const WANTED: &str = "a level (`error`, `warning`, `info`, `debug`) or `show_first`";

/// All rules. The first that matches an error decides.
#[derive(Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    pub(super) fn new(rules: Vec<Rule>) -> Rules {
        Rules { rules }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the level at which an error is logged, or `None` if it is only counted.
    pub(super) fn level(&self, cause: &str, now: Instant) -> Option<Level> {
        match self.rules.iter().find(|rule| rule.pattern.is_match(cause)) {
            Some(rule) => (rule.count(now) && rule.show_first).then_some(rule.level),
            None => Some(LEVELS[0].1),
        }
    }
}

/// Logs the summaries that are due, and all of them when the future is dropped.
pub(super) async fn report(rules: Arc<Rules>, io: Rc<dyn Io>) {
    let printer = Printer { rules, io };
    loop {
        printer.io.sleep_until(printer.io.now() + LOOK_EVERY).await;
        printer.print(false);
    }
}

struct Printer {
    rules: Arc<Rules>,
    io: Rc<dyn Io>,
}

impl Printer {
    fn print(&self, ending: bool) {
        let now = self.io.now();
        for (level, message) in self.rules.rules.iter().filter_map(|rule| rule.due(now, ending)) {
            self.io.log(level, super::SOURCE, format_args!("{message}"));
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.print(true);
    }
}
