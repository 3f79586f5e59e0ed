//! Error of a file that cannot be read.

use core::error::Error;
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use config::setup::Files;

/// File that cannot be read, and the reason. The operator must create the file or change its permissions.
#[derive(Debug)]
pub(crate) struct OpenError {
    path: PathBuf,
    error: io::Error,
}

impl OpenError {
    pub(crate) fn new(path: impl Into<PathBuf>, error: io::Error) -> OpenError {
        OpenError { path: path.into(), error }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&host::errors::cannot_open(&self.path, &self.error))
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Reads a file.
pub(crate) fn read(files: &dyn Files, path: &Path) -> Result<Vec<u8>, OpenError> {
    files.read(path).map_err(|error| OpenError::new(path, error))
}
