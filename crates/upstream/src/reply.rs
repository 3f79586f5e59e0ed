//! Replies of upstreams: validation, and the header fields that decide on another attempt.

use wire::{Flags, Header, Message, Rcode};

/// Header fields of a reply that decide on another attempt.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    flags: Flags,
    answers: u16,
}

impl Reply {
    /// Parses the header of a reply.
    #[must_use]
    pub fn read(octets: &[u8]) -> Option<Reply> {
        Header::read(octets).map(|header| Reply { flags: header.flags, answers: header.answers })
    }

    /// Lower four bits of the response code.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        self.flags.rcode()
    }

    /// Returns true if the reply is truncated (TC).
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.flags.truncated()
    }

    /// Returns true if the reply is NOERROR without answers.
    #[must_use]
    pub fn is_nodata(&self) -> bool {
        self.rcode() == Rcode::NOERROR && self.answers == 0
    }
}

/// Returns the reply if it contains all records that its header counts, and each of them is well-formed. Other replies
/// must not be forwarded or cached.
///
/// A reply with TC that ends within a record becomes an empty one with TC, because the records of a truncated reply
/// must not be used (RFC 2181 §9).
#[must_use]
pub fn readable(mut reply: Vec<u8>) -> Option<Vec<u8>> {
    if Message::parse(&reply).is_ok_and(|message| message.records().all(|record| record.is_well_formed())) {
        return Some(reply);
    }
    let end = wire::question_end(&reply).filter(|_| Reply::read(&reply).is_some_and(|reply| reply.is_truncated()))?;
    reply.truncate(end);
    reply.get_mut(COUNTS_OF_RECORDS)?.fill(0);
    Some(reply)
}

/// Counts of the records in a header (RFC 1035 §4.1.1).
const COUNTS_OF_RECORDS: core::ops::Range<usize> = 6..12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_replies_with_missing_or_malformed_records() {
        let reply = |flags: u8, answers: u8, rest: &[u8]| {
            [&[0, 1, flags, 0, 0, 1, 0, answers, 0, 0, 0, 0][..], b"\x01a\0\0\x01\0\x01", rest].concat()
        };
        let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
        let whole = reply(0x80, 1, record);
        assert_eq!(readable(whole.clone()), Some(whole));
        assert_eq!(readable(reply(0x80, 1, &record[..9])), None);
        assert_eq!(readable(reply(0x82, 1, &record[..9])), Some(reply(0x82, 0, b"")));
        assert_eq!(readable(b"\0\x01\x82".to_vec()), None);
        // An address of three bytes, and an owner that is a pointer to itself.
        let short = reply(0x80, 1, b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x03\xc0\0\x02");
        let circular = reply(0x80, 1, b"\xc0\x13\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
        assert_eq!((readable(short), readable(circular)), (None, None));
    }
}
