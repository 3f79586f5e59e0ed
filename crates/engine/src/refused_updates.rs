//! Log lines about UPDATE messages (RFC 2136) that are refused before a plugin reads their records.
//!
//! Any step can refuse an update, and so can the engine: no zone, no key, a wrong key, a client that may not ask. All
//! of these end in [`Generation::receive`](crate::Generation::receive), which calls [`log`] once. A plugin that has
//! waited for an update logs its result, because it knows more.

use core::fmt;
use core::time::Duration;

use host::Instant;
use wire::{Message, Name, Rcode, Section, Type};

use crate::generation::Generation;
use crate::log::{Level, Source};
use crate::tap::Answerers;
use crate::transaction::{Progress, Transaction};
use crate::worker::Worker;

/// Maximum number of lines per second and worker. Anyone can send updates that are refused, so more are only counted.
const LINES_MAX: u64 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Bound for the lines of one kind in a second.
#[derive(Debug, Default)]
pub struct LineLimit {
    /// Start of the current second, and the number of lines in it.
    second: Option<(Instant, u64)>,
}

impl LineLimit {
    /// Counts an event, and returns true if there may be a line about it.
    pub fn admit(&mut self, now: Instant) -> bool {
        let (_, events) = self.second.get_or_insert((now, 0));
        *events += 1;
        *events <= LINES_MAX
    }

    /// Returns true if events were left out in the current second.
    #[must_use]
    pub fn has_left_out(&self) -> bool {
        self.second.is_some_and(|(_, events)| events > LINES_MAX)
    }

    /// Ends the current second if it is over. Returns the number of events without a line in it.
    pub fn end_second(&mut self, now: Instant) -> u64 {
        let ended = self.second.take_if(|(begun, _)| now.since(*begun) >= SECOND);
        ended.map_or(0, |(_, events)| events.saturating_sub(LINES_MAX))
    }
}

/// Number of refused updates without a line, as a line of the log.
pub(crate) struct LeftOut(pub(crate) u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more updates refused within a second", self.0)
    }
}

/// Logs an update that was refused or dropped before it had to wait.
#[cold]
pub(crate) fn log(generation: &Generation, transaction: &Transaction, progress: Progress, worker: &mut Worker) {
    let refused = Refused { generation, transaction, progress };
    if refused.is_refused() && worker.may_log_refused_update() {
        worker.log_text(Level::Info, Source::Server, format_args!("{refused}"));
    }
}

/// Refused update, as a line of the log.
struct Refused<'a> {
    generation: &'a Generation,
    transaction: &'a Transaction,
    progress: Progress,
}

impl Refused<'_> {
    fn is_refused(&self) -> bool {
        match self.progress {
            Progress::Answered => self.transaction.response.rcode() != Rcode::NOERROR,
            Progress::Dropped => true,
            Progress::Waiting => false,
        }
    }

    fn reason(&self) -> &str {
        let response = &self.transaction.response;
        let failure = response.failure();
        let texts = [failure.map(|failure| &*failure.cause), failure.map(|failure| &*failure.text)];
        let known = texts.into_iter().flatten().chain([response.ede_text()]).find(|text| !text.is_empty());
        known.unwrap_or(match response.rcode() {
            Rcode::BADVERS => "EDNS version not supported",
            Rcode::FORMERR => "the message is malformed",
            _ => "no reason given",
        })
    }
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction { query, response, .. } = self.transaction;
        f.write_str("update")?;
        if !self.transaction.is_unread {
            write!(f, " of zone {}", query.name())?;
            match (query.signer(), unverified_key(&query.packet)) {
                (Some(key), _) => write!(f, " by key {key}")?,
                (None, Some(key)) => write!(f, " by key {key} (not verified)")?,
                (None, None) => f.write_str(" without a key")?,
            }
        }
        write!(f, " from {}: ", query.peer.address.ip().to_canonical())?;
        match (self.progress, self.generation.answerer(self.transaction)) {
            (Progress::Dropped, Some((plugin, _))) => write!(f, "dropped by {plugin}"),
            (Progress::Dropped, None) => f.write_str("dropped"),
            _ => write!(f, "{}: {}", response.rcode(), self.reason()),
        }
    }
}

/// Returns the name of the key with which a message claims to be signed, in lower case.
fn unverified_key(packet: &[u8]) -> Option<Name> {
    let message = Message::parse(packet).ok()?;
    let signatures = message.records().filter(|record| record.rtype() == Type::TSIG);
    let signature = signatures.filter(|record| record.section() == Section::Additional).last()?;
    Some(signature.owner().ok()?.into_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_limited_number_of_lines_and_counts_the_rest() {
        let mut limit = LineLimit::default();
        let admitted = (0..LINES_MAX + 5).filter(|_| limit.admit(Instant::START)).count();
        assert_eq!(admitted as u64, LINES_MAX);
        assert!(limit.has_left_out());
        assert_eq!(limit.end_second(Instant::START + SECOND / 2), 0);
        assert_eq!(limit.end_second(Instant::START + SECOND), 5);
        assert_eq!(limit.end_second(Instant::START + SECOND), 0);
        assert!(limit.admit(Instant::START + SECOND));
    }
}
