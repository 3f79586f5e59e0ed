//! Problem in a configuration: what is wrong, where, and what to do about it.
//!
//! All stages that read a Corefile use this type. The module `render` formats it.

use core::fmt;

use crate::Span;

/// Kind of problem. Codes can only be declared with [`codes!`](crate::codes), and each has an entry in
/// `docs/diagnostics.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    name: &'static str,
    summary: &'static str,
}

impl Code {
    /// Creates a code. Only [`codes!`](crate::codes) may call this, because the documentation lists the codes declared
    /// there.
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(name: &'static str, summary: &'static str) -> Code {
        Code { name, summary }
    }

    /// Returns the stable identifier in the form `category/problem`, such as `corefile/unclosed-block`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the description of the problem, without a full stop.
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

/// Declares the codes of a category as constants, and `CODES` with all of them.
#[macro_export]
macro_rules! codes {
    ($($constant:ident = $name:literal: $summary:literal;)*) => {
        $(#[doc = $summary] pub const $constant: $crate::Code = $crate::Code::declared($name, $summary);)*

        /// All codes of this category.
        pub const CODES: &[$crate::Code] = &[$($constant),*];
    };
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration can be used, but probably does not do what its author intended.
    Warning,
}

/// Problem at a position in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of problem.
    pub code: Code,
    /// Message: what is wrong, in one line, without a full stop.
    pub message: String,
    /// Position of the problem.
    pub span: Span,
    /// Note beside the underlined text. May be empty.
    pub label: String,
    /// Position of another directive or zone that is involved, with a note.
    pub other: Option<(Span, String)>,
    /// Correct syntax of the directive or option.
    pub usage: Option<String>,
    /// Advice on how to fix the problem.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error without label, usage and help.
    #[must_use]
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            other: None,
            usage: None,
            help: None,
        }
    }

    /// Creates a warning without label, usage and help.
    #[must_use]
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Adds a note beside the underlined text.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Diagnostic { label: label.into(), ..self }
    }

    /// Adds a second position with a note.
    #[must_use]
    pub fn with_other(self, span: Span, note: impl Into<String>) -> Self {
        Diagnostic { other: Some((span, note.into())), ..self }
    }

    /// Adds the correct syntax.
    #[must_use]
    pub fn with_usage(self, usage: impl Into<String>) -> Self {
        Diagnostic { usage: Some(usage.into()), ..self }
    }

    /// Adds advice on how to fix the problem.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// Returns true if the configuration cannot be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
