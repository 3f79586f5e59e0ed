//! Sender's side of Frame Streams: the control frames that a collector sends.

use crate::shared::frame_streams::{Control, Frame, read};

/// A frame from the collector that is invalid or not expected at this point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HandshakeError {
    /// Not a control frame, or not of the expected type.
    #[error("the collector does not use bidirectional Frame Streams")]
    Frame,
    /// The collector accepts only other content types.
    #[error("the collector does not accept protobuf:dnstap.Dnstap")]
    ContentType,
}

/// Checks if the received bytes contain the expected frame. Returns `false` if the frame is incomplete.
///
/// # Errors
/// Fails if something else was received.
pub(super) fn has_arrived(expected: Control, bytes: &[u8]) -> Result<bool, HandshakeError> {
    match read(bytes) {
        Ok(None) => Ok(false),
        Ok(Some((Frame::Control { control, is_dnstap }, _))) if control == expected => {
            if is_dnstap {
                Ok(true)
            } else {
                Err(HandshakeError::ContentType)
            }
        }
        _ => Err(HandshakeError::Frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_the_expected_frame() {
        let accept = Control::Accept.to_bytes();
        assert_eq!(has_arrived(Control::Accept, &accept[..accept.len() - 1]), Ok(false));
        assert_eq!(has_arrived(Control::Accept, &accept), Ok(true));
        assert_eq!(has_arrived(Control::Accept, &Control::Stop.to_bytes()), Err(HandshakeError::Frame));
        assert_eq!(has_arrived(Control::Accept, b"\0\0\0\x03abc"), Err(HandshakeError::Frame));
        assert_eq!(has_arrived(Control::Accept, b"HTTP/1.1 400 Bad Request"), Err(HandshakeError::Frame));
        let other = b"\0\0\0\0\0\0\0\x0d\0\0\0\x01\0\0\0\x01\0\0\0\x01x";
        assert_eq!(has_arrived(Control::Accept, other), Err(HandshakeError::ContentType));
    }
}
