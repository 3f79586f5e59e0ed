//! Activity of a connection: open requests, arriving bytes, unread answers, and the deadlines that follow from them.
//!
//! hyper has a timer for the headers of HTTP/1.1, but it also runs while a connection is idle, and none for clients
//! that do not read. The deadlines here cover both, for all versions.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use host::invariant::holds;
use tokio::time::{Instant, sleep, sleep_until};

use crate::connections::Connection;
use crate::limits::StreamLimits;

/// Time without a request after which a connection counts as quiet: longer than a client takes that asks all the time.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// Activity of one connection.
pub(crate) struct Activity {
    connection: Arc<Connection>,
    limits: StreamLimits,
    /// True if the first byte after a request begins the next request. In HTTP/2, other frames may follow.
    is_http1: bool,
    open: Cell<usize>,
    /// Time when the last request started or ended.
    last: Cell<Instant>,
    /// Time when the first byte of an incomplete request arrived. The first request begins with the connection.
    began: Cell<Option<Instant>>,
    /// Bytes that have arrived since the last request started.
    arriving: Cell<usize>,
    /// Time since when the socket accepts no more bytes.
    blocked: Cell<Option<Instant>>,
    /// Answers that the client has not read.
    unread: Cell<usize>,
    /// Time when the client last read a part of an answer, or when the first unread one was written.
    taken: Cell<Instant>,
    /// True if a part of the body of the last request has not been read.
    has_rest: Cell<bool>,
    /// True if all answers have left.
    is_flushed: Cell<bool>,
    /// True if the connection is being closed.
    is_closing: Cell<bool>,
}

/// Reason to stop serving a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// No request is open or arriving.
    Idle,
    /// The client sends a request, or reads an answer, too slowly.
    Stalled,
}

impl Activity {
    pub(crate) fn new(connection: &Arc<Connection>, limits: StreamLimits, is_http1: bool) -> Rc<Activity> {
        let now = Instant::now();
        Rc::new(Activity {
            connection: Arc::clone(connection),
            limits,
            is_http1,
            open: Cell::new(0),
            last: Cell::new(now),
            began: Cell::new(is_http1.then_some(now)),
            arriving: Cell::new(0),
            blocked: Cell::new(None),
            unread: Cell::new(0),
            taken: Cell::new(now),
            has_rest: Cell::new(false),
            is_flushed: Cell::new(true),
            is_closing: Cell::new(false),
        })
    }

    /// Records bytes that have arrived.
    pub(super) fn has_read(&self, bytes: usize) {
        self.arriving.set(self.arriving.get().saturating_add(bytes));
        if self.is_http1 && self.open.get() == 0 && self.began.get().is_none() {
            self.began.set(Some(Instant::now()));
        }
    }

    /// Returns the bytes that have arrived since the last request started.
    pub(super) fn arriving(&self) -> usize {
        self.arriving.get()
    }

    /// Records that the socket accepts bytes, or that it does not.
    pub(super) fn has_written(&self, accepted: bool) {
        if accepted {
            self.blocked.set(None);
        } else if self.blocked.get().is_none() {
            self.blocked.set(Some(Instant::now()));
        }
    }

    /// Records whether a part of the body of the last request has not been read.
    pub(crate) fn set_rest(&self, has_rest: bool) {
        self.has_rest.set(has_rest);
    }

    /// Records whether all answers have left.
    pub(super) fn set_flushed(&self, is_flushed: bool) {
        self.is_flushed.set(is_flushed);
    }

    /// Records that the connection is being closed.
    pub(super) fn set_closing(&self) {
        self.is_closing.set(true);
    }

    /// Returns true between two requests of HTTP/1.1: nothing of the last one is left, and nothing of the next one has
    /// arrived.
    fn is_between_requests(&self) -> bool {
        let is_answered = self.open.get() == 0 && self.unread.get() == 0 && self.is_flushed.get();
        is_answered && !self.has_rest.get() && !self.is_closing.get() && self.began.get().is_none()
    }

    /// Waits until there has been no request for a while.
    pub(super) async fn quiet(&self) {
        while !self.is_between_requests() || self.last.get().elapsed() < QUIET_AFTER {
            sleep(QUIET_AFTER).await;
        }
    }

    /// Records an answer that the client has to read.
    pub(super) fn add_unread(&self) {
        if self.unread.replace(self.unread.get() + 1) == 0 {
            self.has_taken();
        }
    }

    /// Records that the client has read a part of an answer.
    pub(super) fn has_taken(&self) {
        self.taken.set(Instant::now());
    }

    /// Records that the client has read an answer.
    pub(super) fn remove_unread(&self) {
        holds(self.unread.get() > 0, "an answer that has been read was unread");
        self.unread.set(self.unread.get() - 1);
        if self.unread.get() > 0 {
            self.has_taken();
        }
    }

    /// Waits until the connection has to end.
    pub(super) async fn stopped(&self) -> Stop {
        loop {
            let now = Instant::now();
            let (next, stop) = self.next_deadline(now);
            if next <= now {
                return stop;
            }
            sleep_until(next).await;
        }
    }

    /// Waits until the client is too slow.
    pub(super) async fn stalled(&self) -> io::Error {
        while self.stopped().await == Stop::Idle {
            sleep_until(Instant::now() + self.limits.write).await;
        }
        io::ErrorKind::TimedOut.into()
    }

    /// Returns the first deadline, and what it means. A deadline that does not run yet counts from `now`.
    fn next_deadline(&self, now: Instant) -> (Instant, Stop) {
        let StreamLimits { read, write, .. } = self.limits;
        let is_open = self.open.get() > 0;
        let began = self.began.get().filter(|_| !is_open).unwrap_or(now);
        let idle_since = if is_open || self.unread.get() > 0 { now } else { self.last.get() };
        let taken = if self.unread.get() > 0 { self.taken.get() } else { now };
        let deadlines = [
            (began + read, Stop::Stalled),
            (self.blocked.get().unwrap_or(now) + write, Stop::Stalled),
            (taken + write, Stop::Stalled),
            (idle_since + self.idle_time(), Stop::Idle),
        ];
        holds(self.last.get() <= now && self.taken.get() <= now, "time does not go backwards");
        deadlines.into_iter().min_by_key(|(at, _)| *at).unwrap_or((now, Stop::Idle))
    }

    /// Returns the idle timeout. It shrinks as the connection table fills.
    fn idle_time(&self) -> Duration {
        self.connection.idle_time(self.limits.idle)
    }
}

/// Counts an open request. Dropping it ends the count.
pub(crate) struct OpenRequest {
    activity: Rc<Activity>,
    /// Time by which the whole request must have arrived.
    pub(crate) whole_by: Instant,
}

impl OpenRequest {
    pub(crate) fn new(activity: &Rc<Activity>) -> OpenRequest {
        activity.open.set(activity.open.get() + 1);
        holds(!activity.is_http1 || activity.open.get() == 1, "requests of HTTP/1.1 follow each other");
        activity.arriving.set(0);
        let began = activity.began.take().unwrap_or_else(Instant::now);
        OpenRequest { activity: Rc::clone(activity), whole_by: began + activity.limits.read }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        holds(self.activity.open.get() > 0, "a request that ends was open");
        self.activity.open.set(self.activity.open.get() - 1);
        self.activity.last.set(Instant::now());
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
