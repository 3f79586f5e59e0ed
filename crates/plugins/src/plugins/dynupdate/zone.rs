//! A dynamic zone: the version that is served, and the updates that wait to be applied.
//!
//! Workers only put updates into a queue. One thread at a time takes all that wait, applies each of them to a draft,
//! builds the zone once, writes one piece to the journal and syncs it once. Then it publishes the zone, and only then
//! the clients get their answers. Workers never wait for the disk or for a lock that is held meanwhile.
//!
//! ```text
//!   worker ── submit ──► queue ──► batch: draft ─► build ─► journal, fsync ─► publish ──► answers
//! ```

use core::error::Error;
use core::fmt;
use core::net::IpAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use config::setup::InspectZone;
use engine::LineLimit;
use engine::log::Level;
use futures_channel::oneshot;
use host::invariant::{Expected as _, holds};
use wire::{EdeCode, Message, Name, Rcode};
use zone::update::journal::{self, HISTORY_MAX, History, JournalError};
use zone::update::{Applied, Change, Draft, UpdateError, UpdateLimits, UpdateRequest, records_len};
use zone::{Zone, ZoneError};

use super::limit::Limit;
use super::rules::Rules;
use super::storage::{FilePlace, OpenedZoneFile, ZoneFile, ZoneStorage};
use crate::shared::zone_store::{Held, ZoneMemory};

/// Maximum length in bytes of the messages that wait for one zone: about a second of small updates. More are refused,
/// so that a disk that stalls costs no memory.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of updates in a batch. It bounds the time of a client that waits for the others of its batch.
const BATCH_MAX: usize = 256;
/// Length in bytes of a journal beyond what its zone and history need: twice those, and one batch.
const JOURNAL_EXTRA: usize = 64 << 20;
/// Suffix under which a database of CoreDNS is kept.
const FOREIGN_SUFFIX: &str = ".coredns";

/// Update that waits to be applied.
pub(super) struct Pending {
    /// UPDATE message.
    pub(super) packet: Vec<u8>,
    /// Key that has signed it, in lower case.
    pub(super) key: Name,
    /// Address of the client.
    pub(super) client: IpAddr,
    /// Rules of the generation that received it.
    pub(super) rules: Arc<Rules>,
    /// Receives the outcome.
    pub(super) done: oneshot::Sender<UpdateOutcome>,
}

/// Outcome of an update.
#[derive(Clone, Debug)]
pub(super) struct UpdateOutcome {
    pub(super) rcode: Rcode,
    /// Reason for a client that uses EDNS; empty if the update was accepted.
    pub(super) text: String,
    pub(super) ede: EdeCode,
    pub(super) limit: Option<Limit>,
    /// Time of the commit in nanoseconds, for one update of each batch.
    pub(super) commit: Option<u64>,
}

impl UpdateOutcome {
    fn new(rcode: Rcode, ede: EdeCode, text: impl Into<String>) -> UpdateOutcome {
        UpdateOutcome { rcode, text: text.into(), ede, limit: None, commit: None }
    }

    /// Outcome of an update that found the queue full.
    pub(super) fn busy() -> UpdateOutcome {
        let outcome = UpdateOutcome::new(Rcode::SERVFAIL, EdeCode::OTHER, "too many updates wait for this zone");
        UpdateOutcome { limit: Some(Limit::Queue), ..outcome }
    }

    /// Outcome of an update that was lost, because the thread that had it panicked.
    pub(super) fn lost() -> UpdateOutcome {
        UpdateOutcome::new(Rcode::SERVFAIL, EdeCode::OTHER, "the update failed")
    }
}

impl From<&UpdateError> for UpdateOutcome {
    fn from(error: &UpdateError) -> UpdateOutcome {
        let ede = if error.rcode() == Rcode::REFUSED { EdeCode::PROHIBITED } else { EdeCode::OTHER };
        let limit = match error {
            UpdateError::ManyRecords(_) | UpdateError::LargeSet(_) => Some(Limit::Records),
            UpdateError::ManyBytes(_) => Some(Limit::Bytes),
            _ => None,
        };
        UpdateOutcome { limit, ..UpdateOutcome::new(error.rcode(), ede, error.to_string()) }
    }
}

