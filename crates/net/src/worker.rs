//! Worker threads. Each has its own runtime, sockets and counters. All share the current generation.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use engine::tap::{Filters, Ring};
use host::invariant::holds;
use metrics::Registry;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};

use crate::client::replies::ReplyBudget;
use crate::connection_rates::ConnectionRates;
use crate::connections::{ConnectionTable, TableLimits};
use crate::cpu_budget::{CpuBudget, CurrentCpuLimit};
use crate::endpoint::{Endpoint, Stage};
use crate::io::TokioIo;
use crate::limits::{Limits, POOLED_MAX, StreamLimits, WorkerLimits, raise_descriptor_limit};
use crate::listen::Opened;
use crate::over_quic::{self, QuicSocket};
use crate::shared::{AllParked, Live, Shared};
use crate::thread_runtime::ThreadRuntime;
use crate::{streams, udp};

/// Maximum number of workers that a server starts. Each takes about 200 KiB, with its stack, buffers and share of the
/// allocator; more of them answer no more than the network delivers (docs/decisions/0011).
pub const WORKERS_MAX: usize = 32;

/// Command to a worker.
enum Command {
    /// Serve these sockets under this label. The table counts the connections of all workers to the address.
    Serve(String, WorkerSockets, Arc<ConnectionTable>),
    /// Load the current generation.
    LoadGeneration,
    /// Copy the queries that these filters select.
    Watch(Arc<Filters>),
    /// Begin the sample of queries again.
    RestartSample,
    /// Close the sockets with this label.
    Close(String),
    /// Answer queries that still arrive or are in flight, then end.
    Drain,
    /// Stop reading, because another process reads the same sockets. Answer the queries in flight, then end.
    Leave,
}

/// Sockets of an address for one worker.
enum WorkerSockets {
    /// UDP and TCP, or TCP only.
    Dns(Option<UdpSocket>, TcpListener),
    /// UDP for QUIC.
    Quic(QuicSocket),
}

/// Handle of the worker threads.
pub struct Workers {
    commands: Vec<UnboundedSender<Command>>,
    probes: Probes,
    threads: Vec<JoinHandle<()>>,
    taps: Vec<Arc<Ring>>,
    cpu_limit: Arc<CurrentCpuLimit>,
}

/// Handle of the taps of all workers, for the one thread that reads them.
pub struct Taps {
    commands: Vec<UnboundedSender<Command>>,
    rings: Vec<Arc<Ring>>,
}

impl Taps {
    /// Rings of the workers.
    #[must_use]
    pub fn rings(&self) -> &[Arc<Ring>] {
        &self.rings
    }

    /// Makes all workers copy the queries that these filters select.
    pub fn watch(&self, filters: &Arc<Filters>) {
        for worker in &self.commands {
            let _ = worker.send(Command::Watch(Arc::clone(filters)));
        }
    }

    /// Makes all workers begin their sample again with the next query.
    pub fn restart_samples(&self) {
        for worker in &self.commands {
            let _ = worker.send(Command::RestartSample);
        }
    }
}

/// Handle to check if the worker threads respond.
#[derive(Clone)]
pub struct Probes(pub(crate) Vec<Sender<Probe>>);

/// Request to a worker to show that it responds, with the ID of its thread.
pub(crate) type Probe = oneshot::Sender<u32>;
/// Descriptors of the process besides those of its workers: standard streams, runtimes, pages and the control API with
/// their spare descriptors, and watches.
const OWN_DESCRIPTORS: usize = 28;
/// Descriptors of a worker: its runtime, the sockets of one listener, and a spare one.
const OWN_DESCRIPTORS_PER_WORKER: usize = 9;
/// Minimum number of client connections, however few descriptors there are.
const CONNECTIONS_MIN: usize = 4;
/// Maximum number of probes that wait for a worker. One pending probe is enough to detect a stuck worker.
const PROBES_MAX: usize = 1;

