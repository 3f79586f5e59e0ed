//! Replaces a file by one with only the records that count, while the journal goes on.
//!
//! A blocking thread writes the new file from the old one, and copies what has been appended meanwhile. The rest, which
//! is short, is copied by the thread that appends, between two records. So none is lost, and none is written twice.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use cluster::snapshot::{Compaction, Piece};
use host::invariant::holds;
use transport::files::is_at;

use super::file::{self, Header};
use super::reader::Reader;

/// Maximum number of bytes that the thread of the journal copies.
const REST_MAX: u64 = 1 << 20;
/// Maximum number of times that what has been appended meanwhile is copied.
const ROUNDS_MAX: u32 = 20;

/// New file that is about to replace the old one.
pub(super) struct Replacement {
    pub(super) file: File,
    /// Length of the base at its begin.
    pub(super) base: u64,
    /// Number of bytes of the old file that it has the content of.
    copied: u64,
}

impl Replacement {
    /// Writes a new file beside the old one.
    pub(super) fn write(path: &Path, header: &Header, old: &File) -> io::Result<Replacement> {
        let new = file::create(path, header)?;
        let mut copied = old.metadata()?.len();
        copied = compact(old, copied, &new)?;
        let base = new.metadata()?.len();
        new.sync_all()?;
        for _ in 0..ROUNDS_MAX {
            let rest = appended(old, copied)?;
            if rest <= REST_MAX / 4 {
                new.sync_all()?;
                return Ok(Replacement { file: new, base, copied });
            }
            copied = copy(old, copied, copied + rest, &new)?;
        }
        Err(io::Error::other("the events came faster than they could be copied"))
    }

    /// Completes the new file with the rest of the old one, and makes it the snapshot. Returns its length.
    pub(super) fn finish(&self, path: &Path, old: &File) -> io::Result<u64> {
        let rest = appended(old, self.copied)?;
        if rest > REST_MAX {
            return Err(io::Error::other("too many events came meanwhile"));
        }
        if !is_at(old, path).unwrap_or(false) {
            return Err(io::Error::other("another process has replaced the snapshot"));
        }
        copy(old, self.copied, self.copied + rest, &self.file)?;
        file::publish(path, &self.file)?;
        Ok(self.file.metadata()?.len())
    }
}

/// Returns the number of bytes of a file after an offset. One that ends before it was cut by another process, and has
/// lost records.
fn appended(file: &File, offset: u64) -> io::Result<u64> {
    let length = file.metadata()?.len();
    length.checked_sub(offset).ok_or_else(|| io::Error::other("another process has cut the snapshot"))
}

/// Writes the records that count among those up to an offset. Returns the offset after the last one.
fn compact(old: &File, end: u64, new: &File) -> io::Result<u64> {
    let (mut compaction, mut reader) = (Compaction::default(), Reader::new(old, Header::LEN, end));
    while let Some((offset, length, record)) = reader.next()? {
        compaction.add(&record, offset, length);
    }
    let (mut new, mut bytes) = (BufWriter::with_capacity(256 << 10, new), Vec::new());
    compaction.finish(|piece| {
        bytes.clear();
        match piece {
            Piece::New(record) => record.append_to(&mut bytes).map_err(io::Error::other)?,
            Piece::Copy { offset, length } => {
                bytes.resize(usize::try_from(length).unwrap_or_default(), 0);
                old.read_exact_at(&mut bytes, offset)?;
            }
        }
        new.write_all(&bytes)
    })?;
    new.flush()?;
    holds(reader.offset() <= end, "a log is read up to its end");
    Ok(reader.offset())
}

fn copy(old: &File, mut from: u64, to: u64, mut new: &File) -> io::Result<u64> {
    let mut bytes = vec![0; 64 << 10];
    while from < to {
        let part = usize::try_from(to - from).unwrap_or(usize::MAX).min(bytes.len());
        let read = old.read_at(&mut bytes[..part], from)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        new.write_all(&bytes[..read])?;
        from += read as u64;
    }
    Ok(to)
}
