//! Access to files and environment variables. The caller of the parser implements it.

use std::io;
use std::path::{Path, PathBuf};

/// Source of files and variables. Paths are absolute, or relative to the working directory.
pub trait Loader {
    /// Returns the text of a file. The loader may replace invalid UTF-8.
    ///
    /// # Errors
    /// The file cannot be read. [`io::ErrorKind::NotFound`] and [`io::ErrorKind::IsADirectory`] have special messages.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Returns the paths that match a pattern. `*` and `?` match any characters except `/`, including a leading dot.
    /// The result includes directories. No match is not an error, nor is a missing directory.
    ///
    /// # Errors
    /// A directory cannot be listed.
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns the value of an environment variable, or `None` if it is not set. The name may contain any character
    /// except those that end it.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Loader without files and variables, for self-contained text.
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
