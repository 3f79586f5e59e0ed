//! Where the ConfigMap comes from: a directory that is looked at four times a second, or the API server, which says at once
//! what has changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::metrics::Registry;
use kubeapi::{ConfigMap, Data};
use kubedns::Source;
use tokio::sync::mpsc::Sender;

use super::recipe::{LOG, News, Recipe};

/// Octets of the longest value: what a ConfigMap may have in all.
const VALUE_MAX: u64 = 1 << 20;
/// Files of a directory that are read.
const FILES_MAX: usize = 100;

/// What the ConfigMap holds at this moment; nothing if there is none.
///
/// # Errors
/// In words, if that cannot be known.
pub(crate) async fn read_once(recipe: &dyn Recipe, registry: &Arc<Registry>) -> Result<Data, String> {
    match recipe.source() {
        Source::None => Ok(Data::new()),
        Source::Directory { path, .. } => {
            read_directory(Path::new(path)).map_err(|error| format!("the directory {path}: {error}"))
        }
        Source::ConfigMap { namespace, name } => {
            let read = config_map(recipe, namespace, name, registry)?.read().await?;
            Ok(read.unwrap_or_default())
        }
    }
}

/// Tells what the ConfigMap holds, at the beginning and after each change, for as long as somebody listens.
///
/// # Errors
/// In words, what can never become right by itself.
pub(super) fn follow(recipe: &dyn Recipe, registry: &Arc<Registry>, news: Sender<News>) -> Result<(), String> {
    match recipe.source() {
        Source::None => {}
        Source::Directory { path, every } => {
            tokio::task::spawn_local(follow_directory(path.into(), *every, news));
        }
        Source::ConfigMap { namespace, name } => {
            let config_map = config_map(recipe, namespace, name, registry)?;
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            tokio::task::spawn_local(async move {
                let following = config_map.follow(|data| {
                    // What is told while one is taken up waits; a ConfigMap does not change that often.
                    let _ = tell.send(data);
                });
                let telling = async {
                    while let Some(data) = told.recv().await {
                        if news.send(News::Config(data.unwrap_or_default())).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::join!(following, telling);
            });
        }
    }
    Ok(())
}

fn config_map(recipe: &dyn Recipe, namespace: &str, name: &str, registry: &Arc<Registry>) -> Result<ConfigMap, String> {
    ConfigMap::new(&recipe.cluster(), namespace, name, registry).map_err(|problem| problem.to_string())
}

async fn follow_directory(path: PathBuf, every: Duration, news: Sender<News>) {
    let mut known: Option<Result<Data, String>> = None;
    loop {
        let read = read_directory(&path).map_err(|error| error.to_string());
        if known.as_ref() != Some(&read) {
            match &read {
                Ok(data) => {
                    if news.send(News::Config(data.clone())).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::error!(target: LOG, "the directory {}: {error}", path.display()),
            }
            known = Some(read);
        }
        tokio::time::sleep(every).await;
    }
}

/// The files of a directory that are not hidden, by their names. One that does not exist is empty: the volume is optional.
fn read_directory(path: &Path) -> io::Result<Data> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Data::new()),
        entries => entries?,
    };
    let mut data = Data::new();
    for entry in entries.take(FILES_MAX) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Kubernetes puts links into such directories, to files in hidden ones.
        if name.starts_with('.') || !entry.path().is_file() {
            continue;
        }
        if fs::metadata(entry.path())?.len() > VALUE_MAX {
            return Err(io::Error::other(format!("{name} is longer than {VALUE_MAX} octets")));
        }
        data.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(data)
}
