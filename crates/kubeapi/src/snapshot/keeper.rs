//! Task that publishes, compacts and replaces the file of a journal. All of that happens on blocking threads.

use std::fs::File;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::compaction::Replacement;
use super::file;
use super::journal::{Journal, Task};

/// Longest pause before a new file is begun after a failure. It costs a list of everything.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Serves a journal until dropped. `pause_min` is the pause after the first failure; each further one doubles it.
/// `list_all` makes all watches list again.
pub(crate) async fn keep(journal: Rc<Journal>, pause_min: Duration, list_all: impl Fn()) {
    let mut pause = pause_min;
    loop {
        match journal.task() {
            None => journal.tasks.notified().await,
            Some(Task::Publish(file)) => match blocking(publish(&journal, &file)).await {
                Ok(()) => {
                    journal.published(&file);
                    pause = pause_min;
                }
                Err(error) => journal.fail(&error),
            },
            Some(Task::Compact(old)) => match blocking(compact(&journal, &old)).await {
                Ok(replacement) => journal.replace(&old, replacement),
                Err(error) => journal.cannot_compact(&error),
            },
            Some(Task::Open) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                match blocking(create(&journal)).await.and_then(|file| journal.restart(file)) {
                    Ok(()) => list_all(),
                    Err(error) => journal.fail(&error),
                }
            }
        }
    }
}

fn publish(journal: &Journal, file: &Arc<File>) -> impl FnOnce() -> io::Result<()> + Send + 'static {
    let (path, file) = (journal.path.clone(), Arc::clone(file));
    move || {
        file.sync_all()?;
        file::publish(&path, &file)
    }
}

fn compact(journal: &Journal, old: &Arc<File>) -> impl FnOnce() -> io::Result<Replacement> + Send + 'static {
    let (path, header, old) = (journal.path.clone(), Arc::clone(&journal.header), Arc::clone(old));
    move || Replacement::write(&path, &header, &old)
}

fn create(journal: &Journal) -> impl FnOnce() -> io::Result<File> + Send + 'static {
    let (path, header) = (journal.path.clone(), Arc::clone(&journal.header));
    move || file::create(&path, &header)
}

/// Does something on a blocking thread: a slow disk must not delay the watches.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
