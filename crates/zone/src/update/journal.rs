//! Journal of a dynamic zone: a file that is only appended to, and replaced as a whole when it has grown.
//!
//! ```text
//!   magic, then entries: kind (1 byte), length (4), checksum (8), payload
//!
//!   Zone ─ Past … ─ Snapshot ─ Change ─ Change ─ … ◄── each batch of updates appends one piece, then one fsync
//!     │      │         │          └─ versions after the snapshot, applied when the file is read
//!     │      │         └─ all records of one version
//!     │      └─ changes before the snapshot, only for incremental transfers
//!     └─ name of the zone
//! ```
//!
//! A crash can cut the last append anywhere, and none of the updates in it was acknowledged. So an incomplete entry at
//! the end of the file is dropped when it is read. Everything else that is wrong is an error: what was acknowledged is
//! never dropped, and never replaced by the seed.

use core::error::Error;
use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

use wire::{Class, Name, NameRef};

use super::bbolt;
use super::change::{Change, WireRecords, push_record};
use super::checksum::{fnv, fnv_from};
use super::draft::Draft;
use super::seed::{InvalidSeed, check_seed};
use crate::text::is_well_formed;
use crate::{Builder, Limits, Zone, ZoneError};

/// First bytes of a journal: the format and its version.
pub const MAGIC: &[u8] = b"portolan zone journal 1\n";
/// Length in bytes of an entry before its payload.
const HEADER_LEN: usize = 1 + 4 + 8;
/// Memory in bytes for the changes that are kept for incremental transfers. Beyond, the whole zone of such a client
/// costs about as much.
pub const HISTORY_MAX: usize = 1 << 20;
/// Length in bytes from which a journal is replaced, unless its snapshot is longer. A small zone is rewritten rarely.
const REWRITE_MIN: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zone = b'Z' as isize,
    Past = b'P' as isize,
    Snapshot = b'S' as isize,
    Change = b'C' as isize,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Zone, Kind::Past, Kind::Snapshot, Kind::Change].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Changes that lead to the current version, newest last, within [`HISTORY_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
}

impl History {
    /// Returns true if a change begins at the version that the newest one leads to.
    fn continues_with(&self, change: &Change) -> bool {
        self.changes.back().is_none_or(|newest| newest.to == change.from)
    }

    /// Adds the newest change, and drops the oldest ones that do not fit.
    pub fn push(&mut self, change: Change) {
        debug_assert!(self.continues_with(&change), "a change follows the one before");
        self.bytes += change.len();
        self.changes.push_back(Arc::new(change));
        while self.bytes > HISTORY_MAX {
            let oldest = self.changes.pop_front();
            debug_assert!(oldest.is_some(), "without changes there are no bytes");
            let Some(oldest) = oldest else { return };
            debug_assert!(oldest.len() <= self.bytes, "the bytes of a change were counted");
            self.bytes -= oldest.len();
        }
        debug_assert!(self.bytes == 0 || !self.changes.is_empty(), "only changes take room");
    }

    /// Returns the changes since a version, oldest first. `None` if the version is unknown, or if the changes are
    /// longer than `most` bytes.
    #[must_use]
    pub fn since(&self, serial: u32, most: usize) -> Option<VecDeque<Arc<Change>>> {
        let at = self.changes.iter().rposition(|change| change.from == serial)?;
        let changes: VecDeque<_> = self.changes.range(at..).cloned().collect();
        debug_assert!(changes.front().is_some_and(|first| first.from == serial), "the changes begin at the version");
        let bytes: usize = changes.iter().map(|change| change.len()).sum();
        (bytes <= most).then_some(changes)
    }

    /// Memory of the changes in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Zone that was read from a journal.
pub struct Restored {
    /// Newest version.
    pub zone: Zone,
    /// Changes that lead to it.
    pub history: History,
    /// Length in bytes of the valid part of the file. Appending must start there.
    pub len: usize,
    /// True for a database of CoreDNS, which must be replaced by a journal before the first change.
    pub is_foreign: bool,
    /// Number of bytes of an incomplete entry after it.
    pub torn: usize,
}

/// Reason why a journal cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalError {
    /// The file is not a journal.
    Format,
    /// The file is a database of CoreDNS that is damaged, or has other contents.
    Bbolt,
    /// The journal belongs to this zone.
    OtherZone(Box<Name>),
    /// The entry at this offset is damaged, and entries follow it.
    Damaged(usize),
    /// The file ends before the snapshot is complete.
    NoSnapshot,
    /// A change does not follow the version before it.
    Mismatch {
        /// Serial before the change.
        from: u32,
        /// Serial after it.
        to: u32,
    },
    /// The records do not form a valid zone within the limits.
    Zone(ZoneError),
    /// Updates cannot keep the zone correct.
    Seed(InvalidSeed),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Format => f.write_str("unrecognized database format"),
            JournalError::Bbolt => f.write_str("unrecognized database format: it is a damaged bbolt file"),
            JournalError::OtherZone(name) => write!(f, "database belongs to a different zone: {name}"),
            JournalError::Damaged(at) => write!(f, "database is damaged at byte {at}; restore a backup"),
            JournalError::NoSnapshot => f.write_str("database is incomplete; restore a backup"),
            JournalError::Mismatch { from, to } => {
                write!(
                    f,
                    "database is damaged: the change from serial {from} to {to} does not follow; restore a backup"
                )
            }
            JournalError::Zone(error) => error.fmt(f),
            JournalError::Seed(error) => error.fmt(f),
        }
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            JournalError::Zone(error) => Some(error),
            JournalError::Seed(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns the contents of a new journal: all records of a zone, and the changes that led to it.
#[must_use]
pub fn write(zone: &Zone, history: &History) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    push_entry(&mut file, Kind::Zone, zone.origin().as_bytes());
    for change in &history.changes {
        push_change(&mut file, Kind::Past, change);
    }
    let mut records = Vec::new();
    if let Some(soa) = zone.soa_set() {
        push_record(&mut records, zone.origin().as_bytes(), (soa.rtype, soa.ttl), soa.first());
    }
    for (_, owner, set) in zone.sets_from(0) {
        for data in set.data() {
            push_record(&mut records, owner.as_bytes(), (set.rtype, set.ttl), data);
        }
    }
    push_entry(&mut file, Kind::Snapshot, &records);
    file
}

/// Appends a change to bytes that are to be appended to a journal.
pub fn append(bytes: &mut Vec<u8>, change: &Change) {
    push_change(bytes, Kind::Change, change);
}

/// Returns true if a journal of `len` bytes is to be replaced, because most of it is no longer needed. `zone_len` is
/// the length of the records of the zone.
#[must_use]
pub fn is_long(len: usize, zone_len: usize) -> bool {
    len > 2 * (zone_len + HISTORY_MAX).max(REWRITE_MIN)
}

fn push_change(file: &mut Vec<u8>, kind: Kind, change: &Change) {
    let mut payload = Vec::with_capacity(change.len() + 12);
    payload.extend(change.from.to_be_bytes());
    payload.extend(change.to.to_be_bytes());
    payload.extend(length(change.removed.len()));
    payload.extend_from_slice(&change.removed);
    payload.extend_from_slice(&change.added);
    push_entry(file, kind, &payload);
}

fn push_entry(file: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
    let start = file.len();
    file.push(kind as u8);
    file.extend(length(payload.len()));
    file.extend(checksum(kind, payload).to_be_bytes());
    file.extend_from_slice(payload);
    debug_assert!(
        entry(&file[start..]).is_some_and(|(.., rest)| rest.is_empty()),
        "an entry is read as it was written"
    );
}

fn length(len: usize) -> [u8; 4] {
    let length = u32::try_from(len);
    debug_assert!(length.is_ok(), "a zone has at most 4 GiB of data");
    length.unwrap_or(u32::MAX).to_be_bytes()
}

/// Checksum of an entry. It detects damage; the file is not protected against forgery.
fn checksum(kind: Kind, payload: &[u8]) -> u64 {
    let [one, two, three, four] = length(payload.len());
    fnv_from(fnv(&[kind as u8, one, two, three, four]), payload)
}

impl Draft {
    /// Applies a change of a journal, in place: a name with many records is copied once for all changes.
    ///
    /// # Errors
    /// The change does not follow this version. The draft is unspecified then.
    pub fn replay(&mut self, change: &Change) -> Result<(), JournalError> {
        let mismatch = JournalError::Mismatch { from: change.from, to: change.to };
        let is_next = self.serial() == change.from
            && WireRecords(&change.removed).all(|record| self.remove_exactly(&record))
            && WireRecords(&change.added).all(|record| self.add_exactly(&record));
        if is_next && self.serial() == change.to { Ok(()) } else { Err(mismatch) }
    }
}

/// Reads an entry. Returns the rest of the bytes as well. `None` if it is incomplete or damaged.
fn entry(bytes: &[u8]) -> Option<(Kind, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let kind = Kind::of(header[0])?;
    let (len, sum) = header[1..].split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (payload, rest) = rest.split_at_checked(len)?;
    (checksum(kind, payload).to_be_bytes() == *sum).then_some((kind, payload, rest))
}

/// Returns true if an entry starts somewhere in `bytes`. Then what is before it was not cut by a crash.
fn has_entry(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((_, after)) = rest.split_first() {
        // A false start would have to match a checksum of 64 bits.
        if entry(rest).is_some() {
            return true;
        }
        rest = after;
    }
    false
}

fn change(payload: &[u8]) -> Option<Change> {
    let (head, rest) = payload.split_first_chunk::<12>()?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (removed, added) = rest.split_at_checked(usize::try_from(word(8)).ok()?)?;
    Some(Change { from: word(0), to: word(4), removed: removed.into(), added: added.into() })
}

/// Reads a journal, or a database of CoreDNS.
///
/// # Errors
/// The file is not a complete journal of this zone. Bytes that a crash left at the end are not an error.
pub fn read(file: &[u8], origin: NameRef<'_>, limits: Limits) -> Result<Restored, JournalError> {
    let Some(mut rest) = file.strip_prefix(MAGIC) else {
        return if bbolt::is_bbolt(file) { read_bbolt(file, origin, limits) } else { Err(JournalError::Format) };
    };
    let mut reading = Reading { origin, limits, named: false, draft: None, history: History::default() };
    while let Some((kind, payload, after)) = entry(rest) {
        reading.take(kind, payload, file.len() - rest.len())?;
        rest = after;
    }
    let len = file.len() - rest.len();
    debug_assert!(len >= MAGIC.len(), "the valid part has the magic");
    if has_entry(rest.get(1..).unwrap_or_default()) {
        return Err(JournalError::Damaged(len));
    }
    let draft = reading.draft.ok_or(JournalError::NoSnapshot)?;
    let zone = draft.build(limits).map_err(JournalError::Zone)?;
    check_seed(&zone).map_err(JournalError::Seed)?;
    Ok(Restored { zone, history: reading.history, len, is_foreign: false, torn: rest.len() })
}

/// Reads a database of CoreDNS.
fn read_bbolt(file: &[u8], origin: NameRef<'_>, limits: Limits) -> Result<Restored, JournalError> {
    let database = bbolt::read(file).ok_or(JournalError::Bbolt)?;
    let name = core::str::from_utf8(database.origin).ok().and_then(|text| Name::from_text(text).ok());
    let name = name.ok_or(JournalError::Bbolt)?;
    if !name.as_ref().same(origin) {
        return Err(JournalError::OtherZone(Box::new(name)));
    }
    let zone = zone(database.records, origin, limits).ok_or(JournalError::Bbolt)?.map_err(JournalError::Zone)?;
    check_seed(&zone).map_err(JournalError::Seed)?;
    Ok(Restored { zone, history: History::default(), len: 0, is_foreign: true, torn: 0 })
}

struct Reading<'r> {
    origin: NameRef<'r>,
    limits: Limits,
    named: bool,
    draft: Option<Draft>,
    history: History,
}

impl Reading<'_> {
    /// Takes the entry at offset `at`.
    fn take(&mut self, kind: Kind, payload: &[u8], at: usize) -> Result<(), JournalError> {
        let damaged = || JournalError::Damaged(at);
        match (kind, &mut self.draft) {
            (Kind::Zone, None) if !self.named => {
                let name = NameRef::from_bytes(payload).map_err(|_| damaged())?;
                if !name.same(self.origin) {
                    return Err(JournalError::OtherZone(Box::new(name.to_name())));
                }
                self.named = true;
            }
            (Kind::Past, None) if self.named => {
                let past = change(payload).filter(|past| self.history.continues_with(past));
                self.history.push(past.ok_or_else(damaged)?);
            }
            (Kind::Snapshot, None) if self.named => {
                let zone = zone(payload, self.origin, self.limits).ok_or_else(damaged)?;
                self.draft = Some(Draft::new(Arc::new(zone.map_err(JournalError::Zone)?)));
            }
            (Kind::Change, Some(draft)) => {
                let change = change(payload).filter(|change| self.history.continues_with(change));
                let change = change.ok_or_else(damaged)?;
                draft.replay(&change)?;
                self.history.push(change);
            }
            _ => return Err(damaged()),
        }
        Ok(())
    }
}

/// Builds a zone from its records. `None` if they are malformed.
fn zone(bytes: &[u8], origin: NameRef<'_>, limits: Limits) -> Option<Result<Zone, ZoneError>> {
    let mut builder = Builder::new(origin).within(limits);
    let mut records = WireRecords(bytes);
    for record in records.by_ref() {
        if !is_well_formed(record.rtype, record.rdata) {
            return None;
        }
        if let Err(error) = builder.add(record.owner, (record.rtype, Class::IN, record.ttl), record.rdata) {
            return Some(Err(error));
        }
    }
    (records.0.is_empty() && builder.strangers() == 0).then(|| builder.finish())
}
