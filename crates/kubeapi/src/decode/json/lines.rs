//! Splits a byte stream into lines and buffers at most one of them.

use memchr::memchr;

/// Line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Complete line.
    Whole(&'a [u8]),
    /// Line above the maximum length, which was dropped.
    TooLong,
}

/// Buffer for an incomplete line.
#[derive(Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    skipping: bool,
}

/// Capacity in bytes above which the buffer is freed after a line.
const KEPT_MAX: usize = 64 * 1024;

impl Lines {
    /// Processes more bytes of the stream and calls `each` for each complete line of at most `most` bytes. A line that
    /// arrives in one chunk is not copied.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], most: usize, mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if std::mem::take(&mut self.skipping) || self.partial.len() + line.len() > most {
                each(Line::TooLong);
            } else if self.partial.is_empty() {
                each(Line::Whole(line));
            } else {
                self.partial.extend_from_slice(line);
                each(Line::Whole(&self.partial));
            }
            self.partial.clear();
        }
        self.keep(bytes, most);
    }

    /// Returns true if the stream ended within a line.
    pub(crate) fn is_within_a_line(&self) -> bool {
        self.skipping || !self.partial.is_empty()
    }

    fn keep(&mut self, bytes: &[u8], most: usize) {
        if self.skipping {
            return;
        }
        self.skipping = self.partial.len() + bytes.len() > most;
        if self.skipping {
            self.partial = Vec::new();
            return;
        }
        if bytes.is_empty() && self.partial.is_empty() && self.partial.capacity() > KEPT_MAX {
            self.partial = Vec::new();
        }
        self.partial.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(events: &[&str], most: usize) -> (Vec<String>, bool) {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for event in events {
            lines.feed(event.as_bytes(), most, |line| {
                found.push(match line {
                    Line::Whole(text) => String::from_utf8(text.to_vec()).unwrap(),
                    Line::TooLong => "<too long>".to_owned(),
                });
            });
        }
        (found, lines.is_within_a_line())
    }

    #[test]
    fn lines_are_complete_for_every_chunk_size() {
        for (events, expected, within) in [
            (&["one\ntwo\n"][..], &["one", "two"][..], false),
            (&["one\ntw", "o", "\n"], &["one", "two"], false),
            (&["one", "\n", "\n"], &["one", ""], false),
            (&["one"], &[], true),
            (&["a\n12345678", "9\nb\n"], &["a", "<too long>", "b"], false),
            (&["a\n123456789\nb\n"], &["a", "<too long>", "b"], false),
            (&["123456789", "0123456789", "01", "\nb\nc"], &["<too long>", "b"], true),
            (&["1234", "5678\n"], &["12345678"], false),
            (&["123456789"], &[], true),
        ] {
            let (found, is_within) = lines(events, 8);
            assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), is_within), (expected.to_vec(), within));
        }
    }
}
