//! Splits a byte stream into parts and hands out each when it is complete. Parts that arrive in one chunk are not
//! copied. At most one part is buffered.

use host::invariant::holds;

use crate::decode::OutOfSyncError;

/// Result of looking at the available bytes.
pub(super) enum Step {
    /// The first bytes, this many, have been processed. Never 0.
    Took(usize),
    /// Bytes to skip. Some of them may not have arrived yet.
    Skip(usize),
    /// Bytes needed in total, not more than the next step will process.
    Need(usize),
    /// The stream is out of sync.
    OutOfSync,
}

/// Buffer for an incomplete part.
#[derive(Default)]
pub(super) struct Stream {
    kept: Vec<u8>,
    need: usize,
    skip: usize,
    out_of_sync: bool,
}

/// Capacity in bytes above which the buffer is freed after a part.
const KEPT_MAX: usize = 64 * 1024;

impl Stream {
    /// Processes more bytes of the stream in steps.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut step: impl FnMut(&[u8]) -> Step) -> Result<(), OutOfSyncError> {
        while !self.out_of_sync && !bytes.is_empty() {
            bytes = if self.skip > 0 {
                self.skip(bytes)
            } else if self.kept.is_empty() {
                self.step(bytes, &mut step)
            } else {
                self.complete(bytes, &mut step)
            };
        }
        if self.out_of_sync { Err(OutOfSyncError) } else { Ok(()) }
    }

    /// Returns true if the stream ended within a part or went out of sync.
    pub(super) const fn is_within_a_part(&self) -> bool {
        self.out_of_sync || self.skip > 0 || !self.kept.is_empty()
    }

    fn skip<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let there = self.skip.min(bytes.len());
        self.skip -= there;
        &bytes[there..]
    }

    /// Runs a step on the new bytes and returns the rest of them.
    fn step<'a>(&mut self, bytes: &'a [u8], step: &mut impl FnMut(&[u8]) -> Step) -> &'a [u8] {
        match step(bytes) {
            Step::Took(length) => {
                holds((1..=bytes.len()).contains(&length), "a step takes bytes that have arrived");
                bytes.get(length..).unwrap_or_default()
            }
            Step::Skip(length) => {
                holds(length > 0, "a step that skips makes progress");
                self.skip = length;
                bytes
            }
            Step::Need(length) => {
                holds(length > bytes.len(), "a step needs more than has arrived");
                self.need = length;
                self.kept.extend_from_slice(bytes);
                &[]
            }
            Step::OutOfSync => self.lose_sync(),
        }
    }

    /// Runs a step on the buffer and as many of the new bytes as it needs. Returns the rest of them.
    fn complete<'a>(&mut self, bytes: &'a [u8], step: &mut impl FnMut(&[u8]) -> Step) -> &'a [u8] {
        let missing = self.need.saturating_sub(self.kept.len()).clamp(1, bytes.len());
        let (begin, rest) = bytes.split_at(missing);
        self.kept.extend_from_slice(begin);
        if self.kept.len() < self.need {
            return rest;
        }
        match step(&self.kept) {
            Step::Took(length) => {
                holds(length == self.kept.len(), "a part that was collected is taken as a whole");
                self.forget();
            }
            Step::Skip(length) => {
                holds(length >= self.kept.len(), "what was collected of a part that is skipped belongs to it");
                self.skip = length - self.kept.len().min(length);
                self.forget();
            }
            Step::Need(length) => {
                holds(length > self.kept.len(), "a step needs more than was collected");
                self.need = length;
            }
            Step::OutOfSync => return self.lose_sync(),
        }
        rest
    }

    fn forget(&mut self) {
        self.kept.clear();
        if self.kept.capacity() > KEPT_MAX {
            self.kept = Vec::new();
        }
    }

    fn lose_sync(&mut self) -> &'static [u8] {
        self.out_of_sync = true;
        self.kept = Vec::new();
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text into parts: a digit, and as many letters. `!` and a digit skip letters, and `?` ends the stream.
    fn parts(text: &str, size: usize) -> (Vec<String>, bool, bool) {
        let (mut stream, mut found, mut out_of_sync) = (Stream::default(), Vec::new(), false);
        for chunk in text.as_bytes().chunks(size) {
            let outcome = stream.feed(chunk, |at_hand| match at_hand {
                [b'?', ..] => Step::OutOfSync,
                [b'!'] => Step::Need(2),
                [b'!', digit, ..] => Step::Skip(2 + usize::from(digit - b'0')),
                [digit, ..] => match at_hand.get(..1 + usize::from(digit - b'0')) {
                    None => Step::Need(1 + usize::from(digit - b'0')),
                    Some(part) => {
                        found.push(String::from_utf8(part.to_vec()).unwrap());
                        Step::Took(part.len())
                    }
                },
                [] => unreachable!("no bytes, no step"),
            });
            out_of_sync |= outcome.is_err();
        }
        (found, stream.is_within_a_part(), out_of_sync)
    }

    #[test]
    fn parts_are_complete_for_every_chunk_size() {
        for (text, expected, within, out_of_sync) in [
            ("1a02bc", &["1a", "0", "2bc"][..], false, false),
            ("1a2b", &["1a"], true, false),
            ("1a!3xyz1b", &["1a", "1b"], false, false),
            ("!01a", &["1a"], false, false),
            ("!3xy", &[], true, false),
            ("1a?1b", &["1a"], true, true),
            ("1a!", &["1a"], true, false),
        ] {
            for size in 1..=text.len() {
                let (found, is_within, is_out_of_sync) = parts(text, size);
                let found: Vec<_> = found.iter().map(String::as_str).collect();
                assert_eq!(
                    (found, is_within, is_out_of_sync),
                    (expected.to_vec(), within, out_of_sync),
                    "{text} by {size}"
                );
            }
        }
    }

    #[test]
    fn frees_a_large_buffer() {
        let mut stream = Stream::default();
        let mut step = |at_hand: &[u8]| if at_hand.len() < 100_000 { Step::Need(100_000) } else { Step::Took(100_000) };
        for chunk in vec![0; 100_001].chunks(1000) {
            stream.feed(chunk, &mut step).unwrap();
        }
        assert_eq!((stream.kept.len(), stream.kept.capacity() < KEPT_MAX), (1, true));
    }
}
