//! Files and environment variables in memory.

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use config::setup::FileStamp;
use host::errors::plain;

/// Files and environment variables of a scenario.
#[derive(Default)]
pub struct World {
    files: RefCell<BTreeMap<PathBuf, (Vec<u8>, FileStamp)>>,
    writes: Cell<u128>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl World {
    /// Writes a file.
    pub fn write(&self, path: impl Into<PathBuf>, contents: impl Into<Vec<u8>>) {
        let contents = contents.into();
        self.writes.set(self.writes.get() + 1);
        let stamp = FileStamp { modified: self.writes.get(), len: contents.len() as u64 };
        self.files.borrow_mut().insert(path.into(), (contents, stamp));
    }

    /// Sets the modification time of a file, in nanoseconds. Returns false if there is no such file.
    pub fn set_modified(&self, path: &Path, modified: u128) -> bool {
        let mut files = self.files.borrow_mut();
        files.get_mut(path).map(|(_, stamp)| stamp.modified = modified).is_some()
    }

    /// Removes a file. Returns false if there was none.
    pub fn remove(&self, path: &Path) -> bool {
        self.files.borrow_mut().remove(path).is_some()
    }

    /// Sets an environment variable.
    pub(crate) fn set_variable(&self, name: impl Into<String>, value: impl Into<String>) {
        self.variables.borrow_mut().insert(name.into(), value.into());
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let files = self.files.borrow();
        files.get(path).map(|(contents, _)| contents.clone()).ok_or_else(|| plain(io::ErrorKind::NotFound.into()))
    }
}

impl config::setup::Files for World {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.bytes(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        self.files.borrow().contains_key(path)
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let files = self.files.borrow();
        files.get(path).map(|(_, stamp)| *stamp).ok_or_else(|| plain(io::ErrorKind::NotFound.into()))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.files.borrow();
        let found: Vec<PathBuf> = files.keys().filter(|path| path.starts_with(directory)).cloned().collect();
        if found.is_empty() { Err(plain(io::ErrorKind::NotFound.into())) } else { Ok(found) }
    }

    fn replace(&self, path: &Path, write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.write(path, bytes);
        Ok(())
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.bytes(path).unwrap_or_default();
        all.extend_from_slice(bytes);
        self.write(path, all);
        Ok(())
    }
}

impl corefile::Loader for World {
    fn read(&self, path: &Path) -> io::Result<String> {
        String::from_utf8(self.bytes(path)?).map_err(|_| plain(io::ErrorKind::InvalidData.into()))
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let pattern = pattern.to_string_lossy();
        let files = self.files.borrow();
        Ok(files
            .keys()
            .filter(|path| matches(pattern.as_bytes(), path.to_string_lossy().as_bytes()))
            .cloned()
            .collect())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.borrow().get(name).cloned()
    }
}

/// Returns true if a path matches a glob pattern. `*` and `?` do not match slashes.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), Some((byte, after))) => matches(rest, path) || (*byte != b'/' && matches(pattern, after)),
        (Some((b'*', rest)), None) => matches(rest, path),
        (Some((b'?', rest)), Some((byte, after))) => *byte != b'/' && matches(rest, after),
        (Some((wanted, rest)), Some((byte, after))) => wanted == byte && matches(rest, after),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corefile::Loader;

    #[test]
    fn glob_wildcards_do_not_match_slashes() {
        let world = World::default();
        for path in ["conf.d/a.conf", "conf.d/b.conf", "conf.d/sub/c.conf", "conf.d/b.txt"] {
            world.write(path, "");
        }
        let found = |pattern: &str| world.glob(Path::new(pattern)).unwrap().len();
        assert_eq!([found("conf.d/*.conf"), found("conf.d/?.*"), found("*"), found("conf.d/a.conf")], [2, 3, 0, 1]);
    }
}
