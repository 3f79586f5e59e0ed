//! Connections over QUIC in the connection tables of the process.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use engine::{Clock, EncryptionLimits};
use host::invariant::holds;
use quic::{Account, Admission};
use tokio::sync::Notify;
use transport::MonotonicClock;

use crate::connections::{Connection, ConnectionTable};
use crate::limits::BUFFERED_FREE;
use crate::shared::Shared;

/// Memory of a connection over QUIC in units of one over TCP, measured: about 20 KiB from the handshake on, and as much
/// again for a client that opens all of its streams.
const QUIC_WEIGHT: usize = 6;

/// Limits of a listener, which a reload may change.
#[derive(Clone, Copy)]
pub(super) struct ListenerLimits {
    /// Maximum number of connections; 0 means no limit.
    pub(super) connections_max: usize,
    pub(super) encryption: EncryptionLimits,
}

/// Connections of one listener in the tables of the process.
pub(super) struct Tables {
    shared: Rc<Shared>,
    /// Connections to the listener on all workers.
    own: Arc<ConnectionTable>,
    limits: Rc<Cell<ListenerLimits>>,
    /// Notified when a connection is evicted.
    evicted: Arc<Notify>,
}

impl Tables {
    pub(super) fn new(
        shared: &Rc<Shared>,
        own: &Arc<ConnectionTable>,
        limits: &Rc<Cell<ListenerLimits>>,
        evicted: &Arc<Notify>,
    ) -> Tables {
        let (shared, own) = (Rc::clone(shared), Arc::clone(own));
        Tables { shared, own, limits: Rc::clone(limits), evicted: Arc::clone(evicted) }
    }
}

impl Admission for Tables {
    fn permit(&self, client: IpAddr, is_proven: bool) -> bool {
        let rate = self.limits.get().encryption.connection_rate;
        self.shared.rates.permit(client, is_proven, rate, MonotonicClock.now())
    }

    fn admit(&self, client: IpAddr) -> Option<Box<dyn Account>> {
        let most = match self.limits.get().connections_max {
            0 => usize::MAX,
            most => most,
        };
        let own = self.own.admit_within(client, most, Arc::clone(&self.evicted))?;
        let (connection, evicted) =
            self.shared.connections.admit_weighing(client, QUIC_WEIGHT, Arc::clone(&self.evicted));
        if evicted {
            self.shared.count(self.shared.limits.streams);
        }
        self.shared.streams.set(self.shared.streams.get() + 1);
        Some(Box::new(Entry { shared: Rc::clone(&self.shared), connection, own, held: 0 }))
    }

    fn is_busy(&self) -> bool {
        let most = self.limits.get().connections_max;
        most > 0 && self.own.open() * 2 >= most
    }
}

/// Entries of one connection.
struct Entry {
    shared: Rc<Shared>,
    connection: Connection,
    own: Connection,
    /// Reserved bytes.
    held: usize,
}

impl Account for Entry {
    fn touch(&self) {
        self.connection.touch();
        self.own.touch();
    }

    fn hold(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(BUFFERED_FREE);
        if wanted > self.held && !self.connection.reserve(wanted - self.held) {
            return false;
        }
        if wanted < self.held {
            self.connection.release(self.held - wanted);
        }
        holds(
            bytes <= BUFFERED_FREE || wanted + BUFFERED_FREE == bytes,
            "what is above the free allowance is reserved",
        );
        self.held = wanted;
        true
    }

    fn is_evicted(&self) -> bool {
        self.connection.is_evicted() || self.own.is_evicted()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connection.release(self.held);
        holds(self.shared.streams.get() > 0, "a connection that ends was counted");
        self.shared.streams.set(self.shared.streams.get() - 1);
    }
}
