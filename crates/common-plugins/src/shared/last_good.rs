//! Content of files that is kept over a reload of the Corefile in which a file cannot be read or is broken, as it is
//! kept while the server runs. One file must not keep all other changes of the Corefile away.
//!
//! A file that was never read is an error, as in CoreDNS: the key of the content names the file and how it is read.

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
pub fn load<T: Any + Send + Sync>(
    key: String,
    setup: &mut Setup<'_>,
    load: impl FnOnce(&dyn Files) -> Result<T, SetupError>,
) -> Result<Arc<T>, SetupError> {
    let (loaded, warning) = load_or_keep(key, setup, load)?;
    warning.iter().for_each(|warning| setup.warn(warning));
    Ok(loaded)
}

/// Loads content like [`load`], and returns the warning instead of recording it.
///
/// # Errors
/// The error of `load`, if nothing was loaded before.
pub fn load_or_keep<T: Any + Send + Sync>(
    key: String,
    setup: &mut Setup<'_>,
    load: impl FnOnce(&dyn Files) -> Result<T, SetupError>,
) -> Result<(Arc<T>, Option<String>), SetupError> {
    let (loaded, warning) = match (load(setup.files), setup.reload_state.known(&key)) {
        (Ok(loaded), _) => (Arc::new(loaded), None),
        (Err(error), Some(known)) => (known, Some(format!("{error}; its content from before the reload stays in use"))),
        (Err(error), None) => return Err(error),
    };
    setup.reload_state.renew(key, &loaded);
    Ok((loaded, warning))
}

/// Required content of a file, and its check.
pub struct Wanted<T> {
    /// Name for messages.
    pub what: &'static str,
    /// Returns true if the content has none of it.
    pub lacks: fn(&T) -> bool,
}

/// Loads content from a file like [`load`]. A file that had what it must contain and has lost it is broken: an empty
/// file is often one that is being written. At a start it is taken as it is, as in CoreDNS.
///
/// # Errors
/// The error of `load`, if nothing was loaded before.
pub fn load_unless_emptied<T: Any + Send + Sync>(
    path: &Path,
    wanted: &Wanted<T>,
    setup: &mut Setup<'_>,
    content: impl FnOnce(&dyn Files) -> Result<T, SetupError>,
) -> Result<Arc<T>, SetupError> {
    let key = content_key(path, wanted.what);
    let had_some = setup.reload_state.known::<T>(&key).is_some_and(|known| !(wanted.lacks)(&known));
    load(key, setup, |files| {
        let content = content(files)?;
        if had_some && (wanted.lacks)(&content) {
            return Err(SetupError::new(format!("{}: expected {}, found none", path.display(), wanted.what)));
        }
        Ok(content)
    })
}

/// Reads a small file like [`load_unless_emptied`].
///
/// # Errors
/// The file cannot be read, and has not been read before.
pub fn read(name: &str, wanted: &Wanted<Vec<u8>>, setup: &mut Setup<'_>) -> Result<Arc<Vec<u8>>, SetupError> {
    let path = setup.path(name);
    let content = |files: &dyn Files| open_error::read(files, &path).map_err(SetupError::from_error);
    load_unless_emptied(&path, wanted, setup, content)
}

/// Returns true if [`read`] has read a file before.
pub fn is_known(name: &str, wanted: &Wanted<Vec<u8>>, setup: &Setup<'_>) -> bool {
    setup.reload_state.known::<Vec<u8>>(&content_key(&setup.path(name), wanted.what)).is_some()
}

/// Returns the key of content. Directives that want different things of one file each know their own content.
fn content_key(path: &Path, what: &str) -> String {
    format!("{what} in {}", path.display())
}

/// Returns the error about a file that was not in use before a reload and cannot replace what is served.
pub fn not_in_use(problem: String) -> SetupError {
    SetupError::new(problem).with_help(
        "the previous configuration stays in use, because this file would replace what it serves; correct the name, or \
         create the file, and reload",
    )
}
