//! The sockets of one address on all workers: shared keys, and datagrams for the endpoint of another worker.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};

use host::invariant::holds;
use quic::{Keys, Place, Route};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Datagrams that may wait for another worker. Clients repeat the others.
const STRAYS_MAX: usize = 256;

/// UDP socket of one worker, with its way to the other workers.
pub(crate) struct QuicSocket {
    pub(super) socket: UdpSocket,
    pub(super) place: Place,
    pub(super) group: Arc<Group>,
    pub(super) strays: Receiver<Stray>,
}

/// Everything that the workers of an address share.
pub(super) struct Group {
    senders: Vec<Sender<Stray>>,
    keys: OnceLock<Keys>,
}

/// Datagram that came to the socket of another worker than the owner of its connection.
pub(super) struct Stray {
    pub(super) route: Route,
    pub(super) proxied: Option<SocketAddr>,
    pub(super) bytes: Box<[u8]>,
}

impl QuicSocket {
    /// Connects the sockets of an address, one per worker.
    pub(crate) fn group(sockets: Vec<UdpSocket>) -> Vec<QuicSocket> {
        let (senders, receivers): (Vec<_>, Vec<_>) = sockets.iter().map(|_| channel(STRAYS_MAX)).unzip();
        let group = Arc::new(Group { senders, keys: OnceLock::new() });
        let count = sockets.len();
        let place = |(index, (socket, strays))| {
            let group = Arc::clone(&group);
            QuicSocket { socket, place: Place { index, count }, group, strays }
        };
        sockets.into_iter().zip(receivers).enumerate().map(place).collect()
    }
}

impl Group {
    /// Returns the keys of the address, derived from the private key that the first worker finds.
    pub(super) fn keys(&self, private_key: &[u8]) -> Keys {
        self.keys.get_or_init(|| Keys::derive(private_key)).clone()
    }

    /// Passes a datagram on to its owner. Returns false if too many wait there.
    pub(super) fn pass_on(&self, owner: usize, stray: Stray) -> bool {
        holds(owner < self.senders.len(), "the owner of a datagram is a worker");
        self.senders.get(owner).is_some_and(|sender| sender.try_send(stray).is_ok())
    }
}
