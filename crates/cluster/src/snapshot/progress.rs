//! State of a watch after the records of a log so far.

use crate::snapshot::Entry;

/// State of a watch.
#[derive(Default)]
pub(crate) struct Progress {
    /// True if a list has begun and is not complete.
    pub(crate) is_listing: bool,
    /// True if a list was complete.
    pub(crate) is_complete: bool,
    /// Position up to which everything is known. `None` within a list.
    pub(crate) position: Option<String>,
    /// Position before the list in progress. No later list may be older.
    pub(crate) floor: Option<String>,
}

impl Progress {
    /// Applies the next entry of the watch.
    pub(crate) fn advance(&mut self, entry: &Entry<'_>) {
        match entry {
            Entry::Listing => {
                self.is_listing = true;
                if self.position.is_some() {
                    self.floor = self.position.take();
                }
            }
            Entry::Listed { .. } => {
                (self.is_listing, self.is_complete) = (false, true);
                self.floor = None;
            }
            _ => {}
        }
        if let Some(position) = entry.position() {
            // The buffer of the last position is used again: an event costs no allocation.
            let known = self.position.get_or_insert_default();
            known.clear();
            known.push_str(position);
        }
        if self.position.as_ref().is_some_and(String::is_empty) {
            self.position = None;
        }
    }
}
