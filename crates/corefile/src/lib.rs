//! Corefile parser: turns text into a tree with source positions and reports all mistakes at once.
//!
//! [`parse`] splits the text into words (`lex`), substitutes environment variables (`environment`), expands `import`
//! lines (`import`), and builds [`ServerBlock`]s of [`Directive`]s. Problems are [`Diagnostic`]s, which [`render`]
//! formats for people.
//!
//! The crate knows neither DNS nor plugins: keys are words, and the lines of a directive are not interpreted. It does
//! not open files or read the environment; the caller's [`Loader`] does. Untrusted text never causes a panic, and
//! everything that could grow has a limit.
//!
//! ```
//! let parsed = corefile::parse("Corefile".as_ref(), ". {\n    whoami\n}\n".to_owned(), &corefile::NoFiles);
//! assert!(!parsed.has_errors());
//! assert_eq!(parsed.corefile.blocks[0].directives[0].name.text, "whoami");
//! ```

mod codes;
mod complaints;
mod diagnostic;
mod environment;
mod files;
mod fingerprint;
mod import;
mod lex;
mod loader;
mod parse;
mod reader;
mod render;
mod sources;
mod suggest;
mod tree;
mod words;

#[cfg(test)]
mod test_support;

#[cfg(test)]
mod mutation_tests;

pub use codes::CODES;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use loader::{Loader, NoFiles};
pub use parse::{Parsed, parse, parse_by_indentation};
pub use render::{Style, render};
pub use sources::{FileId, Sources, Span};
pub use suggest::did_you_mean;
pub use tree::{Block, Corefile, Directive, Line, ServerBlock, Token};
pub use words::lines_of_words;
