//! Replies that match no query.

/// Reason why a reply was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// Its query has ended: a second reply, or one after the timeout.
    Late,
    /// No query had its message ID.
    Id,
    /// It has the ID of a query, but is no reply to it: another question or opcode, no QR flag, or malformed.
    Question,
}
