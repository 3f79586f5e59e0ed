//! Replies of upstreams: validation, and the header fields that decide on another attempt.

use wire::{Flags, HEADER_LEN, Header, Message, MessageError, Rcode};

/// Header fields of a reply that decide on another attempt.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    flags: Flags,
    answers: u16,
}

impl Reply {
    /// Parses the header of a reply.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Reply> {
        Header::read(bytes).map(|header| Reply { flags: header.flags, answers: header.answers })
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
/// A malformed reply with TC becomes an empty one with TC, because the records of a truncated reply must not be used
/// (RFC 2181 §9).
#[must_use]
pub fn readable(reply: Vec<u8>) -> Option<Vec<u8>> {
    match well_formed(&reply) {
        Ok(true) => Some(reply),
        _ if Reply::read(&reply)?.is_truncated() => truncated(reply),
        _ => None,
    }
}

/// Returns a reply that arrived over UDP as [`readable`] does. A reply that ends before its last record, without TC,
/// also becomes an empty one with TC. Such upstreams ignore the limit of the client's UDP payload, and answer over TCP.
#[must_use]
pub fn readable_datagram(reply: Vec<u8>) -> Option<Vec<u8>> {
    match well_formed(&reply) {
        Err(MessageError::Short) => truncated(reply),
        _ => readable(reply),
    }
}

/// Returns true if each record of the reply is well-formed.
fn well_formed(reply: &[u8]) -> Result<bool, MessageError> {
    Message::parse(reply).map(|message| message.records().all(|record| record.is_well_formed()))
}

/// Removes the records of a reply and sets TC.
fn truncated(mut reply: Vec<u8>) -> Option<Vec<u8>> {
    let header = Header::read(&reply)?;
    reply.truncate(wire::question_end(&reply)?);
    let flags = header.flags.with_truncated(true);
    let header = Header { flags, answers: 0, authorities: 0, additionals: 0, ..header };
    *reply.first_chunk_mut::<HEADER_LEN>()? = header.to_octets();
    Some(reply)
}

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
        assert_eq!(readable_datagram(reply(0x80, 1, record)), Some(reply(0x80, 1, record)));
        assert_eq!(readable_datagram(reply(0x80, 1, &record[..9])), Some(reply(0x82, 0, b"")));
        assert_eq!(readable_datagram(reply(0x80, 1, b"")), Some(reply(0x82, 0, b"")));
        assert_eq!(readable_datagram(reply(0x80, 0, b"")[..15].to_vec()), None);
        assert_eq!(readable(reply(0x82, 1, &record[..9])), Some(reply(0x82, 0, b"")));
        assert_eq!(readable(b"\0\x01\x82".to_vec()), None);
        // An address of three bytes, and an owner that is a pointer to itself.
        let short = reply(0x80, 1, b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x03\xc0\0\x02");
        let circular = reply(0x80, 1, b"\xc0\x13\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
        assert_eq!((readable_datagram(short), readable_datagram(circular)), (None, None));
    }
}
