//! Facts that may not be known, with the reason.

use core::fmt;

/// Fact, or the reason why it could not be gathered.
pub type Known<T> = Result<T, Unknown>;

/// Reason why something is not known, or does not apply here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl Unknown {
    /// Creates a reason from a text for people.
    pub fn new(reason: impl Into<String>) -> Unknown {
        Unknown(reason.into())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl core::error::Error for Unknown {}

/// Borrows a fact, or copies the reason why it is not known.
pub(crate) fn known<T>(fact: &Known<T>) -> Known<&T> {
    fact.as_ref().map_err(Clone::clone)
}
