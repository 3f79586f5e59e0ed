//! Snapshots of the known cluster state on disk, so that a process can serve while the API server is unreachable at its
//! start.
//!
//! A file consists of a title line, the SHA-256 checksum of the rest, the SHA-256 fingerprint of the request, and the
//! data of [`cluster::snapshot`]. It is written to a temporary file in the same folder and renamed, so that the file is
//! always complete. A file that is damaged or belongs to another request is rejected with a warning.
//!
//! A snapshot can also crash the process that loads it, for example by using up its memory, and again at each restart.
//! So a file beside it counts the loads that did not finish (`Attempt`). After [`ATTEMPTS_MAX`] of them, the snapshot
//! is renamed, and the process starts without it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use cluster::{Index, RateLimit, Reducer, Request, snapshot};
use tracing::{info, warn};

use crate::LOG;
use crate::health::ViewHealth;
use crate::meter::Meter;
use crate::timing::now_seconds;

/// First bytes of the file, with the version of the format.
const TITLE: &[u8] = b"portolan snapshot 1\n";
/// Maximum size of a snapshot in bytes, ten times what the largest known clusters need.
const FILE_MAX: u64 = 1 << 30;

/// Number of unfinished loads in a row after which the snapshot is no longer used.
const ATTEMPTS_MAX: u32 = 2;
/// Interval between checks until the index is complete for the first time.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason for not using a snapshot.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    /// No file at this path.
    #[error("it does not exist")]
    Missing,
    #[error("{}", host::errors::describe(.0))]
    Unreadable(#[source] io::Error),
    #[error("it is longer than {} bytes", FILE_MAX)]
    TooLong,
    /// Not a snapshot, or one in an unsupported version of the format.
    #[error("it is no snapshot of this version")]
    Foreign,
    /// The snapshot is of another request, so its objects are others.
    #[error("the stanza that it was written for asked for other objects")]
    OfAnotherRequest,
    #[error("it is damaged: its checksum is wrong")]
    Damaged,
}

/// Restores the reducer from the file if it exists and is usable. Returns true if it did.
pub(crate) fn restore(file: &Path, request: &Request, reducer: &mut Reducer) -> bool {
    let Some(attempt) = Attempt::begin(file) else { return false };
    let is_restored = load(file, request, reducer);
    attempt.end();
    is_restored
}

fn load(file: &Path, request: &Request, reducer: &mut Reducer) -> bool {
    let error = match read(file, request) {
        Ok(bytes) => match reducer.restore(&bytes, now_seconds()) {
            Ok(()) => {
                let path = file.display();
                info!(target: LOG, "Serving what snapshot {path} remembers until the API server has been asked");
                return true;
            }
            Err(_) => LoadError::Damaged,
        },
        Err(error) => error,
    };
    if !matches!(error, LoadError::Missing) {
        warn!(target: LOG, "Snapshot {} is not used: {error}", file.display());
    }
    false
}

fn read(file: &Path, request: &Request) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing,
        io::ErrorKind::FileTooLarge => LoadError::TooLong,
        _ => LoadError::Unreadable(error),
    };
    let mut bytes = transport::files::read_file(file, FILE_MAX).map_err(unreadable)?;
    let rest = bytes.strip_prefix(TITLE).ok_or(LoadError::Foreign)?;
    let (sum, rest) = rest.split_at_checked(SHA256_OUTPUT_LEN).ok_or(LoadError::Damaged)?;
    if digest(&SHA256, rest).as_ref() != sum {
        return Err(LoadError::Damaged);
    }
    if !rest.starts_with(&fingerprint(request)) {
        return Err(LoadError::OfAnotherRequest);
    }
    bytes.drain(..TITLE.len() + 2 * SHA256_OUTPUT_LEN);
    Ok(bytes)
}

/// Returns the hash of a request without the fields that do not select objects.
fn fingerprint(request: &Request) -> Vec<u8> {
    let request = Request { snapshot: None, stale_after: None, rate_limit: RateLimit::default(), ..request.clone() };
    digest(&SHA256, format!("{request:?}").as_bytes()).as_ref().to_vec()
}

/// Writes snapshots of an index.
pub(crate) struct Keeper {
    pub(crate) file: PathBuf,
    pub(crate) request: Request,
    pub(crate) index: Arc<Index>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) health: Arc<ViewHealth>,
}

