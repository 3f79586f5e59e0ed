//! Course of a conversation, and what a version of the protocol has to do in it.

use super::tally::Tally;
use xtask::Failed;

/// Course of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Maximum number of queries that wait for their answers.
    pub(crate) in_flight: usize,
    /// Number of queries.
    pub(crate) queries: u64,
    /// True if the connection stays open after the last answer.
    pub(crate) stays: bool,
}

/// Number of bytes that a protocol read from its input, and of complete answers in them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) bytes: usize,
    pub(crate) answers: usize,
}

/// Client of one version of the protocol, without I/O.
pub(crate) trait Protocol {
    /// Appends what a connection starts with.
    fn start(&mut self, _: &mut Vec<u8>) {}

    /// Appends a query. Returns false if the connection can take none now.
    fn ask(&mut self, out: &mut Vec<u8>) -> bool;

    /// Takes complete responses from the input, and appends what the protocol demands in reply.
    ///
    /// # Errors
    /// Fails if a response is invalid.
    fn take(&mut self, input: &[u8], out: &mut Vec<u8>, tally: &Tally) -> Result<Taken, Failed>;
}
