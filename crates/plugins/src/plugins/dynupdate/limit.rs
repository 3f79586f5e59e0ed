//! Limits of updates.

/// Limit that an update exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Records,
    Bytes,
    UpdateRecords,
    Queue,
}

impl Limit {
    /// Values of the label `limit`, in the order of the variants.
    pub(super) const NAMES: [&'static str; 4] = ["max_records", "max_bytes", "max_update_records", "queue"];
}
