//! Regular expressions in Go's syntax. Accepts and rejects the same expressions as Go, and matches
//! the same text.
//!
//! An expression is translated into the syntax of the crate `regex`. The crate matches like Go: in linear time, and the
//! first alternative wins.
//!
//! The syntax is that of Go's package `regexp/syntax`. Two extensions are accepted that Go does not have: script names
//! of several words (`\p{Old_Italic}`) and short script names (`\p{Grek}`).

mod budget;
mod class;
mod error;
#[cfg(test)]
mod tests;
mod translate;

use core::fmt;

use regex::{Regex, RegexBuilder};

pub use budget::{BUDGET_MAX, BUDGET_MIN, Budget};
pub use error::RegexpError;
use error::{DEPTH_MAX, LENGTH_MAX};
/// Groups of a match.
pub use regex::Captures;

/// Maximum length in bytes of an expression that is computed for a query: as long as a domain name in text form.
pub const COMPUTED_LENGTH_MAX: usize = 256;
/// Maximum memory in bytes of an expression that is computed for a query. Clients may choose a part of it.
pub const COMPUTED_SIZE_MAX: usize = 64 << 10;

/// Compiled regular expression in Go's syntax.
#[derive(Debug)]
pub struct Regexp {
    written: String,
    regex: Regex,
    names: Vec<Option<String>>,
}

impl Regexp {
    /// Parses and compiles an expression. Its memory counts against the [`Budget`] of this thread.
    ///
    /// # Errors
    /// The first error in the expression.
    pub fn compile(text: &str) -> Result<Regexp, RegexpError> {
        Regexp::compile_with(text, LENGTH_MAX, budget::draw)
    }

    /// Parses and compiles an expression that is used once, while a query is answered: at most
    /// [`COMPUTED_LENGTH_MAX`] bytes long, and with at most [`COMPUTED_SIZE_MAX`] bytes of memory.
    ///
    /// # Errors
    /// The first error in the expression.
    pub fn compile_computed(text: &str) -> Result<Regexp, RegexpError> {
        Regexp::compile_with(text, COMPUTED_LENGTH_MAX, |build| {
            build(COMPUTED_SIZE_MAX).map_err(|_| RegexpError::TooLarge)
        })
    }

    fn compile_with(
        text: &str,
        length_max: usize,
        compile: impl FnOnce(&mut dyn FnMut(usize) -> Result<Regex, regex::Error>) -> Result<Regex, RegexpError>,
    ) -> Result<Regexp, RegexpError> {
        if text.len() > length_max {
            return Err(RegexpError::TooLong);
        }
        let translate::Translated { text: translated, names } = translate::translate(text)?;
        let mut builder = RegexBuilder::new(&translated);
        // The translation adds groups around repeated items, so it nests deeper than the original.
        builder.nest_limit(4 * DEPTH_MAX);
        let regex = compile(&mut |size| builder.size_limit(size).build())?;
        Ok(Regexp { written: text.to_owned(), regex, names })
    }

    /// Returns true if the expression matches anywhere in `text`.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the first match with its groups.
    #[must_use]
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex.captures(text)
    }

    /// Names of the groups. The first entry is the whole match. Names may repeat.
    #[must_use]
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// Number of groups, without the whole match.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.names.len() - 1
    }
}

/// Writes the expression in its original form.
impl fmt::Display for Regexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
