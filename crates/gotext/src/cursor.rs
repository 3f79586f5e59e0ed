//! Cursor of the lexers: the unread part of a text.

/// Text with a position in it.
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) const fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    /// Returns the position as a byte offset.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns the unread text.
    pub(crate) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next character without taking it.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes one character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `prefix` if the unread text starts with it, and returns true if it did.
    pub(crate) fn take(&mut self, prefix: &str) -> bool {
        let starts = self.rest().starts_with(prefix);
        self.at += if starts { prefix.len() } else { 0 };
        starts
    }

    /// Takes the first of `marks` with which the unread text starts.
    pub(crate) fn take_any(&mut self, marks: &[&'static str]) -> Option<&'static str> {
        marks.iter().find(|mark| self.take(mark)).copied()
    }

    /// Takes the characters up to the first one that is not a `part`.
    pub(crate) fn take_while(&mut self, part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|next| !part(next)).unwrap_or(rest.len());
        self.take_bytes(length)
    }

    /// Takes `length` bytes, which have to end between two characters.
    pub(crate) fn take_bytes(&mut self, length: usize) -> &'t str {
        let taken = self.rest().get(..length).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// Moves to the start of `rest`, a suffix of the text.
    pub(crate) fn move_to(&mut self, rest: &'t str) {
        debug_assert!(self.text.ends_with(rest), "the cursor stays in its text");
        self.at = self.text.len() - rest.len();
    }

    /// Returns the text taken since `before`, an earlier value of [`Cursor::rest`].
    pub(crate) fn since(&self, before: &'t str) -> String {
        before.strip_suffix(self.rest()).unwrap_or(before).to_owned()
    }
}
