//! What answers are made from: read by all answer threads without locks while the mirror writes it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rcu::{Reading, Sorted};
use wire::NameRef;

use crate::record::Entry;
use crate::select::{Selection, Sought};
use crate::{Record, key};

/// The records of a store as answers see them.
#[derive(Default)]
pub struct Index {
    /// By their keys without the path.
    pub(crate) entries: Sorted<Entry>,
    listed: AtomicBool,
    current: AtomicBool,
    serial: AtomicU32,
    refused: AtomicU64,
}

/// How much of a store is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys with a value, whether or not that is a record.
    pub records: usize,
    /// Keys or values that could not be read, or were too many, since the start.
    pub refused: u64,
}

impl Index {
    /// All records as they are now; for one short look.
    #[must_use]
    pub fn view(&self) -> View {
        View(self.entries.read())
    }

    /// Whether all that was asked for has been listed once. It stays so, whatever becomes of the store.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// Whether changes of the store are heard of at the moment: what is known may otherwise be old.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    /// When a record changed last, in Unix seconds: the serial of an SOA. 0 before the first.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial.load(Ordering::Acquire)
    }

    /// How much is known.
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

    pub(crate) fn stamp(&self, now_seconds: u32) {
        self.serial.store(now_seconds, Ordering::Release);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// The records of a store at one moment.
pub struct View(pub(crate) Reading<Entry>);

impl View {
    /// The records of a name in lower case: all below it, or its own if there are none below. So many of its octets stand
    /// before its zone: there `*` and `any` stand for any label, and keys longer than the name are like it too.
    #[must_use]
    pub fn select(&self, name: NameRef<'_>, before_zone: usize, sought: Sought) -> Selection<'_> {
        Selection::of(&self.0, name, before_zone, sought)
    }

    /// The record of exactly this name in lower case; `Some(None)` if its value is none.
    #[must_use]
    pub fn exactly(&self, name: NameRef<'_>) -> Option<Option<&Record>> {
        let key = key::Key::of(name)?;
        let key = key.whole();
        self.0.get(key).map(|entry| entry.as_deref())
    }
}
