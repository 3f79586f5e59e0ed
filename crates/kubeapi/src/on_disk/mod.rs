//! Manifests on disk as a replacement for an API server: the cluster consists of the objects in them.
//!
//! The files are checked once per second. Polling works on network and overlay file systems, which do not deliver
//! inotify events, and needs no new setup when the kubelet swaps the symlinks of a mounted ConfigMap.
//!
//! A change of one file applies all manifests again as one list, so its cost grows with their number. The feature is
//! meant for a laptop, a test, or a small fixed installation.

mod allocate;
mod cluster_of;
mod endpoints;
mod folder;
mod mesh;
mod reporter;

use cluster::Request;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use cluster_of::ManifestPod;
use cluster_of::{Cluster, Key, Selection};
pub(crate) use reporter::{ReportLog, Reporter};
use tracing::error;

use crate::watch::Sink;
use crate::{LOG, SetupError};

/// Files and folders to read, and a filter for their objects.
pub(crate) struct Manifests {
    folder: folder::Folder,
    selection: Selection,
}

impl Manifests {
    /// # Errors
    /// A path that does not exist, or an invalid label selector.
    pub(crate) fn new(paths: &[PathBuf], request: &Request) -> Result<Manifests, SetupError> {
        Ok(Manifests { folder: folder::Folder::new(paths)?, selection: Selection::new(request)? })
    }

    /// Reads all files and returns what is known of a Pod.
    ///
    /// # Errors
    /// A path that does not exist.
    pub(crate) fn pod(paths: &[PathBuf], namespace: &str, pod: &str) -> Result<ManifestPod, SetupError> {
        Ok(cluster_in(paths)?.pod(namespace, pod))
    }

    /// Reads all files and returns the Pods with an address, by namespace and name.
    ///
    /// # Errors
    /// A path that does not exist.
    pub(crate) fn pods_at(paths: &[PathBuf], address: IpAddr) -> Result<Vec<(Key, ManifestPod)>, SetupError> {
        Ok(cluster_in(paths)?.pods_at(address))
    }

    /// Reads all files and returns the errors and likely mistakes in them.
    pub(crate) fn mistakes(mut self) -> Vec<String> {
        let (_, reports) = self.folder.check();
        reports.into_iter().map(|report| report.text).collect()
    }
}

/// Reads the cluster from files, without reports.
fn cluster_in(paths: &[PathBuf]) -> Result<Cluster, SetupError> {
    let mut folder = folder::Folder::new(paths)?;
    folder.check();
    Ok(Cluster::new(folder.manifests()))
}

/// Polls the files and applies changes to the sinks until dropped.
pub(crate) async fn run(manifests: Manifests, sinks: Vec<Sink>, mut reporter: Reporter, poll: Duration) {
    let Manifests { mut folder, selection } = manifests;
    let mut is_first = true;
    loop {
        // Read on a blocking thread: a slow disk must not delay the watches.
        let looked = tokio::task::spawn_blocking(move || {
            let (changed, reports) = folder.check();
            let cluster = (changed || is_first).then(|| Cluster::new(folder.manifests()));
            (folder, cluster, reports)
        });
        let Ok((looked_at, cluster, reports)) = looked.await else {
            return error!(target: LOG, "Manifests are not looked at any more: reading them failed");
        };
        folder = looked_at;
        reports.iter().for_each(|report| reporter.report(report));
        if let Some(cluster) = cluster {
            cluster.apply_to(&sinks, &selection);
        }
        is_first = false;
        tokio::time::sleep(poll).await;
    }
}
