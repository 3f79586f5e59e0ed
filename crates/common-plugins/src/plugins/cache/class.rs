//! The two classes of responses that a cache keeps apart, and whether an entry is still valid.

use core::ops::Index;

/// Class of a response. Each class has a store, bounds and counters of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Records.
    Answer,
    /// NXDOMAIN, no records of the type, or a failure.
    Denial,
}

impl Class {
    /// All classes, in the order of the label's values.
    pub(super) const ALL: [Class; 2] = [Class::Answer, Class::Denial];

    /// Value of the label `type`, as in CoreDNS.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Class::Answer => "success",
            Class::Denial => "denial",
        }
    }
}

/// Validity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Its TTL has not passed.
    Valid,
    /// Its TTL has passed; `serve_stale` may still use it.
    Expired,
}

/// One value for each class.
#[derive(Clone, Debug)]
pub(super) struct PerClass<T>([T; 2]);

impl<T> PerClass<T> {
    /// Makes a value for each class.
    pub(super) fn new(make: impl FnMut(Class) -> T) -> PerClass<T> {
        debug_assert!(Class::ALL.map(|class| class as usize) == [0, 1], "a class is the index of its value");
        PerClass(Class::ALL.map(make))
    }

    /// Returns the values of all classes.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

impl<T> Index<Class> for PerClass<T> {
    type Output = T;

    fn index(&self, class: Class) -> &T {
        &self.0[class as usize]
    }
}
