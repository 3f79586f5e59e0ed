//! Seam to the limits of the process: connections and memory.

use std::net::IpAddr;

/// Limits that the endpoints of all workers share.
pub trait Admission {
    /// Counts an attempt of this client to connect. Returns false if it makes too many. `is_proven` is false if the
    /// address of the client may be forged.
    fn permit(&self, client: IpAddr, is_proven: bool) -> bool;

    /// Registers a connection of this client. Returns `None` if the listener has as many as it may have.
    fn admit(&self, client: IpAddr) -> Option<Box<dyn Account>>;

    /// Returns true if at least half of the connections that the listener may have are open. Clients must then prove
    /// their address before they get one.
    fn is_busy(&self) -> bool;
}

/// Entry of a connection in the tables of the process. Dropping it removes the entry.
pub trait Account {
    /// Records that a query has arrived.
    fn touch(&self);

    /// Reserves memory for buffers, in all this many bytes. Returns false if the client gets no more: its connection
    /// must then be closed.
    fn hold(&mut self, bytes: usize) -> bool;

    /// Returns true if the connection must be closed to make room for others.
    fn is_evicted(&self) -> bool;
}
