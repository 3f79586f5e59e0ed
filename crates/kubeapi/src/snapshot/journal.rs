//! Journal: appends the events of all watches to a file before they are applied.
//!
//! A thread writes, and the thread of the watches waits for it: for microseconds, and at most [`APPEND_MAX`]. A disk
//! that blocks thus costs the snapshot and not the watches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster::snapshot::Record;
use host::invariant::{Expected as _, broken, holds};
use serde::Serialize;
use tokio::sync::Notify;
use tracing::warn;

use super::compaction::Replacement;
use super::file::{Existing, FILE_MAX, Header};
use crate::LOG;
use crate::health::ViewHealth;
use crate::meter::Meter;

/// Longest time that an append may take. Usual are 10 µs; a thread that gets no CPU waits for a fraction of a second.
const APPEND_MAX: Duration = Duration::from_secs(1);
/// Longest time that the end of a journal waits for its thread.
const CLOSE_MAX: Duration = Duration::from_millis(100);
/// Number of bytes that are collected within a first list, before which no answer can be older.
const COLLECTED_MAX: usize = 64 << 10;

/// Journal of a subscription.
pub(crate) struct Journal {
    pub(super) path: PathBuf,
    pub(super) header: Arc<Header>,
    meter: Rc<Meter>,
    health: Arc<ViewHealth>,
    /// See [`Timing::snapshot_growth`](crate::Timing::snapshot_growth).
    growth: u64,
    /// Notified when there is a [`Task`].
    pub(super) tasks: Notify,
    /// `None` after a failure.
    open: RefCell<Option<Open>>,
    /// True after a failure that was logged, until a file is complete again.
    is_reported: Cell<bool>,
}

struct Open {
    writer: Writer,
    file: Arc<File>,
    /// Length of the file, without what is in the buffer.
    len: u64,
    /// Length up to which there is only what counts.
    base: u64,
    stage: Stage,
    buffer: Vec<u8>,
}

enum Stage {
    /// The file is beside the snapshot. These watches have begun a list since it began; `true` if it is complete.
    Beside(BTreeMap<usize, bool>),
    /// The file has a list of every watch, and can take the place of the snapshot.
    Complete,
    /// The file is the snapshot.
    InPlace,
}

/// What a journal needs.
pub(super) enum Task {
    /// The file is to take the place of the snapshot.
    Publish(Arc<File>),
    /// The file has grown.
    Compact(Arc<File>),
    /// A new file.
    Open,
}

impl Journal {
    pub(crate) fn new(
        path: &Path,
        request: &cluster::Request,
        meter: &Rc<Meter>,
        health: &Arc<ViewHealth>,
        growth: u64,
    ) -> Rc<Journal> {
        Rc::new(Journal {
            path: path.to_owned(),
            header: Arc::new(Header::new(request)),
            meter: Rc::clone(meter),
            health: Arc::clone(health),
            growth,
            tasks: Notify::new(),
            open: RefCell::new(None),
            is_reported: Cell::new(false),
        })
    }

    /// Continues the log of an earlier process, or begins a new one.
    pub(crate) fn start(&self, restored: &mut super::Restored) {
        holds(self.open.borrow().is_none(), "a journal is opened once");
        let started = match restored.log.take() {
            Some(Existing { file, len, base }) => Open::new(file, len, base, Stage::InPlace),
            None => super::file::create(&self.path, &self.header)
                .and_then(|file| Open::new(Arc::new(file), Header::LEN, 0, Stage::Beside(BTreeMap::new()))),
        };
        match started {
            Ok(open) => *self.open.borrow_mut() = Some(open),
            Err(error) => self.fail(&error),
        }
    }

    /// Begins with a new file. The caller lists everything again.
    pub(super) fn restart(&self, file: File) -> io::Result<()> {
        let open = Open::new(Arc::new(file), Header::LEN, 0, Stage::Beside(BTreeMap::new()))?;
        holds(self.open.borrow().is_none(), "a journal is opened again after it was closed");
        *self.open.borrow_mut() = Some(open);
        Ok(())
    }

    /// Appends a record. If it is `urgent`, it is in the file afterwards.
    pub(crate) fn append<O: Serialize>(&self, record: &Record<'_, O>, urgent: bool) {
        let (appended, is_in_place) = match &mut *self.open.borrow_mut() {
            Some(open) => (open.append(record, urgent, self.growth), matches!(open.stage, Stage::InPlace)),
            None => return,
        };
        match appended {
            Err(error) => self.fail(&error),
            Ok(has_grown) if is_in_place => {
                self.health.has_snapshot();
                if has_grown {
                    self.tasks.notify_one();
                }
            }
            Ok(_) => {}
        }
    }

