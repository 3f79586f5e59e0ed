//! Queries of background jobs to this server, on the thread of the jobs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::OwnQueries;
use engine::{Clock, Driver, Generation, Io, ListenerId, LocalFuture, PeerInfo, Progress, Transaction, Worker};
use host::boxed;
use metrics::Registry;
use net::{Live, log_queue};
use transport::MonotonicClock;

/// Worker without sockets.
#[derive(Clone)]
pub(crate) struct SelfClient {
    live: Live,
    worker: Rc<RefCell<Worker>>,
    io: Rc<dyn Io>,
}

impl SelfClient {
    pub(crate) fn new(live: &Live, registry: &Arc<Registry>, io: &Rc<dyn Io>) -> SelfClient {
        let worker = Worker::new(registry, Box::new(MonotonicClock), io.random());
        SelfClient { live: Arc::clone(live), worker: Rc::new(RefCell::new(worker)), io: Rc::clone(io) }
    }

    /// Runs a query to its end.
    async fn run(self, listener: ListenerId, mut transaction: Box<Transaction>) -> Option<Vec<u8>> {
        let generation = self.live.load_full();
        let progress = generation.receive(listener, &mut transaction, &mut self.worker.borrow_mut());
        let response = if progress == Progress::Waiting {
            let (sender, response) = tokio::sync::oneshot::channel();
            self.park(&generation, transaction, |transaction, progress| {
                // The job may have given up.
                let _ = sender.send(message(transaction, progress));
            });
            response.await.ok().flatten()
        } else {
            let response = message(&mut transaction, progress);
            self.worker.borrow_mut().give_transaction(transaction);
            response
        };
        generation.run_refreshes(&self.worker, |waiting| self.park(&generation, waiting, |_, _| {}));
        self.worker.borrow_mut().take_log(|events| log_queue().push(events));
        response
    }

    /// Continues a query that waits, and its background work, in a task.
    fn park(
        &self,
        generation: &Arc<Generation>,
        transaction: Box<Transaction>,
        deliver: impl FnOnce(&mut Transaction, Progress) + 'static,
    ) {
        let (worker, io) = (Rc::clone(&self.worker), Rc::clone(&self.io));
        let driver = Driver { generation: Arc::clone(generation), worker, io };
        tokio::task::spawn_local(boxed(engine::drive(driver, transaction, deliver)));
    }
}

impl OwnQueries for SelfClient {
    fn ask(&self, listener: ListenerId, peer: PeerInfo, packet: &[u8]) -> LocalFuture<'static, Option<Vec<u8>>> {
        let mut transaction = self.worker.borrow_mut().take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(packet);
        transaction.query.peer = peer;
        transaction.query.received = MonotonicClock.now();
        Box::pin(self.clone().run(listener, transaction))
    }
}

fn message(transaction: &mut Transaction, progress: Progress) -> Option<Vec<u8>> {
    let Transaction { query, response, .. } = transaction;
    (progress == Progress::Answered).then(|| response.finish(query).to_vec())
}
