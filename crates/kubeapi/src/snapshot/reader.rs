//! Reads the records of a file in parts, so that memory does not grow with the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use cluster::snapshot::{Record, length_of_first};
use host::invariant::{Expected as _, holds};

/// Number of bytes that are read at once, unless a record is longer.
const PART: usize = 256 << 10;

/// Reader of the records in a part of a file.
pub(super) struct Reader<'f> {
    file: &'f File,
    /// Offset after the bytes in the buffer.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that belong to records before.
    done: usize,
}

impl<'f> Reader<'f> {
    /// Reads from one offset to another.
    pub(super) fn new(file: &'f File, begin: u64, end: u64) -> Reader<'f> {
        Reader { file, at: begin, end, buffer: Vec::new(), done: 0 }
    }

    /// Returns the offset of the next record.
    pub(super) fn offset(&self) -> u64 {
        holds(self.done <= self.buffer.len(), "records are read from what is buffered");
        self.at - (self.buffer.len() - self.done) as u64
    }

    /// Returns the next record with its offset and length, or `None` at the end or at the first damage.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, u32, Record<'_>)>> {
        loop {
            let Ok(length) = length_of_first(&self.buffer[self.done..]) else { return Ok(None) };
            if length.is_some_and(|length| self.done + length <= self.buffer.len()) {
                break;
            }
            if !self.fill(length.unwrap_or(0).max(PART))? {
                return Ok(None);
            }
        }
        let offset = self.offset();
        let Some((record, length)) = Record::first_of(&self.buffer[self.done..]) else { return Ok(None) };
        self.done += length;
        let length = u32::try_from(length).ok().expected("the length of a record");
        Ok(length.map(|length| (offset, length, record)))
    }

    /// Reads more, up to this number of bytes in the buffer. Returns false at the end.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        self.buffer.drain(..self.done);
        self.done = 0;
        let known = self.buffer.len();
        let more = (wanted.saturating_sub(known) as u64).min(self.end.saturating_sub(self.at));
        let more = usize::try_from(more).ok().expected("a part that fits in memory").unwrap_or_default();
        self.buffer.resize(known + more, 0);
        let read = self.file.read_at(&mut self.buffer[known..], self.at)?;
        holds(read <= more, "no more is read than there is room for");
        self.buffer.truncate(known + read);
        self.at += read as u64;
        Ok(read > 0)
    }
}
