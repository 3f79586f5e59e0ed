//! Rate limit for identical errors and warnings: the first is written, the rest are counted and written as one line per
//! second.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use engine::log::{Event, Level, Source};

/// Maximum number of distinct events that are counted at a time. Any others are written every time.
const COUNTED_MAX: usize = 256;
/// Period for which an event is counted before its line is written.
const PERIOD: Duration = Duration::from_secs(1);

/// Events that were written in the last second, each with the number of repetitions.
#[derive(Default)]
pub(super) struct Repeats {
    seed: RandomState,
    counted: HashMap<u64, Counted>,
}

struct Counted {
    since: Duration,
    count: u64,
    last: Kept,
}

/// Owned copy of an event.
pub(super) struct Kept {
    time: Duration,
    level: Level,
    name: Option<String>,
    message: Vec<u8>,
}

impl Kept {
    fn new(event: &Event<'_>) -> Kept {
        let name = if let Source::Plugin(name) = event.source { Some(name.to_owned()) } else { None };
        Kept { time: event.time, level: event.level, name, message: event.message.to_vec() }
    }

    /// Returns the event.
    pub(super) fn event(&self) -> Event<'_> {
        let source = self.name.as_deref().map_or(Source::Server, Source::Plugin);
        Event { time: self.time, level: self.level, source, message: &self.message, fields: &[] }
    }
}

impl Repeats {
    /// Returns true if an event must be written, and counts it otherwise. `now` is a monotonic time.
    pub(super) fn admit(&mut self, event: &Event<'_>, now: Duration) -> bool {
        if event.level > Level::Warning {
            return true;
        }
        let key = self.seed.hash_one((event.level, event.source, event.message));
        if let Some(counted) = self.counted.get_mut(&key) {
            counted.count += 1;
            counted.last.time = event.time;
            return false;
        }
        if self.counted.len() < COUNTED_MAX {
            self.counted.insert(key, Counted { since: now, count: 0, last: Kept::new(event) });
        }
        true
    }

    /// Returns the events whose period is over, or all if `ending`, each with its number of repetitions.
    pub(super) fn due(&mut self, now: Duration, ending: bool) -> Vec<(Kept, u64)> {
        let is_due = |counted: &Counted| ending || now.saturating_sub(counted.since) >= PERIOD;
        let mut due = Vec::new();
        self.counted.retain(|_, counted| {
            if !is_due(counted) {
                return true;
            }
            if counted.count > 0 {
                due.push((Kept::new(&counted.last.event()), core::mem::take(&mut counted.count)));
                counted.since = now;
                return true;
            }
            false
        });
        due
    }

    /// Returns the maximum time until an event may be due; `None` if nothing is counted.
    pub(super) fn wait(&self) -> Option<Duration> {
        (!self.counted.is_empty()).then_some(PERIOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn event(level: Level, message: &str) -> Event<'_> {
        Event { time: START, level, source: Source::Plugin("errors"), message: message.as_bytes(), fields: &[] }
    }

    fn due(repeats: &mut Repeats, now: Duration) -> Vec<(String, u64)> {
        repeats.due(now, false).iter().map(|(kept, count)| (kept.event().to_string(), *count)).collect()
    }

    #[test]
    fn writes_the_first_event_and_the_rest_once_a_second() {
        let mut repeats = Repeats::default();
        assert!(repeats.admit(&event(Level::Error, "one"), START));
        for _ in 0..50 {
            assert!(!repeats.admit(&event(Level::Error, "one"), START));
        }
        assert!(repeats.admit(&event(Level::Error, "two"), START));
        assert_eq!(due(&mut repeats, START + PERIOD / 2), []);
        let line = "[ERROR] plugin/errors: one".to_owned();
        assert_eq!(due(&mut repeats, START + PERIOD), [(line.clone(), 50)]);
        assert!(!repeats.admit(&event(Level::Error, "one"), START + PERIOD));
        assert_eq!(due(&mut repeats, START + PERIOD * 2), [(line, 1)]);
        assert_eq!(due(&mut repeats, START + PERIOD * 3), []);
        assert!(repeats.wait().is_none());
        assert!(repeats.admit(&event(Level::Error, "one"), START + PERIOD * 3));
    }

    #[test]
    fn never_limits_events_below_warning() {
        let mut repeats = Repeats::default();
        assert!((0..9).all(|_| repeats.admit(&event(Level::Info, "query"), START)));
    }

    #[test]
    fn bounds_the_number_of_counted_events() {
        let mut repeats = Repeats::default();
        for number in 0..COUNTED_MAX * 2 {
            assert!(repeats.admit(&event(Level::Warning, &number.to_string()), START));
        }
        assert_eq!(repeats.counted.len(), COUNTED_MAX);
        assert!(repeats.admit(&event(Level::Warning, &COUNTED_MAX.to_string()), START), "not counted");
        assert!(repeats.due(START, true).is_empty() && repeats.wait().is_none());
    }
}
