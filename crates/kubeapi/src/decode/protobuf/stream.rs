//! A stream of octets of which one part after the other is taken, each when it is there in whole. What comes in one piece
//! is not copied, and never more than one part is held.

use crate::decode::Lost;

/// What is to be done with the octets at hand.
pub(super) enum Step {
    /// So many of them, never none, are done with.
    Took(usize),
    /// So many are of no use, and some of them may be still to come.
    Skip(usize),
    /// So many must be at hand, no more than the next step is done with.
    Need(usize),
    /// Nothing can be told from here on.
    Lost,
}

/// The part that is not complete yet.
#[derive(Default)]
pub(super) struct Stream {
    kept: Vec<u8>,
    need: usize,
    skip: usize,
    lost: bool,
}

/// A buffer for a part is given back if it has grown beyond this.
const KEPT_MAX: usize = 64 * 1024;

impl Stream {
    /// Takes more of the stream, in steps.
    pub(super) fn feed(&mut self, mut octets: &[u8], mut step: impl FnMut(&[u8]) -> Step) -> Result<(), Lost> {
        while !self.lost && !octets.is_empty() {
            octets = if self.skip > 0 {
                self.skip(octets)
            } else if self.kept.is_empty() {
                self.step(octets, &mut step)
            } else {
                self.complete(octets, &mut step)
            };
        }
        if self.lost { Err(Lost) } else { Ok(()) }
    }

    /// Whether the stream ended within a part, or where nothing could be told any more.
    pub(super) const fn is_within_a_part(&self) -> bool {
        self.lost || self.skip > 0 || !self.kept.is_empty()
    }

    fn skip<'a>(&mut self, octets: &'a [u8]) -> &'a [u8] {
        let there = self.skip.min(octets.len());
        self.skip -= there;
        &octets[there..]
    }

    /// A step with the octets that came; gives what is left of them.
    fn step<'a>(&mut self, octets: &'a [u8], step: &mut impl FnMut(&[u8]) -> Step) -> &'a [u8] {
        match step(octets) {
            Step::Took(length) => octets.get(length..).unwrap_or_default(),
            Step::Skip(length) => {
                self.skip = length;
                octets
            }
            Step::Need(length) => {
                self.need = length;
                self.kept.extend_from_slice(octets);
                &[]
            }
            Step::Lost => self.lose(),
        }
    }

    /// A step with what is kept and so many of the octets that came as it still needs; gives what is left of them.
    fn complete<'a>(&mut self, octets: &'a [u8], step: &mut impl FnMut(&[u8]) -> Step) -> &'a [u8] {
        let missing = self.need.saturating_sub(self.kept.len()).clamp(1, octets.len());
        let (begin, rest) = octets.split_at(missing);
        self.kept.extend_from_slice(begin);
        if self.kept.len() < self.need {
            return rest;
        }
        match step(&self.kept) {
            Step::Took(_) => self.forget(),
            Step::Skip(length) => {
                self.skip = length - self.kept.len().min(length);
                self.forget();
            }
            Step::Need(length) => self.need = length,
            Step::Lost => return self.lose(),
        }
        rest
    }

    fn forget(&mut self) {
        self.kept.clear();
        if self.kept.capacity() > KEPT_MAX {
            self.kept = Vec::new();
        }
    }

    fn lose(&mut self) -> &'static [u8] {
        self.lost = true;
        self.kept = Vec::new();
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of a digit and so many letters; `!` has none of use, and `?` is the end of all sense.
    fn parts(text: &str, size: usize) -> (Vec<String>, bool, bool) {
        let (mut stream, mut found, mut lost) = (Stream::default(), Vec::new(), false);
        for piece in text.as_bytes().chunks(size) {
            let outcome = stream.feed(piece, |at_hand| match at_hand {
                [b'?', ..] => Step::Lost,
                [b'!'] => Step::Need(2),
                [b'!', digit, ..] => Step::Skip(2 + usize::from(digit - b'0')),
                [digit, ..] => match at_hand.get(..1 + usize::from(digit - b'0')) {
                    None => Step::Need(1 + usize::from(digit - b'0')),
                    Some(part) => {
                        found.push(String::from_utf8(part.to_vec()).unwrap());
                        Step::Took(part.len())
                    }
                },
                [] => unreachable!("no octets, no step"),
            });
            lost |= outcome.is_err();
        }
        (found, stream.is_within_a_part(), lost)
    }

    #[test]
    fn parts_are_whole_however_they_come() {
        for (text, expected, within, lost) in [
            ("1a02bc", &["1a", "0", "2bc"][..], false, false),
            ("1a2b", &["1a"], true, false),
            ("1a!3xyz1b", &["1a", "1b"], false, false),
            ("!01a", &["1a"], false, false),
            ("!3xy", &[], true, false),
            ("1a?1b", &["1a"], true, true),
            ("1a!", &["1a"], true, false),
        ] {
            for size in 1..=text.len() {
                let (found, is_within, is_lost) = parts(text, size);
                let found: Vec<_> = found.iter().map(String::as_str).collect();
                assert_eq!((found, is_within, is_lost), (expected.to_vec(), within, lost), "{text} by {size}");
            }
        }
    }

    #[test]
    fn a_buffer_that_has_grown_is_given_back() {
        let mut stream = Stream::default();
        let mut step = |at_hand: &[u8]| if at_hand.len() < 100_000 { Step::Need(100_000) } else { Step::Took(100_000) };
        for piece in vec![0; 100_001].chunks(1000) {
            stream.feed(piece, &mut step).unwrap();
        }
        assert_eq!((stream.kept.len(), stream.kept.capacity() < KEPT_MAX), (1, true));
    }
}
