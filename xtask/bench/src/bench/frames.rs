//! Frames of HTTP/2 (RFC 9113 §4), as the clients of measurements read and write them.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
/// Flag of SETTINGS and PING. On HEADERS and DATA the same bit is END_STREAM.
pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// Flow control window of a connection in both directions before it is changed.
pub(crate) const INITIAL_WINDOW: u32 = 65_535;
/// Largest flow control window. A measurement does not use it up.
pub(crate) const WINDOW_MAX: u32 = (1 << 31) - 1;
/// `:status: 200`, entry 8 of the static table (RFC 7541 appendix A).
pub(crate) const STATUS_200: u8 = 0x88;

/// Frame with its payload.
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

/// Appends the start of a connection: neither pushes nor, in a measurement, an end of the windows. Each stream has this
/// window.
pub(crate) fn put_start(out: &mut Vec<u8>, stream_window: u32) {
    out.extend_from_slice(PREFACE);
    let [a, b, c, d] = stream_window.to_be_bytes();
    // SETTINGS_ENABLE_PUSH: 0, and SETTINGS_INITIAL_WINDOW_SIZE.
    put_frame(out, SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 0, 0, 4, a, b, c, d]);
    put_frame(out, WINDOW_UPDATE, 0, 0, &(WINDOW_MAX - INITIAL_WINDOW).to_be_bytes());
}

/// Returns true if the header fields begin with the status 200. Changes of the table size may precede it.
pub(crate) fn has_status_200(fields: &[u8]) -> bool {
    fields.iter().find(|byte| **byte & 0xe0 != 0x20) == Some(&STATUS_200)
}

/// Returns the number that a payload begins with.
pub(crate) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

pub(crate) fn put_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    // All payloads are short.
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Splits off the first frame, if it is complete.
pub(crate) fn split(input: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let ([a, b, c, kind, flags, s0, s1, s2, s3], rest) = input.split_first_chunk::<9>()?;
    let length = u32::from_be_bytes([0, *a, *b, *c]);
    let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((Frame { kind: *kind, flags: *flags, stream: u32::from_be_bytes([*s0, *s1, *s2, *s3]), payload }, rest))
}
