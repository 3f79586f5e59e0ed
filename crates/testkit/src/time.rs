//! Virtual time: a clock that only the test advances.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::{Clock, Instant};

/// A clock and its timers, shared by all clones.
#[derive(Clone, Default)]
pub struct VirtualTime {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    now: Cell<Instant>,
    /// Wakers by time; timers for the same time fire in the order of their registration.
    timers: RefCell<BTreeMap<(Instant, u64), Waker>>,
    asked: Cell<u64>,
}

impl VirtualTime {
    /// Creates a clock at the start of time.
    #[must_use]
    pub fn new() -> VirtualTime {
        VirtualTime::default()
    }

    /// Waits until `at`. Returns immediately if it is not in the future.
    pub fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + use<> {
        let inner = Rc::clone(&self.inner);
        let mut timer = Timer { inner, key: None };
        poll_fn(move |context| timer.poll(at, context.waker()))
    }

    /// Returns the time of the next timer.
    #[must_use]
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.inner.timers.borrow().keys().next().map(|(at, _)| *at)
    }

    /// Advances to `to` and wakes all timers that are due. Time never goes back.
    pub fn advance_to(&self, to: Instant) {
        self.inner.now.set(to.max(self.inner.now.get()));
        let mut timers = self.inner.timers.borrow_mut();
        while let Some(timer) = timers.first_entry().filter(|timer| timer.key().0 <= to) {
            timer.remove().wake();
        }
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Instant {
        self.inner.now.get()
    }

    /// Returns the wall clock time. Scenarios start at the beginning of 2026.
    fn since_1970(&self) -> Duration {
        START_SINCE_1970 + self.now().since(Instant::START)
    }
}

/// 2026-01-01T00:00:00Z.
const START_SINCE_1970: Duration = Duration::from_secs(1_767_225_600);

/// A timer. Dropping it unregisters its waker.
struct Timer {
    inner: Rc<Inner>,
    key: Option<(Instant, u64)>,
}

impl Timer {
    fn poll(&mut self, at: Instant, waker: &Waker) -> Poll<()> {
        self.cancel();
        if at <= self.inner.now.get() {
            return Poll::Ready(());
        }
        let key = (at, self.inner.asked.get());
        self.inner.asked.set(key.1 + 1);
        self.inner.timers.borrow_mut().insert(key, waker.clone());
        self.key = Some(key);
        Poll::Pending
    }

    fn cancel(&mut self) {
        if let Some(key) = self.key.take() {
            self.inner.timers.borrow_mut().remove(&key);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
    }
}
