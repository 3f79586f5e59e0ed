//! Snapshots of the known cluster state on disk. A process that starts serves from its snapshot at once, and resumes
//! the watches of the earlier process, without lists.
//!
//! A file consists of a header (`file`) and a log of events ([`cluster::snapshot`]). An event is appended before it is
//! applied, so that a killed process leaves everything that it answered from. The file is not synced for this, because
//! the page cache survives a process. `journal` appends, and `keeper` replaces the file by one with only what counts
//! when it has grown (`compaction`).
//!
//! A new file is written beside the old one and takes its place when it has a complete list of every watch, so that the
//! file is always usable. At its end, an incomplete record is cut off. A file that belongs to another request is
//! rejected with a warning.
//!
//! If the disk fails, the journal is closed and the file stays as it is. Later, a new file is begun, and everything is
//! listed again for it: events are missing in the old one.
//!
//! A snapshot can also crash the process that loads it, for example by using up its memory, and again at each restart.
//! So a file beside it counts the loads that did not finish (`attempt`).

mod attempt;
mod compaction;
mod file;
mod journal;
mod keeper;
mod reader;

use std::io;
use std::path::Path;
use std::sync::Arc;

use cluster::{Index, Reducer, Request, Restore, Resumable, Spec};
use tracing::{info, warn};

use crate::LOG;
use crate::timing::now_seconds;
use attempt::Attempt;
use file::{Existing, FILE_MAX, Header};
pub(crate) use journal::Journal;
pub(crate) use keeper::keep;
use reader::Reader;

/// Reason for not using a snapshot.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    /// No file at this path.
    #[error("it does not exist")]
    Missing,
    #[error("{}", host::errors::describe(.0))]
    Unreadable(#[source] io::Error),
    #[error("it is longer than {} bytes", FILE_MAX)]
    TooLong,
    /// Not a snapshot, or one in an unsupported version of the format.
    #[error("it is no snapshot of this version")]
    Foreign,
    /// The snapshot is of another request, so its objects are others.
    #[error("the stanza that it was written for asked for other objects")]
    OfAnotherRequest,
    /// The file ends, or its damage begins, before a list of each watch.
    #[error("it has no complete list of all objects")]
    Incomplete,
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> LoadError {
        match error.kind() {
            io::ErrorKind::NotFound => LoadError::Missing,
            _ => LoadError::Unreadable(error),
        }
    }
}

/// What a process starts from.
pub(crate) struct Restored {
    pub(crate) reducer: Reducer,
    pub(crate) index: Arc<Index>,
    /// Watches of an earlier process. Those that are not among them start from nothing.
    pub(crate) resumable: Vec<Resumable>,
    /// The log, if events can be appended to it.
    log: Option<Existing>,
}

impl Restored {
    /// Restores the file if it exists and is usable.
    pub(crate) fn load(path: &Path, request: &Request, spec: &Spec) -> Restored {
        let loaded = Attempt::begin(path).map(|attempt| {
            let loaded = load(path, &Header::new(request), spec);
            attempt.end();
            loaded
        });
        match loaded {
            Some(Ok(restored)) => return restored,
            None | Some(Err(LoadError::Missing)) => {}
            Some(Err(error)) => warn!(target: LOG, "Snapshot {} is not used: {error}", path.display()),
        }
        Restored::nothing(spec)
    }

    /// Starts from nothing.
    pub(crate) fn nothing(spec: &Spec) -> Restored {
        let (reducer, index) = Reducer::new(spec);
        Restored { reducer, index, resumable: Vec::new(), log: None }
    }
}

fn load(path: &Path, header: &Header, spec: &Spec) -> Result<Restored, LoadError> {
    let opened = file::open(path, header)?;
    let Restored { mut reducer, index, .. } = Restored::nothing(spec);
    let (mut restore, now) = (Restore::new(&mut reducer), now_seconds());
    let mut reader = Reader::new(&opened.file, Header::LEN, opened.len);
    let mut base = Header::LEN;
    while let Some((_, _, record)) = reader.next()? {
        let is_end_of_base = matches!(record, cluster::snapshot::Record::BaseEnd);
        restore.apply(record, now);
        if is_end_of_base {
            base = reader.offset();
        }
    }
    let end = reader.offset();
    let mut resumable = restore.finish().ok_or(LoadError::Incomplete)?;
    let path = path.display();
    info!(target: LOG, "Serving what snapshot {path} remembers until the API server has been asked");
    if end < opened.len {
        let cut = opened.len - end;
        warn!(target: LOG, "Snapshot {path} has {cut} bytes at its end that are no complete records; they are ignored");
    }
    let log = opened.into_log(end, base);
    if log.is_none() {
        // A new file needs the lists that it begins with.
        resumable.iter_mut().for_each(|watch| watch.position = None);
    }
    Ok(Restored { reducer, index, resumable, log })
}

#[cfg(test)]
mod tests;