impl Probes {
    /// Returns the number of workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of workers that do not respond within this time. A worker that has ended is one of them.
    pub async fn count_stuck(&self, limit: Duration) -> usize {
        let end = tokio::time::Instant::now() + limit;
        let (probes, responses): (Vec<Probe>, Vec<oneshot::Receiver<u32>>) =
            self.0.iter().map(|_| oneshot::channel()).unzip();
        for (worker, probe) in self.0.iter().zip(probes) {
            // A probe that cannot be sent in time is dropped, and with it its response fails.
            let _ = tokio::time::timeout_at(end, worker.send(probe)).await;
        }
        let mut stuck = 0;
        for response in responses {
            stuck += usize::from(!matches!(tokio::time::timeout_at(end, response).await, Ok(Ok(_))));
        }
        stuck
    }
}

impl Workers {
    /// Starts `count` threads that serve `live` and count in `registry`.
    ///
    /// # Errors
    /// Fails if the system refuses a thread or a runtime.
    pub fn start(count: usize, live: &Live, registry: &Arc<Registry>, limits: WorkerLimits) -> io::Result<Workers> {
        holds(count > 0, "a server has a worker");
        // Registers the counters before the first worker runs, so that they are exported from the start.
        let _ = Limits::new(registry);
        let (mut commands, mut probes, mut threads, mut taps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let connections = ConnectionTable::new(table_limits(limits.streams, count));
        let (rates, parked) = (Arc::new(ConnectionRates::default()), Arc::new(AllParked::new(&limits)));
        let replies = ReplyBudget::new(limits.replies_max);
        let cpu_limit = Arc::new(CurrentCpuLimit::default());
        cpu_limit.set(limits.cpu);
        for number in 0..count {
            let (sender, receiver) = unbounded_channel();
            let (probe, probed) = channel(PROBES_MAX);
            let (live, registry, connections) = (Arc::clone(live), Arc::clone(registry), Arc::clone(&connections));
            let (rates, parked, ring) = (Arc::clone(&rates), Arc::clone(&parked), Arc::new(Ring::new(count)));
            let (replies, cpu_limit) = (Arc::clone(&replies), Arc::clone(&cpu_limit));
            taps.push(Arc::clone(&ring));
            let runtime = ThreadRuntime::new()?;
            let run = move || {
                let io = Rc::new(TokioIo::within(replies, &registry));
                let cpu = CpuBudget::new(cpu_limit, count);
                let tasks = Rc::new(LocalSet::new());
                let streams = limits.streams;
                let shared = Shared::new(io, live, &registry, streams, (connections, rates), (parked, cpu), &tasks);
                shared.worker.borrow_mut().attach_tap(ring);
                shared.worker.borrow_mut().limit_pool(POOLED_MAX / count);
                block_on(&runtime, &tasks, run(shared, receiver, probed));
            };
            threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(run)?);
            commands.push(sender);
            probes.push(probe);
        }
        holds(threads.len() == count && taps.len() == count, "each worker has its thread and its tap");
        Ok(Workers { commands, probes: Probes(probes), threads, taps, cpu_limit })
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.commands.len()
    }

    /// Returns a handle to check if the workers respond.
    #[must_use]
    pub fn probes(&self) -> Probes {
        self.probes.clone()
    }

    /// Returns the CPU limit that the workers follow.
    #[must_use]
    pub fn cpu_limit(&self) -> Arc<CurrentCpuLimit> {
        Arc::clone(&self.cpu_limit)
    }

    /// Returns the handle of the taps. Only one thread may read them.
    #[must_use]
    pub fn taps(&self) -> Taps {
        Taps { commands: self.commands.clone(), rings: self.taps.clone() }
    }

    /// Serves the sockets of an address.
    pub fn serve(&self, opened: Opened) {
        let connections = ConnectionTable::new(TableLimits::UNBOUNDED);
        // Another process may have opened more sockets than there are workers. Every socket needs a reader.
        let dns = opened.sockets.into_iter().map(|(udp, tcp)| WorkerSockets::Dns(udp, tcp));
        let quic = QuicSocket::group(opened.quic).into_iter().map(WorkerSockets::Quic);
        for (worker, sockets) in self.commands.iter().cycle().zip(dns.chain(quic)) {
            let _ = worker.send(Command::Serve(opened.label.clone(), sockets, Arc::clone(&connections)));
        }
    }

