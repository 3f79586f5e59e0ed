//! Cursor over the unparsed part of an expression.

/// Unparsed part of an expression.
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

    /// Takes `prefix` if the input starts with it, and returns true if it did.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        let rest = self.text.strip_prefix(prefix);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    /// Returns the text parsed since `before`, an earlier value of [`Rest::text`].
    pub(super) fn since(&self, before: &'t str) -> String {
        before.strip_suffix(self.text).unwrap_or(before).to_owned()
    }
}
