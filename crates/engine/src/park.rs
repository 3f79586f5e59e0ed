//! Parked queries: runs a transaction that waits for I/O to completion, and the background work that it leaves behind.
//!
//! A worker answers most queries synchronously. The transport calls [`drive`] only for a transaction that stopped with
//! [`Progress::Waiting`]. One future then owns everything that belongs to the query:
//!
//! - The I/O of the step that waits ([`Plugin::resolve`](crate::Plugin::resolve)). Identical queries share it
//!   (`singleflight.rs`).
//! - A client timeout (RFC 8767 §5): if a step sets one, the transaction is split. The client gets its answer when the
//!   timer expires, and the rest continues in the background.
//! - Refreshes that hooks requested, such as a cache's prefetch.
//!
//! The future returns when the background work has completed too. Dropping it cancels all of that.
//!
//! A parked query holds the [`Generation`] that it started with, so a reload does not affect it.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use wire::{EdeCode, Opcode};

use crate::generation::Generation;
use crate::io::Io;
use crate::singleflight::{Join, Key, SharedReply};
use crate::trail::ClientTimeout;
use crate::transaction::Detached;
use crate::transaction::{Progress, Transaction};
use crate::verdict::Resolved;
use crate::worker::Worker;
use host::Instant;
use host::LocalFuture;
use host::invariant::holds;

/// Maximum age of a query for a second attempt, after the exchange that it shared with another query has failed.
/// Clients wait for five seconds, and an exchange takes up to four.
const ASK_AGAIN_WITHIN: Duration = Duration::from_secs(1);

/// Context that a parked transaction needs to continue.
#[derive(Clone)]
pub struct Driver {
    /// Configuration that was current when the query arrived.
    pub generation: Arc<Generation>,
    /// Worker of this thread, borrowed only while a hook runs.
    pub worker: Rc<RefCell<Worker>>,
    /// I/O.
    pub io: Rc<dyn Io>,
}

/// Runs a parked transaction to completion and passes it to `deliver`, which sends the response. For a transaction
/// without a client, `deliver` has nothing to do.
///
/// The future then continues with background work: refreshes, and transactions whose client timed out.
///
/// Cancel safety: dropping the future drops the transaction and its background work. Queries that wait for the same
/// reply start their own exchange.
pub async fn drive(driver: Driver, transaction: Box<Transaction>, deliver: impl FnOnce(&mut Transaction, Progress)) {
    let drive = Rc::new(Drive { driver, clientless: RefCell::default() });
    let _end = End(Rc::clone(&drive));
    let (mut transaction, progress) = drive.beside_clientless(drive.run(transaction)).await;
    holds(progress != Progress::Waiting, "a query that was driven does not wait");
    holds(transaction.parent.is_none(), "a client gets the answer to its own query");
    drive.driver.worker.borrow_mut().observe_parked(&*drive.driver.generation, &transaction, progress);
    deliver(&mut transaction, progress);
    drive.driver.worker.borrow_mut().give_transaction(transaction);
    poll_fn(|context| drive.poll_clientless(context)).await;
    holds(drive.clientless.borrow().is_empty(), "no background work is left");
}

/// A parked query and its background work.
struct Drive {
    driver: Driver,
    /// Transactions without a client.
    clientless: RefCell<Vec<LocalFuture<'static, Finished>>>,
}

/// Completed transaction and its result.
type Finished = (Box<Transaction>, Progress);

/// Drops the background transactions when `drive` is dropped. They hold an `Rc` of the drive, so they would leak
/// otherwise.
struct End(Rc<Drive>);

impl Drop for End {
    fn drop(&mut self) {
        drop(self.0.clientless.take());
    }
}

impl Drive {
    /// Does I/O and resumes the transaction until it no longer waits.
    async fn run(self: &Rc<Self>, mut transaction: Box<Transaction>) -> Finished {
        loop {
            let detached = transaction.detach_client(|| self.driver.worker.borrow_mut().take_transaction());
            let progress = match detached {
                None => {
                    let resolved = self.driver.resolve_once(&transaction).await;
                    self.driver.generation.resume(&mut transaction, &resolved, &mut self.driver.worker.borrow_mut())
                }
                Some(Detached { client, timeout, abandoned }) => {
                    let below = core::mem::replace(&mut transaction, client);
                    self.run_until(&mut transaction, below, timeout, &abandoned).await
                }
            };
            self.take_refreshes();
            if progress != Progress::Waiting {
                return (transaction, progress);
            }
        }
    }

    /// Runs the background part of a split transaction (`below`) until it completes or the client timeout expires.
    ///
    /// In the second case, the step that set the timeout answers the client without it, for example with stale data,
    /// and the background part continues alone (RFC 8767 §5).
    async fn run_until(
        self: &Rc<Self>,
        client: &mut Box<Transaction>,
        below: Box<Transaction>,
        timeout: ClientTimeout,
        abandoned: &Cell<bool>,
    ) -> Progress {
        let mut running = self.boxed(below);
        let finished = before(&*self.driver.io, timeout.until, running.as_mut()).await;
        let Driver { generation, worker, .. } = &self.driver;
        match finished {
            Some((mut below, progress)) => {
                holds(progress != Progress::Waiting, "the background part has finished");
                let progress =
                    generation.resume_client(client, timeout.step, Some(&mut below), &mut worker.borrow_mut());
                worker.borrow_mut().give_transaction(below);
                progress
            }
            None => {
                // Before anything else runs: the hooks of the background part must not prepare an answer for a client
                // that has gone.
                holds(!abandoned.get(), "a client leaves once");
                abandoned.set(true);
                self.clientless.borrow_mut().push(running);
                generation.resume_client(client, timeout.step, None, &mut worker.borrow_mut())
            }
        }
    }

