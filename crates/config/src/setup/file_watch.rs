//! Periodic checks of files for changes.

use core::error::Error;
use core::time::Duration;
use std::hash::{BuildHasher, Hash};
use std::io;
use std::path::PathBuf;

use super::Files;
use engine::log::{Level, Notice};

/// Periodic check of files for changes.
pub struct FileWatch {
    /// Interval; 0 disables the check.
    pub every: Duration,
    /// True to run the first check as soon as the generation serves, instead of one interval later.
    pub at_once: bool,
    /// Check. It may block, because it does not run on a worker thread.
    pub check: CheckFiles,
}

impl FileWatch {
    /// Returns a check that first runs after one interval.
    pub fn new(every: Duration, check: impl FnMut(FileCheck<'_>) + Send + 'static) -> FileWatch {
        FileWatch { every, at_once: false, check: Box::new(check) }
    }

    /// Returns a check of one file, whose contents at build time are in `read`.
    ///
    /// `changed` runs if the contents differ from the last ones. It gets the new contents, or an error if the file
    /// cannot be read. Its error is logged as a warning of `directive`, so its text has to name the position:
    /// `FILE:LINE: PROBLEM`.
    pub fn of_file(
        (directive, path): (&'static str, PathBuf),
        every: Duration,
        read: &io::Result<Vec<u8>>,
        changed: impl FnMut(&dyn Files, io::Result<Vec<u8>>) -> Result<(), Box<dyn Error>> + Send + 'static,
    ) -> FileWatch {
        FileWatch::of_content((directive, move |files: &dyn Files| files.read(&path)), every, read, changed)
    }

    /// Returns a check like [`FileWatch::of_file`] of the contents that a function reads, such as several files.
    pub fn of_content<C: Hash + 'static>(
        (directive, source): (&'static str, impl Fn(&dyn Files) -> io::Result<C> + Send + 'static),
        every: Duration,
        read: &io::Result<C>,
        mut changed: impl FnMut(&dyn Files, io::Result<C>) -> Result<(), Box<dyn Error>> + Send + 'static,
    ) -> FileWatch {
        let seed = foldhash::quality::RandomState::default();
        // A hash identifies the contents, which may be large.
        let sign =
            move |read: &io::Result<C>| read.as_ref().map(|contents| seed.hash_one(contents)).map_err(io::Error::kind);
        let mut seen = sign(read);
        let check = move |context: FileCheck<'_>| {
            let read = source(context.files);
            let now = sign(&read);
            if now == seen {
                return;
            }
            seen = now;
            if let Err(error) = changed(context.files, read) {
                context.notices.push(Notice::new(Level::Warning, directive, error.to_string()));
            }
        };
        FileWatch::new(every, check)
    }
}

/// Function that checks files.
pub type CheckFiles = Box<dyn FnMut(FileCheck<'_>) + Send>;

/// Context of a file check.
pub struct FileCheck<'a> {
    /// File system.
    pub files: &'a dyn Files,
    /// Wall-clock time since the Unix epoch.
    pub since_1970: Duration,
    /// Collects log events.
    pub notices: &'a mut Vec<Notice>,
}
