//! Reasons for a record.

/// Reasons for a record, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons(pub(super) u16);

impl Reasons {
    /// The query is one of the sample.
    pub const SAMPLE: Reasons = Reasons(1);
    /// The query failed.
    pub const FAILURE: Reasons = Reasons(2);
    /// First filter.
    const TAIL: u16 = 4;

    pub(super) const fn with_tail(self, at: usize) -> Reasons {
        Reasons(self.0 | Reasons::TAIL << at)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the query is one of the sample, or failed.
    #[must_use]
    pub const fn is_counted(self) -> bool {
        self.0 & (Reasons::SAMPLE.0 | Reasons::FAILURE.0) != 0
    }

    /// Returns true if the query failed.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        self.0 & Reasons::FAILURE.0 != 0
    }

    /// Returns true if this filter selected the query.
    #[must_use]
    pub const fn has_tail(self, at: usize) -> bool {
        self.0 & Reasons::TAIL << at != 0
    }
}
