//! DNS over QUIC (RFC 9250): one query per bidirectional stream, each message with a length prefix.

use bytes::Bytes;
use host::invariant::holds;
use wire::{Header, Message, OptionCode, Type, options};

/// Length of the length prefix in bytes.
const PREFIX_LEN: usize = 2;
/// Length of the longest query on a stream in bytes.
pub(crate) const STREAM_MAX: usize = PREFIX_LEN + u16::MAX as usize;

/// ALPN identifier (RFC 9250 §7.1).
pub(crate) const ALPN: &[u8] = b"doq";

/// Error codes (RFC 9250 §8.4).
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0x0;
    /// The server cannot answer.
    pub(crate) const INTERNAL_ERROR: u32 = 0x1;
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: u32 = 0x2;
    /// A query or an answer is cancelled.
    pub const REQUEST_CANCELLED: u32 = 0x3;
    /// The peer uses too many resources.
    pub const EXCESSIVE_LOAD: u32 = 0x4;

    /// Code as the standard writes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Name(pub u64);

    impl core::fmt::Display for Name {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            match self.0 {
                0x0 => f.write_str("DOQ_NO_ERROR"),
                0x1 => f.write_str("DOQ_INTERNAL_ERROR"),
                0x2 => f.write_str("DOQ_PROTOCOL_ERROR"),
                0x3 => f.write_str("DOQ_REQUEST_CANCELLED"),
                0x4 => f.write_str("DOQ_EXCESSIVE_LOAD"),
                0x5 => f.write_str("DOQ_UNSPECIFIED_ERROR"),
                other => write!(f, "error code {other:#x}"),
            }
        }
    }
}

/// Violation of RFC 9250 §4.3.3. The connection must be closed with [`code::PROTOCOL_ERROR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(pub &'static str);

/// Bytes follow the only message on a stream.
pub(crate) const TRAILING_BYTES: ProtocolError = ProtocolError("bytes follow the message");
/// A stream ends before its message is complete.
pub(crate) const INCOMPLETE: ProtocolError = ProtocolError("the stream ends before the message");

/// Returns the message on a stream whose first bytes are `stream`, or `None` if it is not complete.
///
/// # Errors
/// The message has length 0, or bytes follow it.
pub fn message(stream: &[u8]) -> Result<Option<&[u8]>, ProtocolError> {
    let Some((prefix, rest)) = stream.split_first_chunk::<PREFIX_LEN>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*prefix));
    if length == 0 {
        return Err(ProtocolError("the message is empty"));
    }
    match rest.len() {
        have if have > length => Err(TRAILING_BYTES),
        have if have == length => Ok(Some(rest)),
        _ => Ok(None),
    }
}

/// Checks the rules for the messages of clients: ID 0, no response, no option for the lifetime of TCP connections.
///
/// # Errors
/// The rule that the message breaks.
pub fn check(message: &[u8]) -> Result<(), ProtocolError> {
    if check_reply(message)?.flags.is_response() { Err(ProtocolError("the message is a response")) } else { Ok(()) }
}

/// Checks the rules for the messages of servers, and returns the header: ID 0, no option for the lifetime of TCP
/// connections.
///
/// # Errors
/// The rule that the message breaks.
pub(crate) fn check_reply(message: &[u8]) -> Result<Header, ProtocolError> {
    let header = Header::read(message).ok_or(ProtocolError("the message is too short"))?;
    if header.id != 0 {
        return Err(ProtocolError("the message ID is not 0"));
    }
    if header.additionals > 0 && has_keepalive(message) {
        return Err(ProtocolError("the option edns-tcp-keepalive is not allowed"));
    }
    Ok(header)
}

fn has_keepalive(message: &[u8]) -> bool {
    // The DNS server refuses a malformed message itself.
    let Ok(message) = Message::parse(message) else { return false };
    let mut opts = message.records().filter(|record| record.rtype() == Type::OPT);
    opts.any(|opt| options(opt.rdata()).any(|(code, _)| code == OptionCode::TCP_KEEPALIVE))
}

/// Returns a message with its length prefix.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    // The engine writes no longer messages. A shorter one would at least be malformed for this query only.
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    holds(message.len() == usize::from(length), "a message is at most as long as its length prefix can say");
    let mut framed = Vec::with_capacity(PREFIX_LEN + message.len());
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(&message[..usize::from(length)]);
    holds(framed.len() <= STREAM_MAX, "a message with its prefix is a whole stream");
    framed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01";

    /// Query with an OPT record that has these options.
    fn with_options(options: &[u8]) -> Vec<u8> {
        let mut query = QUERY.to_vec();
        query[11] = 1;
        query.extend_from_slice(b"\0\0\x29\x04\xd0\0\0\0\0\0");
        query.push(u8::try_from(options.len()).unwrap());
        query.extend_from_slice(options);
        query
    }

    #[test]
    fn a_message_is_complete_when_its_length_is_reached() {
        let stream = [&[0, 17][..], QUERY].concat();
        for end in 0..stream.len() {
            assert_eq!(message(&stream[..end]), Ok(None), "{end}");
        }
        assert_eq!(message(&stream), Ok(Some(QUERY)));
        assert_eq!(message(&frame(QUERY)), Ok(Some(QUERY)));
    }

    #[test]
    fn refuses_empty_messages_and_trailing_bytes() {
        assert!(message(&[0, 0]).is_err());
        assert!(message(&[0, 1, 7, 7]).is_err());
    }

    #[test]
    fn refuses_what_the_standard_forbids_in_queries() {
        let mut with_id = QUERY.to_vec();
        with_id[1] = 1;
        let mut response = QUERY.to_vec();
        response[2] |= 0x80;
        assert_eq!(check(QUERY), Ok(()));
        for refused in [&with_id, &response, &QUERY[..11].to_vec(), &with_options(b"\0\x0b\0\0")] {
            assert!(check(refused).is_err(), "{refused:?}");
        }
        // A cookie is fine.
        assert_eq!(check(&with_options(b"\0\x0a\0\x02\x01\x02")), Ok(()));
    }
}
