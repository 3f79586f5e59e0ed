//! Serving datagrams: read a batch, answer on the spot, send the batch.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;

use engine::{Clock, Generation, Path, Transport, Turn, Walk};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::clock::MonotonicClock;
use crate::datagrams::{Batch, send_from};
use crate::limits::{BATCH, BATCHES_IN_A_ROW};
use crate::proxy::unwrap_datagram;
use crate::worker::{Endpoint, Shared};

/// A socket, and the address that it is bound to.
struct Bound {
    socket: UdpSocket,
    local: SocketAddr,
}

/// Serves a socket until the worker closes it.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, socket: std::net::UdpSocket) -> io::Result<()> {
    let socket = UdpSocket::from_std(socket)?;
    let bound = Rc::new(Bound { local: socket.local_addr()?, socket });
    let mut batch = Batch::new();
    let mut walk = shared.worker.borrow_mut().take_walk();
    loop {
        bound.socket.readable().await?;
        for _ in 0..BATCHES_IN_A_ROW {
            let received = receive(&bound.socket, &mut batch);
            if received > 0 {
                answer_batch(&shared, &endpoint, &bound, &mut batch, received, &mut walk);
            }
            if received < BATCH {
                break;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Receives a batch; a short one means that the queue was empty just then, so that the runtime may wait for more.
fn receive(socket: &UdpSocket, batch: &mut Batch) -> usize {
    let mut received = 0;
    let _ = socket.try_io(Interest::READABLE, || {
        received = batch.receive(socket.as_raw_fd())?;
        if received < BATCH { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    received
}

fn answer_batch(
    shared: &Rc<Shared>,
    endpoint: &Rc<Endpoint>,
    bound: &Rc<Bound>,
    batch: &mut Batch,
    received: usize,
    walk: &mut Box<Walk>,
) {
    let (generation, listener) = endpoint.listener(shared);
    let now = MonotonicClock.now();
    for at in 0..received {
        let Some(peer) = batch.peer(at) else { continue };
        let local = batch.local(at).map_or(bound.local, |ip| SocketAddr::new(ip, bound.local.port()));
        let way = Path { peer, local, transport: Transport::Udp };
        let unwrapped = match &generation.listeners[listener].listening.proxy {
            None => Some((batch.datagram(at), way)),
            Some(policy) => unwrap_datagram(policy, batch.datagram(at), way),
        };
        let Some((packet, path)) = unwrapped else { continue };
        walk.query.packet.clear();
        walk.query.packet.extend_from_slice(packet);
        walk.query.path = path;
        walk.query.received = now;
        let turn = generation.receive(listener, walk, &mut shared.worker.borrow_mut());
        match turn {
            Turn::Answered => {
                let Walk { query, response, .. } = &mut **walk;
                batch.answer(at, response.finish(query));
            }
            Turn::Dropped => {}
            Turn::Waiting => {
                let waiting = std::mem::replace(walk, shared.worker.borrow_mut().take_walk());
                park(shared, &generation, bound, waiting, way);
            }
        }
    }
    let refused = batch.send(bound.socket.as_raw_fd());
    shared.end_batch(&generation, refused);
}

/// Lets a query wait for the outside world; its answer is sent by itself, back the way that the query came.
fn park(shared: &Rc<Shared>, generation: &Arc<Generation>, bound: &Rc<Bound>, walk: Box<Walk>, way: Path) {
    let (bound, sender) = (Rc::clone(bound), Rc::clone(shared));
    shared.park(generation, walk, move |walk, turn| {
        if turn == Turn::Answered {
            let Walk { query, response, .. } = walk;
            if send_from(bound.socket.as_raw_fd(), response.finish(query), way.peer, way.local.ip()).is_err() {
                sender.count(sender.limits.sends);
            }
        }
    });
}
