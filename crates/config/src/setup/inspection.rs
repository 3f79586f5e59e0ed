//! Views into the running plugins, for people who look at the server from outside.
//!
//! A plugin adds a view while it is built. The host reads views on a thread of its own, so they must not take a lock
//! that a worker holds for long.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::InspectShadow;
use corefile::Span;
use engine::Instant;
use wire::{Name, NameRef, Rcode, Type};

/// Views that the directives of one generation offer.
#[derive(Default)]
pub struct Inspection {
    /// Caches, one per server block with *cache*.
    pub caches: Vec<Arc<dyn InspectCache>>,
    /// Lists of upstreams.
    pub upstreams: Vec<Arc<dyn InspectUpstreams>>,
    /// Clusters whose names are served.
    pub clusters: Vec<Arc<dyn InspectCluster>>,
    /// Comparisons with other servers, one per line of *shadow*.
    pub shadows: Vec<Arc<dyn InspectShadow>>,
    /// Certificates of TLS servers.
    pub certificates: Vec<Arc<dyn InspectCertificate>>,
    /// Probes for forwarding loops, one per server block with *loop*.
    pub loops: Vec<Arc<dyn InspectLoop>>,
    /// Files that directives follow, each with the position of its directive in the Corefile.
    pub files: Vec<(Span, Arc<dyn InspectFiles>)>,
    /// Zones that may have no content to serve, or no place to keep it.
    pub zones: Vec<Arc<dyn InspectZone>>,
}

/// Files that a directive follows while the server runs.
pub trait InspectFiles: Send + Sync {
    /// Returns what is wrong with the files, as of their last check.
    fn problems(&self) -> Vec<String>;
}

/// Zone whose content comes from elsewhere, or must be stored.
pub trait InspectZone: Send + Sync {
    /// Returns what is wrong with the zone; `None` if nothing is.
    fn problem(&self) -> Option<String>;
}

/// Probe for forwarding loops.
pub trait InspectLoop: Send + Sync {
    /// Zone of the server block.
    fn zone(&self) -> &Name;

    /// Returns the result of the last probe.
    fn state(&self) -> LoopState;
}

/// Result of the last probe for forwarding loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopState {
    /// Time of the last probe.
    pub probed: Option<Instant>,
    /// True if it had a response in time.
    pub answered: bool,
    /// Time at which the current loop was found; `None` without a loop.
    pub looping_since: Option<Instant>,
}

/// Certificate of a TLS server.
pub trait InspectCertificate: Send + Sync {
    /// Returns what is wrong with the certificate or its files, and what to do about it; `None` if nothing is.
    fn problem(&self) -> Option<String>;
}

/// Cache of a server block.
pub trait InspectCache: Send + Sync {
    /// Name of the server block for people: its addresses and zones.
    fn block(&self) -> &str;

    /// Returns the number of entries and its maximum.
    fn size(&self) -> (usize, usize);

    /// Returns the entries for a name in lower case, of one type or of all.
    fn find(&self, name: NameRef<'_>, qtype: Option<Type>, now: Instant) -> Vec<CachedEntry>;

    /// Removes entries, and returns their number.
    fn flush(&self, scope: &CacheScope) -> usize;
}

/// Caches of a server block that keep answers of the directives below them. A directive that may want to empty them
/// offers this list, and each cache above it adds itself.
#[derive(Clone, Default)]
pub struct CachesAbove(Arc<Mutex<Vec<Weak<dyn InspectCache>>>>);

impl CachesAbove {
    /// Adds a cache.
    pub fn add(&self, cache: &Arc<dyn InspectCache>) {
        self.lock().push(Arc::downgrade(cache));
    }

