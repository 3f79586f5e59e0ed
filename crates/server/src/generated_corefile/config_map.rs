//! Sources of the ConfigMap: a mounted directory, which is polled, or the API server, which is watched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use compat::kube_dns::ConfigMapSource;
use kubeapi::{ConfigMap, Data};
use metrics::Registry;
use tokio::sync::mpsc::Sender;

use super::{CorefileGenerator, InputChange, LOG};

/// Maximum size of a value, in bytes: Kubernetes limits a whole ConfigMap to this.
const VALUE_MAX: u64 = 1 << 20;
/// Maximum number of directory entries that are read.
const FILES_MAX: usize = 100;

/// Returns the current content of the ConfigMap; empty if it does not exist.
///
/// # Errors
/// Returns a message if the ConfigMap could not be read.
pub(crate) async fn read_once(generator: &dyn CorefileGenerator, registry: &Arc<Registry>) -> Result<Data, String> {
    match generator.source() {
        ConfigMapSource::None => Ok(Data::new()),
        ConfigMapSource::Directory { path, .. } => {
            read_directory(Path::new(path)).map_err(|error| io_text::cannot_open(path, &error))
        }
        ConfigMapSource::ConfigMap { namespace, name } => {
            let read = config_map(generator, namespace, name, registry)?.read().await?;
            Ok(read.unwrap_or_default())
        }
    }
}

/// Sends the content of the ConfigMap at the start and after each change, until the receiver is gone.
///
/// # Errors
/// Returns a message for a permanent error, which no retry can fix.
pub(super) fn follow(
    generator: &dyn CorefileGenerator,
    registry: &Arc<Registry>,
    changes: Sender<InputChange>,
) -> Result<(), String> {
    match generator.source() {
        ConfigMapSource::None => {}
        ConfigMapSource::Directory { path, every } => {
            tokio::task::spawn_local(follow_directory(path.into(), *every, changes));
        }
        ConfigMapSource::ConfigMap { namespace, name } => {
            let config_map = config_map(generator, namespace, name, registry)?;
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            tokio::task::spawn_local(async move {
                let following = config_map.follow(|data| {
                    // Unbounded, because a ConfigMap changes rarely and the receiver is fast.
                    let _ = sender.send(data);
                });
                let forwarding = async {
                    while let Some(data) = receiver.recv().await {
                        if changes.send(InputChange::ConfigMap(data.unwrap_or_default())).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::join!(following, forwarding);
            });
        }
    }
    Ok(())
}

fn config_map(
    generator: &dyn CorefileGenerator,
    namespace: &str,
    name: &str,
    registry: &Arc<Registry>,
) -> Result<ConfigMap, String> {
    ConfigMap::new(&generator.cluster(), namespace, name, registry).map_err(|problem| problem.to_string())
}

async fn follow_directory(path: PathBuf, every: Duration, changes: Sender<InputChange>) {
    let mut known: Option<Result<Data, String>> = None;
    loop {
        let read = read_directory(&path).map_err(|error| io_text::cannot_open(&path, &error));
        if known.as_ref() != Some(&read) {
            match &read {
                Ok(data) => {
                    if changes.send(InputChange::ConfigMap(data.clone())).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::error!(target: LOG, "{error}"),
            }
            known = Some(read);
        }
        tokio::time::sleep(every).await;
    }
}

/// Reads the files of a directory that are not hidden, by name. A missing directory counts as empty, because the volume
/// is optional.
fn read_directory(path: &Path) -> io::Result<Data> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Data::new()),
        entries => entries?,
    };
    let mut data = Data::new();
    for entry in entries.take(FILES_MAX) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // The files of a ConfigMap volume are symbolic links into a hidden directory.
        if name.starts_with('.') || !entry.path().is_file() {
            continue;
        }
        if fs::metadata(entry.path())?.len() > VALUE_MAX {
            return Err(io::Error::other(format!("{name} is too large; the maximum is {VALUE_MAX} bytes")));
        }
        data.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(data)
}
