//! State that the tasks of one worker thread share: current generation, engine worker, limits, parked queries.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use engine::{
    Destination, Driver, Failure, FairShares, Generation, Io, Progress, Resolved, Share, ShareError, Transaction,
    Worker,
};
use host::invariant::holds;
use metrics::{Counter, Registry};
use tokio::sync::oneshot::Receiver;
use tokio::task::{AbortHandle, JoinHandle, LocalSet};
use transport::MonotonicClock;
use transport::spare::Spare;
use wire::EdeCode;

use crate::connection_rates::ConnectionRates;
use crate::connections::ConnectionTable;
use crate::cpu_budget::{CpuBudget, Turn};
use crate::limits::{Limits, READ_AT_ONCE, ROOMY_MAX, StreamLimits, WorkerLimits};
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
    /// Spare descriptor for the TCP listeners of the worker.
    spare: OnceCell<Rc<Spare>>,
    /// CPU time for queries to upstreams, if the process has a limit that matters.
    cpu: Rc<CpuBudget>,
    /// Tasks of this thread, which run after the readers of datagrams.
    tasks: Weak<LocalSet>,
}

/// Parked queries of all workers: their number by client, and the bytes of long ones.
#[derive(Debug)]
pub(crate) struct AllParked {
    slots: Arc<FairShares>,
    /// Bytes of queries and unfinished responses beyond what every transaction keeps.
    excess: AtomicUsize,
    excess_max: usize,
}

