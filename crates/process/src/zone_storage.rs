//! Files of dynamic zones: appended to and replaced so that they survive a crash, and locked against other processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use engine::log::Level;
use engine::{Clock, Instant};
use host::errors::plain;
use plugins::{FilePlace, OpenedZoneFile, ZoneFile, ZoneStorage};
use transport::MonotonicClock;
use transport::files::is_at;

/// Mode of new files, as in CoreDNS.
const MODE: u32 = 0o600;
/// Name of the threads that write.
const THREAD: &str = "dynupdate";

/// Files of this machine.
pub(crate) struct ZoneFiles;

impl ZoneStorage for ZoneFiles {
    fn open(&self, path: &Path, len_max: u64) -> io::Result<Option<OpenedZoneFile>> {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let Some(file) = existing(opened).map_err(plain)? else { return Ok(None) };
        lock(&file).map_err(plain)?;
        // The file may have been replaced between the two calls: the lock on the old one protects nothing.
        if !is_at(&file, path).map_err(plain)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let contents = read(&file, len_max).map_err(plain)?;
        Ok(Some(OpenedZoneFile { file: Box::new(LockedFile { file, path: path.to_owned() }), contents }))
    }

    fn create(&self, path: &Path, contents: &[u8]) -> io::Result<Box<dyn ZoneFile>> {
        let file = beside(path, contents, |temporary| {
            // Unlike a rename, a link does not replace a file that another process has created meanwhile.
            std::fs::hard_link(temporary, path)?;
            std::fs::remove_file(temporary)
        });
        let file = file.map_err(plain)?;
        sync_directory(path).map_err(plain)?;
        Ok(Box::new(LockedFile { file, path: path.to_owned() }))
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        one == other || identity(one).is_some_and(|one| identity(other) == Some(one))
    }

    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        let work = Arc::new(Mutex::new(Some(work)));
        let take = |work: &Mutex<Option<Box<dyn FnOnce() + Send>>>| {
            let taken = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            taken.into_iter().for_each(|work| work());
        };
        let shared = Arc::clone(&work);
        // Without a thread, an update that waits for the disk is better than none.
        if std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || take(&shared)).is_err() {
            take(&work);
        }
    }

    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn log(&self, level: Level, message: &str) {
        match level {
            Level::Error => tracing::error!(target: "plugin/dynupdate", "{message}"),
            Level::Warning => tracing::warn!(target: "plugin/dynupdate", "{message}"),
            Level::Info => tracing::info!(target: "plugin/dynupdate", "{message}"),
            Level::Debug => tracing::debug!(target: "plugin/dynupdate", "{message}"),
        }
    }
}

/// Files for a configuration that never serves: they are read without a lock, because the server may have it.
pub(crate) struct ReadOnlyZoneFiles {
    /// False if this is not the machine of the server.
    pub reads: bool,
}

impl ZoneStorage for ReadOnlyZoneFiles {
    fn open(&self, path: &Path, len_max: u64) -> io::Result<Option<OpenedZoneFile>> {
        let Some(file) = self.reads.then(|| existing(File::open(path)).map_err(plain)).transpose()?.flatten() else {
            return Ok(None);
        };
        let contents = read(&file, len_max).map_err(plain)?;
        Ok(Some(OpenedZoneFile { file: Box::new(NoFile), contents }))
    }

    fn create(&self, _: &Path, _: &[u8]) -> io::Result<Box<dyn ZoneFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        ZoneFiles.is_same_file(one, other)
    }

    fn run(&self, _: Box<dyn FnOnce() + Send>) {}

    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn log(&self, _: Level, _: &str) {}
}

/// File that cannot be written.
struct NoFile;

impl ZoneFile for NoFile {
    fn append(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn place(&self) -> io::Result<FilePlace> {
        Ok(FilePlace::Own)
    }

    fn replace(&mut self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn keep(&mut self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Open file with a lock.
struct LockedFile {
    file: File,
    path: PathBuf,
}

impl ZoneFile for LockedFile {
    fn append(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // What a crash has left behind the offset goes first, so that it cannot follow a shorter piece.
        let write = || {
            self.file.set_len(at)?;
            self.file.write_all_at(bytes, at)?;
            self.file.sync_data()
        };
        write().map_err(|error| {
            // The client gets an error, so the update should not come back at the next start.
            let _ = self.file.set_len(at);
            plain(error)
        })
    }

    fn place(&self) -> io::Result<FilePlace> {
        match is_at(&self.file, &self.path) {
            Ok(true) => Ok(FilePlace::Own),
            Ok(false) => Ok(FilePlace::Taken),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FilePlace::Removed),
            Err(error) => Err(plain(error)),
        }
    }

    fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        let path = &self.path;
        self.file = beside(path, contents, |temporary| std::fs::rename(temporary, path)).map_err(plain)?;
        sync_directory(&self.path).map_err(plain)
    }

    fn keep(&mut self, suffix: &str) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        match std::fs::hard_link(&self.path, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked.map_err(plain),
        }
    }
}

/// Writes a locked file beside `path`, syncs it, and has it put into its place.
fn beside(path: &Path, contents: &[u8], place: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    let written = OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(&temporary);
    let written = written.and_then(|file| {
        lock(&file)?;
        file.write_all_at(contents, 0)?;
        file.sync_all()?;
        place(&temporary).map(|()| file)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Makes the name of a new file survive a crash.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

fn existing(opened: io::Result<File>) -> io::Result<Option<File>> {
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })
}

fn read(file: &File, len_max: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    file.take(len_max.saturating_add(1)).read_to_end(&mut contents)?;
    if u64::try_from(contents.len()).unwrap_or(u64::MAX) > len_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(contents)
}
