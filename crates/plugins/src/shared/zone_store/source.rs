//! A zone that is loaded from a file and reloaded when the file changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use config::setup::{FileStamp, Files, InspectFiles, ReloadState};
use corefile::Code;
use engine::log::{Level, Notice};
use host::invariant::{Expected as _, holds};
use wire::{Name, NameRef};
use zone::{LoadError, LoadErrorKind, Loaded, MistakeKind, RecordSet, Zone};

use super::{Held, ZoneMemory};

/// A zone and its file.
pub(crate) struct FileZone {
    /// The zone.
    pub(crate) held: Arc<Held>,
    /// Path of the file.
    pub(crate) path: PathBuf,
    memory: ZoneMemory,
    signed: Arc<SignedFiles>,
    /// Stamps of the file and its includes when they were last read.
    seen: Mutex<Vec<(PathBuf, Option<FileStamp>)>>,
    /// True if the zone is not what the file says: the file has an error, or has changed without a new serial.
    differs: AtomicBool,
    /// True if a reload of the Corefile asked for the content of the file and could not read it. The next version that
    /// can be read is served whatever its serial.
    is_awaited: AtomicBool,
    /// Result of the last time that the file was read.
    problems: Mutex<FileProblems>,
}

/// Problems that the last read of a file found.
#[derive(Default)]
struct FileProblems {
    /// True if the file could not be used.
    is_error: bool,
    texts: Vec<String>,
}

impl InspectFiles for FileZone {
    fn problems(&self) -> Vec<String> {
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if problems.is_error && self.held.known().is_some() { ZONE_KEPT } else { "" };
        problems.texts.iter().map(|text| format!("{text}{kept}")).collect()
    }
}

/// Zone files that *sign* has written since the start of the process, by path, with their stamps. *sign* reports the
/// mistakes of what it signs, with their positions in the file that people edit, so nothing else reports them again.
/// One entry per zone of a *sign* line; without a stamp until it is signed.
#[derive(Default)]
pub(crate) struct SignedFiles(Mutex<BTreeMap<PathBuf, Option<FileStamp>>>);

impl SignedFiles {
    /// Returns the signed files of all server blocks and generations.
    pub(crate) fn shared(reload_state: &mut ReloadState) -> Arc<SignedFiles> {
        reload_state.get_or_insert_with("sign/files".to_owned(), SignedFiles::default)
    }

    /// Records that *sign* has written this version of a file and reported its mistakes.
    pub(crate) fn add(&self, path: &Path, stamp: FileStamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), Some(stamp));
    }

    /// Records that *sign* will write a file, as soon as the configuration serves.
    pub(crate) fn expect(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(path.to_owned()).or_default();
    }

    /// Returns true if *sign* writes the file.
    pub(crate) fn is_expected(&self, path: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }

    fn contain(&self, path: &Path, stamp: Option<FileStamp>) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stamp.is_some() && files.get(path).copied().flatten() == stamp
    }
}

/// Log event about a zone file, with the code of its diagnostic.
pub(crate) type CodedNotice = (Code, Notice);

/// End of the message about a file that cannot be read at a reload of the Corefile.
pub(crate) const ZONE_KEPT: &str = "; the zone stays as it was";

/// Result of checking a file for changes.
pub(crate) enum Change {
    /// No new version.
    None,
    /// The records have changed, but not the serial, so the old version is still served.
    SameSerial(u32),
    /// A new version is served.
    Taken {
        /// Serial of the new version.
        serial: u32,
        /// Problems in the file that did not prevent loading, and that *sign* has not reported.
        warnings: Vec<LoadError>,
    },
}

impl FileZone {
    /// Creates a zone that has not been loaded yet.
    pub(crate) fn new(origin: NameRef<'_>, path: PathBuf, memory: ZoneMemory, signed: Arc<SignedFiles>) -> FileZone {
        let (seen, differs, is_awaited, problems) = Default::default();
        FileZone { held: Arc::new(Held::new(origin)), path, memory, signed, seen, differs, is_awaited, problems }
    }

    /// Serves the content that the zone had before a reload of the Corefile, because its file cannot be read now.
    /// Returns false if it had none.
    pub(crate) fn serve_previous(&self, before: &FileZone) -> bool {
        let is_kept = self.held.copy_content(&before.held);
        self.is_awaited.store(is_kept, Ordering::Relaxed);
        is_kept
    }

