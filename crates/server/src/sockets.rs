//! The sockets of the listeners, and which ports they have.

use engine::{PlannedListener, Scheme};
use net::Address;

use crate::companion::Companion;

/// Opens a socket for each worker on each of these addresses, or takes those that are open already. At the start of the
/// process it warns of addresses that another process has too.
///
/// # Errors
/// If one cannot be listened on; those before it are closed.
pub(crate) fn open<'a>(
    listeners: impl Iterator<Item = &'a PlannedListener>,
    workers: usize,
    companion: &dyn Companion,
    is_start: bool,
) -> Result<Vec<net::Opened>, net::ListenError> {
    let addresses: Vec<_> = listeners.map(address_of).map(|own| (companion.adopted(&own.label), own)).collect();
    // Before any is opened: afterwards this process itself has them.
    let own = addresses.iter().filter(|(adopted, _)| is_start && adopted.is_none()).map(|(_, own)| own);
    let shared: Vec<String> = own.filter(|own| net::is_taken(own)).map(|own| own.label.clone()).collect();
    let opened = addresses.into_iter().map(|(adopted, own)| {
        let opened = adopted.map_or_else(|| net::open(&own, workers), Ok)?;
        announce(&opened.label, opened.bound);
        Ok(opened)
    });
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    shared.iter().for_each(|label| warn_of_shared(label));
    Ok(opened)
}

/// Warns of an address that is shared with another process.
fn warn_of_shared(label: &str) {
    tracing::warn!(
        target: "portolan",
        "another process listens on {label} too (SO_REUSEPORT): the system gives each of them a part of the queries. Find it \
         with `ss -lunp`"
    );
}

fn address_of(listener: &PlannedListener) -> Address {
    Address {
        label: listener.label(),
        ip: listener.ip,
        port: listener.port,
        streams_only: listener.scheme != Scheme::Dns,
    }
}

/// Logs an address that is listened on, and the name that the Corefile has for it.
pub(crate) fn announce(name: &str, bound: std::net::SocketAddr) {
    tracing::info!(target: "portolan", "listening on {bound} for {name}");
}
