//! Single-threaded executor without a runtime: it polls the futures that have been woken, and nothing else.

use core::cell::{Cell, RefCell};
use core::task::{Context, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use engine::LocalFuture;

/// Maximum number of polls in one run. More mean that futures wake each other in a loop.
const POLLS_MAX: usize = 1_000_000;

/// Futures and the queue of those woken, shared by all clones.
#[derive(Clone, Default)]
pub struct Executor {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    tasks: RefCell<BTreeMap<usize, LocalFuture<'static, ()>>>,
    awake: Arc<Mutex<VecDeque<usize>>>,
    next: Cell<usize>,
}

/// Handle of a spawned future, for [`Executor::cancel`].
#[derive(Debug)]
pub struct Task(usize);

impl Executor {
    /// Adds a future. The next [`Executor::run`] polls it first.
    pub fn spawn(&self, future: LocalFuture<'static, ()>) -> Task {
        let number = self.inner.next.replace(self.inner.next.get() + 1);
        self.inner.tasks.borrow_mut().insert(number, future);
        lock(&self.inner.awake).push_back(number);
        Task(number)
    }

    /// Drops a future, if it is still running.
    #[allow(clippy::needless_pass_by_value, reason = "a task can be cancelled once")]
    pub fn cancel(&self, task: Task) {
        let future = self.inner.tasks.borrow_mut().remove(&task.0);
        drop(future);
    }

    /// Polls until all futures wait.
    ///
    /// # Panics
    /// Panics if they never do.
    pub fn run(&self) {
        for _ in 0..POLLS_MAX {
            let Some(number) = lock(&self.inner.awake).pop_front() else { return };
            self.poll(number);
        }
        assert!(lock(&self.inner.awake).is_empty(), "futures wake each other in a loop");
    }

    fn poll(&self, number: usize) {
        // Removed while it is polled, so that it can spawn other futures.
        let Some(mut future) = self.inner.tasks.borrow_mut().remove(&number) else { return };
        let waker = Waker::from(Arc::new(Alarm { number, awake: Arc::clone(&self.inner.awake) }));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.inner.tasks.borrow_mut().insert(number, future);
        }
    }
}

struct Alarm {
    number: usize,
    awake: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let mut awake = lock(&self.awake);
        if !awake.contains(&self.number) {
            awake.push_back(self.number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtualTime;
    use core::time::Duration;
    use engine::{Clock, Instant};

    #[test]
    fn timers_fire_in_order_and_not_early() {
        let (time, executor) = (VirtualTime::new(), Executor::default());
        let log = Rc::new(RefCell::new(Vec::new()));
        for millis in [30, 10, 20] {
            let (time, log) = (time.clone(), Rc::clone(&log));
            executor.spawn(Box::pin(async move {
                time.sleep_until(Instant::START + Duration::from_millis(millis)).await;
                log.borrow_mut().push((millis, time.now().nanos() / 1_000_000));
            }));
        }
        executor.run();
        assert!(log.borrow().is_empty());
        while let Some(at) = time.next_timer() {
            time.advance_to(at);
            executor.run();
        }
        assert_eq!(*log.borrow(), [(10, 10), (20, 20), (30, 30)]);
    }

    #[test]
    fn cancelling_a_future_drops_it_and_its_timer() {
        let (time, executor) = (VirtualTime::new(), Executor::default());
        let held = Rc::new(());
        let (clock, guard) = (time.clone(), Rc::clone(&held));
        let task = executor.spawn(Box::pin(async move {
            clock.sleep_until(Instant::START + Duration::from_secs(1)).await;
            drop(guard);
        }));
        executor.run();
        assert!(time.next_timer().is_some());
        executor.cancel(task);
        assert_eq!((Rc::strong_count(&held), time.next_timer()), (1, None));
    }
}
