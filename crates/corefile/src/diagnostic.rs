//! One problem of a configuration: what, where, and what to do about it.
//!
//! Used by every stage that reads a Corefile. How it looks on a screen is `render`'s business.

use core::fmt;

use crate::Span;

/// A kind of problem. What is not declared by [`codes!`](crate::codes) cannot be said, and each has an entry in
/// `docs/diagnostics.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    name: &'static str,
    summary: &'static str,
}

impl Code {
    /// For [`codes!`](crate::codes) alone: a code that is in no list is in no documentation.
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(name: &'static str, summary: &'static str) -> Code {
        Code { name, summary }
    }

    /// `room/what`, stable over versions: `corefile/unclosed-block`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// What is wrong whenever it is said, without a full stop.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.summary
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the codes of a room as constants, and `CODES`, the list of all of them.
#[macro_export]
macro_rules! codes {
    ($($constant:ident = $name:literal: $summary:literal;)*) => {
        $(#[doc = $summary] pub const $constant: $crate::Code = $crate::Code::declared($name, $summary);)*

        /// All of them.
        pub const CODES: &[$crate::Code] = &[$($constant),*];
    };
}

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
    /// What kind of problem it is.
    pub code: Code,
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
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Diagnostic { severity: Severity::Error, code, message, span, label: String::new(), usage: None, help: None }
    }

    /// A warning; label, usage and help can be added.
    #[must_use]
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
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
