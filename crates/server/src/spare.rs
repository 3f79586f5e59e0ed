//! Spare descriptors: they keep pages and the control API reachable when the process has no other descriptor left.
//!
//! A listener without a free descriptor cannot accept a connection, and cannot even refuse it. It gives up a spare one
//! for the next connection, and takes it back when a connection has ended.

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;
use std::time::Duration;

/// Number of spare descriptors of a listener: for a probe and a scrape at the same time.
const SPARE: usize = 2;
/// Time until the first ones are opened, so that they take none from the sockets of a server that starts.
const AFTER_START: Duration = Duration::from_secs(1);

/// Pause between two attempts to find a free descriptor.
const PAUSE: Duration = Duration::from_millis(10);
/// Number of attempts, until a connection has to end: longer than a request takes, so that none in progress is lost.
const ATTEMPTS: u32 = 50;

/// Outcome of [`Spare::free_one`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// A descriptor is free now.
    One,
    /// There was none, so a connection must be closed.
    Nothing,
}

/// Spare descriptors of one listener.
pub(crate) struct Spare(RefCell<Vec<File>>);

impl Spare {
    /// Opens the descriptors a moment later, as far as there are free ones then. Must be called within a `LocalSet`.
    pub(crate) fn new() -> Rc<Spare> {
        let spare = Rc::new(Spare(RefCell::default()));
        let held = Rc::downgrade(&spare);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(AFTER_START).await;
            held.upgrade().inspect(|spare| spare.refill());
        });
        spare
    }

    /// Closes a spare descriptor for the next accept. Waits for a free descriptor if no spare one is left, because
    /// another thread has taken it.
    pub(crate) async fn free_one(&self) -> Freed {
        for _ in 0..ATTEMPTS {
            if self.0.borrow_mut().pop().is_some() {
                return Freed::One;
            }
            tokio::time::sleep(PAUSE).await;
            self.refill();
        }
        Freed::Nothing
    }

    /// Opens the missing descriptors, as far as there are free ones.
    pub(crate) fn refill(&self) {
        let mut files = self.0.borrow_mut();
        while files.len() < SPARE {
            let Ok(file) = File::open("/dev/null") else { return };
            files.push(file);
        }
    }
}
