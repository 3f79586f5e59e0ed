//! Client side: the target of a request, and the decision about a response.

use core::fmt;

use wire::{Message, Type};

use crate::decimal::number;
use crate::request::{BODY_MAX, is_message};
use crate::{PATH, base64url};

/// Returns the request target of a GET with this message (RFC 8484 §4.1.1).
#[must_use]
pub fn get_target(message: &[u8]) -> String {
    format!("{PATH}?dns={}", base64url::encode(message))
}

/// The parts of a response that decide about it.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Status code.
    pub status: u16,
    /// Value of the header field `content-type`.
    pub content_type: Option<&'a [u8]>,
    /// Value of the header field `content-encoding`.
    pub content_encoding: Option<&'a [u8]>,
    /// Value of the header field `content-length`.
    pub content_length: Option<&'a [u8]>,
}

/// Reason why a response has no DNS message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The status is not 200. Redirects are not followed.
    Status(u16),
    /// The body has another content type, or none.
    ContentType(Option<String>),
    /// The body is compressed, although the request did not ask for it.
    ContentEncoding,
    /// The body is longer than a DNS message can be.
    TooLong,
}

/// Maximum length of a content type in an error text, in characters.
const TYPE_MAX: usize = 60;

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseError::Status(status @ 300..400) => write!(f, "HTTP status {status}; redirects are not followed"),
            ResponseError::Status(status) => write!(f, "HTTP status {status}"),
            ResponseError::ContentType(Some(other)) => write!(f, "content type `{other}`, not {}", crate::MEDIA_TYPE),
            ResponseError::ContentType(None) => write!(f, "no content type; expected {}", crate::MEDIA_TYPE),
            ResponseError::ContentEncoding => f.write_str("the response is compressed, which was not requested"),
            ResponseError::TooLong => write!(f, "the response has more than {BODY_MAX} bytes"),
        }
    }
}

impl core::error::Error for ResponseError {}

/// Checks that the body of a response is a DNS message (RFC 8484 §4.2.1). The caller reads at most
/// [`BODY_MAX`](crate::BODY_MAX) bytes of it.
///
/// # Errors
/// The response has no DNS message.
pub fn check_response(head: &ResponseHead<'_>) -> Result<(), ResponseError> {
    if head.status != 200 {
        return Err(ResponseError::Status(head.status));
    }
    if !head.content_type.is_some_and(is_message) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(TYPE_MAX).collect();
        return Err(ResponseError::ContentType(head.content_type.map(text)));
    }
    if head.content_encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err(ResponseError::ContentEncoding);
    }
    match head.content_length.and_then(number) {
        Some(length) if length > BODY_MAX as u64 => Err(ResponseError::TooLong),
        _ => Ok(()),
    }
}

/// Subtracts the age of a response, which an HTTP cache has kept, from the TTLs of its records (RFC 8484 §5.1). `age`
/// is the value of the header field `age`; other values than a number of seconds are ignored. A number that no integer
/// can hold counts as the largest one (RFC 9111 §1.2.2).
pub fn subtract_age(answer: &mut [u8], age: &[u8]) {
    let Some(age) = number(age).filter(|age| *age > 0) else { return };
    let age = u32::try_from(age).unwrap_or(u32::MAX);
    for (at, ttl) in ttls(answer) {
        if let Some(field) = answer.get_mut(at..at + TTL_LEN) {
            field.copy_from_slice(&ttl.saturating_sub(age).to_be_bytes());
        }
    }
}

/// Length of a TTL, and the length of RDLENGTH, which follows it, in bytes.
const TTL_LEN: usize = 4;
const RDLENGTH_LEN: usize = 2;