impl AllParked {
    /// Creates the count.
    pub(crate) fn new(limits: &WorkerLimits) -> AllParked {
        let excess_max = limits.parked_excess_max;
        AllParked { slots: FairShares::new(limits.parked_max), excess: AtomicUsize::new(0), excess_max }
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
        (all_parked, cpu): (Arc<AllParked>, Rc<CpuBudget>),
        tasks: &Rc<LocalSet>,
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
            spare: OnceCell::new(),
            cpu,
            tasks: Rc::downgrade(tasks),
        })
    }

    /// Returns the spare descriptor for the TCP listeners of this worker. Must be called within a `LocalSet`.
    pub(crate) fn spare(&self) -> Rc<Spare> {
        Rc::clone(self.spare.get_or_init(|| Spare::open_later(1)))
    }

    /// Starts a task that runs after the readers of datagrams (`worker.rs`).
    pub(crate) fn spawn<F: Future<Output = ()> + 'static>(&self, task: F) -> JoinHandle<()> {
        match self.tasks.upgrade() {
            Some(tasks) => tasks.spawn_local(task),
            // The thread ends. The task is dropped with the set of the caller.
            None => tokio::task::spawn_local(task),
        }
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
        match self.admit(generation, &transaction) {
            Ok(admitted) => Some(self.run(generation, transaction, admitted, deliver)),
            Err(failure) => {
                let progress = self.fail(generation, &mut transaction, failure);
                holds(progress != Progress::Waiting, "a query that failed does not wait");
                deliver(&mut transaction, progress);
                self.worker.borrow_mut().give_transaction(transaction);
                None
            }
        }
    }

    /// Takes a slot, and a turn if CPU time is limited, for a transaction that has to be parked.
    ///
    /// # Errors
    /// A limit is reached, which is counted.
    pub(crate) fn admit(
        self: &Rc<Self>,
        generation: &Generation,
        transaction: &Transaction,
    ) -> Result<Admitted, Failure> {
        let parked = Parked::new(self, generation.destination(transaction), transaction)?;
        let (turn, is_first) = self.cpu.turn(transaction.query.peer.address.ip());
        if is_first {
            self.spawn(Rc::clone(&self.cpu).serve_waiting());
        }
        match turn {
            Turn::Now => Ok(Admitted { parked, turn: None }),
            Turn::Later(turn) => Ok(Admitted { parked, turn: Some(turn) }),
            Turn::Refused => Err(self.no_cpu_time()),
        }
    }

    /// Counts a query that got no CPU time, and returns its failure. A log line for each would take more of that time.
    fn no_cpu_time(&self) -> Failure {
        self.count(self.limits.cpu);
        let text = "the CPU limit leaves no time for more queries to upstreams";
        Failure::servfail(EdeCode::OTHER, "").with_text(text)
    }

    /// Runs an admitted transaction in a task.
    pub(crate) fn run(
        self: &Rc<Self>,
        generation: &Arc<Generation>,
        mut transaction: Box<Transaction>,
        Admitted { parked, turn }: Admitted,
        deliver: impl FnOnce(&mut Transaction, Progress) + 'static,
    ) -> AbortHandle {
        if self.parked.get() > ROOMY_MAX {
            transaction.shrink();
        }
        let driver =
            Driver { generation: Arc::clone(generation), worker: Rc::clone(&self.worker), io: Rc::clone(&self.io) };
        let shared = Rc::clone(self);
        let task = self.spawn(async move {
            let is_late = match turn {
                Some(turn) => turn.await.is_err(),
                None => false,
            };
            if is_late {
                let progress = shared.fail(&driver.generation, &mut transaction, shared.no_cpu_time());
                holds(progress != Progress::Waiting, "a query that failed does not wait");
                deliver(&mut transaction, progress);
                shared.worker.borrow_mut().give_transaction(transaction);
            } else {
                holds(shared.parked.get() > 0, "a query that is driven is counted");
                engine::drive(driver, transaction, deliver).await;
            }
            drop(parked);
            shared.flush();
        });
        task.abort_handle()
    }

    /// Fails a transaction that waits for I/O. The steps above the one that waits may still answer it.
    pub(crate) fn fail(
        &self,
        generation: &Arc<Generation>,
        transaction: &mut Box<Transaction>,
        failure: Failure,
    ) -> Progress {
        let worker = &mut self.worker.borrow_mut();
        let progress = generation.resume(transaction, &Resolved::Fail(failure), worker);
        worker.observe_parked(&**generation, transaction, progress);
        progress
    }

    /// Finishes a batch: runs the cache refreshes that it requested, flushes its log events and counts unsent answers.
    pub(crate) fn end_batch(self: &Rc<Self>, generation: &Arc<Generation>, refused: usize) {
        debug_assert!(self.worker.try_borrow_mut().is_ok(), "no hook runs at the end of a batch");
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

/// Slot and turn of a transaction that may be parked.
pub(crate) struct Admitted {
    parked: Parked,
    /// Start of the query, if it has to wait for CPU time.
    turn: Option<Receiver<()>>,
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
    fn new(shared: &Rc<Shared>, destination: Destination, transaction: &Transaction) -> Result<Parked, Failure> {
        let refuse = |cause| {
            shared.count(shared.limits.parked);
            Err(Failure::servfail(EdeCode::OTHER, cause))
        };
        let client = transaction.query.peer.address.ip();
        let slot = match shared.all_parked.slots.acquire(client, Some(destination)) {
            Ok(slot) => slot,
            Err(ShareError::Full) => return refuse("too many queries wait for an upstream"),
            Err(ShareError::Greedy) => return refuse("too many queries of this client wait for an upstream"),
            Err(ShareError::Crowded) => return refuse("too many queries wait for the upstreams of this name"),
        };
        // Counted before the limit is checked: two workers that check at the same time would both be let in otherwise.
        // The drop of `Parked` takes the bytes of a query that is refused back.
        let excess = transaction.excess();
        let bytes = shared.all_parked.excess.fetch_add(excess, Ordering::Relaxed) + excess;
        shared.parked.set(shared.parked.get() + 1);
        holds(shared.parked.get() <= shared.all_parked.slots.limit() as usize, "each parked query has a slot");
        let parked = Parked { shared: Rc::clone(shared), excess, _slot: slot };
        // A query that takes no such bytes needs none.
        if excess > 0 && bytes > shared.all_parked.excess_max {
            return refuse("long queries that wait for an upstream take too much memory");
        }
        Ok(parked)
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        holds(self.shared.parked.get() > 0, "a parked query was counted");
        self.shared.parked.set(self.shared.parked.get() - 1);
        let excess = self.shared.all_parked.excess.fetch_sub(self.excess, Ordering::Relaxed);
        holds(self.excess <= excess, "the bytes of a parked query were counted");
    }
}
