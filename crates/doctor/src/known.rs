//! Facts that may not be known, with the reason.

/// Fact, or the reason why it could not be gathered.
pub type Known<T> = Result<T, Unknown>;

/// Reason why something is not known, or does not apply here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unknown {
    reason: String,
    gap: Gap,
}

/// Kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The fact exists or may exist, but could not be read.
    NotLooked,
    /// This cluster or this server does not have what the check is about.
    DoesNotApply,
}

impl Unknown {
    /// Creates the reason why something could not be looked at, from a text for people.
    pub fn new(reason: impl Into<String>) -> Unknown {
        Unknown { reason: reason.into(), gap: Gap::NotLooked }
    }

    /// Creates the reason why there is nothing to look at. Only something that was looked at justifies it.
    pub fn inapplicable(reason: impl Into<String>) -> Unknown {
        Unknown { reason: reason.into(), gap: Gap::DoesNotApply }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn gap(&self) -> Gap {
        self.gap
    }
}

/// Borrows a fact, or copies the reason why it is not known.
pub(crate) fn known<T>(fact: &Known<T>) -> Known<&T> {
    fact.as_ref().map_err(Clone::clone)
}
