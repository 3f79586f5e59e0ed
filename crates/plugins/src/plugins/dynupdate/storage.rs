//! What a dynamic zone needs of the process: files that survive a crash, and a thread that may wait for them.

use std::io;
use std::path::Path;

use engine::Instant;
use engine::log::Level;

/// Files of dynamic zones, and threads that may block. The process provides them.
pub trait ZoneStorage: Send + Sync {
    /// Opens a file and locks it against other processes. Returns it with its contents, or `None` if there is no file.
    /// Does not change the file.
    ///
    /// # Errors
    /// The error of the system call; [`io::ErrorKind::WouldBlock`] if the file is locked, and
    /// [`io::ErrorKind::FileTooLarge`] if it has more than `len_max` bytes.
    fn open(&self, path: &Path, len_max: u64) -> io::Result<Option<OpenedZoneFile>>;

    /// Creates and locks a file with these contents, which are on the disk when the call returns.
    ///
    /// # Errors
    /// The error of the system call, also if the file exists.
    fn create(&self, path: &Path, contents: &[u8]) -> io::Result<Box<dyn ZoneFile>>;

    /// Returns true if both paths are the same file.
    fn is_same_file(&self, one: &Path, other: &Path) -> bool;

    /// Runs `work` on a thread that answers no queries. Without such a thread, runs it at once.
    fn run(&self, work: Box<dyn FnOnce() + Send>);

    /// The monotonic time.
    fn now(&self) -> Instant;

    /// Writes an event of the plugin to the log.
    fn log(&self, level: Level, message: &str);
}

/// Open file with its contents.
pub struct OpenedZoneFile {
    /// File.
    pub file: Box<dyn ZoneFile>,
    /// Contents.
    pub contents: Vec<u8>,
}

/// Open file, locked until it is dropped.
pub trait ZoneFile: Send {
    /// Writes bytes at an offset, which becomes the end of what is kept of the file. They are on the disk when the call
    /// returns.
    ///
    /// # Errors
    /// The error of the system call. What is on the disk behind the offset is unknown then; the next write must be
    /// [`ZoneFile::replace`].
    fn append(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns where the file is: what is written to a file that has lost its name is lost.
    ///
    /// # Errors
    /// The error of the system call.
    fn place(&self) -> io::Result<FilePlace>;

    /// Replaces all contents: after a crash, the file has the old or the new ones.
    ///
    /// # Errors
    /// The error of the system call. The file has the old or the new contents.
    fn replace(&mut self, contents: &[u8]) -> io::Result<()>;

    /// Gives the file a second name, under which it stays when it is replaced: its own with this suffix. Does nothing
    /// if a file has that name.
    ///
    /// # Errors
    /// The error of the system call.
    fn keep(&mut self, suffix: &str) -> io::Result<()>;
}

/// Place of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilePlace {
    /// The file has the name under which it was opened.
    #[default]
    Own,
    /// Nothing has its name: somebody has removed or renamed it.
    Removed,
    /// Another file has its name.
    Taken,
}

/// Storage of a host without files, such as a test in virtual time.
pub(super) struct NoStorage;

impl ZoneStorage for NoStorage {
    fn open(&self, _: &Path, _: u64) -> io::Result<Option<OpenedZoneFile>> {
        Ok(None)
    }

    fn create(&self, _: &Path, _: &[u8]) -> io::Result<Box<dyn ZoneFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        one == other
    }

    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn now(&self) -> Instant {
        Instant::default()
    }

    fn log(&self, _: Level, _: &str) {}
}
