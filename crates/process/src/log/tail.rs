//! Last lines of the log, for reports. Lines of the directive *log* are not kept: they are many, and they say who asked
//! for what.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::log::{Event, Source};

/// Number of lines that are kept: what happened before a person looks.
const LINES_MAX: usize = 256;
/// Maximum length of a line in bytes; the rest is cut off.
const LINE_MAX: usize = 512;

static LINES: Mutex<VecDeque<Vec<u8>>> = Mutex::new(VecDeque::new());

/// Adds the line of an event.
pub(super) fn add(event: &Event<'_>, line: &[u8]) {
    if event.source == Source::Queries {
        return;
    }
    let mut lines = lock();
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    let line = line.trim_ascii_end();
    lines.push_back(line[..line.len().min(LINE_MAX)].to_vec());
}

/// Returns the lines, oldest first.
pub fn text() -> String {
    lock().iter().flat_map(|line| [String::from_utf8_lossy(line).into_owned(), "\n".to_owned()]).collect()
}

fn lock() -> MutexGuard<'static, VecDeque<Vec<u8>>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}
