//! Notes of a migration on locations in the original text.

use core::fmt;

/// Kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Rewritten in the current syntax.
    Changed,
    /// Removed without any loss.
    Dropped,
    /// Removed. Its function is lost.
    Lost,
    /// Unchanged, but its meaning differs or needs a review.
    Review,
    /// Newer installations have more options here.
    Advice,
}

impl NoteKind {
    /// Returns the word that precedes a note.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            NoteKind::Changed => "changed",
            NoteKind::Dropped => "dropped",
            NoteKind::Lost => "lost",
            NoteKind::Review => "look",
            NoteKind::Advice => "advice",
        }
    }
}

/// Note on a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Kind.
    pub kind: NoteKind,
    /// `FILE:LINE:COLUMN` in the original text, or empty without a location.
    pub place: String,
    /// Description of the change in one line.
    pub text: String,
    /// Directive that the note refers to, or `None` if the source is not a Corefile.
    pub directive: Option<String>,
    /// Release of CoreDNS that introduced the change, if any.
    pub since: Option<&'static str>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}: {}", self.kind.word(), self.text)?;
        self.since.map_or(Ok(()), |since| write!(f, " (since {since})"))
    }
}
