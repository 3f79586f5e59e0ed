//! The worker threads: each has a runtime, its own sockets and its own counters; all share the generation that serves.

use std::cell::{Cell, RefCell};
use std::io;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use engine::metrics::{Counter, Registry};
use engine::setup::Listening;
use engine::tls::TlsServer;
use engine::{Driver, Failure, Generation, Outside, Resolved, Scheme, Turn, Walk, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet};
use wire::EdeCode;

use crate::clock::MonotonicClock;
use crate::limits::{Limits, PARKED_MAX, StreamLimits};
use crate::listen::Opened;
use crate::outside::TokioOutside;
use crate::{streams, udp};

/// The generation that serves; a reload stores the next one.
pub type Live = Arc<ArcSwap<Generation>>;

/// What a worker is told.
enum Order {
    /// Serve these sockets, under this label; the connections of all workers are counted together.
    Serve(String, (Option<UdpSocket>, TcpListener), Arc<AtomicUsize>),
    /// Look at the generation that serves.
    Look,
    /// Close the sockets of this label.
    Close(String),
    /// Answer what still comes and what is on its way, and end.
    Drain,
    /// Take nothing new, as another process does that on the same sockets; answer what is on its way, and end.
    Leave,
}

/// The worker threads.
pub struct Workers {
    orders: Vec<UnboundedSender<Order>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads that serve `live` and count in `registry`.
    ///
    /// # Errors
    /// If the system refuses a thread or a runtime.
    pub fn start(count: usize, live: &Live, registry: &Arc<Registry>) -> io::Result<Workers> {
        Workers::start_with(count, live, registry, StreamLimits::default())
    }

    /// The same, with other limits for streams.
    ///
    /// # Errors
    /// As [`Workers::start`].
    pub fn start_with(
        count: usize,
        live: &Live,
        registry: &Arc<Registry>,
        streams: StreamLimits,
    ) -> io::Result<Workers> {
        let (mut orders, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (sender, receiver) = unbounded_channel();
            let (live, registry) = (Arc::clone(live), Arc::clone(registry));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let run = move || {
                let shared = Shared::new(live, &registry, streams);
                LocalSet::new().block_on(&runtime, shared.run(receiver));
            };
            threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(run)?);
            orders.push(sender);
        }
        Ok(Workers { orders, threads })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.orders.len()
    }

    /// Serves the sockets of an address.
    pub fn serve(&self, opened: Opened) {
        let connections = Arc::new(AtomicUsize::new(0));
        // There may be more sockets than workers, if another process opened them: none may be left unread.
        for (orders, sockets) in self.orders.iter().cycle().zip(opened.sockets) {
            let _ = orders.send(Order::Serve(opened.label.clone(), sockets, Arc::clone(&connections)));
        }
    }

    /// Lets go of the generation before the one that serves now, also where no query comes by: what it has ends with it.
    pub fn look(&self) {
        for orders in &self.orders {
            let _ = orders.send(Order::Look);
        }
    }

    /// Closes the sockets of an address.
    pub fn close(&self, label: &str) {
        for orders in &self.orders {
            let _ = orders.send(Order::Close(label.to_owned()));
        }
    }

    /// Lets all workers answer what is on its way and end; comes back when they have.
    pub fn drain(self) {
        self.end(|| Order::Drain);
    }

    /// Takes nothing new from this moment on: another process reads from the same sockets. Lets all workers answer what is
    /// on its way and end; comes back when they have.
    pub fn leave(self) {
        self.end(|| Order::Leave);
    }

    fn end(self, order: fn() -> Order) {
        for orders in &self.orders {
            let _ = orders.send(order());
        }
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// What the tasks of one worker share.
pub(crate) struct Shared {
    pub(crate) worker: Rc<RefCell<Worker>>,
    pub(crate) outside: Rc<dyn Outside>,
    pub(crate) limits: Limits,
    pub(crate) stream_limits: StreamLimits,
    pub(crate) streams: Cell<usize>,
    live: Live,
    parked: Cell<usize>,
}

/// An address as this worker serves it.
pub(crate) struct Endpoint {
    label: String,
    /// The generation that was seen last, with the index of this address in it.
    seen: RefCell<(Arc<Generation>, usize)>,
    /// Connections to it that are open, at all workers.
    pub(crate) connections: Arc<AtomicUsize>,
    /// How far it is from its end.
    stage: tokio::sync::watch::Sender<Stage>,
}

/// How far an address is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Open,
    /// Streams end when nothing is on its way; datagrams are answered.
    Ending,
    /// It is served no more.
    Closed,
}