    /// Reads the file if it or one of its includes has changed since the last read. Replaces the zone if the serial
    /// differs, or in any case if `by_time` is set.
    pub(crate) fn look(&self, files: &dyn Files, by_time: bool) -> Result<Change, LoadError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.is_empty() && seen.iter().all(|(path, stamp)| files.stamp(path).ok() == *stamp) {
            return Ok(Change::None);
        }
        let read = self.read(files, by_time, &mut seen);
        let texts = match &read {
            Ok((_, texts)) => texts.clone(),
            Err(error) => vec![self.describe(error)],
        };
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = FileProblems { is_error: read.is_err(), texts };
        read.map(|(change, _)| change)
    }

    /// Reads the file and replaces the zone like [`FileZone::look`]. Also returns what is wrong with the file, whether
    /// its version is new or not.
    fn read(
        &self,
        files: &dyn Files,
        by_time: bool,
        seen: &mut Vec<(PathBuf, Option<FileStamp>)>,
    ) -> Result<(Change, Vec<String>), LoadError> {
        self.differs.store(true, Ordering::Relaxed);
        // Take the stamps before reading: a file that changes meanwhile is read again next time.
        *seen = vec![stamped(files, &self.path)];
        let mut read = |path: &Path| {
            if path != self.path {
                seen.push(stamped(files, path));
            }
            files.read(path)
        };
        let loaded =
            zone::load_within(self.held.origin.as_ref(), &self.path, self.memory.limits(&self.held), &mut read);
        self.held.set_elsewhere(matches!(&loaded, Err(LoadError { kind: LoadErrorKind::OtherZone(_), .. })));
        let Loaded { zone, warnings, .. } = loaded?;
        holds(!seen.is_empty(), "the file that was read has a stamp");
        let is_reported = self.signed.contain(&self.path, seen.first().and_then(|(_, stamp)| *stamp));
        let warnings = if is_reported { Vec::new() } else { warnings };
        let mut texts: Vec<String> = warnings.iter().map(|warning| self.describe(warning)).collect();
        let change = self.replace(zone, warnings, by_time);
        texts.extend(if let Change::SameSerial(serial) = change { Some(self.describe_same(serial)) } else { None });
        Ok((change, texts))
    }

    /// Replaces the zone with the content of its file if that is another version.
    fn replace(&self, zone: Zone, warnings: Vec<LoadError>, by_time: bool) -> Change {
        let soa = zone.soa().expected("the SOA record of a zone that was loaded");
        let serial = soa.map_or(0, |soa| soa.serial);
        let is_taken = by_time || self.is_awaited.swap(false, Ordering::Relaxed);
        let has_serial = |known: &Arc<Zone>| known.soa().is_some_and(|soa| soa.serial == serial);
        if let Some(known) = self.held.known().filter(|known| !is_taken && has_serial(known)) {
            let is_same = have_same_records(&known, &zone);
            self.differs.store(!is_same, Ordering::Relaxed);
            return if is_same { Change::None } else { Change::SameSerial(serial) };
        }
        self.differs.store(false, Ordering::Relaxed);
        self.held.set(zone);
        Change::Taken { serial, warnings }
    }

    /// Returns true if the zone is what its files say. Reads them, so that `files` can record their contents.
    pub(crate) fn is_current(&self, files: &dyn Files) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(path, stamp): &(PathBuf, Option<FileStamp>)| {
            let now = files.stamp(path).ok();
            files.read(path).is_ok() && now == *stamp
        };
        !seen.is_empty() && !self.differs.load(Ordering::Relaxed) && seen.iter().all(is_same)
    }

    /// Calls [`FileZone::look`] and returns the outcome as log events.
    pub(crate) fn follow(&self, files: &dyn Files, by_time: bool, directive: &'static str) -> Vec<CodedNotice> {
        let looked = self.look(files, by_time);
        let level = if looked.is_err() { Level::Error } else { Level::Warning };
        let reloaded = if let Ok(Change::Taken { serial, .. }) = &looked { Some(*serial) } else { None };
        let reloaded = reloaded.map(|serial| {
            let (origin, path) = (&self.held.origin, self.path.display());
            let message = format!("Successfully reloaded zone \"{origin}\" in \"{path}\" with {serial} SOA serial");
            (config::SETUP_WARNED, Notice::new(Level::Info, directive, message))
        });
        let same = if let Ok(Change::SameSerial(serial)) = looked { Some(self.describe_same(serial)) } else { None };
        let same = same.map(|message| (config::SETUP_WARNED, Notice::new(level, directive, message)));
        let messages = self.messages(&looked).map(|(code, message)| (code, Notice::new(level, directive, message)));
        reloaded.into_iter().chain(same).chain(messages).collect()
    }

    /// Returns the problems of the file with their codes. Each message names the zone, the file and the position.
    pub(crate) fn messages(&self, looked: &Result<Change, LoadError>) -> impl Iterator<Item = (Code, String)> {
        let errors = match looked {
            Ok(Change::None | Change::SameSerial(_)) => &[],
            Ok(Change::Taken { warnings, .. }) => warnings.as_slice(),
            Err(error) => core::slice::from_ref(error),
        };
        errors.iter().map(|error| (code_of(&error.kind), self.describe(error)))
    }

    /// Formats the warning about a version that is not served because of its serial.
    fn describe_same(&self, serial: u32) -> String {
        let (origin, path) = (&self.held.origin, self.path.display());
        format!("zone {origin}: {path} has changed, but its SOA serial is still {serial}{ZONE_KEPT}")
    }

    /// Formats an error with the name of the zone.
    pub(crate) fn describe(&self, error: &LoadError) -> String {
        format!("zone {}: {error}", self.held.origin)
    }
}

