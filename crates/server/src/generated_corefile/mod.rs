//! Corefiles that are generated while the server runs: a [`Recipe`] generates the text from its inputs, and [`News`] are
//! changes of these inputs.
//!
//! - `source`: reads and watches the ConfigMap.
//! - `hosts`: resolves name servers that are configured by host name.
//! - `control`: regenerates the Corefile when an input changes.

mod control;
mod hosts;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use compat::kube_dns::{Dynamic, Hosts, Source};
use kubeapi::Data;

pub use control::METRICS;
pub(crate) use control::start;
pub(crate) use source::read_once;

/// Log target.
pub(crate) const LOG: &str = "portolan";

/// File with the upstreams of the system.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Generator of a Corefile from a ConfigMap and other inputs, such as flags.
pub(crate) trait Recipe {
    /// Returns the name of the Corefile in diagnostics.
    fn name(&self) -> &'static str;
    /// Returns the location of the ConfigMap.
    fn source(&self) -> &Source;
    /// Returns the cluster to read the ConfigMap from, if its source is the API server.
    fn cluster(&self) -> cluster::Source;
    /// Returns the name servers that are configured by host name.
    fn named_hosts(&self, dynamic: &Dynamic) -> BTreeSet<String>;
    /// Returns the server that resolves such a host name; `None` is the system resolver.
    fn resolver(&self, name: &str) -> Option<SocketAddr>;
    /// Returns the file with the upstreams of the system, if the Corefile may use them.
    fn resolv_conf(&self) -> Option<PathBuf> {
        Some(RESOLV_CONF.into())
    }
    /// Generates the Corefile.
    fn corefile(&self, dynamic: &Dynamic, hosts: Hosts<'_>) -> String;
    /// Counts a ConfigMap that was invalid.
    fn count_refused(&self) {}
}

/// Change of an input of the Corefile.
pub(crate) enum News {
    /// New content of the ConfigMap.
    Config(Data),
    /// New addresses of the name servers that are configured by host name.
    Hosts(Known),
    /// Change of the system's resolv.conf.
    ResolvConf,
    /// Change of the recipe itself, for example of its template.
    Recipe,
}

/// Host names with their addresses.
pub(crate) type Known = BTreeMap<String, Vec<IpAddr>>;

/// Default cluster domain.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// Returns true if a name is in the cluster domain `domain` or in the default one.
pub(crate) fn is_of_cluster(name: &str, domain: &str) -> bool {
    let is_of = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_of(domain) || is_of(CLUSTER_DOMAIN)
}
