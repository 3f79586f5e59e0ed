//! Sockets of the listeners.

use std::net::SocketAddr;

use config::PlannedListener;
use engine::Scheme;
use net::{Address, AddressKind};

use crate::lifecycle::LifecycleHooks;

/// Opens a socket per worker for each listener, or uses those that another process has handed over. At startup, warns
/// about addresses on which another process listens too.
///
/// # Errors
/// Returns an error if an address could not be bound. The sockets opened before it are closed.
pub(crate) fn open<'a>(
    listeners: impl Iterator<Item = &'a PlannedListener>,
    workers: usize,
    hooks: &dyn LifecycleHooks,
    is_start: bool,
) -> Result<Vec<net::Opened>, net::ListenError> {
    let adopted = |own: &Address| hooks.adopted(&own.label).filter(|opened| is_on(opened.bound, own));
    let addresses: Vec<_> = listeners.map(address_of).map(|own| (adopted(&own), own)).collect();
    // Check before opening any socket; afterwards, this process itself uses the addresses.
    let own = addresses.iter().filter(|(adopted, _)| is_start && adopted.is_none()).map(|(_, own)| own);
    let shared: Vec<String> = own.filter(|own| net::is_taken(own)).map(|own| own.label.clone()).collect();
    let opened = addresses.into_iter().map(|(adopted, own)| {
        let opened = match adopted {
            Some(mut opened) => {
                // The other process may have had fewer workers.
                net::complete(&mut opened, &own, workers);
                opened
            }
            None => net::open(&own, workers)?,
        };
        announce(&opened.label, opened.bound);
        Ok(opened)
    });
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    shared.iter().for_each(|label| warn_of_shared(label));
    Ok(opened)
}

/// Returns true if a socket is bound to this address. Port 0 means any port.
fn is_on(bound: SocketAddr, own: &Address) -> bool {
    own.ip.map_or(bound.ip().is_unspecified(), |ip| bound.ip() == ip) && (own.port == 0 || own.port == bound.port())
}

/// Logs that another process shares an address.
fn warn_of_shared(label: &str) {
    tracing::warn!(
        target: "portolan",
        "another process listens on {label} too (SO_REUSEPORT): the kernel distributes the queries between both. Find \
         it with `ss -lunp`"
    );
}

fn address_of(listener: &PlannedListener) -> Address {
    Address {
        label: listener.label(),
        ip: listener.ip,
        port: listener.port,
        kind: match listener.scheme {
            Scheme::Dns => AddressKind::Dns,
            Scheme::Quic | Scheme::Https3 => AddressKind::Quic,
            Scheme::Tls | Scheme::Https | Scheme::Grpc => AddressKind::Streams,
        },
    }
}

/// Logs the address of a listening socket and its name in the Corefile.
pub(crate) fn announce(name: &str, bound: SocketAddr) {
    tracing::info!(target: "portolan", "listening on {bound} for {name}");
}