    /// Makes every worker load the current generation and drop the old one, even when idle.
    pub fn load_generation(&self) {
        for worker in &self.commands {
            let _ = worker.send(Command::LoadGeneration);
        }
    }

    /// Closes the sockets of an address.
    pub fn close(&self, label: &str) {
        for worker in &self.commands {
            let _ = worker.send(Command::Close(label.to_owned()));
        }
    }

    /// Makes all workers answer the queries in flight and end. Blocks until they have.
    pub fn drain(self) {
        self.end(|| Command::Drain);
    }

    /// Stops reading at once, because another process reads the same sockets. Makes all workers answer the queries in
    /// flight and end. Blocks until they have.
    pub fn leave(self) {
        self.end(|| Command::Leave);
    }

    fn end(self, command: fn() -> Command) {
        for worker in &self.commands {
            let _ = worker.send(command());
        }
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Returns the limits for client connections of this number of workers. They get half of the descriptors that the
/// server does not need for itself. The other half is for upstreams, watches and HTTP.
fn table_limits(streams: StreamLimits, workers: usize) -> TableLimits {
    let StreamLimits { open_max, per_address_max, buffered_max, .. } = streams;
    let own = OWN_DESCRIPTORS + OWN_DESCRIPTORS_PER_WORKER * workers;
    let share = (raise_descriptor_limit().saturating_sub(own) / 2).max(CONNECTIONS_MIN);
    TableLimits { open_max: open_max.min(share), per_address_max, buffered_max }
}

/// Runs a worker. What `worker` spawns are the readers of datagrams, which share the thread with other tasks.
///
/// Readers go first: after every few dozen tasks, tokio polls the outer future, which contains the readers that are
/// ready. Datagrams are therefore read, and local names answered, however many tasks are ready. In one set with them, a
/// reader would wait behind all of them.
fn block_on(runtime: &ThreadRuntime, tasks: &LocalSet, worker: impl Future<Output = ()>) {
    runtime.block_on(tasks, LocalSet::new().run_until(worker));
}

/// Executes commands until the worker has to end.
async fn run(shared: Rc<Shared>, mut commands: UnboundedReceiver<Command>, mut probes: Receiver<Probe>) {
    let mut served: Vec<Served> = Vec::new();
    let own = own_thread();
    loop {
        let command = tokio::select! {
            // A worker that responds serves all sockets that it has got before.
            biased;
            command = commands.recv() => command,
            Some(probe) = probes.recv() => {
                let _ = probe.send(own);
                continue;
            }
        };
        let Some(command) = command else { break };
        match command {
            Command::Serve(label, sockets, connections) => {
                served.extend(Served::start(&shared, &label, sockets, connections));
            }
            Command::LoadGeneration => served.iter().for_each(|served| drop(served.endpoint.seen(&shared))),
            Command::Watch(filters) => shared.worker.borrow_mut().set_filters(filters),
            Command::RestartSample => shared.worker.borrow_mut().restart_sample(),
            Command::Close(label) => served.retain(|served| {
                let keep = !served.endpoint.is(&label);
                if !keep {
                    served.close();
                }
                keep
            }),
            Command::Drain => break,
            Command::Leave => {
                served.iter().for_each(Served::stop_reading);
                break;
            }
        }
    }
    drain(&shared, served).await;
}

/// Returns the ID of this thread.
#[must_use]
pub fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Served address with its tasks.
struct Served {
    endpoint: Rc<Endpoint>,
    datagrams: Option<tokio::task::JoinHandle<()>>,
    streams: Option<AbortHandle>,
    quic: Option<tokio::task::JoinHandle<()>>,
}

impl Served {
    fn start(
        shared: &Rc<Shared>,
        label: &str,
        sockets: WorkerSockets,
        connections: Arc<ConnectionTable>,
    ) -> Option<Served> {
        let endpoint = Rc::new(Endpoint::new(label, shared, connections)?);
        let (udp, tcp) = match sockets {
            WorkerSockets::Dns(udp, tcp) => (udp, tcp),
            WorkerSockets::Quic(socket) => {
                let serve = over_quic::serve(Rc::clone(shared), Rc::clone(&endpoint), socket);
                let quic = Some(shared.spawn(async { drop(serve.await) }));
                return Some(Served { endpoint, datagrams: None, streams: None, quic });
            }
        };
        let datagrams = udp.map(|udp| udp::serve(Rc::clone(shared), Rc::clone(&endpoint), udp));
        let datagrams = datagrams.map(|serve| tokio::task::spawn_local(async { drop(serve.await) }));
        let streams = streams::serve(Rc::clone(shared), Rc::clone(&endpoint), tcp);
        let streams = shared.spawn(async { drop(streams.await) }).abort_handle();
        Some(Served { endpoint, datagrams, streams: Some(streams), quic: None })
    }

    fn close(&self) {
        self.endpoint.reach(Stage::Closed);
        self.streams.iter().for_each(AbortHandle::abort);
    }

    /// Stops reading datagrams and accepting connections. The kernel queues keep their content for the other process.
    /// Connections over QUIC cannot move there, so they end like in any other shutdown.
    fn stop_reading(&self) {
        self.datagrams.iter().for_each(tokio::task::JoinHandle::abort);
        self.streams.iter().for_each(AbortHandle::abort);
    }
}

/// Waits for queries in flight, which have their own deadlines, then closes everything.
async fn drain(shared: &Shared, served: Vec<Served>) {
    // Datagrams already in the socket queue must be answered, so the readers get at least one more turn.
    for _ in 0..DRAIN_TURNS {
        tokio::time::sleep(DRAIN_TURN).await;
        served.iter().for_each(|served| served.endpoint.reach(Stage::Ending));
        if shared.is_idle() {
            break;
        }
    }
    served.iter().for_each(Served::close);
    for reader in served.into_iter().flat_map(|served| served.datagrams.into_iter().chain(served.quic)) {
        let _ = reader.await;
    }
}

/// Interval at which an ending worker checks for queries in flight.
const DRAIN_TURN: std::time::Duration = std::time::Duration::from_millis(20);
/// Number of these checks: five seconds in all, like CoreDNS.
const DRAIN_TURNS: usize = 250;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::Notify;

    use super::*;

    /// Responds to probes until the handle is dropped.
    async fn respond(mut probes: Receiver<Probe>) {
        while let Some(probe) = probes.recv().await {
            let _ = probe.send(own_thread());
        }
    }

    #[test]
    fn a_reader_does_not_wait_for_all_tasks_that_are_ready() {
        const TASKS: usize = 10_000;
        let runtime = ThreadRuntime::new().unwrap();
        let (tasks, ran) = (LocalSet::new(), Rc::new(Cell::new(0)));
        let woken = Rc::new(Notify::new());
        for _ in 0..TASKS {
            let (ran, woken) = (Rc::clone(&ran), Rc::clone(&woken));
            // The first one makes the reader ready, and all others are ready already.
            tasks.spawn_local(async move {
                ran.set(ran.get() + 1);
                woken.notify_one();
            });
        }
        let before = Rc::new(Cell::new(TASKS));
        let (seen, reading) = (Rc::clone(&before), Rc::clone(&ran));
        let worker = async move {
            let reader = tokio::task::spawn_local(async move {
                woken.notified().await;
                seen.set(reading.get());
            });
            reader.await.unwrap();
        };
        block_on(&runtime, &tasks, worker);
        assert!(before.get() < TASKS / 10, "{} tasks ran before the reader", before.get());
    }

    #[tokio::test(start_paused = true)]
    async fn counts_workers_that_do_not_respond() {
        let ((first, responds), (second, hangs), (third, ended)) =
            (channel(PROBES_MAX), channel(PROBES_MAX), channel(PROBES_MAX));
        tokio::spawn(respond(responds));
        drop(ended);
        let probes = Probes(vec![first, second, third]);
        // The queue of the worker that hangs is full after the first round.
        for _ in 0..2 {
            assert_eq!(probes.count_stuck(Duration::from_millis(500)).await, 2);
        }
        tokio::spawn(respond(hangs));
        assert_eq!(probes.count_stuck(Duration::from_millis(500)).await, 1);
    }
}
