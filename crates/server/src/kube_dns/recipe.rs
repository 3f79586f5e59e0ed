//! Generated Corefiles: a [`Recipe`] generates the text from its inputs, and [`News`] are changes of these inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use kubeapi::Data;
use compat::kube_dns::{Dynamic, Hosts, Source};

/// Log target.
pub(crate) const LOG: &str = "portolan";

/// File with the upstreams of the system.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";

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
