//! Timer of a client: one task per client handles the timeouts of all its queries.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use engine::Instant;
use tokio::sync::Notify;
use tokio::time::sleep_until;
use transport::MonotonicClock;

/// Client with timeouts.
pub(super) trait Timed: 'static {
    /// Returns the time of the next timeout.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Handles the timeouts whose time has come.
    fn handle_timeout(self: &Rc<Self>);

    /// Timer of this client.
    fn timer(&self) -> &Timer;
}

/// Timer of a client. Its task ends when the timer is dropped.
#[derive(Default)]
pub(super) struct Timer {
    is_running: Cell<bool>,
    /// Time at which the task wakes up. It may be too early, because the timeouts of most queries are cancelled.
    armed: Cell<Option<Instant>>,
    changed: Rc<Notify>,
}

/// Makes sure that the timer wakes up for the next timeout of a client. Most timeouts are later than the one that the
/// timer is already set for, so that a query usually costs no wake-up.
pub(super) fn arm<C: Timed>(client: &Rc<C>) {
    let timer = client.timer();
    if !timer.is_running.replace(true) {
        tokio::task::spawn_local(run(Running(Rc::downgrade(client)), Rc::clone(&timer.changed)));
        return;
    }
    let is_earlier = |at: Instant| timer.armed.get().is_none_or(|armed| at < armed);
    if client.poll_timeout().is_some_and(is_earlier) {
        timer.changed.notify_one();
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Reference of the task to its client. Dropping it allows another task to start, for example in another runtime.
struct Running<C: Timed>(Weak<C>);

impl<C: Timed> Drop for Running<C> {
    fn drop(&mut self) {
        if let Some(client) = self.0.upgrade() {
            client.timer().is_running.set(false);
        }
    }
}

async fn run<C: Timed>(client: Running<C>, changed: Rc<Notify>) {
    loop {
        let Some(running) = client.0.upgrade() else { return };
        running.handle_timeout();
        let next = running.poll_timeout();
        running.timer().armed.set(next);
        drop(running);
        match next {
            None => changed.notified().await,
            Some(at) => tokio::select! {
                () = changed.notified() => {}
                () = sleep_until(MonotonicClock::tokio_instant(at)) => {}
            },
        }
    }
}
