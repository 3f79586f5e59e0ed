//! A complete server, assembled like the binary, but without sockets and in virtual time.

use core::cell::RefCell;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::path::Path as FilePath;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::{
    Capabilities, FileCheck, FileWatch, GracefulJob, HostRequests, Job, Readiness, ReloadState, Shutdown,
    ShutdownTrigger,
};
use config::{BuildContext, Built, Directives, PlannedListener, Planning, plan};
use corefile::{Style, render};
use engine::log::Notice;
use engine::{
    Clock, Destination, Driver, Generation, Instant, Io, ListenerId, PeerInfo, Progress, Rehearsal, Rehearsed,
    Transaction, Transport, Worker,
};
use metrics::Registry;

use crate::executor::{Executor, Task};
use crate::{VirtualIo, VirtualTime, World};

/// Default port of server blocks.
const DNS_PORT: u16 = 53;
/// Fixed seed, so that every run has the same random numbers.
const SEED: u64 = 1;
/// Maximum number of messages read of one response.
const MESSAGES_MAX: usize = 1000;
/// Default client address: a pod.
pub const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 0, 9)), 40_000);
/// Address of the server: the ClusterIP of a cluster's DNS Service.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10));

/// A server process.
pub struct Server {
    /// Fake I/O.
    pub io: Rc<VirtualIo>,
    /// Files and environment variables.
    pub world: Rc<World>,
    /// Capabilities that the process offers to plugins.
    pub process: Capabilities,
    /// Metrics of the process.
    pub registry: Arc<Registry>,
    directives: Directives,
    time: VirtualTime,
    executor: Executor,
    worker: Rc<RefCell<Worker>>,
    running: Option<Running>,
}

/// The generation that serves.
struct Running {
    generation: Arc<Generation>,
    listeners: Vec<PlannedListener>,
    requests: HostRequests,
    reload_state: ReloadState,
    tasks: Vec<Task>,
    /// Tell the lasting jobs to end when dropped.
    enders: Vec<ShutdownTrigger>,
}

/// Transport, client and port of a query.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Client address.
    pub peer: SocketAddr,
    /// Transport.
    pub transport: Transport,
    /// Port; `None` for the first listener.
    pub port: Option<u16>,
}

impl Default for Arrival {
    fn default() -> Self {
        Arrival { peer: CLIENT, transport: Transport::Udp, port: None }
    }
}

/// Handle of a query that was sent.
#[derive(Clone)]
pub struct Ticket {
    asked: Instant,
    outcome: Rc<RefCell<Option<Outcome>>>,
    destination: Option<Destination>,
}

/// Outcome of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Response; `None` if the server sends none.
    pub answer: Option<Vec<u8>>,
    /// Further messages of the response, over a stream.
    pub more: Vec<Vec<u8>>,
    /// Time from the query to the response.
    pub took: Duration,
}

impl Ticket {
    /// Returns the outcome, if it is known.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    /// Returns the servers that the query waited for first, if it was not answered at once.
    #[must_use]
    pub const fn destination(&self) -> Option<Destination> {
        self.destination
    }

    fn settle(&self, transaction: &mut Transaction, progress: Progress, now: Instant) {
        let Transaction { query, response, .. } = transaction;
        let answer = (progress == Progress::Answered).then(|| response.finish(query).to_vec());
        let mut more = Vec::new();
        while query.peer.transport.takes_many() && more.len() < MESSAGES_MAX {
            let Some(message) = response.finish_next(query) else { break };
            more.push(message.to_vec());
        }
        *self.outcome.borrow_mut() = Some(Outcome { answer, more, took: now.since(self.asked) });
    }
}

/// Errors of a Corefile: the rendered diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(pub String);

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl core::error::Error for LoadError {}

impl Server {
    /// Creates a process without a Corefile. `directives` are those of the program.
    #[must_use]
    pub fn new(directives: Directives) -> Server {
        Server::at(directives, VirtualTime::new(), SEED)
    }

    /// Creates a process that starts at the time of a clock. `seed` determines its random numbers.
    #[must_use]
    pub fn at(directives: Directives, time: VirtualTime, seed: u64) -> Server {
        let registry = Registry::new();
        let io = Rc::new(VirtualIo::new(time.clone(), &registry, seed));
        let worker = Worker::new(&registry, Box::new(time.clone()), io.random());
        Server {
            io,
            world: Rc::default(),
            process: offers(directives),
            registry,
            directives,
            time,
            executor: Executor::default(),
            worker: Rc::new(RefCell::new(worker)),
            running: None,
        }
    }

