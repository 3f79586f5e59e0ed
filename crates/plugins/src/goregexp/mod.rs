//! Regular expressions as Go reads them, which is how people write them in Corefiles: what Go takes is taken, what Go refuses
//! is refused, and both match the same. An expression is translated into the syntax of the crate `regex`, whose matching is
//! Go's already (the first alternative wins, in linear time).
//!
//! The language is that of the documentation of Go's `regexp/syntax`. Scripts whose names are of several words
//! (`\p{Old_Italic}`) and short names of scripts (`\p{Grek}`) are taken here, and are not in Go.

mod class;
mod fault;
mod rest;
#[cfg(test)]
mod tests;
mod translate;

use core::fmt;

use regex::{Captures, Regex, RegexBuilder};

pub(crate) use fault::Fault;
use fault::{DEPTH_MAX, LENGTH_MAX};

/// Octets that a compiled expression may take: enough for a thousand letters of any script, the longest repetition.
const COMPILED_MAX: usize = 64 << 20;

/// A regular expression of Go.
#[derive(Debug)]
pub(crate) struct Regexp {
    written: String,
    regex: Regex,
    names: Vec<Option<String>>,
}

impl Regexp {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Regexp, Fault> {
        if text.len() > LENGTH_MAX {
            return Err(Fault::TooLong);
        }
        let translate::Translated { text: translated, names } = translate::translate(text)?;
        let mut builder = RegexBuilder::new(&translated);
        // Groups that only hold together what is repeated come on top of those that are written.
        builder.nest_limit(4 * DEPTH_MAX).size_limit(COMPILED_MAX);
        let regex = builder.build().map_err(|_| Fault::TooLarge)?;
        Ok(Regexp { written: text.to_owned(), regex, names })
    }

    /// Whether it matches somewhere in a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Its first match in a text, with the groups.
    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex.captures(text)
    }

    /// The names of the groups, the whole match being the first; several may have the same.
    pub(crate) fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// How many groups stand in it.
    pub(crate) fn groups(&self) -> usize {
        self.names.len() - 1
    }
}

/// As it is written.
impl fmt::Display for Regexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
