//! Error of a file that cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use config::setup::Files;

/// File that cannot be read, and the reason. The operator must create the file or change its permissions.
#[derive(Debug, thiserror::Error)]
#[error("{}", host::errors::cannot_open(.path, .error))]
pub struct OpenError {
    path: PathBuf,
    #[source]
    error: io::Error,
}

impl OpenError {
    /// Creates the error of a path.
    pub fn new(path: impl Into<PathBuf>, error: io::Error) -> OpenError {
        OpenError { path: path.into(), error }
    }
}

/// Reads a file.
pub fn read(files: &dyn Files, path: &Path) -> Result<Vec<u8>, OpenError> {
    files.read(path).map_err(|error| OpenError::new(path, error))
}
