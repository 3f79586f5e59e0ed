//! What the plugin asks of the edge: a cluster to follow.

use std::path::PathBuf;
use std::sync::Arc;

use cluster::Index;

/// Where the objects of a cluster come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterSource {
    /// The API server of the cluster that this runs in.
    InCluster,
    /// The API server that a kubeconfig file names.
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// The context in it, if not the current one.
        context: Option<String>,
    },
    /// The API server at this URL.
    Endpoint {
        /// The URL.
        url: String,
        /// How to prove who we are.
        tls: Option<ServerTls>,
    },
    /// Manifests: files or directories.
    Manifests(Vec<PathBuf>),
}

/// Files for TLS with an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The client certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The authority that has signed the server's.
    pub authority: String,
}

/// What to follow of a cluster. Two stanzas that ask for the same share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRequest {
    /// Where the objects come from.
    pub source: ClusterSource,
    /// Only these namespaces; all if empty.
    pub namespaces: Vec<String>,
    /// Label selector for services, endpoint slices and pods.
    pub labels: Option<String>,
    /// Label selector for namespaces.
    pub namespace_labels: Option<String>,
    /// Whether endpoint slices are needed.
    pub endpoint_slices: bool,
    /// Whether pods are needed.
    pub pods: bool,
    /// Whether endpoints are called by their pods' names.
    pub endpoint_pod_names: bool,
}

/// A cluster that is being followed; when the last holder lets go, that ends.
pub trait Following: Send + Sync {
    /// The cluster as answers see it.
    fn index(&self) -> &Arc<Index>;
}

/// Follows clusters: what the process offers to this plugin.
pub trait Clusters: Send + Sync {
    /// Begins to follow a cluster; comes back at once.
    ///
    /// # Errors
    /// In words, if it cannot even begin: a kubeconfig file that cannot be read, no cluster around.
    fn follow(&self, request: &ClusterRequest) -> Result<Box<dyn Following>, String>;
}

/// The addresses of this machine, without loopback: what the process offers to find out which services it serves.
#[derive(Clone)]
pub struct LocalAddresses(pub Arc<[std::net::IpAddr]>);
