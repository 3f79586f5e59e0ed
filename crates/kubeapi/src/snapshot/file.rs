//! Files of snapshots: header, and how they are opened, created and replaced.
//!
//! The header is a title line, the fingerprint of the request, and that of the program's version. Another version may
//! decode objects differently, so that a known version of an object does not say that it need not be read again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use cluster::{RateLimit, Request};
use host::invariant::{Expected as _, holds};
use transport::files::{is_at, open_log};

use super::LoadError;

/// First bytes of the file, with the version of the format.
const TITLE: &[u8] = b"portolan snapshot 2\n";
/// Maximum size of a snapshot in bytes, ten times what the largest known clusters need.
pub(super) const FILE_MAX: u64 = 256 << 20;

const HEADER_LEN: usize = TITLE.len() + 2 * SHA256_OUTPUT_LEN;

/// Header of a file.
pub(super) struct Header(Vec<u8>);

impl Header {
    /// Length in bytes.
    pub(super) const LEN: u64 = HEADER_LEN as u64;

    pub(super) fn new(request: &Request) -> Header {
        // Without the fields that do not select objects.
        let request = Request {
            relays: None,
            snapshot: None,
            stale_after: None,
            rate_limit: RateLimit::default(),
            ..request.clone()
        };
        let hash = |text: &str| digest(&SHA256, text.as_bytes());
        let (request, version) = (hash(&format!("{request:?}")), hash(env!("CARGO_PKG_VERSION")));
        let bytes = [TITLE, request.as_ref(), version.as_ref()].concat();
        holds(bytes.len() == HEADER_LEN, "all headers have the same length");
        Header(bytes)
    }

    /// Compares the header with that of a file. Returns true if this version of the program wrote it.
    fn check(&self, bytes: &[u8]) -> Result<bool, LoadError> {
        let rest = bytes.strip_prefix(TITLE).ok_or(LoadError::Foreign)?;
        let (own_request, own_version) = self.0[TITLE.len()..].split_at(SHA256_OUTPUT_LEN);
        let (request, version) = rest.split_at_checked(SHA256_OUTPUT_LEN).ok_or(LoadError::Incomplete)?;
        if request != own_request {
            return Err(LoadError::OfAnotherRequest);
        }
        Ok(version == own_version)
    }
}

/// Open file of an earlier process.
pub(super) struct Opened {
    pub(super) file: File,
    /// Length when it was opened.
    pub(super) len: u64,
    /// True if this process may append to it: no other one does, and the same version of the program wrote it.
    is_own: bool,
}

/// Log that is continued.
pub(super) struct Existing {
    pub(super) file: Arc<File>,
    pub(super) len: u64,
    /// Length up to the end of the base.
    pub(super) base: u64,
}

/// Opens a file, and checks its header.
pub(super) fn open(path: &Path, header: &Header) -> Result<Opened, LoadError> {
    // Opening some devices has effects.
    if !fs::metadata(path)?.is_file() {
        return Err(LoadError::Unreadable(not_regular()));
    }
    let (file, is_writable) = match open_log(path, true) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            (open_log(path, false)?, false)
        }
        file => (file?, true),
    };
    let metadata = file.metadata()?;
    if metadata.len() > FILE_MAX {
        return Err(LoadError::TooLong);
    }
    let mut bytes = [0; HEADER_LEN];
    let length = metadata.len().min(Header::LEN);
    let read = usize::try_from(length).ok().and_then(|length| bytes.get_mut(..length)).expected("room for a header");
    let read = read.unwrap_or_default();
    file.read_exact_at(read, 0)?;
    let is_same_version = header.check(read)?;
    // Another process that appends to the file has the lock.
    let is_own = is_writable && is_same_version && file.try_lock().is_ok();
    Ok(Opened { file, len: metadata.len(), is_own })
}

impl Opened {
    /// Returns the log to continue, without what follows after `end`.
    pub(super) fn into_log(self, end: u64, base: u64) -> Option<Existing> {
        holds(Header::LEN <= base && base <= end && end <= self.len, "a log has a header, a base and a journal");
        let is_whole = end == self.len || self.is_own && self.file.set_len(end).is_ok();
        (self.is_own && is_whole).then(|| Existing { file: Arc::new(self.file), len: end, base })
    }
}

/// Creates a file beside the snapshot, with a header.
pub(super) fn create(path: &Path, header: &Header) -> io::Result<File> {
    check_target(path)?;
    let beside = beside(path);
    // What is in a cluster is for nobody else; a file that is left over keeps the mode that it has.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&beside)?;
    // Without locks, on some network file systems, two processes must not have the same path.
    let _ = file.try_lock();
    file.write_all(&header.0)?;
    Ok(file)
}

/// Makes the file beside the snapshot the snapshot.
pub(super) fn publish(path: &Path, file: &File) -> io::Result<()> {
    check_target(path)?;
    let beside = beside(path);
    if !is_at(file, &beside).unwrap_or(false) {
        return Err(io::Error::other("another process has replaced the new file"));
    }
    fs::rename(&beside, path)
}

/// Checks that the snapshot may be replaced. The rename would replace a device such as `/dev/null`, or a FIFO that
/// another program reads.
fn check_target(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|known| !known.is_file()) { Err(not_regular()) } else { Ok(()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Returns the path of the file that becomes the snapshot, in the same folder so that a rename is possible.
pub(super) fn beside(file: &Path) -> PathBuf {
    with_ending(file, ".new")
}

pub(super) fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}