/// Tells the stage of an address.
pub(crate) type Closing = tokio::sync::watch::Receiver<Stage>;

/// An address that is served, and the tasks that do it.
struct Served {
    endpoint: Rc<Endpoint>,
    datagrams: Option<tokio::task::JoinHandle<()>>,
    streams: AbortHandle,
}

impl Served {
    fn close(&self) {
        self.endpoint.reach(Stage::Closed);
        self.streams.abort();
    }

    /// Takes no datagram and no connection any more; what waits in the queues stays there.
    fn stop_reading(&self) {
        self.datagrams.iter().for_each(tokio::task::JoinHandle::abort);
        self.streams.abort();
    }
}

impl Endpoint {
    /// Tells how far the address is from its end.
    pub(crate) fn closing(&self) -> Closing {
        self.stage.subscribe()
    }

    fn reach(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// The generation that serves now, and the index of this address in it.
    pub(crate) fn listener(&self, shared: &Shared) -> (Arc<Generation>, usize) {
        let mut seen = self.seen.borrow_mut();
        let live = shared.live.load();
        if !Arc::ptr_eq(&live, &seen.0) {
            // An address that the new generation does not have is about to be closed; the old one answers until then.
            if let Some(index) = live.listeners.iter().position(|listener| listener.label == self.label) {
                *seen = (Arc::clone(&live), index);
            }
        }
        seen.clone()
    }

    /// What clients on streams are greeted with here.
    pub(crate) fn tls(&self, shared: &Shared) -> Option<Arc<dyn TlsServer>> {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener)?.tls.clone()
    }

    /// How clients speak here.
    pub(crate) fn scheme(&self, shared: &Shared) -> Scheme {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener).map(|listener| listener.scheme).unwrap_or_default()
    }

    /// What directives say of how this address is served.
    pub(crate) fn listening(&self, shared: &Shared) -> Listening {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener).map(|listener| listener.listening.clone()).unwrap_or_default()
    }
}

impl Shared {
    fn new(live: Live, registry: &Arc<Registry>, stream_limits: StreamLimits) -> Rc<Shared> {
        let outside = TokioOutside::new(registry);
        let worker = Worker::new(registry, Box::new(MonotonicClock), outside.random());
        Rc::new(Shared {
            worker: Rc::new(RefCell::new(worker)),
            outside: Rc::new(outside),
            limits: Limits::new(registry),
            stream_limits,
            streams: Cell::new(0),
            live,
            parked: Cell::new(0),
        })
    }

    async fn run(self: Rc<Self>, mut orders: UnboundedReceiver<Order>) {
        let mut served: Vec<Served> = Vec::new();
        while let Some(order) = orders.recv().await {
            match order {
                Order::Serve(label, sockets, connections) => served.push(self.serve(&label, sockets, connections)),
                Order::Look => served.iter().for_each(|served| drop(served.endpoint.listener(&self))),
                Order::Close(label) => served.retain(|served| {
                    let keep = served.endpoint.label != label;
                    if !keep {
                        served.close();
                    }
                    keep
                }),
                Order::Drain => break,
                Order::Leave => {
                    served.iter().for_each(Served::stop_reading);
                    break;
                }
            }
        }
        self.drain(served).await;
    }

    fn serve(
        self: &Rc<Self>,
        label: &str,
        (udp, tcp): (Option<UdpSocket>, TcpListener),
        connections: Arc<AtomicUsize>,
    ) -> Served {
        let live = self.live.load_full();
        let index = live.listeners.iter().position(|listener| listener.label == label).unwrap_or(0);
        let endpoint = Rc::new(Endpoint {
            label: label.to_owned(),
            seen: RefCell::new((live, index)),
            connections,
            stage: tokio::sync::watch::Sender::new(Stage::Open),
        });
        let datagrams = udp.map(|udp| udp::serve(Rc::clone(self), Rc::clone(&endpoint), udp));
        let datagrams = datagrams.map(|serve| tokio::task::spawn_local(async { drop(serve.await) }));
        let streams = streams::serve(Rc::clone(self), Rc::clone(&endpoint), tcp);
        let streams = tokio::task::spawn_local(async { drop(streams.await) }).abort_handle();
        Served { endpoint, datagrams, streams }
    }

