//! Sources of the ConfigMap: a mounted directory, which is polled, or the API server, which is watched.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use compat::kube_dns::ConfigMapSource;
use host::boxed;
use kubeapi::{ConfigMap, Data};
use metrics::Registry;
use tokio::sync::mpsc::Sender;

use super::{CorefileGenerator, InputChange, LOG};

/// Maximum size of a value, in bytes: Kubernetes limits a whole ConfigMap to this.
const VALUE_MAX: u64 = 1 << 20;
/// Maximum number of directory entries that are read.
const FILES_MAX: usize = 100;

/// Reason why the ConfigMap cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigMapReadError {
    /// The mounted directory cannot be read.
    #[error("{}", host::errors::cannot_open(.0, .1))]
    Directory(PathBuf, #[source] io::Error),
    /// The configuration of the API client is wrong. No retry can fix it.
    #[error("{0}")]
    Setup(#[source] kubeapi::SetupError),
    /// A request to the API server failed. A retry may succeed.
    #[error("{0}")]
    Api(#[source] Box<dyn Error + Send + Sync>),
}

/// Returns the current content of the ConfigMap; empty if it does not exist.
///
/// # Errors
/// Fails if the ConfigMap could not be read.
pub(crate) async fn read_once(
    generator: &dyn CorefileGenerator,
    registry: &Arc<Registry>,
) -> Result<Data, ConfigMapReadError> {
    match generator.source() {
        ConfigMapSource::None => Ok(Data::new()),
        ConfigMapSource::Directory { path, .. } => {
            read_directory(Path::new(path)).map_err(|error| ConfigMapReadError::Directory(path.into(), error))
        }
        ConfigMapSource::ConfigMap { namespace, name } => {
            let read = config_map(generator, namespace, name, registry)?.read().await;
            let read = read.map_err(|error| ConfigMapReadError::Api(error.into()))?;
            Ok(read.unwrap_or_default())
        }
    }
}

/// Sends the content of the ConfigMap at the start and after each change, until the receiver is gone.
///
/// # Errors
/// Fails for a permanent reason, which no retry can fix.
pub(super) fn follow(
    generator: &dyn CorefileGenerator,
    registry: &Arc<Registry>,
    changes: Sender<InputChange>,
) -> Result<(), ConfigMapReadError> {
    match generator.source() {
        ConfigMapSource::None => {}
        ConfigMapSource::Directory { path, every } => {
            tokio::task::spawn_local(boxed(follow_directory(path.into(), *every, changes)));
        }
        ConfigMapSource::ConfigMap { namespace, name } => {
            let config_map = config_map(generator, namespace, name, registry)?;
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            tokio::task::spawn_local(boxed(async move {
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
            }));
        }
    }
    Ok(())
}

fn config_map(
    generator: &dyn CorefileGenerator,
    namespace: &str,
    name: &str,
    registry: &Arc<Registry>,
) -> Result<ConfigMap, ConfigMapReadError> {
    ConfigMap::new(&generator.cluster(), namespace, name, registry).map_err(ConfigMapReadError::Setup)
}

async fn follow_directory(path: PathBuf, every: Duration, changes: Sender<InputChange>) {
    let (mut known, mut last_error) = (None, None);
    loop {
        match read_directory(&path) {
            Ok(data) => {
                last_error = None;
                if known.as_ref() != Some(&data) {
                    known = Some(data.clone());
                    if changes.send(InputChange::ConfigMap(data)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                let text = host::errors::cannot_open(&path, &error);
                if last_error.as_ref() != Some(&text) {
                    tracing::error!(target: LOG, "{text}");
                }
                (known, last_error) = (None, Some(text));
            }
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
        let value = transport::files::read_text(entry.path(), VALUE_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                io::Error::other(format!("{name} is too large; the maximum is {VALUE_MAX} bytes"))
            }
            _ => error,
        })?;
        data.insert(name, value);
    }
    Ok(data)
}
