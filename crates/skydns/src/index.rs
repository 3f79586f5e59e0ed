//! Lock-free view of a store's records that all workers read while the reducer updates it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use host::invariant::holds;
use rcu::{Reading, Sorted};
use wire::NameRef;

use crate::record::{Entry, RecordFilter};
use crate::select::Selection;
use crate::{Record, key};

/// Records of a store.
#[derive(Default)]
pub struct Index {
    /// Records by key, without the path.
    pub(crate) entries: Sorted<Entry>,
    listed: AtomicBool,
    current: AtomicBool,
    serial: AtomicU32,
    refused: AtomicU64,
}

/// Number of records in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys with a value, valid or not.
    pub records: usize,
    /// Keys and values rejected since the start because they are invalid or exceed a limit.
    pub refused: u64,
}

impl Index {
    /// Returns the records as of now. Hold it for a short time only.
    #[must_use]
    pub fn view(&self) -> View {
        View(self.entries.read())
    }

    /// Returns true once everything requested has been listed. Never becomes false again, even if the store goes
    /// away.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// Returns true while the watches work. Otherwise the records may be stale.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    /// Returns the time of the last change in Unix seconds, used as an SOA serial; 0 before the first change.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial.load(Ordering::Acquire)
    }

    /// Returns the number of records and rejected values.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { records: self.entries.read().len(), refused: self.refused.load(Ordering::Relaxed) }
    }

    pub(crate) fn set_listed(&self) {
        self.listed.store(true, Ordering::Release);
    }

    pub(crate) fn set_current(&self, current: bool) {
        self.current.store(current, Ordering::Release);
    }

    /// Advances the serial after a change. If the clock was set back, the serial still increases, because secondaries
    /// ignore a zone with an older serial (RFC 1982).
    pub(crate) fn stamp(&self, now_seconds: u32) {
        let serial = self.serial();
        let next = if now_seconds >= serial { now_seconds } else { serial.wrapping_add(1) };
        holds(next >= serial || serial == u32::MAX, "the serial of a zone does not go back");
        self.serial.store(next, Ordering::Release);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Consistent snapshot of the records.
pub struct View(pub(crate) Reading<Entry>);

impl View {
    /// Returns the records of a name, which must be in lower case: all records below it, or its own if there are
    /// none.
    ///
    /// `before_zone` is the number of bytes of the name before its zone. In this part, `*` and `any` match any label,
    /// and keys below a match are included.
    #[must_use]
    pub fn select(&self, name: NameRef<'_>, before_zone: usize, filter: RecordFilter) -> Selection<'_> {
        Selection::of(&self.0, name, before_zone, filter)
    }

    /// Returns the record of exactly this name, which must be in lower case. Returns `Some(None)` if its value is
    /// invalid.
    #[must_use]
    pub fn exactly(&self, name: NameRef<'_>) -> Option<Option<&Record>> {
        let key = key::Key::of(name)?;
        let key = key.whole();
        self.0.get(key).map(|entry| entry.as_deref())
    }
}
