//! Manifests on disk in the place of an API server: what they say is what exists. A change is seen within a second, since
//! the files are looked at that often: notifications of the system would not come from network and overlay file systems,
//! and would have to be set up anew whenever a ConfigMap swaps its links.
//!
//! A change of any file applies all of them again as one list, so its cost grows with the manifests; they are meant for a
//! laptop, a test, a small fixed installation.

mod allocate;
mod cluster_of;
mod endpoints;
mod folder;
mod mesh;
mod model;
mod parse;

use cluster::Request;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use cluster_of::{Cluster, Selection};
use tracing::{error, warn};

use crate::meter::Meter;
use crate::watch::Sink;
use crate::{LOG, SetupProblem};

/// Files and folders, and which of their objects are asked for.
pub(crate) struct Manifests {
    folder: folder::Folder,
    selection: Selection,
}

impl Manifests {
    /// # Errors
    /// A path where nothing is, or a selector that cannot be read.
    pub(crate) fn new(paths: &[PathBuf], request: &Request) -> Result<Manifests, SetupProblem> {
        Ok(Manifests { folder: folder::Folder::new(paths)?, selection: Selection::new(request)? })
    }
}

/// Keeps the sinks up to what the files say, until it is dropped.
pub(crate) async fn run(manifests: Manifests, sinks: Vec<Sink>, meter: Rc<Meter>, poll: Duration) {
    let Manifests { mut folder, selection } = manifests;
    let mut is_first = true;
    loop {
        // A slow disk must not keep the thread of everything else.
        let looked = tokio::task::spawn_blocking(move || {
            let (changed, reports) = folder.look();
            let cluster = (changed || is_first).then(|| Cluster::new(folder.manifests()));
            (folder, cluster, reports)
        });
        let Ok((looked_at, cluster, reports)) = looked.await else {
            return error!(target: LOG, "Manifests are not looked at any more: reading them failed");
        };
        folder = looked_at;
        for report in reports {
            meter.manifest_error(report.reason);
            warn!(target: LOG, "{}; what was known from there stays", report.text);
        }
        if let Some(cluster) = cluster {
            cluster.tell(&sinks, &selection);
        }
        is_first = false;
        tokio::time::sleep(poll).await;
    }
}
