//! What the plugin asks of the process: a cluster to follow, and where this machine is.

use std::sync::Arc;

use cluster::{Index, Request};

/// A cluster that is being followed; when the last holder lets go, that ends.
pub trait Following: Send + Sync {
    /// The cluster as answers see it.
    fn index(&self) -> &Arc<Index>;
}

/// Follows clusters: what the process offers to this plugin.
pub trait Clusters {
    /// Begins to follow a cluster; comes back at once.
    ///
    /// Equal requests share what is followed for as long as anybody holds it: two stanzas that ask for the same, and a
    /// reload that asks for it again.
    ///
    /// # Errors
    /// In words, if it cannot even begin: a kubeconfig file that cannot be read, no cluster around.
    fn follow(&self, request: &Request) -> Result<Arc<dyn Following>, String>;
}

/// The addresses of this machine, without loopback: what the process offers to find out which services it serves.
#[derive(Clone)]
pub struct LocalAddresses(pub Arc<[std::net::IpAddr]>);
