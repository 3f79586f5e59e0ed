//! The Corefile language: text in, a tree with spans out, and everything that is wrong with the text at once.
//!
//! From top to bottom: [`parse`] reads words (`lex`), fills in variables (`environment`), splices what `import` names
//! (`import`), and builds [`ServerBlock`]s of [`Directive`]s. Problems are [`Diagnostic`]s; [`render`] draws them.
//!
//! Nothing here knows DNS or plugins: keys are words, and a directive is whatever its line says. Nothing here opens a
//! file or reads the environment either; a [`Loader`] does. Foreign text never panics, and each kind of growth that it
//! could cause has a bound.
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
mod import;
mod lex;
mod loader;
mod parse;
mod reader;
mod render;
mod sources;
mod suggest;
mod tree;

#[cfg(test)]
mod test_support;

#[cfg(test)]
mod mutation_tests;

pub use codes::CODES;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use loader::{Loader, NoFiles};
pub use parse::{Parsed, parse};
pub use render::{Style, render};
pub use sources::{FileId, Sources, Span};
pub use suggest::did_you_mean;
pub use tree::{Block, Corefile, Directive, Line, ServerBlock, Token};
