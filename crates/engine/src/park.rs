//! A walk that waits: one future from the moment it parks to its answer, and to the end of what goes on without a client.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use wire::{EdeCode, Opcode};

use crate::inflight::{Key, Seat};
use crate::walk::{Parting, Patience};
use crate::{Generation, LocalFuture, Moment, Outside, Resolved, Turn, Walk, Worker};

/// How long a query may have waited for the answer to another's when that fails and it is asked again: clients wait five
/// seconds, and an exchange takes up to four.
const ASK_AGAIN_WITHIN: Duration = Duration::from_secs(1);

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
///
/// What then still goes on, because a client lost patience or a step wants something anew, is driven to its end too.
pub async fn drive(driver: Driver, walk: Box<Walk>, deliver: impl FnOnce(&mut Walk, Turn)) {
    let drive = Rc::new(Drive { driver, clientless: RefCell::default() });
    let _end = End(Rc::clone(&drive));
    let (mut walk, turn) = drive.beside_clientless(drive.run(walk)).await;
    deliver(&mut walk, turn);
    drive.driver.worker.borrow_mut().give_walk(walk);
    poll_fn(|context| drive.poll_clientless(context)).await;
}

/// One parked query and all that has come of it.
struct Drive {
    driver: Driver,
    /// Walks that nobody waits for.
    clientless: RefCell<Vec<LocalFuture<'static, Finished>>>,
}

/// A walk at its end, and what has become of it.
type Finished = (Box<Walk>, Turn);

/// Drops what goes on when the whole is dropped: it holds the whole itself.
struct End(Rc<Drive>);

impl Drop for End {
    fn drop(&mut self) {
        drop(self.0.clientless.take());
    }
}

impl Drive {
    /// Lets a walk wait and go on, until it waits no more.
    async fn run(self: &Rc<Self>, mut walk: Box<Walk>) -> Finished {
        loop {
            let parted = walk.part_with_client(&mut self.driver.worker.borrow_mut());
            let turn = match parted {
                None => {
                    let resolved = self.driver.resolve_once(&walk).await;
                    self.driver.generation.resume(&mut walk, &resolved, &mut self.driver.worker.borrow_mut())
                }
                Some(Parting { client, patience, abandoned }) => {
                    let below = core::mem::replace(&mut walk, client);
                    self.run_until(&mut walk, below, patience, &abandoned).await
                }
            };
            self.take_refreshes();
            if turn != Turn::Waiting {
                return (walk, turn);
            }
        }
    }

    /// Lets the client's walk wait for what goes on below its step, but not for ever: then the step answers without it,
    /// and what is below goes on alone (RFC 8767 §5, the client response timer).
    async fn run_until(
        self: &Rc<Self>,
        client: &mut Box<Walk>,
        below: Box<Walk>,
        patience: Patience,
        abandoned: &Cell<bool>,
    ) -> Turn {
        let mut running = self.boxed(below);
        let finished = before(&*self.driver.outside, patience.until, running.as_mut()).await;
        let Driver { generation, worker, .. } = &self.driver;
        match finished {
            Some((mut below, _)) => {
                let turn = generation.rejoin(client, patience.step, Some(&mut below), &mut worker.borrow_mut());
                worker.borrow_mut().give_walk(below);
                turn
            }
            None => {
                abandoned.set(true);
                self.clientless.borrow_mut().push(running);
                generation.rejoin(client, patience.step, None, &mut worker.borrow_mut())
            }
        }
    }

