//! The sockets of the listeners, and which ports they have.

use engine::{PlannedListener, Scheme};
use net::Address;

use crate::companion::Companion;

/// Opens a socket for each worker on each of these addresses, or takes those that are open already.
///
/// # Errors
/// If one cannot be listened on; those before it are closed.
pub(crate) fn open<'a>(
    listeners: impl Iterator<Item = &'a PlannedListener>,
    workers: usize,
    companion: &dyn Companion,
) -> Result<Vec<net::Opened>, net::ListenError> {
    let addresses = listeners.map(|listener| Address {
        label: listener.label(),
        ip: listener.ip,
        port: listener.port,
        streams_only: listener.scheme != Scheme::Dns,
    });
    addresses
        .map(|address| {
            let opened = match companion.adopted(&address.label) {
                Some(opened) => opened,
                None => net::open(&address, workers)?,
            };
            announce_free_port(&opened.label, address.port, opened.bound);
            Ok(opened)
        })
        .collect()
}

/// Says which port was found where any free one was asked for.
pub(crate) fn announce_free_port(name: &str, asked: u16, bound: std::net::SocketAddr) {
    if asked == 0 {
        tracing::info!(target: "portolan", "listening on {bound} for {name}");
    }
}
