//! Frames (RFC 9114 §7) and the integers of QUIC (RFC 9000 §16).

use host::invariant::holds;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameType(pub(crate) u64);

impl FrameType {
    pub(crate) const DATA: FrameType = FrameType(0x0);
    pub(crate) const HEADERS: FrameType = FrameType(0x1);
    pub(crate) const CANCEL_PUSH: FrameType = FrameType(0x3);
    pub(crate) const SETTINGS: FrameType = FrameType(0x4);
    pub(crate) const PUSH_PROMISE: FrameType = FrameType(0x5);
    pub(crate) const GOAWAY: FrameType = FrameType(0x7);
    pub(crate) const MAX_PUSH_ID: FrameType = FrameType(0xd);

    /// Returns true for types that have a meaning in HTTP/2 only, which are forbidden (RFC 9114 §7.2.8).
    pub(crate) const fn is_of_http2(self) -> bool {
        matches!(self.0, 0x2 | 0x6 | 0x8 | 0x9)
    }

    /// Returns true for types that are allowed neither in a request nor in a response: those of the control stream,
    /// those of HTTP/2, and push.
    pub(crate) const fn is_forbidden_on_request_streams(self) -> bool {
        self.is_of_http2()
            || matches!(
                self,
                FrameType::CANCEL_PUSH
                    | FrameType::SETTINGS
                    | FrameType::PUSH_PROMISE
                    | FrameType::GOAWAY
                    | FrameType::MAX_PUSH_ID
            )
    }
}

/// Longest header of a frame in bytes: two integers.
const HEADER_MAX: usize = 16;
/// Longest integer in bytes.
pub(super) const INTEGER_LEN_MAX: usize = 8;
/// Largest integer: two of its 64 bits say how long it is.
const INTEGER_MAX: u64 = (1 << 62) - 1;

const _: () = assert!(HEADER_MAX == 2 * INTEGER_LEN_MAX);

/// Collects the header of a frame, which may arrive in pieces.
#[derive(Debug, Default)]
struct HeaderReader {
    bytes: [u8; HEADER_MAX],
    length: usize,
}

impl HeaderReader {
    /// Takes bytes from the front of `input` until the header is complete. Returns the type and the length of the frame
    /// then.
    fn read(&mut self, input: &mut &[u8]) -> Option<(FrameType, u64)> {
        holds(self.length < HEADER_MAX, "a header that is not complete has room");
        while let Some((first, rest)) = input.split_first() {
            self.bytes[self.length] = *first;
            self.length += 1;
            *input = rest;
            let collected = &self.bytes[..self.length];
            if let Some((frame_type, at)) = varint(collected)
                && let Some((length, length_len)) = varint(&collected[at..])
            {
                holds(at + length_len == self.length, "a header ends with its last byte");
                self.length = 0;
                return Some((FrameType(frame_type), length));
            }
        }
        None
    }

    /// Returns true if a part of a header has arrived.
    const fn is_partial(&self) -> bool {
        self.length > 0
    }
}

/// Part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'b> {
    /// The header: type and length of the payload.
    Start(FrameType, u64),
    /// Some bytes of the payload.
    Payload(FrameType, &'b [u8]),
    /// The payload is complete.
    End(FrameType),
}

/// Splits a stream into frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    header: HeaderReader,
    /// Frame that is being received, with the number of its missing bytes.
    frame: Option<(FrameType, u64)>,
}

impl FrameReader {
    /// Takes the next part from the front of `input`. `None` if more bytes must arrive first.
    pub(crate) fn next<'b>(&mut self, input: &mut &'b [u8]) -> Option<Part<'b>> {
        let Some((frame, missing)) = self.frame else {
            let (frame, length) = self.header.read(input)?;
            self.frame = Some((frame, length));
            return Some(Part::Start(frame, length));
        };
        holds(!self.header.is_partial(), "inside a frame there is no header");
        if missing == 0 {
            self.frame = None;
            return Some(Part::End(frame));
        }
        let (payload, rest) = input.split_at(input.len().min(usize::try_from(missing).unwrap_or(usize::MAX)));
        if payload.is_empty() {
            return None;
        }
        holds(payload.len() as u64 <= missing, "a part of a payload belongs to its frame");
        *input = rest;
        self.frame = Some((frame, missing - payload.len() as u64));
        Some(Part::Payload(frame, payload))
    }

    /// Returns true if a part of a frame has arrived.
    pub(crate) const fn is_partial(&self) -> bool {
        self.frame.is_some() || self.header.is_partial()
    }
}

/// Reads an integer. Returns it with its length, or `None` if it is not complete.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)), length))
}

/// Appends an integer.
pub(crate) fn put_varint(output: &mut Vec<u8>, value: u64) {
    holds(value <= INTEGER_MAX, "an integer has 62 bits");
    let bytes = value.to_be_bytes();
    let (start, mark) = match value {
        0..=0x3f => (7, 0),
        0x40..=0x3fff => (6, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (0, 0xc0),
    };
    let at = output.len();
    output.extend_from_slice(&bytes[start..]);
    output[at] |= mark;
    holds(varint(&output[at..]) == Some((value, output.len() - at)), "an integer is read as it was written");
}

/// Appends a frame.
pub(crate) fn put_frame(output: &mut Vec<u8>, frame_type: FrameType, payload: &[u8]) {
    let start = output.len();
    put_varint(output, frame_type.0);
    put_varint(output, payload.len() as u64);
    output.extend_from_slice(payload);
    holds(output.len() - start - payload.len() <= HEADER_MAX, "a frame is its header and its payload");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_integers_of_the_standard() {
        let examples: [(u64, &[u8]); 4] = [
            (37, &[0x25]),
            (15_293, &[0x7b, 0xbd]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
        ];
        for (value, bytes) in examples {
            assert_eq!(varint(bytes), Some((value, bytes.len())));
            assert_eq!(varint(&bytes[..bytes.len() - 1]), None);
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written, bytes);
        }
        assert_eq!(varint(&[0x40, 0x25]), Some((37, 2)), "longer than necessary");
    }

    #[test]
    fn reads_a_header_that_arrives_byte_by_byte() {
        let mut reader = HeaderReader::default();
        let frame = [0x40, 0x01, 0x80, 0, 0, 5, 9];
        for byte in &frame[..5] {
            assert_eq!(reader.read(&mut &[*byte][..]), None);
        }
        assert!(reader.is_partial());
        let mut rest = &frame[5..];
        assert_eq!(reader.read(&mut rest), Some((FrameType::HEADERS, 5)));
        assert_eq!((rest, reader.is_partial()), (&[9u8][..], false));
    }
}
