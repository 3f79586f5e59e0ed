//! Signs responses (RFC 8945 §5.3). The first message covers the query's MAC, each further one that of the message
//! before.

use core::cell::RefCell;

use aws_lc_rs::hmac;
use engine::MessageSigner;
use wire::Rcode;

use super::record::{Signed, Variables};

/// Bytes of the record besides names, MAC and other data: type, class, TTL, length and fixed data.
const FIELDS: usize = 10 + 16;
/// Length in bytes of the time as other data.
const TIME: usize = 6;

/// Signer of the response to one query.
pub(super) struct TsigSigner {
    query: Signed,
    key: Option<hmac::Key>,
    error: Rcode,
    now: u64,
    /// MAC of the previous message; initially that of the query.
    before: RefCell<Vec<u8>>,
    first: RefCell<bool>,
}

impl TsigSigner {
    /// Creates a signer. Without a key, the TSIG record has no MAC.
    pub(super) fn new(mut query: Signed, key: Option<hmac::Key>, error: Rcode, now: u64) -> TsigSigner {
        let before = RefCell::new(core::mem::take(&mut query.mac));
        TsigSigner { query, key, error, now, before, first: RefCell::new(true) }
    }
}

impl MessageSigner for TsigSigner {
    fn room(&self) -> usize {
        let names = self.query.key.as_bytes().len() + self.query.algorithm.as_bytes().len();
        let mac = self.key.as_ref().map_or(0, |key| key.algorithm().digest_algorithm().output_len());
        let other = if self.error == Rcode::BADTIME { TIME } else { 0 };
        names + FIELDS + mac + other
    }

    fn sign(&self, message: &[u8], record: &mut Vec<u8>) {
        let server_time = self.now.to_be_bytes();
        let is_late = self.error == Rcode::BADTIME;
        let variables = Variables {
            // A BADTIME response echoes the client's time (RFC 8945 §5.2.3). So does an unsigned response, as of BIND:
            // clients check the time before the error, and would report their clock in place of a wrong key.
            time: if is_late || self.key.is_none() { self.query.time } else { self.now },
            fudge: self.query.fudge,
            error: self.error.0,
            other: if is_late { &server_time[2..] } else { &[] },
        };
        let (key, algorithm) = (self.query.key.as_ref(), self.query.algorithm.as_ref());
        let mut mac = Vec::new();
        if let Some(secret) = &self.key {
            let mut before = self.before.borrow_mut();
            let mut text = u16::try_from(before.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
            text.extend(&*before);
            text.extend(message);
            if self.first.replace(false) {
                variables.write(key, algorithm, &mut text);
            } else {
                variables.write_times(&mut text);
            }
            mac = hmac::sign(secret, &text).as_ref().to_vec();
            before.clone_from(&mac);
        }
        let id = message.first_chunk().copied().unwrap_or_default();
        variables.write_record(key, algorithm, &mac, id, record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Header, MessageBuf, Name, Type};

    const SIGNED_AT: u64 = 1_000_000;
    const NOW: u64 = 2_000_000;

    fn message() -> Vec<u8> {
        let mut message = MessageBuf::new();
        let name = Name::from_text("example.org.").unwrap();
        message.start(Header::default(), Some((name.as_ref(), Type::SOA, Class::IN)));
        message.finish(None, core::iter::empty()).to_vec()
    }

    /// Returns a message with a TSIG record.
    fn signed(variables: &Variables<'_>) -> Signed {
        let (key, algorithm) = (Name::from_text("k.").unwrap(), Name::from_text("hmac-sha256.").unwrap());
        let mut packet = message();
        variables.write_record(key.as_ref(), algorithm.as_ref(), b"mac", [0, 0], &mut packet);
        with_additional(packet)
    }

    fn with_additional(mut packet: Vec<u8>) -> Signed {
        packet[11] = 1;
        Signed::read(&packet).unwrap()
    }

    /// Returns the time and the length of the other data of the response with an error.
    fn response(error: Rcode, key: Option<hmac::Key>) -> (u64, usize) {
        let query = signed(&Variables { time: SIGNED_AT, fudge: 300, error: 0, other: &[] });
        let signer = TsigSigner::new(query, key, error, NOW);
        let mut packet = message();
        let mut record = Vec::new();
        signer.sign(&packet, &mut record);
        assert_eq!(record.len(), signer.room());
        packet.extend(record);
        let signed = with_additional(packet);
        (signed.time, signed.other.len())
    }

    /// The client must see the error, not a difference of the clocks.
    #[test]
    fn responses_to_a_wrong_key_have_the_time_of_the_request() {
        let key = || Some(hmac::Key::new(hmac::HMAC_SHA256, b"secret"));
        assert_eq!(response(Rcode::BADKEY, None), (SIGNED_AT, 0));
        assert_eq!(response(Rcode(16), None), (SIGNED_AT, 0));
        assert_eq!(response(Rcode::BADTIME, key()), (SIGNED_AT, TIME));
        assert_eq!(response(Rcode::NOERROR, key()), (NOW, 0));
    }
}
