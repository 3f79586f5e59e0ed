//! Content of files that is kept over a reload of the Corefile in which a file cannot be read or is broken, as it is
//! kept while the server runs. One file must not keep all other changes of the Corefile away.
//!
//! What was never read is an error, as in CoreDNS: the key of the content names the file and how it is read.

use core::any::Any;
use std::path::Path;
use std::sync::Arc;

use config::setup::{Files, Setup, SetupError};

use super::open_error;

/// Loads content from files. If that fails, returns the content that the last generation loaded with the same key, and
/// records a warning.
///
/// # Errors
/// The error of `load`, if nothing was loaded before.
pub(crate) fn load<T: Any + Send + Sync>(
    key: String,
    setup: &mut Setup<'_>,
    load: impl FnOnce(&dyn Files) -> Result<T, SetupError>,
) -> Result<Arc<T>, SetupError> {
    let loaded = match (load(setup.files), setup.reload_state.known(&key)) {
        (Ok(loaded), _) => Arc::new(loaded),
        (Err(error), Some(known)) => {
            setup.warn(format_args!("{error}; its content from before the reload stays in use"));
            known
        }
        (Err(error), None) => return Err(error),
    };
    setup.reload_state.renew(key, &loaded);
    Ok(loaded)
}

/// Reads a small file like [`load`].
///
/// # Errors
/// The file cannot be read, and has not been read before.
pub(crate) fn read(name: &str, setup: &mut Setup<'_>) -> Result<Arc<Vec<u8>>, SetupError> {
    let path = setup.path(name);
    let read = |files: &dyn Files| open_error::read(files, &path).map_err(SetupError::from_error);
    load(content_key(&path), setup, read)
}

/// Returns true if [`read`] has read a file before.
pub(crate) fn is_known(name: &str, setup: &Setup<'_>) -> bool {
    setup.reload_state.known::<Vec<u8>>(&content_key(&setup.path(name))).is_some()
}

fn content_key(path: &Path) -> String {
    format!("file content {}", path.display())
}