/// A dynamic zone. It outlives a reload.
pub(super) struct DynamicZone {
    /// Content that is served.
    pub(super) held: Arc<Held>,
    host: Arc<dyn ZoneStorage>,
    memory: ZoneMemory,
    /// Path of the journal; `None` for a zone that is only in memory.
    path: Option<PathBuf>,
    /// Changes that lead to the content, for incremental transfers.
    history: ArcSwap<History>,
    /// Length of all records, uncompressed.
    bytes: AtomicUsize,
    queue: Mutex<Queue>,
    store: Mutex<Store>,
    /// Error of the last write of the journal, if it failed.
    failure: Mutex<Option<String>>,
}

impl InspectZone for DynamicZone {
    fn problem(&self) -> Option<String> {
        let (error, path) = (lock(&self.failure).clone()?, self.path.as_ref()?);
        let (origin, path) = (&self.held.origin, path.display());
        Some(format!("zone {origin}: updates fail, because database {path} cannot be written: {error}"))
    }
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    bytes: usize,
    /// True while a thread takes updates from the queue.
    is_running: bool,
    /// Bounds the lines about updates that found the queue full.
    full: LineLimit,
}

/// Journal on the disk.
#[derive(Default)]
struct Store {
    /// `None` until the journal exists.
    file: Option<Box<dyn ZoneFile>>,
    /// Length of its valid part in bytes.
    len: usize,
    /// True if the file must be replaced: after a failed write, what is behind `len` is unknown.
    is_broken: bool,
    /// True for a database of CoreDNS, which is kept under another name when it is replaced.
    is_foreign: bool,
}

