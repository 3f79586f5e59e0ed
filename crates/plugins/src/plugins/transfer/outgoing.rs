//! Outgoing transfer: the SOA record, all other records, and the SOA record again (RFC 5936 §2.2), one message at a
//! time.

use engine::{Continuation, ZoneSnapshot};
use wire::{Class, MessageBuf, Name, Owner, Section, Type};

/// Size of a message in bytes: the range of compression pointers (RFC 5936 §3.4).
const MESSAGE_MAX: usize = 0x4000;

pub(super) struct Outgoing {
    zone: Name,
    snapshot: Box<dyn ZoneSnapshot>,
    left: Left,
}

/// Remaining part of the transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Records, then the SOA record.
    Records,
    /// SOA record.
    Soa,
    /// None.
    Nothing,
}

impl Outgoing {
    pub(super) fn new(zone: Name, snapshot: Box<dyn ZoneSnapshot>) -> Outgoing {
        Outgoing { zone, snapshot, left: Left::Records }
    }

    /// Number of records to send.
    pub(super) fn len(&self) -> usize {
        self.snapshot.len() + 1
    }

    /// Writes the first message.
    pub(super) fn begin(&mut self, message: &mut MessageBuf) {
        message.set_limit(MESSAGE_MAX);
        self.push_soa(message);
        self.fill(message);
    }

    /// Appends the SOA record. Returns true if it fit.
    pub(super) fn push_soa(&self, message: &mut MessageBuf) -> bool {
        let (ttl, rdata) = self.snapshot.soa();
        let fixed = (Type::SOA, Class::IN, ttl);
        message.push_data(Section::Answer, Owner::Name(self.zone.as_ref()), fixed, rdata).is_some()
    }

    /// Appends as many records as fit.
    fn fill(&mut self, message: &mut MessageBuf) {
        if self.left == Left::Records && self.snapshot.write(message) {
            self.left = Left::Soa;
        }
        if self.left == Left::Soa && self.push_soa(message) {
            self.left = Left::Nothing;
        }
        // Records that do not fit go into the next message, so the message is not truncated.
        message.header.flags = message.header.flags.with_truncated(false);
    }
}

impl Continuation for Outgoing {
    fn next(&mut self, message: &mut MessageBuf) -> bool {
        if self.left == Left::Nothing {
            return false;
        }
        message.set_limit(MESSAGE_MAX);
        self.fill(message);
        if message.is_empty() {
            // A single record may exceed the limit.
            message.set_limit(usize::MAX);
            self.fill(message);
        }
        !message.is_empty()
    }
}
