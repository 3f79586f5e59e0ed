//! Replies of upstreams: checks before a reply is forwarded or cached.

use wire::{MessageError, Reply};

/// Returns the reply if it contains all records that its header counts, and each of them is well-formed. Other replies
/// must not be forwarded or cached.
///
/// A malformed reply with TC becomes an empty one with TC, because the records of a truncated reply must not be used
/// (RFC 2181 §9).
#[must_use]
pub fn readable(reply: Reply) -> Option<Reply> {
    match well_formed(&reply) {
        Ok(true) => Some(reply),
        _ if reply.is_truncated() => Some(reply.truncated()),
        _ => None,
    }
}

/// Returns a reply that arrived over UDP as [`readable`] does. A reply that ends before its last record, without TC,
/// also becomes an empty one with TC. Such upstreams ignore the limit of the client's UDP payload, and answer over TCP.
#[must_use]
pub fn readable_datagram(reply: Reply) -> Option<Reply> {
    match well_formed(&reply) {
        Err(MessageError::Short) => Some(reply.truncated()),
        _ => readable(reply),
    }
}

/// Returns true if each record of the reply is well-formed.
fn well_formed(reply: &Reply) -> Result<bool, MessageError> {
    reply.message().map(|message| message.records().all(|record| record.is_well_formed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(flags: u8, answers: u8, rest: &[u8]) -> Reply {
        let header = [0, 1, flags, 0, 0, 1, 0, answers, 0, 0, 0, 0];
        Reply::parse([&header[..], b"\x01a\0\0\x01\0\x01", rest].concat()).expect("a question")
    }

    #[test]
    fn refuses_replies_with_missing_or_malformed_records() {
        let record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
        let whole = reply(0x80, 1, record);
        assert_eq!(readable(whole.clone()), Some(whole.clone()));
        assert_eq!(readable(reply(0x80, 1, &record[..9])), None);
        assert_eq!(readable_datagram(whole.clone()), Some(whole));
        assert_eq!(readable_datagram(reply(0x80, 1, &record[..9])), Some(reply(0x82, 0, b"")));
        assert_eq!(readable_datagram(reply(0x80, 1, b"")), Some(reply(0x82, 0, b"")));
        assert_eq!(readable(reply(0x82, 1, &record[..9])), Some(reply(0x82, 0, b"")));
        // An address of three bytes, and an owner that is a pointer to itself.
        let short = reply(0x80, 1, b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x03\xc0\0\x02");
        let circular = reply(0x80, 1, b"\xc0\x13\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
        assert_eq!((readable_datagram(short), readable_datagram(circular)), (None, None));
    }
}
