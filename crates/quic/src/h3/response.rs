//! Responses: the header section, the body, both in one piece.

use bytes::Bytes;
use doh::Refusal;

use host::invariant::holds;

use super::Decimal;
use super::frame::{FrameType, put_frame};
use super::qpack::{put_indexed, put_literal, put_named, put_prefix};

/// Indexes of the static table.
const CONTENT_LENGTH: usize = 4;
const STATUS: usize = 24;
const STATUS_200: usize = 25;
const CACHE_CONTROL: usize = 36;
const DNS_MESSAGE: usize = 44;
const CONTENT_TYPE: usize = 45;
const NOSNIFF: usize = 61;
/// Room for the header section and the headers of the frames in bytes.
const HEAD_LEN: usize = 64;

/// Returns the response with the answer to a query.
pub(crate) fn answer(message: &[u8]) -> Bytes {
    let mut section = Vec::with_capacity(HEAD_LEN);
    put_prefix(&mut section);
    put_indexed(&mut section, STATUS_200);
    put_indexed(&mut section, DNS_MESSAGE);
    put_literal(&mut section, CONTENT_LENGTH, Decimal::new(message.len()).text());
    let mut lifetime = b"max-age=".to_vec();
    lifetime.extend_from_slice(Decimal::new(doh::lifetime(message) as usize).text());
    put_literal(&mut section, CACHE_CONTROL, &lifetime);
    response(&section, message)
}

/// Returns the response to a request that is not answered by DNS.
pub(crate) fn refusal(refusal: &Refusal) -> Bytes {
    holds((400..600).contains(&refusal.status), "a refusal is an error");
    let mut section = Vec::with_capacity(HEAD_LEN);
    put_prefix(&mut section);
    put_literal(&mut section, STATUS, Decimal::new(usize::from(refusal.status)).text());
    put_literal(&mut section, CONTENT_TYPE, doh::TEXT_TYPE.as_bytes());
    put_literal(&mut section, CONTENT_LENGTH, Decimal::new(refusal.text.len()).text());
    put_indexed(&mut section, NOSNIFF);
    if let Some(allow) = refusal.allow {
        put_named(&mut section, b"allow", allow.as_bytes());
    }
    response(&section, refusal.text.as_bytes())
}

fn response(section: &[u8], body: &[u8]) -> Bytes {
    let mut frames = Vec::with_capacity(HEAD_LEN + section.len() + body.len());
    put_frame(&mut frames, FrameType::HEADERS, section);
    put_frame(&mut frames, FrameType::DATA, body);
    holds(frames.len() <= HEAD_LEN + section.len() + body.len(), "a response fits into the room for it");
    frames.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h3::frame::varint;
    use crate::h3::qpack;

    /// Splits a response into its fields and its body.
    fn read(response: &[u8]) -> (Vec<String>, Vec<u8>) {
        let frame = |bytes: &[u8]| {
            let (frame_type, at) = varint(bytes).unwrap();
            let (length, length_len) = varint(&bytes[at..]).unwrap();
            let start = at + length_len;
            (frame_type, start, start + usize::try_from(length).unwrap())
        };
        let (headers, start, end) = frame(response);
        let (data, data_start, data_end) = frame(&response[end..]);
        assert_eq!((headers, data, end + data_end), (1, 0, response.len()));
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        qpack::decode(&response[start..end], 1 << 14, |name, value| {
            fields.push(format!("{}: {}", text(name), text(value)));
        })
        .unwrap();
        (fields, response[end + data_start..].to_vec())
    }

    #[test]
    fn an_answer_has_its_length_and_lifetime() {
        let message =
            [b"\0\0\x80\0\0\0\0\x01\0\0\0\0".as_slice(), b"\0\0\x01\0\x01\0\0\0\x3c\0\x04\x01\x02\x03\x04"].concat();
        let (fields, body) = read(&answer(&message));
        assert_eq!(
            fields,
            [
                ":status: 200",
                "content-type: application/dns-message",
                "content-length: 27",
                "cache-control: max-age=60"
            ]
        );
        assert_eq!(body, message);
    }

    #[test]
    fn a_refusal_has_a_text() {
        let refused = doh::accept(
            &doh::Head { method: b"PUT", target: b"/dns-query", content_type: None },
            doh::Policy { strict: true },
        );
        let (fields, body) = read(&refusal(&refused.unwrap_err()));
        let length = format!("content-length: {}", body.len());
        let expected = [
            ":status: 405",
            "content-type: text/plain; charset=utf-8",
            &length,
            "x-content-type-options: nosniff",
            "allow: GET, POST",
        ];
        assert_eq!(fields, expected);
        assert!(body.ends_with(b"\n"));
    }
}