    /// Loads a Corefile. If it has errors, the previous one keeps serving.
    ///
    /// # Errors
    /// Fails if the Corefile has errors.
    pub fn load(&mut self, text: &str) -> Result<(), LoadError> {
        let parsed = corefile::parse(FilePath::new("Corefile"), text.to_owned(), &*self.world);
        let file = parsed.corefile;
        let mut problems = parsed.diagnostics;
        let planning =
            Planning { entries: self.directives.entries(), dns_port: DNS_PORT, interface: &|_| None, memory: None };
        let planned = plan(&file, &planning, &mut problems);
        let broken = problems.iter().any(corefile::Diagnostic::is_error);
        let Some(planned) = planned.filter(|_| !broken) else {
            return Err(LoadError(render(&problems, &file.sources, Style::Plain)));
        };
        let reload_state = self.running.as_ref().map(|running| running.reload_state.next()).unwrap_or_default();
        let context =
            BuildContext { registry: &self.registry, files: &*self.world, process: &self.process, reload_state };
        let built = planned.build(context);
        let built = built.map_err(|problems| LoadError(render(&problems, &file.sources, Style::Plain)))?;
        self.switch_to(built);
        Ok(())
    }

    fn switch_to(&mut self, built: Built) {
        let Built { generation, listeners, mut requests, reload_state, .. } = built;
        self.end_tasks();
        for warning in requests.warnings.drain(..) {
            let Notice { level, message, .. } = &warning.notice;
            self.io.log(*level, warning.notice.source(), format_args!("{message}"));
        }
        self.io.set_pages(core::mem::take(&mut requests.pages));
        let jobs = core::mem::take(&mut requests.jobs).into_iter().map(|job| self.start_job(job));
        let file_watches = core::mem::take(&mut requests.file_watches).into_iter();
        let file_watches = file_watches.map(|watch| self.start_inspection(watch));
        let tasks = jobs.chain(file_watches).collect();
        let graceful = core::mem::take(&mut requests.graceful_jobs).into_iter();
        let enders = graceful.map(|job| self.start_lasting_job(job)).collect();
        self.running =
            Some(Running { generation: Arc::new(generation), listeners, requests, reload_state, tasks, enders });
        self.settle();
    }

    fn end_tasks(&mut self) {
        let Some(running) = &mut self.running else { return };
        core::mem::take(&mut running.tasks).into_iter().for_each(|task| self.executor.cancel(task));
        running.enders.clear();
    }

    fn start_job(&self, job: Job) -> Task {
        self.executor.spawn(job(Rc::clone(&self.io) as Rc<dyn Io>))
    }

    /// Starts a job that finishes its work after the returned [`ShutdownTrigger`] is dropped.
    fn start_lasting_job(&self, job: GracefulJob) -> ShutdownTrigger {
        let (ender, ending) = Shutdown::new();
        self.executor.spawn(job(Rc::clone(&self.io) as Rc<dyn Io>, ending));
        ender
    }

    fn start_inspection(&self, watch: FileWatch) -> Task {
        let (io, world) = (Rc::clone(&self.io), Rc::clone(&self.world));
        self.executor.spawn(Box::pin(inspect(watch, io, world, self.time.clone())))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.time.now()
    }

    /// Sends a query. There is no response without a Corefile, or without a listener on the port.
    pub fn ask(&mut self, packet: &[u8], arrival: Arrival) -> Ticket {
        let mut ticket = Ticket { asked: self.now(), outcome: Rc::default(), destination: None };
        let Some((generation, listener, port)) = self.listener(arrival.port) else { return ticket };
        let mut transaction = self.worker.borrow_mut().take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(packet);
        let local = SocketAddr::new(SERVER, port);
        transaction.query.peer =
            PeerInfo { address: arrival.peer, local, transport: arrival.transport, ..PeerInfo::default() };
        transaction.query.received = self.now();
        let progress = generation.receive(listener, &mut transaction, &mut self.worker.borrow_mut());
        if progress == Progress::Waiting {
            ticket.destination = Some(generation.destination(&transaction));
            let (told, time) = (ticket.clone(), self.time.clone());
            self.park(&generation, transaction, move |transaction, progress| {
                told.settle(transaction, progress, time.now());
            });
        } else {
            ticket.settle(&mut transaction, progress, self.now());
            self.worker.borrow_mut().give_transaction(transaction);
        }
        generation.run_refreshes(&self.worker, |waiting| self.park(&generation, waiting, |_, _| {}));
        self.settle();
        ticket
    }