impl DynamicZone {
    /// Creates a zone without content.
    pub(super) fn new(
        origin: &Name,
        path: Option<PathBuf>,
        host: Arc<dyn ZoneStorage>,
        memory: ZoneMemory,
    ) -> DynamicZone {
        DynamicZone {
            held: Arc::new(Held::new(origin.as_ref())),
            host,
            memory,
            path,
            history: ArcSwap::default(),
            bytes: AtomicUsize::default(),
            queue: Mutex::default(),
            store: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Loads the journal. Returns false if it does not exist. Changes nothing on the disk.
    ///
    /// # Errors
    /// The journal cannot be used. The zone must not be served from its seed then.
    pub(super) fn load(&self, limits: UpdateLimits) -> Result<bool, StoreError> {
        let Some(path) = &self.path else { return Ok(false) };
        let failed = |error| StoreError::Open(path.clone(), error);
        let len_max = 4 * (limits.bytes + HISTORY_MAX) + JOURNAL_EXTRA;
        let opened = self.host.open(path, u64::try_from(len_max).unwrap_or(u64::MAX)).map_err(failed)?;
        let Some(OpenedZoneFile { file, contents }) = opened else { return Ok(false) };
        let within = zone::Limits { records: limits.records, bytes: limits.bytes, ..self.memory.limits(&self.held) };
        let loaded = journal::read(&contents, self.held.origin.as_ref(), within);
        let restored = loaded.map_err(|error| StoreError::Journal(path.clone(), error))?;
        holds(
            restored.is_foreign || restored.len + restored.torn == contents.len(),
            "each byte of a journal is valid or torn",
        );
        if restored.torn > 0 {
            let (path, torn) = (path.display(), restored.torn);
            let message = format!("database {path}: dropped {torn} bytes of an update that a crash has cut");
            self.host.log(Level::Warning, &message);
        }
        let is_foreign = restored.is_foreign;
        *self.store() = Store { file: Some(file), len: restored.len, is_broken: is_foreign, is_foreign };
        self.publish(restored.zone, restored.history);
        Ok(true)
    }

    /// Starts with the content of the seed.
    pub(super) fn start_with(&self, seed: Zone) {
        self.publish(seed, History::default());
    }

    /// Returns true if the content is within the limits.
    pub(super) fn check(&self, limits: UpdateLimits) -> Result<(), UpdateError> {
        let records = self.held.known().map_or(0, |zone| zone.len());
        match self.bytes() {
            _ if records > limits.records => Err(UpdateError::ManyRecords(limits.records)),
            bytes if bytes > limits.bytes => Err(UpdateError::ManyBytes(limits.bytes)),
            _ => Ok(()),
        }
    }

    /// Creates the journal if the zone has one that does not exist, or no longer exists. Called when the zone begins to
    /// serve, because a configuration that never serves must not leave one.
    pub(super) fn create_journal(&self) {
        let mut store = self.store();
        let (Some(path), Some(zone)) = (&self.path, self.held.known()) else { return };
        let history = self.history.load();
        let written = match store.file.is_some() {
            true => self.find_journal(&mut store).and_then(|()| {
                // A database of CoreDNS is replaced by the first update.
                if store.is_broken && !store.is_foreign { Self::replace(&mut store, &zone, &history) } else { Ok(()) }
            }),
            false => self.create(&mut store, &zone, &history),
        };
        self.note(written.as_ref().err());
        if let Err(error) = written {
            let (origin, path) = (&self.held.origin, path.display());
            self.host.log(Level::Error, &format!("zone {origin}: cannot write database {path}: {error}"));
        }
    }

    /// Length of all records in bytes, uncompressed.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the changes that lead to the newest version.
    pub(super) fn history(&self) -> Arc<History> {
        self.history.load_full()
    }

    /// Puts an update into the queue. Returns false, and logs the update, if the queue is full.
    pub(super) fn submit(self: &Arc<Self>, pending: Pending) -> bool {
        let mut queue = lock(&self.queue);
        let left_out = queue.full.end_second(self.host.now());
        if queue.bytes + pending.packet.len() > QUEUE_BYTES_MAX {
            let may_log = queue.full.admit(self.host.now());
            drop(queue);
            self.report_left_out(left_out);
            if may_log {
                self.report(&pending, &Judged { outcome: UpdateOutcome::busy(), serial: None }, None);
            }
            return false;
        }
        queue.bytes += pending.packet.len();
        queue.pending.push_back(pending);
        holds(queue.bytes <= QUEUE_BYTES_MAX, "the queue is bounded");
        let is_running = core::mem::replace(&mut queue.is_running, true);
        drop(queue);
        self.report_left_out(left_out);
        if !is_running {
            let zone = Arc::clone(self);
            self.host.run(Box::new(move || zone.work()));
        }
        true
    }

    /// Logs how many updates that found the queue full had no line of their own within the last second. The log may
    /// wait for a disk, so the queue must not be locked.
    fn report_left_out(&self, left_out: u64) {
        if left_out > 0 {
            let text = format!("zone {}: {left_out} more updates refused within a second", self.held.origin);
            self.host.log(Level::Info, &text);
        }
    }

    /// Applies the updates in the queue until it is empty.
    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            holds(queue.is_running, "one thread at a time applies updates");
            let count = queue.pending.len().min(BATCH_MAX);
            let batch: Vec<Pending> = queue.pending.drain(..count).collect();
            let bytes = batch.iter().map(|pending| pending.packet.len()).sum::<usize>();
            holds(bytes <= queue.bytes, "the bytes of an update in the queue were counted");
            queue.bytes -= bytes;
            holds(!queue.pending.is_empty() || queue.bytes == 0, "a queue without updates has no bytes");
            queue.is_running = !batch.is_empty();
            drop(queue);
            if batch.is_empty() {
                return;
            }
            // A panic costs this batch: its clients get SERVFAIL, and the zone stays as it is.
            let applied = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| self.apply(batch)));
            if applied.is_err() {
                self.host.log(Level::Error, &format!("zone {}: a panic has ended updates", self.held.origin));
            }
        }
    }

    /// Applies updates one after another, stores the result, and answers.
    fn apply(&self, batch: Vec<Pending>) {
        let Some(base) = self.held.known().expected("the content of a zone that takes updates") else { return };
        let begun = self.host.now();
        let mut draft = Draft::new(base);
        let mut changes = Vec::new();
        let judged: Vec<_> = batch.iter().map(|pending| judge(pending, &mut draft, &mut changes)).collect();
        let changed = judged.iter().filter(|judged| judged.serial.is_some()).count();
        holds(changed == changes.len(), "each update that changes the zone has its change");
        let committed = if changes.is_empty() { Ok(()) } else { self.commit(&draft, changes) };
        let nanos = self.host.now().nanos().saturating_sub(begun.nanos());
        let mut commit = judged.iter().any(|judged| judged.serial.is_some()).then_some(nanos);
        for (pending, judged) in batch.into_iter().zip(judged) {
            let outcome = match &committed {
                Ok(()) => UpdateOutcome { commit: commit.take(), ..judged.outcome.clone() },
                // Each outcome may depend on a change that was not stored.
                Err(error) => UpdateOutcome::new(Rcode::SERVFAIL, EdeCode::OTHER, error.public_text()),
            };
            self.report(&pending, &judged, committed.as_ref().err());
            let _ = pending.done.send(outcome);
        }
    }

    /// Builds and stores the next version, and publishes it.
    fn commit(&self, draft: &Draft, changes: Vec<Change>) -> Result<(), StoreError> {
        holds(!changes.is_empty(), "a version that is stored has changes");
        let follow = |pair: &[Change]| matches!(pair, [one, next] if one.to == next.from);
        holds(changes.windows(2).all(follow), "each change follows the one before");
        let zone = draft.build(self.memory.limits(&self.held)).map_err(StoreError::Zone)?;
        let serial = zone.soa().map(|soa| soa.serial);
        holds(serial == changes.last().map(|change| change.to), "the version is that of the last change");
        holds(zone.len() == draft.records(), "a draft counts its records");
        debug_assert!(records_len(&zone) == draft.bytes(), "a draft counts the bytes of its records");
        let mut piece = Vec::new();
        let mut history = History::clone(&self.history.load());
        for change in changes {
            journal::append(&mut piece, &change);
            history.push(change);
        }
        // Held until the version is published: what `create_journal` writes meanwhile would be the one before.
        let mut store = self.store();
        if let Some(path) = &self.path {
            let written = self.write(&mut store, &piece, &zone, &history);
            self.note(written.as_ref().err());
            written.map_err(|error| StoreError::Write(path.clone(), error))?;
        }
        self.publish_sized(zone, history, draft.bytes());
        Ok(())
    }

    /// Writes a version to the journal.
    fn write(&self, store: &mut Store, piece: &[u8], zone: &Zone, history: &History) -> io::Result<()> {
        if store.file.is_none() {
            return self.create(store, zone, history);
        }
        self.find_journal(store)?;
        if store.is_broken || journal::is_long(store.len + piece.len(), self.bytes()) {
            return Self::replace(store, zone, history);
        }
        let Some(file) = &mut store.file else { return Ok(()) };
        let at = u64::try_from(store.len).unwrap_or(u64::MAX);
        holds(store.len > 0, "a journal begins with its snapshot");
        store.is_broken = true;
        file.append(at, piece)?;
        (store.len, store.is_broken) = (store.len + piece.len(), false);
        Ok(())
    }

    /// Makes sure that the journal is still the file under its path. If it was removed, the next write makes a new one.
    ///
    /// # Errors
    /// The path leads to another file. That may be the zone of another process, so it is not replaced.
    fn find_journal(&self, store: &mut Store) -> io::Result<()> {
        let Some(file) = &store.file else { return Ok(()) };
        match file.place()? {
            FilePlace::Own => {}
            FilePlace::Taken => {
                let message = "another file has taken its place; remove that one to keep the zone as it is served, or \
                               restart to serve what it has";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            // Nothing is left of a database of CoreDNS that could be kept.
            FilePlace::Removed => {
                (store.is_broken, store.is_foreign) = (true, false);
                let (origin, path) = (&self.held.origin, self.path.as_deref().unwrap_or(Path::new("")).display());
                let message = format!("zone {origin}: database {path} was removed while in use: writing a new one");
                self.host.log(Level::Warning, &message);
            }
        }
        Ok(())
    }

    /// Replaces the journal by a new one.
    fn replace(store: &mut Store, zone: &Zone, history: &History) -> io::Result<()> {
        let Some(file) = &mut store.file else { return Ok(()) };
        let contents = journal::write(zone, history);
        if store.is_foreign {
            file.keep(FOREIGN_SUFFIX)?;
        }
        store.is_broken = true;
        holds(!contents.is_empty(), "a journal has its snapshot");
        file.replace(&contents)?;
        (store.len, store.is_broken, store.is_foreign) = (contents.len(), false, false);
        Ok(())
    }

    fn create(&self, store: &mut Store, zone: &Zone, history: &History) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let contents = journal::write(zone, history);
        *store = Store { file: Some(self.host.create(path, &contents)?), len: contents.len(), ..Store::default() };
        Ok(())
    }

    fn publish(&self, zone: Zone, history: History) {
        let bytes = records_len(&zone);
        self.publish_sized(zone, history, bytes);
    }

    fn publish_sized(&self, zone: Zone, history: History, bytes: usize) {
        self.history.store(Arc::new(history));
        self.bytes.store(bytes, Ordering::Relaxed);
        self.held.set(zone);
    }

    /// Records the result of the last write for the status.
    fn note(&self, error: Option<&io::Error>) {
        *lock(&self.failure) = error.map(io::Error::to_string);
    }

    /// Logs an update: the zone, the key, the client and the result.
    fn report(&self, pending: &Pending, judged: &Judged, failed: Option<&StoreError>) {
        let (origin, key, client) = (&self.held.origin, &pending.key, pending.client);
        let about = format!("update of zone {origin} by key {key} from {client}");
        let UpdateOutcome { rcode, text, .. } = &judged.outcome;
        let (level, result) = match (failed, judged.serial) {
            (Some(error), _) => (Level::Error, format!("SERVFAIL: {error}")),
            (None, Some((serial, records))) => {
                (Level::Info, format!("{rcode}: {records} changes, SOA serial {serial}"))
            }
            (None, None) if *rcode == Rcode::NOERROR => (Level::Info, format!("{rcode}: nothing to change")),
            (None, None) => (Level::Info, format!("{rcode}: {text}")),
        };
        self.host.log(level, &format!("{about}: {result}"));
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

/// Outcome of an update, if the batch can be stored.
struct Judged {
    outcome: UpdateOutcome,
    /// New serial, and number of removed and added records without the SOA records; `None` if nothing changed.
    serial: Option<(u32, usize)>,
}

/// Applies an update to the draft.
fn judge(pending: &Pending, draft: &mut Draft, changes: &mut Vec<Change>) -> Judged {
    let Pending { packet, key, rules, .. } = pending;
    let malformed = || UpdateOutcome::new(Rcode::FORMERR, EdeCode::OTHER, "the message is malformed");
    let Ok(message) = Message::parse(packet) else { return Judged { outcome: malformed(), serial: None } };
    let applied = match UpdateRequest::read(&message) {
        Ok(request) => draft.apply(&request, |owner, rtype| rules.allow(key, owner, rtype), rules.limits),
        Err(error) => {
            let outcome = UpdateOutcome { text: error.to_string(), ..malformed() };
            return Judged { outcome, serial: None };
        }
    };
    let accepted = UpdateOutcome::new(Rcode::NOERROR, EdeCode::OTHER, "");
    match applied {
        Ok(Applied::Unchanged) => Judged { outcome: accepted, serial: None },
        Ok(Applied::Changed(change)) => {
            let serial = Some((change.to, change.records().saturating_sub(2)));
            changes.push(change);
            Judged { outcome: accepted, serial }
        }
        Err(error) => Judged { outcome: UpdateOutcome::from(&error), serial: None },
    }
}

/// Reason why a journal could not be read or written.
#[derive(Debug)]
pub(super) enum StoreError {
    /// The journal cannot be opened.
    Open(PathBuf, io::Error),
    /// The journal cannot be used.
    Journal(PathBuf, JournalError),
    /// The journal cannot be written.
    Write(PathBuf, io::Error),
    /// The next version cannot be built.
    Zone(ZoneError),
}

impl StoreError {
    /// Text for the client, without names of files.
    const fn public_text(&self) -> &'static str {
        match self {
            StoreError::Zone(_) => "the new version of the zone could not be built",
            _ => "the new version of the zone could not be stored",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Open(path, error) if error.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "opening database {:?}: another process uses it", path.display())
            }
            StoreError::Open(path, error) => write!(f, "opening database {:?}: {error}", path.display()),
            StoreError::Journal(path, error) => write!(f, "loading database {:?}: {error}", path.display()),
            StoreError::Write(path, error) => write!(f, "cannot write database {}: {error}", path.display()),
            StoreError::Zone(error) => error.fmt(f),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Open(_, error) | StoreError::Write(_, error) => Some(error),
            StoreError::Journal(_, error) => Some(error),
            StoreError::Zone(error) => Some(error),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "zone_tests.rs"]
mod tests;
