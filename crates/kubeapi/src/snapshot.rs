//! What is known of a cluster, kept on disk, for a process that begins while the API server is away.
//!
//! The file has a line that says what it is, the checksum of all that follows, the checksum of the request that it is
//! about, and the octets of [`cluster::snapshot`]. It is written beside its place and moved there, so that a file in place
//! is whole; one that is damaged, or of another request, is refused and said to be.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use cluster::{Index, Pace, Request, World, snapshot};
use tracing::{info, warn};

use crate::LOG;
use crate::meter::Meter;
use crate::timing::now_seconds;

/// What the file begins with; another version of the format has another number.
const TITLE: &[u8] = b"portolan snapshot 1\n";
/// Octets of the largest file that is read: ten times what the largest clusters that are known of need.
const FILE_MAX: u64 = 1 << 30;

/// How often to see whether all is known.
const LOOK: Duration = Duration::from_secs(1);

/// Why a file is not used.
enum Refusal {
    /// There is none.
    Missing,
    Unreadable(io::Error),
    TooLong,
    /// It is no snapshot, or one of a version that this build does not read.
    Foreign,
    /// It is of other objects than are asked for now.
    OfAnotherRequest,
    Damaged,
}

impl Refusal {
    fn text(&self) -> Option<String> {
        Some(match self {
            Refusal::Missing => return None,
            Refusal::Unreadable(error) => error.to_string(),
            Refusal::TooLong => format!("it is longer than {FILE_MAX} octets"),
            Refusal::Foreign => "it is no snapshot of this version".to_owned(),
            Refusal::OfAnotherRequest => "the stanza that it was written for asked for other objects".to_owned(),
            Refusal::Damaged => "it is damaged: its checksum is wrong".to_owned(),
        })
    }
}

/// Brings a world up to what the file says, if there is one that can be used; whether it did.
pub(crate) fn restore(file: &Path, request: &Request, world: &mut World) -> bool {
    let refusal = match read(file, request) {
        Ok(octets) => match world.restore(&octets, now_seconds()) {
            Ok(()) => {
                let path = file.display();
                info!(target: LOG, "Serving what snapshot {path} remembers until the API server has been asked");
                return true;
            }
            Err(_) => Refusal::Damaged,
        },
        Err(refusal) => refusal,
    };
    if let Some(text) = refusal.text() {
        warn!(target: LOG, "Snapshot {} is not used: {text}", file.display());
    }
    false
}

fn read(file: &Path, request: &Request) -> Result<Vec<u8>, Refusal> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::Missing,
        _ => Refusal::Unreadable(error),
    };
    if fs::metadata(file).map_err(unreadable)?.len() > FILE_MAX {
        return Err(Refusal::TooLong);
    }
    let mut octets = fs::read(file).map_err(unreadable)?;
    let rest = octets.strip_prefix(TITLE).ok_or(Refusal::Foreign)?;
    let (sum, rest) = rest.split_at_checked(SHA256_OUTPUT_LEN).ok_or(Refusal::Damaged)?;
    if digest(&SHA256, rest).as_ref() != sum {
        return Err(Refusal::Damaged);
    }
    if !rest.starts_with(&fingerprint(request)) {
        return Err(Refusal::OfAnotherRequest);
    }
    octets.drain(..TITLE.len() + 2 * SHA256_OUTPUT_LEN);
    Ok(octets)
}

/// What tells requests apart: all of them but where the snapshot is and how hard the server is asked.
fn fingerprint(request: &Request) -> Vec<u8> {
    let request = Request { snapshot: None, pace: Pace::default(), ..request.clone() };
    digest(&SHA256, format!("{request:?}").as_bytes()).as_ref().to_vec()
}

/// Keeps the file up to the index, the first time as soon as all is known and then not more often than `every`, until it
/// is dropped.
pub(crate) async fn keep(file: PathBuf, request: Request, index: Arc<Index>, meter: Rc<Meter>, every: Duration) {
    let (mut written, mut told) = (None, false);
    loop {
        tokio::time::sleep(if written.is_some() { every } else { every.min(LOOK) }).await;
        let changes = index.changes();
        // What is only remembered would be written as if it were new.
        if !index.is_synced() || written == Some(changes) {
            continue;
        }
        let (place, request, index) = (file.clone(), request.clone(), Arc::clone(&index));
        // A slow disk must not keep the thread of everything else.
        let outcome = tokio::task::spawn_blocking(move || write(&place, &request, &index)).await;
        match outcome {
            Ok(Ok(())) => (written, told) = (Some(changes), false),
            Ok(Err(error)) => {
                meter.snapshot_error();
                if !told {
                    warn!(target: LOG, "Snapshot {} cannot be written: {error}", file.display());
                }
                told = true;
            }
            Err(_) => return,
        }
    }
}

fn write(file: &Path, request: &Request, index: &Index) -> io::Result<()> {
    let mut body = fingerprint(request);
    snapshot::write(index, &mut body);
    let beside = beside(file);
    let written = File::create(&beside).and_then(|mut fresh| {
        fresh.write_all(TITLE)?;
        fresh.write_all(digest(&SHA256, &body).as_ref())?;
        fresh.write_all(&body)?;
        fresh.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// A name in the same folder, so that the file can be moved into its place.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}
