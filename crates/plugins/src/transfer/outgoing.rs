//! A zone on its way: its SOA record, all others, and its SOA record again (RFC 5936 §2.2), a message at a time.

use engine::{Continuation, ZoneSnapshot};
use wire::{Class, MessageBuf, Name, Owner, Section, Type};

/// Octets of a message: as far as names can be pointed at (RFC 5936 §3.4).
const MESSAGE_MAX: usize = 0x4000;

pub(super) struct Outgoing {
    zone: Name,
    snapshot: Box<dyn ZoneSnapshot>,
    left: Left,
}

/// What has not been written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Records, and the SOA record behind them.
    Records,
    /// The SOA record.
    Soa,
    /// Nothing.
    Nothing,
}

impl Outgoing {
    pub(super) fn new(zone: Name, snapshot: Box<dyn ZoneSnapshot>) -> Outgoing {
        Outgoing { zone, snapshot, left: Left::Records }
    }

    /// How many records will be sent.
    pub(super) fn len(&self) -> usize {
        self.snapshot.len() + 1
    }

    /// Writes the first message.
    pub(super) fn begin(&mut self, message: &mut MessageBuf) {
        message.set_limit(MESSAGE_MAX);
        self.push_soa(message);
        self.fill(message);
    }

    /// Appends the SOA record; says whether there was room for it.
    pub(super) fn push_soa(&self, message: &mut MessageBuf) -> bool {
        let (ttl, rdata) = self.snapshot.soa();
        let fixed = (Type::SOA, Class::IN, ttl);
        message.push_data(Section::Answer, Owner::Name(self.zone.as_ref()), fixed, rdata).is_some()
    }

    /// Appends what fits.
    fn fill(&mut self, message: &mut MessageBuf) {
        if self.left == Left::Records && self.snapshot.write(message) {
            self.left = Left::Soa;
        }
        if self.left == Left::Soa && self.push_soa(message) {
            self.left = Left::Nothing;
        }
        // What did not fit is not missing: it is in the next message.
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
            // One record may be longer than that.
            message.set_limit(usize::MAX);
            self.fill(message);
        }
        !message.is_empty()
    }
}