    fn boxed(self: &Rc<Self>, transaction: Box<Transaction>) -> LocalFuture<'static, Finished> {
        let drive = Rc::clone(self);
        Box::pin(async move { drive.run(transaction).await })
    }

    /// Starts the refreshes that hooks requested, with the generation of this query.
    fn take_refreshes(self: &Rc<Self>) {
        let Driver { generation, worker, .. } = &self.driver;
        generation.run_refreshes(worker, |waiting| {
            holds(!waiting.query.is_awaited(), "a refresh has no client");
            self.clientless.borrow_mut().push(self.boxed(waiting));
        });
    }

    /// Polls `main`, and the background transactions along with it.
    async fn beside_clientless<F: Future>(&self, main: F) -> F::Output {
        let mut main = pin!(main);
        poll_fn(|context| {
            let polled = main.as_mut().poll(context);
            // `main` may just have added a background transaction, which must be polled once to register its waker.
            let _ = self.poll_clientless(context);
            polled
        })
        .await
    }

    /// Polls the background transactions; ready when all have completed.
    fn poll_clientless(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = Vec::new();
        loop {
            let fresh = self.clientless.take();
            if fresh.is_empty() {
                break;
            }
            for mut transaction in fresh {
                match transaction.as_mut().poll(context) {
                    Poll::Ready((transaction, progress)) => {
                        holds(progress != Progress::Waiting, "background work that ends does not wait");
                        self.driver.worker.borrow_mut().give_transaction(transaction);
                    }
                    Poll::Pending => waiting.push(transaction),
                }
            }
        }
        let outcome = if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending };
        *self.clientless.borrow_mut() = waiting;
        outcome
    }
}

impl Driver {
    /// Does the I/O of a transaction, or waits for an identical query to do it (singleflight).
    ///
    /// A NOTIFY is never shared, because it is not a question: each one has to go out.
    async fn resolve_once(&self, transaction: &Transaction) -> Resolved {
        // A query that waits for another one's reply uses memory as well, so it needs a slot too.
        let _permit = match self.generation.acquire_permit(transaction, &*self.io) {
            Ok(permit) => permit,
            Err(failure) => return Resolved::Fail(failure),
        };
        if transaction.query.flags().opcode() != Opcode::QUERY {
            return self.resolve(transaction).await;
        }
        let (mut asked_again, query) = (false, &transaction.query);
        let plugin = self.generation.plugin_of(transaction);
        loop {
            let key = Key::new(transaction.block, transaction.at, query);
            match self.generation.singleflight.join(key, query, plugin) {
                Join::Leader(leader) => {
                    let resolved = leader.run(query, self.resolve(transaction)).await;
                    leader.publish(&resolved, &transaction.query);
                    return resolved;
                }
                Join::Waiter(answer) => {
                    // The channel closes without a reply if the leader is dropped. In that case this query joins
                    // again.
                    if let Ok(outcome) = answer.await {
                        let SharedReply { resolved, label_values, asked } = &*outcome;
                        // The failed exchange may have begun seconds before this query came, on an upstream that has
                        // recovered since. One more attempt helps then; more would multiply the load on an upstream
                        // that is down.
                        if is_exchange_failure(resolved) && !asked_again && self.has_time(transaction) {
                            asked_again = true;
                            continue;
                        }
                        transaction.query.merge_labels(label_values.clone());
                        transaction.query.add_asked(*asked);
                        return resolved.clone();
                    }
                }
            }
        }
    }

    /// Returns true if the client still waits long enough for another exchange.
    fn has_time(&self, transaction: &Transaction) -> bool {
        self.io.now().since(transaction.query.received) <= ASK_AGAIN_WITHIN
    }

    /// Does the I/O of a transaction. A panic becomes a failure of this query, as it does in a hook.
    async fn resolve(&self, transaction: &Transaction) -> Resolved {
        let mut future = None;
        poll_fn(|context| {
            let polled = self.generation.caught(|| {
                let begin = || self.generation.resolve(transaction, &*self.io);
                future.get_or_insert_with(begin).as_mut().poll(context)
            });
            polled.unwrap_or_else(|panic| {
                Poll::Ready(Resolved::Fail(self.generation.report_panic(
                    transaction,
                    &panic,
                    &mut self.worker.borrow_mut(),
                )))
            })
        })
        .await
    }
}

/// Returns true for a failed exchange, as opposed to an error in this server.
fn is_exchange_failure(resolved: &Resolved) -> bool {
    matches!(resolved, Resolved::Fail(failure) if failure.ede != EdeCode::OTHER)
}

/// Returns the output of `future`, or `None` if `at` comes first.
async fn before<F: Future>(io: &dyn Io, at: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut alarm = io.sleep_until(at);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => alarm.as_mut().poll(context).map(|()| None),
    })
    .await
}
