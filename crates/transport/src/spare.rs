//! Spare descriptors: they keep a listener reachable when the process has no other descriptor left.
//!
//! A listener without a free descriptor cannot accept a connection, and cannot even refuse it. It gives up a spare one
//! for the next connection, and takes it back when a connection has ended.
//!
//! Linux reports the lack of descriptors before it looks for a connection. A listener therefore gives up nothing, and
//! closes no other connection, unless one waits.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use host::boxed;
use host::invariant::holds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Time until the first ones are opened, so that they take none from the sockets of a server that starts.
const AFTER_START: Duration = Duration::from_secs(1);

/// Pause between two attempts to find a free descriptor.
const PAUSE: Duration = Duration::from_millis(10);
/// Number of attempts, until a connection has to end: longer than a request takes, so that none in progress is lost.
const ATTEMPTS: u32 = 50;

/// Outcome of [`Spare::free_one`] and [`Spare::free_one_now`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// A descriptor is free now.
    One,
    /// There was none, so a connection must be closed.
    Nothing,
    /// No connection waits for one.
    NotNeeded,
}

/// Spare descriptors of one or several listeners of a thread.
#[derive(Debug)]
pub struct Spare {
    files: RefCell<Vec<File>>,
    /// Number of descriptors to keep.
    count: usize,
}

impl Spare {
    /// Creates the place for `count` descriptors.
    #[must_use]
    pub const fn empty(count: usize) -> Spare {
        Spare { files: RefCell::new(Vec::new()), count }
    }

    /// Opens `count` descriptors a moment later, as far as there are free ones then. Must be called within a
    /// `LocalSet`.
    #[must_use]
    pub fn open_later(count: usize) -> Rc<Spare> {
        let spare = Rc::new(Spare::empty(count));
        let held = Rc::downgrade(&spare);
        tokio::task::spawn_local(boxed(async move {
            tokio::time::sleep(AFTER_START).await;
            held.upgrade().inspect(|spare| spare.refill());
        }));
        spare
    }

    /// Closes a spare descriptor if a connection waits for `listener`.
    pub fn free_one_now(&self, listener: &impl AsFd) -> Freed {
        if !has_waiting(listener) {
            return Freed::NotNeeded;
        }
        if self.files.borrow_mut().pop().is_some() { Freed::One } else { Freed::Nothing }
    }

    /// Closes a spare descriptor if a connection waits for `listener`. Waits for a free descriptor if no spare one is
    /// left, because another thread has taken it.
    pub async fn free_one(&self, listener: &impl AsFd) -> Freed {
        for _ in 0..ATTEMPTS {
            let freed = self.free_one_now(listener);
            if freed == Freed::One {
                return freed;
            }
            self.pause().await;
            if freed == Freed::NotNeeded {
                return freed;
            }
        }
        Freed::Nothing
    }

    /// Waits before the next accept, and opens missing descriptors then.
    pub async fn pause(&self) {
        tokio::time::sleep(PAUSE).await;
        self.refill();
    }

    /// Opens the missing descriptors, as far as there are free ones.
    pub fn refill(&self) {
        let mut files = self.files.borrow_mut();
        while files.len() < self.count {
            let Ok(file) = File::open("/dev/null") else { return };
            files.push(file);
            holds(files.len() <= self.count, "the number of spare descriptors is bounded");
        }
    }
}

/// Returns true if a connection waits for a listener.
fn has_waiting(listener: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    // If the system does not say, assume one: it must not wait in vain.
    poll(&mut polled, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}
