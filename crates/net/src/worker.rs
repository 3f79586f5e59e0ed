//! The worker threads: each has a runtime, its own sockets and its own counters; all share the generation that serves.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

use engine::metrics::Registry;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet};

use crate::connections::{ConnectionTable, TableLimits};
use crate::endpoint::{Endpoint, Stage};
use crate::limits::{Limits, StreamLimits, raise_descriptor_limit};
use crate::listen::Opened;
use crate::shared::{Live, Shared};
use crate::{streams, udp};

/// What a worker is told.
enum Order {
    /// Serve these sockets, under this label; the connections of all workers to it are counted together.
    Serve(String, (Option<UdpSocket>, TcpListener), Arc<ConnectionTable>),
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
        // So that the counters are shown before the first worker runs.
        let _ = Limits::new(registry);
        let (mut orders, mut threads) = (Vec::new(), Vec::new());
        let connections = ConnectionTable::new(table_limits(streams));
        let parked = Arc::new(AtomicUsize::new(0));
        for number in 0..count {
            let (sender, receiver) = unbounded_channel();
            let (live, registry, connections) = (Arc::clone(live), Arc::clone(registry), Arc::clone(&connections));
            let parked = Arc::clone(&parked);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let run = move || {
                let shared = Shared::new(live, &registry, streams, connections, parked);
                LocalSet::new().block_on(&runtime, run(shared, receiver));
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
        let connections = ConnectionTable::new(TableLimits::UNBOUNDED);
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

/// The bounds of clients' connections. Half of the descriptors stays for listeners, upstreams, watches and pages.
fn table_limits(streams: StreamLimits) -> TableLimits {
    let StreamLimits { open_max, per_address_max, buffered_max, .. } = streams;
    TableLimits { open_max: open_max.min(raise_descriptor_limit() / 2), per_address_max, buffered_max }
}

/// Does what it is told until it is to end.
async fn run(shared: Rc<Shared>, mut orders: UnboundedReceiver<Order>) {
    let mut served: Vec<Served> = Vec::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(label, sockets, connections) => {
                served.extend(Served::start(&shared, &label, sockets, connections));
            }
            Order::Look => served.iter().for_each(|served| drop(served.endpoint.seen(&shared))),
            Order::Close(label) => served.retain(|served| {
                let keep = !served.endpoint.is(&label);
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
    drain(&shared, served).await;
}

/// An address that is served, and the tasks that do it.
struct Served {
    endpoint: Rc<Endpoint>,
    datagrams: Option<tokio::task::JoinHandle<()>>,
    streams: AbortHandle,
}

impl Served {
    fn start(
        shared: &Rc<Shared>,
        label: &str,
        (udp, tcp): (Option<UdpSocket>, TcpListener),
        connections: Arc<ConnectionTable>,
    ) -> Option<Served> {
        let endpoint = Rc::new(Endpoint::new(label, shared, connections)?);
        let datagrams = udp.map(|udp| udp::serve(Rc::clone(shared), Rc::clone(&endpoint), udp));
        let datagrams = datagrams.map(|serve| tokio::task::spawn_local(async { drop(serve.await) }));
        let streams = streams::serve(Rc::clone(shared), Rc::clone(&endpoint), tcp);
        let streams = tokio::task::spawn_local(async { drop(streams.await) }).abort_handle();
        Some(Served { endpoint, datagrams, streams })
    }

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

/// Lets queries that wait come to their end, bounded by their own deadlines, then closes everything.
async fn drain(shared: &Shared, served: Vec<Served>) {
    // Datagrams that the kernel has taken already are still ours: one more turn for the readers to see them.
    for _ in 0..DRAIN_TURNS {
        tokio::time::sleep(DRAIN_TURN).await;
        served.iter().for_each(|served| served.endpoint.reach(Stage::Ending));
        if shared.is_idle() {
            break;
        }
    }
    served.iter().for_each(Served::close);
    for datagrams in served.into_iter().filter_map(|served| served.datagrams) {
        let _ = datagrams.await;
    }
}

/// How long a worker that ends waits between two looks at what is still on its way.
const DRAIN_TURN: std::time::Duration = std::time::Duration::from_millis(20);
/// How often it looks: five seconds in all, CoreDNS's grace.
const DRAIN_TURNS: usize = 250;