    /// Runs a query through the plugins without asking anybody, as `portolan explain` does. Returns `None` without a
    /// Corefile, or without a listener on the port.
    #[must_use]
    pub fn rehearse(&self, packet: &[u8], arrival: Arrival) -> Option<Rehearsed> {
        let (generation, listener, port) = self.listener(arrival.port)?;
        let local = SocketAddr::new(SERVER, port);
        let peer = PeerInfo { address: arrival.peer, local, transport: arrival.transport, ..PeerInfo::default() };
        Some(Rehearsal::new(&generation, Box::new(self.time.clone()), SEED).run(listener, packet, peer))
    }

    fn listener(&self, port: Option<u16>) -> Option<(Arc<Generation>, ListenerId, u16)> {
        let running = self.running.as_ref()?;
        let at = running.listeners.iter().position(|listener| port.is_none_or(|port| listener.port == port))?;
        Some((Arc::clone(&running.generation), ListenerId(at), running.listeners[at].port))
    }

    fn park(
        &self,
        generation: &Arc<Generation>,
        transaction: Box<Transaction>,
        deliver: impl FnOnce(&mut Transaction, Progress) + 'static,
    ) {
        let driver = Driver {
            generation: Arc::clone(generation),
            worker: Rc::clone(&self.worker),
            io: Rc::clone(&self.io) as Rc<dyn Io>,
        };
        self.executor.spawn(Box::pin(engine::drive(driver, transaction, deliver)));
    }

    /// Runs all tasks until each of them waits.
    fn settle(&self) {
        self.executor.run();
        self.worker.borrow_mut().take_log(|log| log.events().for_each(|event| self.io.log_event(&event)));
    }

    /// Advances time.
    pub fn pass(&mut self, span: Duration) {
        self.pass_until(span, || false);
    }

    /// Advances time until the query is answered, by at most `limit`. Returns the outcome.
    pub fn wait_for(&mut self, ticket: &Ticket, limit: Duration) -> Option<Outcome> {
        self.pass_until(limit, || ticket.outcome.borrow().is_some());
        ticket.outcome()
    }

    fn pass_until(&self, span: Duration, done: impl Fn() -> bool) {
        let end = self.now() + span;
        loop {
            self.settle();
            if done() {
                return;
            }
            match self.time.next_timer().filter(|at| *at <= end) {
                Some(at) => self.time.advance_to(at),
                None if self.now() < end => self.time.advance_to(end),
                None => return,
            }
        }
    }

    /// Returns what the current Corefile requests from the process, without the jobs that are already running.
    #[must_use]
    pub fn requests(&self) -> Option<&HostRequests> {
        self.running.as_ref().map(|running| &running.requests)
    }

    /// Returns the readiness registry.
    #[must_use]
    pub fn readiness(&self) -> Option<Arc<Readiness>> {
        self.requests().map(|requests| Arc::clone(&requests.readiness))
    }

    /// Shuts down: cancels the jobs of the plugins and stops answering queries.
    pub fn end(&mut self) {
        if let Some(readiness) = self.readiness() {
            readiness.end();
        }
        self.end_tasks();
        self.settle();
        self.running = None;
    }
}

/// Returns the minimum capabilities of a process.
fn offers(directives: Directives) -> Capabilities {
    let mut process = Capabilities::default();
    process.provide(directives);
    let tls: Arc<dyn engine::tls::TlsMaker> = Arc::new(crate::PretendedTls);
    process.provide(tls);
    process
}

/// Runs the periodic file check of a plugin.
async fn inspect(mut watch: FileWatch, io: Rc<VirtualIo>, world: Rc<World>, time: VirtualTime) {
    while !watch.every.is_zero() {
        if !core::mem::take(&mut watch.at_once) {
            io.sleep_until(io.now() + watch.every).await;
        }
        let mut notices = Vec::new();
        let since_1970 = time.since_1970();
        (watch.check)(FileCheck { files: &*world, since_1970, notices: &mut notices });
        notices.iter().for_each(|notice| io.log(notice.level, notice.source(), format_args!("{}", notice.message)));
    }
}
