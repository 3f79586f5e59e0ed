//! State that the tasks of one worker thread share: current generation, engine worker, limits, parked queries.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use engine::{
    ClientShares, Driver, Failure, Generation, Io, Progress, Resolved, Share, ShareError, Transaction, Worker,
};
use metrics::{Counter, Registry};
use tokio::task::AbortHandle;
use transport::MonotonicClock;
use wire::EdeCode;

use crate::connection_rates::ConnectionRates;
use crate::connections::ConnectionTable;
use crate::limits::{Limits, PARKED_EXCESS_MAX, READ_AT_ONCE, StreamLimits};
use crate::log::log_queue;

/// Current generation. A reload stores the next one.
pub type Live = Arc<ArcSwap<Generation>>;

/// State that the tasks of one worker share.
pub(crate) struct Shared {
    pub(crate) worker: Rc<RefCell<Worker>>,
    pub(crate) io: Rc<dyn Io>,
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry>,
    pub(crate) stream_limits: StreamLimits,
    pub(crate) streams: Cell<usize>,
    /// Connection table of the process.
    pub(crate) connections: Arc<ConnectionTable>,
    /// Rates of new encrypted connections to the process.
    pub(crate) rates: Arc<ConnectionRates>,
    /// Read buffer for all streams of the worker. A stream copies out only what it has to keep.
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    pub(crate) live: Live,
    /// Parked queries of this worker.
    parked: Cell<usize>,
    /// Parked queries of all workers.
    all_parked: Arc<AllParked>,
}

/// Parked queries of all workers: their number by client, and the bytes of long ones.
#[derive(Debug)]
pub(crate) struct AllParked {
    slots: Arc<ClientShares>,
    /// Bytes of queries and unfinished responses beyond what every transaction keeps.
    excess: AtomicUsize,
}

impl AllParked {
    /// Creates the count, with a bound for the number.
    pub(crate) fn new(count_max: u32) -> AllParked {
        AllParked { slots: ClientShares::new(count_max), excess: AtomicUsize::new(0) }
    }
}

impl Shared {
    /// Creates the state of the current thread, which does its I/O through `io`.
    pub(crate) fn new(
        io: Rc<dyn Io>,
        live: Live,
        registry: &Arc<Registry>,
        stream_limits: StreamLimits,
        (connections, rates): (Arc<ConnectionTable>, Arc<ConnectionRates>),
        all_parked: Arc<AllParked>,
    ) -> Rc<Shared> {
        let worker = Worker::new(registry, Box::new(MonotonicClock), io.random());
        Rc::new(Shared {
            worker: Rc::new(RefCell::new(worker)),
            io,
            limits: Limits::new(registry),
            registry: Arc::clone(registry),
            stream_limits,
            streams: Cell::new(0),
            connections,
            rates,
            read_buffer: RefCell::new(vec![0; READ_AT_ONCE].into()),
            live,
            parked: Cell::new(0),
            all_parked,
        })
    }

    /// Returns true if no query is parked and no stream is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.parked.get() == 0 && self.streams.get() == 0
    }

    /// Parks a transaction that waits for I/O. `deliver` receives it when it has finished. If a limit is reached, the
    /// query fails at once with SERVFAIL. Otherwise returns a handle that cancels it.
    pub(crate) fn park(
        self: &Rc<Self>,
        generation: &Arc<Generation>,
        mut transaction: Box<Transaction>,
        deliver: impl FnOnce(&mut Transaction, Progress) + 'static,
    ) -> Option<AbortHandle> {
        let parked = match Parked::new(self, &transaction) {
            Ok(parked) => parked,
            Err(failure) => {
                let progress = self.fail(generation, &mut transaction, failure);
                deliver(&mut transaction, progress);
                self.worker.borrow_mut().give_transaction(transaction);
                return None;
            }
        };
        let driver =
            Driver { generation: Arc::clone(generation), worker: Rc::clone(&self.worker), io: Rc::clone(&self.io) };
        let shared = Rc::clone(self);
        let task = tokio::task::spawn_local(async move {
            engine::drive(driver, transaction, deliver).await;
            drop(parked);
            shared.flush();
        });
        Some(task.abort_handle())
    }

    /// Fails a transaction that waits for I/O. The steps above the one that waits may still answer it.
    fn fail(&self, generation: &Arc<Generation>, transaction: &mut Box<Transaction>, failure: Failure) -> Progress {
        let worker = &mut self.worker.borrow_mut();
        let progress = generation.resume(transaction, &Resolved::Fail(failure), worker);
        worker.observe_parked(&**generation, transaction, progress);
        progress
    }

    /// Finishes a batch: runs the cache refreshes that it requested, flushes its log events and counts unsent answers.
    pub(crate) fn end_batch(self: &Rc<Self>, generation: &Arc<Generation>, refused: usize) {
        if refused > 0 {
            self.worker.borrow().counters.add(self.limits.sends, refused as u64);
        }
        generation.run_refreshes(&self.worker, |waiting| drop(self.park(generation, waiting, |_, _| {})));
        self.flush();
    }

    /// Passes the collected log events to the log queue.
    fn flush(&self) {
        self.worker.borrow_mut().take_log(|events| log_queue().push(events));
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.worker.borrow().counters.count(counter);
    }
}

/// Counts a parked query. Dropping it ends the count, even if the task is cancelled.
struct Parked {
    shared: Rc<Shared>,
    excess: usize,
    _slot: Share,
}

impl Parked {
    /// Counts a query, and the limit that it reaches, if it reaches one.
    ///
    /// # Errors
    /// One of the limits of parked queries is reached.
    fn new(shared: &Rc<Shared>, transaction: &Transaction) -> Result<Parked, Failure> {
        let refuse = |cause| {
            shared.count(shared.limits.parked);
            Err(Failure::servfail(EdeCode::OTHER, cause))
        };
        let slot = match shared.all_parked.slots.acquire(transaction.query.peer.address.ip()) {
            Ok(slot) => slot,
            Err(ShareError::Full) => return refuse("too many queries wait for an upstream"),
            Err(ShareError::Greedy) => return refuse("too many queries of this client wait for an upstream"),
        };
        let excess = transaction.excess();
        let bytes = shared.all_parked.excess.fetch_add(excess, Ordering::Relaxed) + excess;
        shared.parked.set(shared.parked.get() + 1);
        let parked = Parked { shared: Rc::clone(shared), excess, _slot: slot };
        // A query that takes no such bytes needs none.
        if excess > 0 && bytes > PARKED_EXCESS_MAX {
            return refuse("long queries that wait for an upstream take too much memory");
        }
        Ok(parked)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.shared.parked.set(self.shared.parked.get() - 1);
        self.shared.all_parked.excess.fetch_sub(self.excess, Ordering::Relaxed);
    }
}
