//! One problem of a configuration: what, where, and what to do about it.
//!
//! Used by every stage that reads a Corefile. How it looks on a screen is `render`'s business.

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The configuration can not be used.
    Error,
    /// It can, but it hardly means what its author meant.
    Warning,
}

/// A problem at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// `room/what`, stable over versions: `corefile/unclosed-block`.
    pub code: &'static str,
    /// What is wrong, in one line, without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What the text at `span` is; stands beside the underline and may be empty.
    pub label: String,
    /// How the directive or option is written.
    pub usage: Option<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error; label, usage and help can be added.
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Diagnostic { severity: Severity::Error, code, message, span, label: String::new(), usage: None, help: None }
    }

    /// A warning; label, usage and help can be added.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Says what stands at the place.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Diagnostic { label: label.into(), ..self }
    }

    /// Shows how it is written.
    #[must_use]
    pub fn with_usage(self, usage: impl Into<String>) -> Self {
        Diagnostic { usage: Some(usage.into()), ..self }
    }

    /// Says what to do.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// Whether the configuration can not be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