    fn boxed(self: &Rc<Self>, walk: Box<Walk>) -> LocalFuture<'static, Finished> {
        let drive = Rc::clone(self);
        Box::pin(async move { drive.run(walk).await })
    }

    /// Begins the refreshes that hooks have asked for: under this generation, before another one can take them.
    fn take_refreshes(self: &Rc<Self>) {
        let Driver { generation, worker, .. } = &self.driver;
        loop {
            let Some(mut walk) = worker.borrow_mut().next_refresh() else { return };
            let turn = generation.run_refresh(&mut walk, &mut worker.borrow_mut());
            match turn {
                Turn::Waiting => self.clientless.borrow_mut().push(self.boxed(walk)),
                Turn::Answered | Turn::Dropped => worker.borrow_mut().give_walk(walk),
            }
        }
    }

    /// The value of `main`, with the walks without a client going on beside it.
    async fn beside_clientless<F: Future>(&self, main: F) -> F::Output {
        let mut main = pin!(main);
        poll_fn(|context| {
            let polled = main.as_mut().poll(context);
            // Afterwards: what `main` has just left must be polled once to be woken again.
            let _ = self.poll_clientless(context);
            polled
        })
        .await
    }

    /// Ready when no walk without a client is left.
    fn poll_clientless(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = Vec::new();
        loop {
            let fresh = self.clientless.take();
            if fresh.is_empty() {
                break;
            }
            for mut walk in fresh {
                match walk.as_mut().poll(context) {
                    Poll::Ready((walk, _)) => self.driver.worker.borrow_mut().give_walk(walk),
                    Poll::Pending => waiting.push(walk),
                }
            }
        }
        let outcome = if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending };
        *self.clientless.borrow_mut() = waiting;
        outcome
    }
}

impl Driver {
    /// Asks the outside world, unless the same question is on its way already. A notification is no question: each goes
    /// out, whoever else sends one.
    async fn resolve_once(&self, walk: &Walk) -> Resolved {
        // Before it waits for another query's answer: that costs memory, too.
        let _place = match self.generation.take_place(walk, &*self.outside) {
            Ok(place) => place,
            Err(failure) => return Resolved::Fail(failure),
        };
        if walk.query.flags().opcode() != Opcode::QUERY {
            return self.resolve(walk).await;
        }
        let mut asked_again = false;
        loop {
            match self.generation.inflight.join(Key::new(walk.block, walk.at, &walk.query)) {
                Seat::Leader(leader) => {
                    let resolved = self.resolve(walk).await;
                    leader.tell(&resolved, &walk.query);
                    return resolved;
                }
                Seat::Follower(answer) => {
                    // If the one who asked has gone with its worker, it is this one's turn.
                    if let Ok(outcome) = answer.await {
                        let (resolved, told) = &*outcome;
                        if is_exchange_failure(resolved) && !asked_again && self.has_time(walk) {
                            asked_again = true;
                            continue;
                        }
                        walk.query.hear(told.clone());
                        return resolved.clone();
                    }
                }
            }
        }
    }

    /// Whether the client of a walk still waits long enough for another exchange.
    fn has_time(&self, walk: &Walk) -> bool {
        self.outside.now().since(walk.query.received) <= ASK_AGAIN_WITHIN
    }

    /// What the outside world says; a panic on the way there costs one answer, as it does in a hook.
    async fn resolve(&self, walk: &Walk) -> Resolved {
        let mut future = None;
        poll_fn(|context| {
            let polled = self.generation.caught(|| {
                let begin = || self.generation.resolve(walk, &*self.outside);
                future.get_or_insert_with(begin).as_mut().poll(context)
            });
            polled.unwrap_or_else(|panic| {
                Poll::Ready(Resolved::Fail(self.generation.report_panic(walk, &panic, &mut self.worker.borrow_mut())))
            })
        })
        .await
    }
}

/// Whether an exchange with the outside world failed, and not this server.
fn is_exchange_failure(resolved: &Resolved) -> bool {
    matches!(resolved, Resolved::Fail(failure) if failure.ede != EdeCode::OTHER)
}

/// The value of `future`, unless `at` comes first.
async fn before<F: Future>(outside: &dyn Outside, at: Moment, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut alarm = outside.sleep_until(at);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => alarm.as_mut().poll(context).map(|()| None),
    })
    .await
}
