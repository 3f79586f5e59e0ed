//! Protection against a snapshot that ends each process that loads it.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::LOG;
use crate::snapshot::file::with_ending;

/// Number of unfinished loads in a row after which the snapshot is no longer used.
const ATTEMPTS_MAX: u32 = 2;

/// Load of a snapshot that is in progress. A file with the number of unfinished loads exists until it ends, so a crash
/// leaves it behind.
pub(super) struct Attempt(PathBuf);

impl Attempt {
    /// Begins to load a snapshot. If too many loads have ended the process, renames the snapshot and returns `None`.
    pub(super) fn begin(file: &Path) -> Option<Attempt> {
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
    pub(super) fn end(self) {
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
