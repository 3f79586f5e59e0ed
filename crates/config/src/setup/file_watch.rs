//! Periodic checks of files for changes.

use core::time::Duration;
use std::hash::BuildHasher;
use std::io;
use std::path::PathBuf;

use super::Files;
use engine::log::{Level, Notice};

/// Periodic check of files for changes.
pub struct Inspection {
    /// Interval; 0 disables the check.
    pub every: Duration,
    /// True to run the first check as soon as the generation serves, instead of one interval later.
    pub at_once: bool,
    /// Check. It may block, because it does not run on a worker thread.
    pub look: Look,
}

impl Inspection {
    /// Returns a check that first runs after one interval.
    pub fn new(every: Duration, look: impl FnMut(Looking<'_>) + Send + 'static) -> Inspection {
        Inspection { every, at_once: false, look: Box::new(look) }
    }

    /// Returns a check of one file, whose contents at build time are in `read`.
    ///
    /// `changed` runs if the contents differ from the last ones. It gets the new contents, or an error if the file
    /// cannot be read. Its error is logged as a warning of `directive`, so it has to name the position: `FILE:LINE:
    /// PROBLEM`.
    pub fn of_file(
        (directive, path): (&'static str, PathBuf),
        every: Duration,
        read: &io::Result<Vec<u8>>,
        mut changed: impl FnMut(&dyn Files, io::Result<Vec<u8>>) -> Result<(), String> + Send + 'static,
    ) -> Inspection {
        let seed = foldhash::quality::RandomState::default();
        // A hash identifies the contents, which may be large.
        let sign = move |read: &io::Result<Vec<u8>>| {
            read.as_ref().map(|octets| (octets.len(), seed.hash_one(octets))).map_err(io::Error::kind)
        };
        let mut seen = sign(read);
        let look = move |looking: Looking<'_>| {
            let read = looking.files.read(&path);
            let now = sign(&read);
            if now == seen {
                return;
            }
            seen = now;
            if let Err(what) = changed(looking.files, read) {
                looking.notices.push(Notice::new(Level::Warning, directive, what));
            }
        };
        Inspection::new(every, look)
    }
}

/// Function that checks files.
pub type Look = Box<dyn FnMut(Looking<'_>) + Send>;

/// Context of a file check.
pub struct Looking<'a> {
    /// File system.
    pub files: &'a dyn Files,
    /// Wall-clock time since the Unix epoch.
    pub since_1970: Duration,
    /// Collects log events.
    pub notices: &'a mut Vec<Notice>,
}
