//! File with one line of JSON per difference.
//!
//! The job appends lines to a bounded buffer. A thread that may block writes them to the file once a second.

use core::time::Duration;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::setup::{FileCheck, ShadowAnswer, ShadowExample};
use engine::log::{Level, Notice};
use serde_json::{Value, json};

/// Interval between writes.
pub(super) const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Maximum size of the file in bytes: some 100,000 differences, more than anybody reads.
const FILE_MAX: u64 = 64 << 20;
/// Maximum size in bytes of the lines that wait, about two thousand differences per second.
const WAITING_MAX: usize = 1 << 20;

/// File for differences.
pub(super) struct DifferenceFile {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Number of lines lost since the last write.
    lost: u64,
    /// True if the last write failed or found the file full, so that this is logged once.
    has_failed: bool,
}

/// Difference of one query, as it is written.
pub(super) struct Line<'a> {
    pub(super) zone: &'a str,
    pub(super) qtype: String,
    pub(super) known: Option<&'static str>,
    pub(super) example: &'a ShadowExample,
}

/// Reason why lines are not in the file.
#[derive(Debug, thiserror::Error)]
enum FileError {
    /// The file has its maximum size.
    #[error("the file has its maximum size of {} MiB; move it away to continue", FILE_MAX >> 20)]
    Full,
    /// More differences came than can be written; this many lines are missing.
    #[error("{0} lines lost: too many differences")]
    Lost(u64),
    /// Writing failed.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl DifferenceFile {
    pub(super) fn new(path: PathBuf) -> DifferenceFile {
        DifferenceFile { path, waiting: Mutex::default() }
    }

    /// Appends a line, or drops it and counts it if too many wait.
    pub(super) fn put(&self, line: &Line<'_>) {
        let text = line.json().to_string();
        let mut waiting = self.lock();
        if waiting.lines.len() + text.len() < WAITING_MAX {
            waiting.lines.extend_from_slice(text.as_bytes());
            waiting.lines.push(b'\n');
        } else {
            waiting.lost += 1;
        }
    }

    /// Writes the lines that wait.
    pub(super) fn write(&self, context: &mut FileCheck<'_>) {
        let (lines, lost) = {
            let mut waiting = self.lock();
            (core::mem::take(&mut waiting.lines), core::mem::take(&mut waiting.lost))
        };
        if lines.is_empty() && lost == 0 {
            return;
        }
        let error = self.append(&lines, context).err();
        let error = error.or_else(|| (lost > 0).then_some(FileError::Lost(lost)));
        let had_failed = core::mem::replace(&mut self.lock().has_failed, error.is_some());
        if let Some(error) = error.filter(|_| !had_failed) {
            let text = format!("{}: {error}", self.path.display());
            context.notices.push(Notice::new(Level::Warning, super::MANIFEST.name, text));
        }
    }

    fn append(&self, lines: &[u8], context: &FileCheck<'_>) -> Result<(), FileError> {
        let size = context.files.stamp(&self.path).map_or(0, |stamp| stamp.len);
        if size + lines.len() as u64 > FILE_MAX {
            return Err(FileError::Full);
        }
        context.files.append(&self.path, lines).map_err(FileError::Io)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line<'_> {
    fn json(&self) -> Value {
        let ShadowExample { since_1970, name, client, differs, theirs, ours } = self.example;
        json!({
            "time": since_1970.as_secs_f64(),
            "name": name,
            "type": self.qtype,
            "client": client.to_string(),
            "zone": self.zone,
            "known": self.known,
            "differs": differs,
            "old": answer(theirs),
            "new": answer(ours),
        })
    }
}

fn answer(answer: &ShadowAnswer) -> Value {
    json!({
        "rcode": answer.rcode.to_string(),
        "flags": answer.flags,
        "answer": answer.answer,
        "authority": answer.authority,
        "more": answer.more,
        "ede": answer.ede.as_ref().map(|(code, text)| json!({ "code": code.0, "text": text })),
    })
}