/// Returns the offset and the value of each TTL. An OPT record has none.
fn ttls(answer: &[u8]) -> Vec<(usize, u32)> {
    let Ok(message) = Message::parse(answer) else { return Vec::new() };
    let records = message.records().filter(|record| record.rtype() != Type::OPT);
    records.map(|record| (record.end() - record.rdata().len() - RDLENGTH_LEN - TTL_LEN, record.ttl())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: ResponseHead<'_> = ResponseHead {
        status: 200,
        content_type: Some(b"application/dns-message"),
        content_encoding: None,
        content_length: None,
    };

    #[test]
    fn writes_the_example_of_the_standard() {
        // RFC 8484 §4.1.1.
        let query = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
        assert_eq!(get_target(query), "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB");
    }

    #[test]
    fn accepts_dns_messages_only() {
        let html = ResponseError::ContentType(Some("text/html".to_owned()));
        let rows = [
            (GOOD, Ok(())),
            (ResponseHead { content_type: Some(b"Application/DNS-Message; x=y"), ..GOOD }, Ok(())),
            (ResponseHead { content_length: Some(b"65535"), content_encoding: Some(b"identity"), ..GOOD }, Ok(())),
            (ResponseHead { status: 302, ..GOOD }, Err(ResponseError::Status(302))),
            (ResponseHead { status: 204, ..GOOD }, Err(ResponseError::Status(204))),
            (ResponseHead { status: 500, content_type: None, ..GOOD }, Err(ResponseError::Status(500))),
            (ResponseHead { content_type: Some(b"text/html"), ..GOOD }, Err(html)),
            (ResponseHead { content_type: None, ..GOOD }, Err(ResponseError::ContentType(None))),
            (ResponseHead { content_encoding: Some(b"gzip"), ..GOOD }, Err(ResponseError::ContentEncoding)),
            (ResponseHead { content_length: Some(b"65536"), ..GOOD }, Err(ResponseError::TooLong)),
            (ResponseHead { content_length: Some(b"99999999999999999999"), ..GOOD }, Err(ResponseError::TooLong)),
        ];
        for (head, outcome) in rows {
            assert_eq!(check_response(&head), outcome, "{head:?}");
        }
    }

    #[test]
    fn describes_refused_responses() {
        let type_error = ResponseError::ContentType(Some("text/html".to_owned()));
        assert_eq!(ResponseError::Status(302).to_string(), "HTTP status 302; redirects are not followed");
        assert_eq!(ResponseError::Status(502).to_string(), "HTTP status 502");
        assert_eq!(type_error.to_string(), "content type `text/html`, not application/dns-message");
    }

    /// Answer with one record of this TTL, and an OPT record with this field.
    fn answer(ttl: u32, opt: u32) -> Vec<u8> {
        let mut bytes = b"\0\0\x80\0\0\x01\0\x01\0\0\0\x01\x01a\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01".to_vec();
        bytes.extend(ttl.to_be_bytes());
        bytes.extend(b"\0\x04\xc0\0\x02\x01\0\0\x29\x04\xd0");
        bytes.extend(opt.to_be_bytes());
        bytes.extend(b"\0\0");
        bytes
    }

    #[test]
    fn ages_ttls_at_the_edges_of_all_integers() {
        let edges = [1, 2, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1u128 << 100];
        let edges = || edges.into_iter().flat_map(|edge| [edge - 1, edge, edge + 1]);
        for age in edges().filter(|age| *age > 0) {
            for ttl in edges().filter_map(|ttl| u32::try_from(ttl).ok()) {
                // A TTL with the top bit set counts as 0 (RFC 2181 §8).
                let known = if ttl >> 31 == 1 { 0 } else { u128::from(ttl) };
                let left = u32::try_from(known.saturating_sub(age)).unwrap();
                let mut aged = answer(ttl, u32::MAX);
                subtract_age(&mut aged, age.to_string().as_bytes());
                assert_eq!(aged, answer(left, u32::MAX), "{ttl} after {age}");
            }
        }
    }

    #[test]
    fn subtracts_the_age_from_all_ttls_except_opt() {
        for (age, ttl) in [("100", 200), ("0", 300), ("300", 0), ("99999999999", 0), ("x", 300), ("-1", 300), ("", 300)]
        {
            let mut aged = answer(300, 0x8000);
            subtract_age(&mut aged, age.as_bytes());
            assert_eq!(aged, answer(ttl, 0x8000), "{age}");
        }
        let mut broken = b"\0\0\x80\0\0\x01\0\x01".to_vec();
        subtract_age(&mut broken, b"5");
        assert_eq!(broken, b"\0\0\x80\0\0\x01\0\x01");
    }
}
