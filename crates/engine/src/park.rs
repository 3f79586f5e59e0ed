//! A walk that waits: one future from the moment it parks to its answer.

use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::rc::Rc;
use std::sync::Arc;

use crate::inflight::{Key, Seat};
use crate::{Generation, Moment, Outside, Resolved, Response, Turn, Walk, Worker};

/// What a parked walk needs to go on.
#[derive(Clone)]
pub struct Driver {
    /// The configuration under which the query came: it stays until the answer is out.
    pub generation: Arc<Generation>,
    /// The worker's own; it is borrowed only while a hook runs.
    pub worker: Rc<RefCell<Worker>>,
    /// The outside world.
    pub outside: Rc<dyn Outside>,
}

/// Drives a walk that waits to its end and gives it to `deliver`, which sends the answer; a walk without a client has
/// no use for its answer and ignores it.
pub async fn drive(driver: Driver, walk: Box<Walk>, deliver: impl FnOnce(&mut Walk, Turn)) {
    if let Some((step, until)) = walk.query.patience {
        return driver.run_until(walk, step, until, deliver).await;
    }
    let (mut walk, turn) = driver.run(walk).await;
    deliver(&mut walk, turn);
    driver.worker.borrow_mut().give_walk(walk);
}

impl Driver {
    /// Lets a walk wait and go on, until it waits no more.
    async fn run(&self, mut walk: Box<Walk>) -> (Box<Walk>, Turn) {
        loop {
            let resolved = self.resolve_once(&walk).await;
            let turn = self.generation.resume(&mut walk, &resolved, &mut self.worker.borrow_mut());
            if turn != Turn::Waiting {
                return (walk, turn);
            }
        }
    }

    /// As `run`, but the client waits only until `until`: then `step` answers without what is below it, which goes on
    /// alone (RFC 8767 §5, the client response timer).
    async fn run_until(self, mut walk: Box<Walk>, step: usize, until: Moment, deliver: impl FnOnce(&mut Walk, Turn)) {
        let mut below = self.worker.borrow_mut().take_walk();
        below.split_from(&mut walk, step);
        let mut running = pin!(self.run(below));
        let below = match before(&*self.outside, until, running.as_mut()).await {
            Some((mut below, _)) => {
                self.rejoin(walk, step, Some(&mut below.response), deliver);
                below
            }
            None => {
                self.rejoin(walk, step, None, deliver);
                running.await.0
            }
        };
        self.worker.borrow_mut().give_walk(below);
    }

    fn rejoin(
        &self,
        mut walk: Box<Walk>,
        step: usize,
        answer: Option<&mut Response>,
        deliver: impl FnOnce(&mut Walk, Turn),
    ) {
        let turn = self.generation.rejoin(&mut walk, step, answer, &mut self.worker.borrow_mut());
        // A step above that would have to wait again has a client that has waited enough.
        deliver(&mut walk, if turn == Turn::Waiting { Turn::Dropped } else { turn });
        self.worker.borrow_mut().give_walk(walk);
    }

    /// Asks the outside world, unless the same question is on its way already.
    async fn resolve_once(&self, walk: &Walk) -> Resolved {
        loop {
            match self.generation.inflight.join(Key::new(walk.block, walk.at, &walk.query)) {
                Seat::Leader(leader) => {
                    let resolved = self.generation.resolve(walk, &*self.outside).await;
                    leader.tell(&resolved);
                    return resolved;
                }
                Seat::Follower(answer) => {
                    if let Ok(resolved) = answer.await {
                        return resolved;
                    }
                    // The one who asked has gone with its worker; now it is this one's turn.
                }
            }
        }
    }
}

/// The value of `future`, unless `at` comes first.
pub(crate) async fn before<F: Future>(outside: &dyn Outside, at: Moment, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut alarm = outside.sleep_until(at);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => alarm.as_mut().poll(context).map(|()| None),
    })
    .await
}
