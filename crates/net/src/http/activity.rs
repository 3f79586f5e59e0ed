//! Open requests and idle time of a connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Open requests of a connection.
pub(crate) struct Activity {
    open: Cell<usize>,
    /// Time when the last request started or ended.
    last: Cell<Instant>,
    idle: Duration,
}

impl Activity {
    pub(crate) fn new(idle: Duration) -> Rc<Activity> {
        Rc::new(Activity { open: Cell::new(0), last: Cell::new(Instant::now()), idle })
    }

    /// Returns after the connection has been idle too long.
    pub(super) async fn stopped(&self) {
        loop {
            let since = if self.open.get() > 0 { Instant::now() } else { self.last.get() };
            if since.elapsed() >= self.idle {
                return;
            }
            sleep_until(since + self.idle).await;
        }
    }
}

/// Counts an open request. Dropping it ends the count.
pub(crate) struct OpenRequest(Rc<Activity>);

impl OpenRequest {
    pub(crate) fn new(activity: &Rc<Activity>) -> OpenRequest {
        activity.open.set(activity.open.get() + 1);
        OpenRequest(Rc::clone(activity))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.last.set(Instant::now());
    }
}