    /// Removes all entries, and returns their number.
    #[must_use]
    pub fn flush(&self) -> usize {
        self.lock().iter().filter_map(Weak::upgrade).map(|cache| cache.flush(&CacheScope::All)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn InspectCache>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Range of the entries to remove from a cache.
#[derive(Clone, Debug)]
pub enum CacheScope {
    /// Entries of all types for one name in lower case.
    Name(Name),
    /// Entries for a name in lower case and for all names below it.
    Below(Name),
    /// All entries.
    All,
}

/// Cached response.
#[derive(Clone, Debug)]
pub struct CachedEntry {
    /// Type in the question.
    pub qtype: Type,
    /// Response code.
    pub rcode: Rcode,
    /// True for a denial.
    pub denial: bool,
    /// True if the question had the flag DO.
    pub dnssec_ok: bool,
    /// True if the question had the flag CD.
    pub checking_disabled: bool,
    /// TTL when it was stored, in seconds.
    pub ttl: u32,
    /// Time since it was stored.
    pub age: Duration,
    /// Approximate size in bytes.
    pub bytes: usize,
    /// Records in presentation format, with the TTL that is left.
    pub records: Vec<String>,
}

/// Upstreams of a plugin.
pub trait InspectUpstreams: Send + Sync {
    /// Returns the upstreams with their state.
    fn upstreams(&self) -> Vec<InspectedUpstream>;
}

/// Upstream with its state.
#[derive(Clone, Debug)]
pub struct InspectedUpstream {
    /// Address.
    pub address: SocketAddr,
    /// Transport: `udp`, `tcp`, `tls`, `https` or `quic`.
    pub transport: &'static str,
    /// Health.
    pub health: UpstreamHealth,
    /// Time at which it went down.
    pub down_since: Option<Instant>,
    /// Error of its last health check.
    pub error: Option<String>,
    /// Time and error of the last exchange that failed.
    pub last_failure: Option<(Instant, String)>,
}

/// Health of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamHealth {
    /// No exchange and no health check has failed since the last success.
    Up,
    /// An exchange failed, and it has not answered a health check since.
    Suspected,
    /// Its health checks fail.
    Down,
}

impl UpstreamHealth {
    /// Returns the name of the state: `up`, `suspected` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            UpstreamHealth::Up => "up",
            UpstreamHealth::Suspected => "suspected",
            UpstreamHealth::Down => "down",
        }
    }
}

/// Cluster whose names are served.
pub trait InspectCluster: Send + Sync {
    /// Returns the zones with the names of its Services, without reverse zones.
    fn zones(&self) -> &[Name];

    /// Returns true if the namespace exists and is served.
    fn has_namespace(&self, namespace: &str) -> bool;

    /// Returns the namespaces, and where known the names, of the pods with an address, as far as endpoints and watched
    /// pods show them.
    fn pods_at(&self, address: IpAddr) -> Vec<InspectedPod>;

    /// Returns true if the names of all pods are known.
    fn knows_pods(&self) -> bool;

    /// Returns true if a pod that [`InspectCluster::addresses_of_pod`] does not find has no address or does not exist:
    /// the names of pods are known, and all pods of the namespace are listed.
    fn has_all_pods(&self, namespace: &str) -> bool {
        self.knows_pods() && self.has_namespace(namespace)
    }

    /// Returns the addresses of a pod, if the names of pods are known, or it is a ready endpoint of a Service and that
    /// endpoint is named after it.
    fn addresses_of_pod(&self, namespace: &str, pod: &str) -> Vec<IpAddr>;

    /// Returns the addresses of the known pods and ready endpoints of a namespace: of all, or of the pod or the Service
    /// with a name.
    fn addresses_of(&self, namespace: &str, name: Option<&str>) -> Vec<IpAddr>;
}

/// Pod of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedPod {
    /// Namespace.
    pub namespace: String,
    /// Name, if it is known.
    pub name: Option<String>,
    /// Service that it is a ready endpoint of, if any.
    pub service: Option<String>,
    /// True if it is known to use the network of its node, so that it shares the address.
    pub on_host_network: bool,
}
