//! Frame Streams: the control frames before and after the data, for the sender of a bidirectional stream.
//!
//! ```text
//!     sender     READY ──►            START ──► data … STOP ──►
//!     collector          ◄── ACCEPT                            ◄── FINISH
//! ```

/// Content type, which both sides must agree on.
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";
/// Number of the content type field, the only field of a control frame.
const FIELD_CONTENT_TYPE: u32 = 1;
/// Maximum length in bytes of a control frame without its length field, as in libfstrm.
const CONTROL_MAX: usize = 512;

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Accept = 1,
    Start = 2,
    Stop = 3,
    Ready = 4,
    Finish = 5,
}

/// A frame from the collector that is invalid or not expected at this point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeError {
    /// Not a control frame, or not of the expected type.
    Frame,
    /// The collector accepts only other content types.
    ContentType,
}

impl core::fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            HandshakeError::Frame => "the collector does not use bidirectional Frame Streams",
            HandshakeError::ContentType => "the collector does not accept protobuf:dnstap.Dnstap",
        })
    }
}

impl core::error::Error for HandshakeError {}

impl Control {
    /// Encodes the frame, with the content type if this frame has one.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let content_type = if self == Control::Stop { &[][..] } else { CONTENT_TYPE };
        let field = [&FIELD_CONTENT_TYPE.to_be_bytes()[..], &length(content_type), content_type].concat();
        let field = if content_type.is_empty() { Vec::new() } else { field };
        let body = [&(self as u32).to_be_bytes()[..], &field].concat();
        [&[0; 4][..], &length(&body), &body].concat()
    }

    /// Checks if the received bytes contain this frame. Returns `false` if the frame is incomplete.
    ///
    /// # Errors
    /// Fails if something else was received.
    pub(super) fn is_in(self, bytes: &[u8]) -> Result<bool, HandshakeError> {
        let mut reader = Reader(bytes);
        let (Some(escape), Some(length)) = (reader.number(), reader.number()) else { return Ok(false) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if escape != 0 || !(4..=CONTROL_MAX).contains(&length) {
            return Err(HandshakeError::Frame);
        }
        let Some(body) = reader.bytes(length) else { return Ok(false) };
        let mut body = Reader(body);
        if body.number() != Some(self as u32) {
            return Err(HandshakeError::Frame);
        }
        if body.agrees() { Ok(true) } else { Err(HandshakeError::ContentType) }
    }
}

fn length(bytes: &[u8]) -> [u8; 4] {
    let length = u32::try_from(bytes.len());
    debug_assert!(length.is_ok(), "control frames are built from constants");
    length.unwrap_or_default().to_be_bytes()
}

/// Reader for the remaining bytes of a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Returns true if our content type is listed, or none is.
    fn agrees(&mut self) -> bool {
        let mut is_bare = true;
        while self.number() == Some(FIELD_CONTENT_TYPE) {
            let length = self.number().unwrap_or_default();
            if self.bytes(usize::try_from(length).unwrap_or(usize::MAX)) == Some(CONTENT_TYPE) {
                return true;
            }
            is_bare = false;
        }
        is_bare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &[u8] = b"\0\0\0\0\0\0\0\x22\0\0\0\x04\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";

    #[test]
    fn encodes_control_frames() {
        assert_eq!(Control::Ready.to_bytes(), READY);
        assert_eq!(Control::Stop.to_bytes(), b"\0\0\0\0\0\0\0\x04\0\0\0\x03");
    }

    #[test]
    fn recognises_received_control_frames() {
        let accept = Control::Accept.to_bytes();
        for cut in 0..accept.len() {
            assert_eq!(Control::Accept.is_in(&accept[..cut]), Ok(false), "{cut}");
        }
        assert_eq!(Control::Accept.is_in(&accept), Ok(true));
        assert_eq!(Control::Finish.is_in(b"\0\0\0\0\0\0\0\x04\0\0\0\x05"), Ok(true));
        assert_eq!(Control::Accept.is_in(&Control::Stop.to_bytes()), Err(HandshakeError::Frame));
        assert_eq!(Control::Accept.is_in(b"HTTP/1.1 400 Bad Request"), Err(HandshakeError::Frame));
        assert_eq!(Control::Accept.is_in(b"\0\0\0\0\xff\xff\xff\xff"), Err(HandshakeError::Frame));
        let other = b"\0\0\0\0\0\0\0\x0d\0\0\0\x01\0\0\0\x01\0\0\0\x01x";
        assert_eq!(Control::Accept.is_in(other), Err(HandshakeError::ContentType));
        let two = b"\0\0\0\0\0\0\0\x2b\0\0\0\x01\0\0\0\x01\0\0\0\x01x\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";
        assert_eq!(Control::Accept.is_in(two), Ok(true));
    }
}
