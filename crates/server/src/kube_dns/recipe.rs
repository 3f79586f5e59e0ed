//! What a Corefile is made of, whoever makes it: a [`Recipe`] says how, [`News`] say when it is to be made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use kubeapi::Data;
use kubedns::{Dynamic, Hosts, Source};

/// Where lines of the log say that they come from.
pub(crate) const LOG: &str = "portolan";

/// The upstreams of the system.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What is made of the ConfigMap, and of what else.
pub(crate) trait Recipe {
    /// What the Corefile is called.
    fn name(&self) -> &'static str;
    /// Where the ConfigMap is.
    fn source(&self) -> &Source;
    /// The cluster that has it, if it is at the API server.
    fn cluster(&self) -> cluster::Source;
    /// The names of name servers that are named.
    fn named_hosts(&self, dynamic: &Dynamic) -> BTreeSet<String>;
    /// Who knows such a name; `None` is the system.
    fn resolver(&self, name: &str) -> Option<SocketAddr>;
    /// The file with the upstreams of the system, if they may be asked.
    fn resolv_conf(&self) -> Option<PathBuf> {
        Some(RESOLV_CONF.into())
    }
    /// Writes the Corefile.
    fn corefile(&self, dynamic: &Dynamic, hosts: Hosts<'_>) -> String;
    /// The ConfigMap could not be used.
    fn count_refused(&self) {}
}

/// Something that may change what is served.
pub(crate) enum News {
    /// The ConfigMap holds this.
    Config(Data),
    /// Name servers that are named have these addresses.
    Hosts(Known),
    /// The system has other name servers.
    ResolvConf,
    /// What else the Corefile is made of has changed.
    Recipe,
}

/// Names with their addresses.
pub(crate) type Known = BTreeMap<String, Vec<IpAddr>>;