/// Returns true if two versions of a zone have the same records in the same order.
fn have_same_records(one: &Zone, other: &Zone) -> bool {
    let soa = |zone: &Zone| zone.soa_set().map(|set| (set.ttl, set.first().to_vec()));
    let sets = |(_, owner, set): (usize, Name, RecordSet<'_>),
                (_, other_owner, other): (usize, Name, RecordSet<'_>)| {
        (&owner, set.rtype, set.ttl) == (&other_owner, other.rtype, other.ttl) && set.data().eq(other.data())
    };
    one.len() == other.len()
        && soa(one) == soa(other)
        && one.sets_from(0).zip(other.sets_from(0)).all(|(one, other)| sets(one, other))
}

/// Returns the code of a problem in a zone file.
pub(crate) const fn code_of(kind: &LoadErrorKind) -> Code {
    let LoadErrorKind::Mistake(mistake) = kind else { return config::SETUP_WARNED };
    match mistake.kind {
        MistakeKind::CnameAndOtherData => config::ZONE_CNAME,
        MistakeKind::MultipleCname => config::ZONE_CNAMES,
        MistakeKind::MultipleDname => config::ZONE_DNAMES,
        MistakeKind::NsAndDname => config::ZONE_NS_DNAME,
        MistakeKind::BelowDname => config::ZONE_BELOW_DNAME,
        MistakeKind::MissingAddress => config::ZONE_GLUE,
    }
}

fn stamped(files: &dyn Files, path: &Path) -> (PathBuf, Option<FileStamp>) {
    (path.to_owned(), files.stamp(path).ok())
}

#[cfg(test)]
mod tests {
    use testkit::World;

    use super::*;

    /// Text of a zone file.
    const TEXT: &str = "@ 60 SOA ns host 1 2 3 4 5\nwww 60 A 192.0.2.1\n";

    fn file_zone() -> FileZone {
        let origin = Name::from_text("a.test.").unwrap();
        FileZone::new(origin.as_ref(), PathBuf::from("db"), ZoneMemory::default(), Arc::default())
    }

    fn write_and_look(zone: &FileZone, world: &World, text: &str) -> Result<Change, LoadError> {
        world.write("db", text);
        zone.look(world, false)
    }

    #[test]
    fn problems_of_a_file_last_as_long_as_the_file_has_them() {
        let (world, zone) = (World::default(), file_zone());
        let mistaken = format!("{TEXT}www 60 CNAME ns\n");
        let problems = |text: &str| {
            let _ = write_and_look(&zone, &world, text);
            zone.problems()
        };
        let mistakes = problems(&mistaken);
        assert!(matches!(mistakes.as_slice(), [mistake] if mistake.contains("CNAME")), "{mistakes:?}");
        assert_eq!(problems(&mistaken), mistakes, "touched");
        let same = ["zone a.test.: db has changed, but its SOA serial is still 1; the zone stays as it was".to_owned()];
        let changed = mistaken.replace("192.0.2.1", "192.0.2.2");
        assert_eq!(problems(&changed), [mistakes.as_slice(), &same].concat());
        let broken = problems("@ 60 SOA ns");
        assert!(matches!(broken.as_slice(), [error] if error.ends_with(ZONE_KEPT)), "{broken:?}");
        assert_eq!(problems(&mistaken), mistakes, "repaired");
        assert_eq!(problems(TEXT), same);
        assert_eq!(problems(&TEXT.replace("host 1", "host 2")), Vec::<String>::new());
    }

    #[test]
    fn is_current_again_after_a_file_was_touched_or_repaired() {
        let (world, zone) = (World::default(), file_zone());
        assert!(matches!(write_and_look(&zone, &world, TEXT), Ok(Change::Taken { serial: 1, .. })));
        assert!(zone.is_current(&world));
        assert!(matches!(write_and_look(&zone, &world, TEXT), Ok(Change::None)));
        assert!(zone.is_current(&world), "touched");
        assert!(write_and_look(&zone, &world, "@ 60 SOA ns").is_err());
        assert!(!zone.is_current(&world), "broken");
        assert!(matches!(write_and_look(&zone, &world, TEXT), Ok(Change::None)));
        assert!(zone.is_current(&world), "repaired");
        let changed = TEXT.replace("192.0.2.1", "192.0.2.2");
        assert!(matches!(write_and_look(&zone, &world, &changed), Ok(Change::SameSerial(1))));
        assert!(!zone.is_current(&world), "changed without a new serial");
    }
}
