//! Capabilities of the process that plugins can use: name lookup, TLS, Kubernetes clusters, profiling and etcd.

use std::rc::Rc;
use std::sync::Arc;

use config::setup::{Capabilities, MemoryGuard};
use engine::tls::TlsMaker;
use metrics::Registry;
use plugins::{HostLookup, Profiler, ZoneMemory, ZoneStorage};
use skydns::Stores;

use crate::cgroup;
use crate::clusters::{Followed, clusters};
use crate::limit_hits;
use crate::lookup::Lookup;
use crate::process_metrics::memory_use;
use crate::profile::Sampler;
use crate::zone_storage::ZoneFiles;

/// Returns all capabilities of this process.
pub fn capabilities(registry: &Arc<Registry>) -> Capabilities {
    let mut capabilities = Capabilities::default();
    capabilities.provide(crate::local::addresses());
    capabilities.provide(crate::local::host_name());
    let lookup: Arc<dyn HostLookup> = Arc::new(Lookup);
    capabilities.provide(lookup);
    let tls: Arc<dyn TlsMaker> = Arc::new(transport::tls::Rustls);
    capabilities.provide(tls);
    capabilities.provide(zone_memory());
    capabilities.provide(MemoryGuard(Arc::new(memory_use)));
    let followed: Arc<Followed> = Arc::default();
    capabilities.provide(clusters(registry, &followed));
    capabilities.provide(followed);
    let profiler: Arc<dyn Profiler> = Arc::new(Sampler);
    capabilities.provide(profiler);
    let stores: Rc<dyn Stores> = Rc::new(etcd::Edge::new(registry));
    capabilities.provide(stores);
    let zones: Arc<dyn ZoneStorage> = Arc::new(ZoneFiles);
    capabilities.provide(zones);
    capabilities
}

/// Returns the memory for zones. While a new version of one is built, both versions together may take three fifths of
/// the memory limit, and the process four fifths: the rest is for clients. Without a limit, only the bounds that every
/// zone has count.
fn zone_memory() -> ZoneMemory {
    let share = cgroup::memory_limit().and_then(|limit| usize::try_from(limit / 5 * 3).ok());
    let note_refusal = || limit_hits::count(|limits| limits.zones);
    let unlimited = ZoneMemory { note_refusal, ..ZoneMemory::default() };
    share.map_or(unlimited, |each| ZoneMemory { each, is_tight: memory_is_tight, ..unlimited })
}

fn memory_is_tight() -> bool {
    memory_use().is_some_and(|memory| memory.used > memory.limit / 5 * 4)
}
