//! Log lines about UPDATE messages (RFC 2136) that are refused before a plugin reads their records.
//!
//! The engine or any step may refuse an update: no zone, no key, a wrong key, a client without permission. In all of
//! these cases, [`Generation::receive`](crate::Generation::receive) calls [`log`] once. After a wait, the plugin logs
//! the result itself, with more detail.

use core::fmt;

use wire::{Message, Name, Rcode, Section, Type};

use crate::generation::Generation;
use crate::log::{Level, Source};
use crate::tap::Answerers;
use crate::transaction::{Progress, Transaction};
use crate::worker::Worker;

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
