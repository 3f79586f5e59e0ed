//! Error of sources that a configuration asks to follow: clusters, and stores of SkyDNS records.
//!
//! Reducers declare the traits of these sources, and clients at the edge implement them. Both know this crate and not
//! each other.

use core::error::Error;
use core::fmt;

/// Error: a source cannot be followed, and only a change of the configuration helps. It says what is wrong, as its
/// cause does.
#[derive(Debug)]
pub struct FollowError(Box<dyn Error + Send + Sync>);

impl FollowError {
    /// Creates an error from its cause: an error, or a message.
    #[must_use]
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> FollowError {
        FollowError(cause.into())
    }
}

impl fmt::Display for FollowError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Error for FollowError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
