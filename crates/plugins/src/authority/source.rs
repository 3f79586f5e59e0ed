//! A zone that comes from a file, and is read again when that changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine::log::{Level, Notice};
use engine::setup::{Files, Stamp};
use wire::NameRef;
use zone::{LoadError, Loaded, Trouble};

use super::Held;

/// A zone and the file that it comes from.
pub(crate) struct FileZone {
    /// The zone.
    pub(crate) held: Arc<Held>,
    /// The file.
    pub(crate) path: PathBuf,
    /// The file and those that it includes, as they were when they were read last.
    seen: Mutex<Vec<(PathBuf, Option<Stamp>)>>,
}

/// What has become of a file.
pub(crate) enum Change {
    /// Nothing that matters.
    None,
    /// Another version is served.
    Taken {
        /// Its serial.
        serial: u32,
        /// What is wrong with its file.
        remarks: Vec<LoadError>,
    },
}

impl FileZone {
    /// A zone that has not been read yet.
    pub(crate) fn new(origin: NameRef<'_>, path: PathBuf) -> FileZone {
        FileZone { held: Arc::new(Held::new(origin)), path, seen: Mutex::default() }
    }

    /// Reads the file, if it or one that it includes has changed since it was read last. Another version is taken over
    /// if its serial differs from that of the present one, or whatever it is if `by_time`.
    pub(crate) fn look(&self, files: &dyn Files, by_time: bool) -> Result<Change, LoadError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.is_empty() && seen.iter().all(|(path, stamp)| files.stamp(path).ok() == *stamp) {
            return Ok(Change::None);
        }
        // Stamped first: what changes while it is read is read again.
        *seen = vec![stamped(files, &self.path)];
        let mut read = |path: &Path| {
            if path != self.path {
                seen.push(stamped(files, path));
            }
            files.read(path)
        };
        let loaded = zone::load(self.held.origin.as_ref(), &self.path, &mut read);
        self.held.set_elsewhere(matches!(&loaded, Err(LoadError { trouble: Trouble::OtherZone(_), .. })));
        let Loaded { zone, remarks, .. } = loaded?;
        let serial = zone.soa().map(|soa| soa.serial).unwrap_or_default();
        if self.held.soa().is_some_and(|soa| soa.serial == serial) && !by_time {
            return Ok(Change::None);
        }
        self.held.set(zone);
        Ok(Change::Taken { serial, remarks })
    }

    /// As [`FileZone::look`], with what there is to say as events for the log.
    pub(crate) fn follow(&self, files: &dyn Files, by_time: bool, directive: &'static str) -> Vec<Notice> {
        let looked = self.look(files, by_time);
        let level = if looked.is_err() { Level::Error } else { Level::Warning };
        let reloaded = if let Ok(Change::Taken { serial, .. }) = &looked { Some(*serial) } else { None };
        let reloaded = reloaded.map(|serial| {
            let (origin, path) = (&self.held.origin, self.path.display());
            let message = format!("Successfully reloaded zone \"{origin}\" in \"{path}\" with {serial} SOA serial");
            Notice::new(Level::Info, directive, message)
        });
        let complaints = self.complaints(&looked).map(|complaint| Notice::new(level, directive, complaint));
        reloaded.into_iter().chain(complaints).collect()
    }

    /// What is wrong with the file; each names the zone, the file, and the place in it.
    pub(crate) fn complaints(&self, looked: &Result<Change, LoadError>) -> impl Iterator<Item = String> {
        let errors = match looked {
            Ok(Change::None) => &[],
            Ok(Change::Taken { remarks, .. }) => remarks.as_slice(),
            Err(error) => core::slice::from_ref(error),
        };
        errors.iter().map(|error| self.told(error))
    }

    /// An error with the zone to which it happened.
    pub(crate) fn told(&self, error: &LoadError) -> String {
        format!("zone {}: {error}", self.held.origin)
    }
}

fn stamped(files: &dyn Files, path: &Path) -> (PathBuf, Option<Stamp>) {
    (path.to_owned(), files.stamp(path).ok())
}
