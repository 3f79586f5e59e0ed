//! In place of the crate `host`: invariants that panic, and clocks that stand still.

use std::time::Duration;

/// Hash function with a fixed seed: loom repeats schedules, which must not depend on chance.
pub type RandomState = foldhash::fast::FixedState;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

/// In place of `std::time::Instant`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoppedClock;

impl StoppedClock {
    pub fn now() -> StoppedClock {
        StoppedClock
    }

    /// A second is left, always: waiting has no limit in a model.
    pub fn saturating_duration_since(self, _: StoppedClock) -> Duration {
        Duration::from_secs(1)
    }
}

impl std::ops::Add<Duration> for StoppedClock {
    type Output = StoppedClock;

    fn add(self, _: Duration) -> StoppedClock {
        self
    }
}

pub const UNIX_EPOCH: SystemTime = SystemTime;

pub struct SystemTime;

impl SystemTime {
    pub fn now() -> SystemTime {
        SystemTime
    }

    pub fn duration_since(&self, _: SystemTime) -> Result<Duration, std::convert::Infallible> {
        Ok(Duration::ZERO)
    }
}

pub mod invariant {
    #[track_caller]
    pub fn holds(condition: bool, what: &str) {
        assert!(condition, "broken invariant: {what}");
    }

    pub trait Expected: Sized {
        #[track_caller]
        fn expected(self, what: &str) -> Self;
    }

    impl<T> Expected for Option<T> {
        #[track_caller]
        fn expected(self, what: &str) -> Self {
            assert!(self.is_some(), "broken invariant: {what}");
            self
        }
    }
}

pub mod planted {
    pub enum Bug {
        LostWakeUp,
    }

    pub const fn is_planted(_: Bug) -> bool {
        false
    }
}
