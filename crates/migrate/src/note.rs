//! What a migration says about a place of the old text.

use core::fmt;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is written in another way.
    Changed,
    /// It is not there any more, and nothing is lost.
    Dropped,
    /// It cannot be kept: what it did is lost.
    Lost,
    /// It is as it was, and means something else than it did, or wants a look.
    Look,
    /// Newer installations have more here.
    Advice,
}

impl What {
    /// The word before a note.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            What::Changed => "changed",
            What::Dropped => "dropped",
            What::Lost => "lost",
            What::Look => "look",
            What::Advice => "advice",
        }
    }
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What became of it.
    pub what: What,
    /// `FILE:LINE:COLUMN` in the old text; empty for something without a place.
    pub place: String,
    /// What was there and what is there now, in one line.
    pub text: String,
    /// The directive that it is about; none if it is about no Corefile.
    pub directive: Option<String>,
    /// The release of CoreDNS with which it became so, if it was one.
    pub since: Option<&'static str>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}: {}", self.what.word(), self.text)?;
        self.since.map_or(Ok(()), |since| write!(f, " (since {since})"))
    }
}