    /// Returns true if objects that are known may not be in the file yet.
    pub(crate) fn is_new(&self) -> bool {
        matches!(&*self.open.borrow(), Some(Open { stage: Stage::Beside(_), .. }))
    }

    /// Records that the list of a watch begins or is complete.
    pub(crate) fn listed(&self, watch: usize, is_complete: bool) {
        if let Some(Open { stage: Stage::Beside(lists), .. }) = &mut *self.open.borrow_mut() {
            match lists.get_mut(&watch) {
                Some(list) => *list |= is_complete,
                // One that began before the file is not in it as a whole.
                None if is_complete => {}
                None => drop(lists.insert(watch, false)),
            }
        }
    }

    /// Completes the file if it has a list of each of these watches.
    pub(crate) fn complete(&self, mut watches: impl Iterator<Item = usize>) {
        if let Some(Open { stage, .. }) = &mut *self.open.borrow_mut()
            && let Stage::Beside(lists) = stage
            && watches.all(|watch| lists.get(&watch) == Some(&true))
        {
            *stage = Stage::Complete;
            self.tasks.notify_one();
        }
    }

    pub(super) fn task(&self) -> Option<Task> {
        let open = self.open.borrow();
        let Some(open) = &*open else { return Some(Task::Open) };
        match open.stage {
            Stage::Beside(_) => None,
            Stage::Complete => Some(Task::Publish(Arc::clone(&open.file))),
            Stage::InPlace => open.has_grown(self.growth).then(|| Task::Compact(Arc::clone(&open.file))),
        }
    }

    /// Returns the file, unless the journal is closed.
    #[cfg(test)]
    pub(super) fn file(&self) -> Option<Arc<File>> {
        self.open.borrow().as_ref().map(|open| Arc::clone(&open.file))
    }

    /// Records that the file has taken the place of the snapshot.
    pub(super) fn published(&self, file: &Arc<File>) {
        if let Some(open) = self.open.borrow_mut().as_mut().filter(|open| Arc::ptr_eq(&open.file, file)) {
            holds(matches!(open.stage, Stage::Complete), "a file is published when it has all lists");
            (open.stage, open.base) = (Stage::InPlace, open.len);
        }
        self.append(&Record::<()>::BaseEnd, true);
        self.succeeded();
    }

    /// Replaces the file by a compacted one.
    pub(super) fn replace(&self, old: &Arc<File>, replacement: Replacement) {
        let replaced = match self.open.borrow_mut().as_mut().filter(|open| Arc::ptr_eq(&open.file, old)) {
            Some(open) => open.replace(&self.path, replacement),
            // The journal was closed meanwhile.
            None => return,
        };
        match replaced {
            Ok(()) => self.succeeded(),
            // The thread may still complete the job.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.fail(&error),
            Err(error) => self.cannot_compact(&error),
        }
    }

    /// Reports that the file cannot be compacted now. It is tried again when the file has grown as much again.
    pub(super) fn cannot_compact(&self, error: &io::Error) {
        self.report(error);
        if let Some(open) = &mut *self.open.borrow_mut() {
            open.base = open.len;
        }
    }

    /// Closes the journal after a failure.
    pub(super) fn fail(&self, error: &io::Error) {
        *self.open.borrow_mut() = None;
        self.report(error);
        self.tasks.notify_one();
    }

    fn report(&self, error: &io::Error) {
        self.meter.snapshot_error();
        if !self.is_reported.replace(true) {
            let (file, reason) = (self.path.display(), host::errors::describe(error));
            warn!(target: LOG, "Snapshot {file} cannot be written: {reason}");
        }
    }

    fn succeeded(&self) {
        self.is_reported.set(false);
        self.health.has_snapshot();
    }
}

impl Open {
    fn new(file: Arc<File>, len: u64, base: u64, stage: Stage) -> io::Result<Open> {
        holds(base <= len, "the base of a log is a part of it");
        let writer = Writer::start(Arc::clone(&file))?;
        Ok(Open { writer, file, len, base, stage, buffer: Vec::new() })
    }

