//! What of an expression is still to be read.

/// What is left to read.
pub(super) struct Rest<'t> {
    text: &'t str,
}

impl<'t> Rest<'t> {
    pub(super) fn new(text: &'t str) -> Rest<'t> {
        Rest { text }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.text.chars();
        let next = chars.next()?;
        self.text = chars.as_str();
        Some(next)
    }

    /// Takes this if it comes next, and says whether it does.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        let rest = self.text.strip_prefix(prefix);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    /// What was read since `before`, from which this came.
    pub(super) fn since(&self, before: &'t str) -> String {
        before.strip_suffix(self.text).unwrap_or(before).to_owned()
    }
}