    /// Lets queries that wait come to their end, bounded by their own deadlines, then closes everything.
    async fn drain(&self, served: Vec<Served>) {
        // Datagrams that the kernel has taken already are still ours: one more turn for the readers to see them.
        for _ in 0..DRAIN_TURNS {
            tokio::time::sleep(DRAIN_TURN).await;
            served.iter().for_each(|served| served.endpoint.reach(Stage::Ending));
            if self.parked.get() == 0 && self.streams.get() == 0 {
                break;
            }
        }
        served.iter().for_each(Served::close);
        for datagrams in served.into_iter().filter_map(|served| served.datagrams) {
            let _ = datagrams.await;
        }
    }

    /// Lets a walk wait for the outside world; `deliver` gets it at its end. Beyond the bound it fails at once.
    pub(crate) fn park(
        self: &Rc<Self>,
        generation: &Arc<Generation>,
        mut walk: Box<Walk>,
        deliver: impl FnOnce(&mut Walk, Turn) + 'static,
    ) {
        if self.parked.get() >= PARKED_MAX {
            self.count(self.limits.parked);
            let failure = Failure::servfail(EdeCode::OTHER, "too many queries wait for an upstream");
            let turn = generation.resume(&mut walk, &Resolved::Fail(failure), &mut self.worker.borrow_mut());
            deliver(&mut walk, turn);
            self.worker.borrow_mut().give_walk(walk);
            return;
        }
        let parked = Parked::new(self);
        let driver = Driver {
            generation: Arc::clone(generation),
            worker: Rc::clone(&self.worker),
            outside: Rc::clone(&self.outside),
        };
        let shared = Rc::clone(self);
        tokio::task::spawn_local(async move {
            engine::drive(driver, walk, deliver).await;
            drop(parked);
            shared.flush();
        });
    }

    /// What is due after a batch: refreshes that it asked for, its log lines, its losses.
    pub(crate) fn end_batch(self: &Rc<Self>, generation: &Arc<Generation>, refused: usize) {
        if refused > 0 {
            self.worker.borrow().counters.add(self.limits.sends, refused as u64);
        }
        while let Some(mut walk) = self.next_refresh() {
            let turn = generation.run_refresh(&mut walk, &mut self.worker.borrow_mut());
            match turn {
                Turn::Waiting => self.park(generation, walk, |_, _| {}),
                Turn::Answered | Turn::Dropped => self.worker.borrow_mut().give_walk(walk),
            }
        }
        self.flush();
    }

    fn next_refresh(&self) -> Option<Box<Walk>> {
        self.worker.borrow_mut().next_refresh()
    }

    /// Writes the log lines that have come together.
    fn flush(&self) {
        let mut lost = 0;
        self.worker.borrow_mut().take_lines(|lines, missing| {
            lost = missing;
            // A log that cannot be written must not stop the answers.
            let _ = io::stdout().lock().write_all(lines);
        });
        if lost > 0 {
            self.worker.borrow().counters.add(self.limits.log_lines, lost);
        }
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.worker.borrow().counters.count(counter);
    }
}

/// A query that waits, counted as long as its task is there, whatever becomes of that.
struct Parked(Rc<Shared>);

impl Parked {
    fn new(shared: &Rc<Shared>) -> Parked {
        shared.parked.set(shared.parked.get() + 1);
        Parked(Rc::clone(shared))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.parked.set(self.0.parked.get() - 1);
    }
}

/// How long a worker that ends waits between two looks at what is still on its way.
const DRAIN_TURN: std::time::Duration = std::time::Duration::from_millis(20);
/// How often it looks: five seconds in all, CoreDNS's grace.
const DRAIN_TURNS: usize = 250;