    /// Appends a record. Returns true if the file has grown by more than `growth` bytes just now.
    fn append<O: Serialize>(&mut self, record: &Record<'_, O>, urgent: bool, growth: u64) -> io::Result<bool> {
        record.append_to(&mut self.buffer).map_err(io::Error::other)?;
        if !urgent && self.buffer.len() < COLLECTED_MAX {
            return Ok(false);
        }
        let length = self.buffer.len() as u64;
        if self.len + length > FILE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let Done::Appended(buffer) = self.writer.call(Job::Append(core::mem::take(&mut self.buffer)))? else {
            return Err(another_job());
        };
        holds(buffer.is_empty(), "the records that were handed over are written");
        self.buffer = buffer;
        let had_grown = self.has_grown(growth);
        self.len += length;
        holds(self.len <= FILE_MAX, "the size of a snapshot is bounded");
        Ok(!had_grown && self.has_grown(growth))
    }

    fn has_grown(&self, growth: u64) -> bool {
        holds(self.base <= self.len, "the base of a log is a part of it");
        matches!(self.stage, Stage::InPlace) && self.len - self.base.min(self.len) > self.base.max(growth)
    }

    fn replace(&mut self, path: &Path, replacement: Replacement) -> io::Result<()> {
        holds(matches!(self.stage, Stage::InPlace), "a file that serves is replaced");
        let base = replacement.base;
        let job = Job::Replace(path.to_owned(), Box::new(replacement));
        let Done::Replaced(file, len) = self.writer.call(job)? else { return Err(another_job()) };
        (self.file, self.len, self.base) = (file, len, base);
        Ok(())
    }
}

/// Thread that writes.
struct Writer {
    /// `None` at the end.
    jobs: Option<SyncSender<Job>>,
    /// In a lock only because the watches are tasks, which the compiler wants to be movable between threads.
    done: Mutex<Receiver<io::Result<Done>>>,
}

enum Job {
    Append(Vec<u8>),
    Replace(PathBuf, Box<Replacement>),
}

enum Done {
    /// The buffer, emptied, for the next record.
    Appended(Vec<u8>),
    /// The new file and its length.
    Replaced(Arc<File>, u64),
}

impl Writer {
    /// Stack of the thread in bytes.
    const STACK: usize = 128 << 10;

    fn start(file: Arc<File>) -> io::Result<Writer> {
        let (jobs, receiver) = sync_channel(1);
        let (sender, done) = sync_channel(1);
        let run = move || work(&sender, &receiver, file);
        std::thread::Builder::new().name("snapshot".to_owned()).stack_size(Writer::STACK).spawn(run)?;
        Ok(Writer { jobs: Some(jobs), done: Mutex::new(done) })
    }

    /// Lets the thread do a job. After an error, the writer must be dropped.
    fn call(&self, job: Job) -> io::Result<Done> {
        let ended = || io::Error::other("the thread that writes has ended");
        let jobs = self.jobs.as_ref().expected("the queue of a writer that is open");
        jobs.ok_or_else(ended)?.send(job).map_err(|_| ended())?;
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(APPEND_MAX);
        done.map_err(|error| match error {
            RecvTimeoutError::Timeout => io::Error::new(io::ErrorKind::TimedOut, "the disk took longer than 1 s"),
            RecvTimeoutError::Disconnected => ended(),
        })?
    }
}

impl Drop for Writer {
    /// Waits until the file is closed, unless the disk blocks, so that it can be opened again.
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.done.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(CLOSE_MAX);
    }
}

/// Does jobs until there are no more. The file, which is locked, is closed before `done`.
/// Returns the error for the outcome of another job. A writer that is late is closed, so its outcomes are in order.
fn another_job() -> io::Error {
    broken("a writer reports each job in turn");
    io::Error::other("the writer did another job")
}

fn work(done: &SyncSender<io::Result<Done>>, jobs: &Receiver<Job>, mut file: Arc<File>) {
    while let Ok(job) = jobs.recv() {
        let outcome = match job {
            Job::Append(mut bytes) => (&*file).write_all(&bytes).map(|()| {
                bytes.clear();
                Done::Appended(bytes)
            }),
            Job::Replace(path, replacement) => replacement.finish(&path, &file).map(|len| {
                file = Arc::new(replacement.file);
                Done::Replaced(Arc::clone(&file), len)
            }),
        };
        if done.send(outcome).is_err() {
            return;
        }
    }
}