impl Keeper {
    /// Writes snapshots until dropped: the first one as soon as the index is complete, further ones after changes, with
    /// at least `every` between them.
    pub(crate) async fn run(self, every: Duration) {
        let (mut written, mut reported) = (None, false);
        loop {
            tokio::time::sleep(if written.is_some() { every } else { every.min(CHECK_INTERVAL) }).await;
            let changes = self.index.changes();
            // A restored index that has not been refreshed yet is not written: its old state would look current.
            if !self.index.is_synced() || written == Some(changes) {
                continue;
            }
            let (path, request, index) = (self.file.clone(), self.request.clone(), Arc::clone(&self.index));
            // Write on a blocking thread: a slow disk must not delay the watches.
            let outcome = tokio::task::spawn_blocking(move || write(&path, &request, &index)).await;
            match outcome {
                Ok(Ok(())) => {
                    self.health.has_snapshot();
                    (written, reported) = (Some(changes), false);
                }
                Ok(Err(error)) => {
                    self.meter.snapshot_error();
                    if !reported {
                        let (file, reason) = (self.file.display(), host::errors::describe(&error));
                        warn!(target: LOG, "Snapshot {file} cannot be written: {reason}");
                    }
                    reported = true;
                }
                Err(_) => return,
            }
        }
    }
}

fn write(file: &Path, request: &Request, index: &Index) -> io::Result<()> {
    // The rename would replace a device such as `/dev/null`, or a FIFO that somebody else uses.
    if fs::metadata(file).is_ok_and(|known| !known.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut body = fingerprint(request);
    snapshot::write(index, &mut body);
    let beside = beside(file);
    // What is in a cluster is for nobody else; a file that is left over keeps the mode that it has.
    let _ = fs::remove_file(&beside);
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let written = created.and_then(|mut fresh| {
        fresh.write_all(TITLE)?;
        fresh.write_all(digest(&SHA256, &body).as_ref())?;
        fresh.write_all(&body)?;
        fresh.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Returns the path of the temporary file, in the same folder so that a rename is possible.
fn beside(file: &Path) -> PathBuf {
    with_ending(file, ".new")
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}

/// Load of a snapshot that is in progress. A file with the number of unfinished loads exists until it ends, so a crash
/// leaves it behind.
struct Attempt(PathBuf);

impl Attempt {
    /// Begins to load a snapshot. If too many loads have ended the process, renames the snapshot and returns `None`.
    fn begin(file: &Path) -> Option<Attempt> {
        let (marker, bad) = (with_ending(file, ".loading"), with_ending(file, ".bad"));
        let attempt = Attempt(marker.clone());
        if !fs::metadata(file).is_ok_and(|known| known.is_file()) {
            return Some(attempt);
        }
        let ended =
            transport::files::read_text(&marker, 16).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if ended >= ATTEMPTS_MAX {
            let renamed = fs::rename(file, &bad);
            let (file, shown) = (file.display(), bad.display());
            match renamed {
                Ok(()) => warn!(
                    target: LOG,
                    "Snapshot {file} has ended {ended} processes that loaded it; it is now {shown}. Starting without it"
                ),
                Err(error) => warn!(
                    target: LOG,
                    "Snapshot {file} has ended {ended} processes that loaded it. Starting without it, but it cannot be \
                     renamed to {shown}: {}",
                    host::errors::describe(&error)
                ),
            }
            attempt.end();
            return None;
        }
        // On a file system that is full or read-only, the snapshot is loaded anyway.
        let _ = fs::write(&marker, format!("{}\n", ended + 1));
        Some(attempt)
    }

    /// Ends a load that has not ended the process.
    fn end(self) {
        let _ = fs::remove_file(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_ends_two_processes_is_moved_aside() {
        let folder = std::env::temp_dir().join(format!("portolan-attempts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, marker) = (folder.join("snapshot"), folder.join("snapshot.loading"));
        Attempt::begin(&file).unwrap().end();
        assert!(!marker.exists(), "no snapshot, no attempt");
        fs::write(&file, "poison").unwrap();
        // A crash leaves the marker, and a load that comes to its end removes it.
        drop(Attempt::begin(&file).unwrap());
        Attempt::begin(&file).unwrap().end();
        assert!(!marker.exists());
        drop(Attempt::begin(&file).unwrap());
        drop(Attempt::begin(&file).unwrap());
        assert!(Attempt::begin(&file).is_none());
        assert_eq!(fs::read_to_string(folder.join("snapshot.bad")).unwrap(), "poison");
        assert!(!file.exists() && !marker.exists());
        // The next snapshot has two attempts again.
        fs::write(&file, "good").unwrap();
        assert!(Attempt::begin(&file).is_some());
        fs::remove_dir_all(&folder).unwrap();
    }
}
