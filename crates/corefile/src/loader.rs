//! How the parser reaches files and variables: through its caller.

use std::io;
use std::path::{Path, PathBuf};

/// The world as a Corefile sees it. Paths are absolute, or relative to the working directory.
pub trait Loader {
    /// The text of a file; octets that are not UTF-8 may be replaced.
    ///
    /// # Errors
    /// Why there is none. [`io::ErrorKind::NotFound`] and [`io::ErrorKind::IsADirectory`] get messages of their own.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The paths that match a pattern whose `*` and `?` stand for characters other than `/`; names that begin with a
    /// dot match too. Directories are matches. None is no error, nor is a directory that does not exist.
    ///
    /// # Errors
    /// Why a directory cannot be listed.
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;

    /// The value of an environment variable, if it is set. The name may hold any character but those that end it.
    fn variable(&self, name: &str) -> Option<String>;
}

/// A loader for text that stands alone: there are no files, and no variable is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn glob(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}
