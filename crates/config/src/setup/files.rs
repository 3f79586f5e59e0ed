//! File system, as directives and file watches use it.

use std::io;
use std::path::{Path, PathBuf};

/// File system, with blocking calls. Errors display as text for users, without the number of the system.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    /// The error of the system call.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns true if the path is a file.
    fn is_file(&self, path: &Path) -> bool;

    /// Returns metadata that changes when the contents of the file change.
    ///
    /// # Errors
    /// The error of the system call.
    fn stamp(&self, path: &Path) -> io::Result<FileStamp>;

    /// Lists the files below a directory recursively, sorted, and at most [`LISTED_MAX`].
    ///
    /// # Errors
    /// The error of the system call, if the directory itself cannot be read.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Replaces a file atomically: a reader sees either the old contents or the new ones.
    ///
    /// # Errors
    /// The error of a system call or of `write`. The old file is then unchanged.
    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()>;

    /// Appends to a file, which is created if it does not exist.
    ///
    /// # Errors
    /// The error of the system call. A part of the bytes may be written then.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
}

/// Maximum number of files in a directory listing: the maximum number of zones of a server.
pub const LISTED_MAX: usize = 100_000;

/// File metadata that changes when the contents of the file change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Modification time, in nanoseconds since an arbitrary start.
    pub modified: u128,
    /// Length in bytes.
    pub len: u64,
}
