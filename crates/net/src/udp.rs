//! UDP listener: receives queries in batches, answers what is known locally, and parks the rest.
//!
//! Each worker owns one socket per address (`SO_REUSEPORT`). The loop waits until the socket is readable, receives up
//! to [`BATCH`] datagrams with `recvmmsg`, runs each through the chain, and sends the answers that are ready with
//! `sendmmsg`. A query that needs an upstream moves to a task, which answers it later with a single `sendmsg`.
//!
//! On shutdown the listener removes its socket from the reuseport group, waits [`LEAVE`] for datagrams that the kernel
//! is already delivering, answers them and returns.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, Generation, PeerInfo, Progress, ProxyTlvs, Transaction, Transport};
use host::invariant::holds;
use linux::datagrams::{BATCH, Batch, send_from};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use transport::MonotonicClock;

use crate::endpoint::{Endpoint, Seen, Stage};
use crate::limits::BATCHES_IN_A_ROW;
use crate::proxy_policy::unwrap_datagram;
use crate::shared::{Admitted, Shared};

/// Socket with its bound address.
struct Bound {
    socket: UdpSocket,
    local: SocketAddr,
}

/// Time for the kernel to deliver datagrams already on their way to a socket that has left the reuseport group.
const LEAVE: Duration = Duration::from_millis(2);
/// Maximum number of batches answered after that. If the socket cannot leave the group, datagrams may keep arriving.
const BATCHES_AT_END: usize = 64;

/// Serves a socket until its address is closed, then answers the datagrams still in its queue.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, socket: std::net::UdpSocket) -> io::Result<()> {
    let socket = UdpSocket::from_std(socket)?;
    let bound = Rc::new(Bound { local: socket.local_addr()?, socket });
    let mut batch = Batch::new();
    let mut transaction = shared.worker.borrow_mut().take_transaction();
    let mut closing = endpoint.closing();
    loop {
        tokio::select! {
            readable = bound.socket.readable() => readable?,
            _ = closing.reaches(Stage::Closed) => break,
        }
        for _ in 0..BATCHES_IN_A_ROW {
            let received = receive(&bound.socket, &mut batch);
            if received > 0 {
                answer_batch(&shared, &endpoint, &bound, &mut batch, received, &mut transaction);
            }
            if received < BATCH {
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    leave(&bound);
    tokio::time::sleep(LEAVE).await;
    for _ in 0..BATCHES_AT_END {
        let received = batch.receive(bound.socket.as_raw_fd()).unwrap_or(0);
        if received == 0 {
            break;
        }
        answer_batch(&shared, &endpoint, &bound, &mut batch, received, &mut transaction);
    }
    Ok(())
}

/// Removes the socket from the reuseport group, so that other processes with the same address get all new datagrams, as
/// in an upgrade. A wildcard socket leaves the group when it is connected. A socket bound to one address stays in the
/// group, so datagrams that arrive between the last read and the close are lost.
fn leave(bound: &Bound) {
    let nobody = match bound.local {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, DISCARD)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), DISCARD)),
    };
    if bound.local.ip().is_unspecified() {
        // If this fails, the case is the same as for a single address.
        let _ = SockRef::from(&bound.socket).connect(&nobody.into());
    }
}

/// Discard port (RFC 863), on which nothing listens.
const DISCARD: u16 = 9;

/// Receives a batch. A short batch means that the queue is empty, so it clears the readiness.
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
    transaction: &mut Box<Transaction>,
) {
    holds(received <= BATCH, "a batch has a bounded number of datagrams");
    let seen = endpoint.seen(shared);
    let Seen { generation, listener } = &*seen;
    let now = MonotonicClock.now();
    for at in 0..received {
        let Some(peer) = batch.peer(at) else { continue };
        let local = batch.local(at).map_or(bound.local, |ip| SocketAddr::new(ip, bound.local.port()));
        let from = PeerInfo { address: peer, local, transport: Transport::Udp, tlvs: ProxyTlvs::None };
        let unwrapped = match &generation.listener(*listener).listening.proxy {
            None => Some((batch.datagram(at), from)),
            Some(policy) => unwrap_datagram(policy, batch.datagram(at), from),
        };
        let Some((packet, from)) = unwrapped else { continue };
        if from.tlvs == ProxyTlvs::TooLong {
            shared.count(shared.limits.proxy_tlvs);
        }
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(packet);
        transaction.query.peer = from;
        transaction.query.received = now;
        let progress = generation.receive(*listener, transaction, &mut shared.worker.borrow_mut());
        match progress {
            Progress::Answered => {
                let Transaction { query, response, .. } = &mut **transaction;
                batch.answer(at, response.finish(query));
            }
            Progress::Dropped => {}
            Progress::Waiting => match shared.admit(generation, transaction) {
                Ok(admitted) => {
                    let waiting = std::mem::replace(transaction, shared.worker.borrow_mut().take_transaction());
                    park(shared, generation, bound, waiting, admitted);
                }
                // Its answer leaves with those of the batch.
                Err(failure) => {
                    if shared.fail(generation, transaction, failure) == Progress::Answered {
                        let Transaction { query, response, .. } = &mut **transaction;
                        batch.answer(at, response.finish(query));
                    }
                }
            },
        }
    }
    let refused = batch.send(bound.socket.as_raw_fd());
    shared.end_batch(generation, refused);
}

/// Parks a query. Its answer is sent later, to the address that the query came from.
fn park(
    shared: &Rc<Shared>,
    generation: &Arc<Generation>,
    bound: &Rc<Bound>,
    transaction: Box<Transaction>,
    admitted: Admitted,
) {
    let PeerInfo { address, local, .. } = transaction.query.peer;
    let (bound, sender) = (Rc::clone(bound), Rc::clone(shared));
    shared.run(generation, transaction, admitted, move |transaction, progress| {
        if progress == Progress::Answered {
            let Transaction { query, response, .. } = transaction;
            if send_from(bound.socket.as_raw_fd(), response.finish(query), address, local.ip()).is_err() {
                sender.count(sender.limits.sends);
            }
        }
    });
}
