//! Hashes of the Corefiles of all replicas, from their metrics pages.

use std::net::SocketAddr;

use doctor::{Facts, Known, Replica, Unknown};

use futures_util::future::join_all;
use inspect::replica::{METRICS_PORT, REPLICAS_MAX, corefile_hash, port_of};

/// Asks the ready replicas for the hashes of their Corefiles.
pub(super) async fn replicas(facts: &Facts) -> Known<Vec<Replica>> {
    let dns = facts.dns()?;
    let port = facts.corefile.as_ref().ok().and_then(|corefile| port_of(corefile.directives("prometheus")));
    let port = port.unwrap_or(METRICS_PORT);
    let ready = dns.endpoints()?.into_iter().filter(|endpoint| endpoint.is_ready());
    let each = ready.filter_map(|endpoint| {
        let address = endpoint.addresses.iter().find_map(|address| address.parse().ok())?;
        let pod = &endpoint.target_ref.name;
        let name = if pod.is_empty() { format!("{address}") } else { pod.clone() };
        Some(replica(name, SocketAddr::new(address, port)))
    });
    let replicas = join_all(each.take(REPLICAS_MAX)).await;
    if replicas.is_empty() {
        return Err(Unknown::new(format!("{} has no ready endpoint", dns.path())));
    }
    Ok(replicas)
}

async fn replica(name: String, address: SocketAddr) -> Replica {
    let hash = corefile_hash(address).await.map_err(|reason| Unknown::new(format!("{address}: {reason}")));
    Replica { name, hash }
}
