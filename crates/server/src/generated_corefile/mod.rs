//! Corefiles that are generated while the server runs: a [`CorefileGenerator`] generates the text from its inputs, and
//! an [`InputChange`] reports that one of them has changed.
//!
//! - `config_map`: reads and watches the ConfigMap.
//! - `name_servers`: resolves name servers that are configured by host name.
//! - `regenerate`: regenerates the Corefile when an input changes.

mod config_map;
mod name_servers;
mod regenerate;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use compat::kube_dns::{ConfigMapSettings, ConfigMapSource, HostNames};
use kubeapi::Data;

pub(crate) use config_map::{ConfigMapReadError, read_once};
pub use regenerate::METRICS;
pub(crate) use regenerate::start;

/// Log target.
pub(crate) const LOG: &str = "portolan";

/// File with the upstreams of the system.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Generator of a Corefile from a ConfigMap and other inputs, such as flags.
pub(crate) trait CorefileGenerator {
    /// Returns the name of the Corefile in diagnostics.
    fn name(&self) -> &'static str;
    /// Returns the location of the ConfigMap.
    fn source(&self) -> &ConfigMapSource;
    /// Returns the cluster to read the ConfigMap from, if its source is the API server.
    fn cluster(&self) -> cluster::Source;
    /// Returns the name servers that are configured by host name.
    fn named_hosts(&self, config_map: &ConfigMapSettings) -> BTreeSet<String>;
    /// Returns the server that resolves such a host name; `None` is the system resolver.
    fn resolver(&self, name: &str) -> Option<SocketAddr>;
    /// Returns the file with the upstreams of the system, if the Corefile may use them.
    fn resolv_conf(&self) -> Option<PathBuf> {
        Some(RESOLV_CONF.into())
    }
    /// Generates the Corefile.
    fn corefile(&self, config_map: &ConfigMapSettings, hosts: HostNames<'_>) -> String;
    /// Counts a ConfigMap that was invalid.
    fn count_rejected(&self) {}
}

/// Change of an input of the Corefile.
pub(crate) enum InputChange {
    /// New content of the ConfigMap.
    ConfigMap(Data),
    /// New addresses of the name servers that are configured by host name.
    HostAddresses(HostAddresses),
    /// Change of the system's resolv.conf.
    ResolvConf,
    /// Change of the generator itself, for example of its template.
    Generator,
}

/// Host names with their addresses.
pub(crate) type HostAddresses = BTreeMap<String, Vec<IpAddr>>;

/// Default cluster domain.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// Returns true if a name is in the cluster domain `domain` or in the default one.
pub(crate) fn is_cluster_name(name: &str, domain: &str) -> bool {
    let is_of = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_of(domain) || is_of(CLUSTER_DOMAIN)
}
