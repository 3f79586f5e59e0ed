//! Invariants: what the code relies on, and what input cannot break.
//!
//! With debug assertions, as in tests and simulations, a broken invariant panics. In a release build it is counted for
//! its place, and the caller gives up what it is doing: one query fails, and the process goes on. A silent default
//! would hide the fault, and a panic would cost more than one query.
//!
//! ```
//! use host::invariant::Expected as _;
//! # let mut connections = std::collections::HashMap::from([(1, "open")]);
//! # let mut close = |id| {
//! let Some(connection) = connections.get_mut(&id).expected("the connection of a query") else { return };
//! # *connection = "closed" };
//! # close(1);
//! ```
//!
//! An invariant is no check of input: for a value that can be absent, return an error or use a default.

use core::fmt;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Maximum number of places that are counted apart. The source has more, but a release that breaks 63 invariants has
/// other problems; the last place counts the rest.
pub const PLACES_MAX: usize = 64;

static PLACES: [OnceLock<Place>; PLACES_MAX] = [const { OnceLock::new() }; PLACES_MAX];
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Function that is called with the place of a broken invariant.
pub type Observer = Box<dyn Fn(&'static Place) + Send + Sync>;

/// Place in the source with an invariant that was broken.
#[derive(Debug)]
pub struct Place {
    index: usize,
    location: &'static Location<'static>,
    what: &'static str,
    count: AtomicU64,
}

impl Place {
    /// Returns the index of the place: below [`PLACES_MAX`], in the order of the first time.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Returns what did not hold: the state that was expected.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// Returns how often the invariant was broken since the start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Shows file and line: `crates/upstream/src/client/pooled.rs:226`.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.location.file(), self.location.line())
    }
}

/// Value whose absence breaks an invariant.
pub trait Expected: Sized {
    /// Returns the value unchanged, and reports a broken invariant if it is absent. `what` is the value, as in "the
    /// connection of a query".
    #[must_use]
    #[track_caller]
    fn expected(self, what: &'static str) -> Self;
}

impl<T> Expected for Option<T> {
    #[inline]
    #[track_caller]
    fn expected(self, what: &'static str) -> Option<T> {
        if self.is_none() {
            broken(what);
        }
        self
    }
}

/// Returns the condition, and reports a broken invariant if it is false. `what` is the state that was expected, as in
/// "a closed connection has no queries".
#[inline]
#[track_caller]
pub fn holds(condition: bool, what: &'static str) -> bool {
    if !condition {
        broken(what);
    }
    condition
}

/// Reports a broken invariant.
///
/// # Panics
/// Panics with debug assertions.
#[cold]
#[track_caller]
#[allow(clippy::panic, reason = "tests must fail here; a release build counts instead")]
pub fn broken(what: &'static str) {
    if cfg!(debug_assertions) {
        panic!("broken invariant: {what}");
    }
    count(Location::caller(), what);
}

/// Sets the function that is called each time that an invariant is broken in a release build, on the thread that broke
/// it. Only the first call of the process has an effect.
pub fn observe(observer: Observer) {
    let _ = OBSERVER.set(observer);
}

/// Returns the places whose invariants were broken since the start, in the order of their first time.
pub fn places() -> impl Iterator<Item = &'static Place> {
    PLACES.iter().map_while(OnceLock::get)
}

fn count(location: &'static Location<'static>, what: &'static str) {
    let new = |index| Place { index, location, what, count: AtomicU64::new(0) };
    let is_it = |place: &&Place| (place.location.file(), place.location.line()) == (location.file(), location.line());
    // Another thread may use a free slot first. Its place may be the same one.
    let known = PLACES.iter().enumerate().map(|(at, slot)| slot.get_or_init(|| new(at))).find(is_it);
    if let Some(place) = known.or(PLACES.last().and_then(OnceLock::get)) {
        place.count.fetch_add(1, Ordering::Relaxed);
        if let Some(observer) = OBSERVER.get() {
            observer(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "broken invariant: the pool of a query")]
    fn an_absent_value_fails_a_test() {
        let _ = None::<u8>.expected("the pool of a query");
    }

    #[test]
    #[should_panic(expected = "broken invariant: a closed connection has no queries")]
    fn a_false_condition_fails_a_test() {
        holds(false, "a closed connection has no queries");
    }

    #[test]
    fn values_and_conditions_that_hold_are_not_reported() {
        assert_eq!(Some(1).expected("a number"), Some(1));
        assert!(holds(true, "a state"));
    }

    #[test]
    fn counts_places_apart() {
        static OBSERVED: AtomicU64 = AtomicU64::new(0);
        observe(Box::new(|_| _ = OBSERVED.fetch_add(1, Ordering::Relaxed)));
        let (first, second) = (Location::caller(), Location::caller());
        assert_ne!(first.column(), second.column(), "one line");
        count(first, "one");
        count(second, "one");
        let shown: Vec<_> = places().map(|place| (place.to_string(), place.what(), place.count())).collect();
        assert_eq!(shown, [(format!("{}:{}", first.file(), first.line()), "one", 2)]);
        for _ in 0..3 {
            std::thread::scope(|scope| {
                scope.spawn(|| each_line().into_iter().for_each(|location| count(location, "a line")));
                scope.spawn(|| each_line().into_iter().for_each(|location| count(location, "a line")));
            });
        }
        assert_eq!(places().count(), 11);
        assert!(places().skip(1).all(|place| place.count() == 6));
        assert_eq!(OBSERVED.load(Ordering::Relaxed), 62);
    }

    #[rustfmt::skip]
    fn each_line() -> [&'static Location<'static>; 10] {
        [
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
            Location::caller(),
        ]
    }
}
