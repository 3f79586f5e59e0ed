//! Frame Streams, the framing of dnstap messages on a stream, for both ends.
//!
//! ```text
//!     sender     READY ──►            START ──► data … STOP ──►
//!     collector          ◄── ACCEPT                            ◄── FINISH
//! ```
//!
//! A data frame is a length and the data. A control frame is a length of 0, the length of the rest, a type and fields.
//! All numbers have 32 bits, the most significant byte first.

/// Content type, which both sides must agree on.
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";
/// Number of the content type field.
const FIELD_CONTENT_TYPE: u32 = 1;
/// Maximum length in bytes of a control frame without its length fields, as in libfstrm.
const CONTROL_MAX: usize = 512;
/// Maximum length in bytes of the data in a frame: twice the longest DNS message, for a query and its response.
const DATA_MAX: usize = 160 << 10;
/// Size in bytes of a number.
const NUMBER: usize = 4;

/// Type of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Accept = 1,
    Start = 2,
    Stop = 3,
    Ready = 4,
    Finish = 5,
}

/// Frame that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// Control frame.
    Control {
        /// Type.
        control: Control,
        /// True if it names the content type of dnstap, or none.
        is_dnstap: bool,
    },
    /// Data.
    Data(&'a [u8]),
}

/// Reason why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A control frame is malformed or has an unexpected type.
    #[error("malformed control frame")]
    Control,
    /// The stream does not contain dnstap messages.
    #[error("the content type is not protobuf:dnstap.Dnstap")]
    ContentType,
    /// A frame exceeds the maximum length.
    #[error("a frame is too long")]
    Length,
}

impl Control {
    const ALL: [Control; 5] = [Control::Accept, Control::Start, Control::Stop, Control::Ready, Control::Finish];

    /// Encodes the frame, with the content type if a frame of this type has one.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let field = [&FIELD_CONTENT_TYPE.to_be_bytes()[..], &length(CONTENT_TYPE), CONTENT_TYPE].concat();
        let fields = if matches!(self, Control::Stop | Control::Finish) { &[][..] } else { &field };
        let body = [&(self as u32).to_be_bytes()[..], fields].concat();
        [&[0; NUMBER][..], &length(&body), &body].concat()
    }
}

/// Reads the first frame, with its whole length in bytes. Returns `None` if it is incomplete.
///
/// # Errors
/// The frame is malformed or too long.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = number(bytes) else { return Ok(None) };
    if length != 0 {
        let data = bounded(rest, length, DATA_MAX)?;
        return Ok(data.map(|data| (Frame::Data(data), NUMBER + data.len())));
    }
    let Some((length, rest)) = number(rest) else { return Ok(None) };
    let Some(body) = bounded(rest, length, CONTROL_MAX)? else { return Ok(None) };
    let (kind, fields) = number(body).ok_or(FrameError::Control)?;
    let control = Control::ALL.into_iter().find(|control| *control as u32 == kind).ok_or(FrameError::Control)?;
    let frame = Frame::Control { control, is_dnstap: is_dnstap(fields)? };
    Ok(Some((frame, 2 * NUMBER + body.len())))
}

/// Splits off a number.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// Returns the first `length` bytes; `None` if there are fewer.
fn bounded(bytes: &[u8], length: u32, maximum: usize) -> Result<Option<&[u8]>, FrameError> {
    let length = usize::try_from(length).ok().filter(|length| *length <= maximum).ok_or(FrameError::Length)?;
    Ok(bytes.get(..length))
}

/// Returns true if the fields of a control frame name the content type, or none at all.
fn is_dnstap(mut fields: &[u8]) -> Result<bool, FrameError> {
    let mut is_ours = fields.is_empty();
    while !fields.is_empty() {
        let (field, rest) = number(fields).ok_or(FrameError::Control)?;
        let (length, rest) = number(rest).ok_or(FrameError::Control)?;
        let value = bounded(rest, length, CONTROL_MAX)?.ok_or(FrameError::Control)?;
        is_ours |= field == FIELD_CONTENT_TYPE && value == CONTENT_TYPE;
        fields = rest.get(value.len()..).unwrap_or_default();
    }
    Ok(is_ours)
}

/// Length of a part of a control frame, which has at most some dozen bytes.
fn length(bytes: &[u8]) -> [u8; NUMBER] {
    let length = u32::try_from(bytes.len());
    debug_assert!(length.is_ok(), "control frames are built from constants");
    length.unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &[u8] = b"\0\0\0\0\0\0\0\x22\0\0\0\x04\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";

    #[test]
    fn encodes_control_frames() {
        assert_eq!(Control::Ready.to_bytes(), READY);
        assert_eq!(Control::Stop.to_bytes(), b"\0\0\0\0\0\0\0\x04\0\0\0\x03");
        assert_eq!(Control::Finish.to_bytes(), b"\0\0\0\0\0\0\0\x04\0\0\0\x05");
    }

    #[test]
    fn reads_what_it_encodes() {
        for control in Control::ALL {
            let bytes = control.to_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), Ok(None), "{control:?} {cut}");
            }
            assert_eq!(read(&bytes), Ok(Some((Frame::Control { control, is_dnstap: true }, bytes.len()))));
        }
        assert_eq!(read(b"\0\0\0\x03abc\0"), Ok(Some((Frame::Data(b"abc"), 7))));
    }

    #[test]
    fn reads_content_types() {
        let control = Control::Accept;
        let other = b"\0\0\0\0\0\0\0\x0d\0\0\0\x01\0\0\0\x01\0\0\0\x01x";
        assert_eq!(read(other), Ok(Some((Frame::Control { control, is_dnstap: false }, other.len()))));
        let two = b"\0\0\0\0\0\0\0\x2b\0\0\0\x01\0\0\0\x01\0\0\0\x01x\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";
        assert_eq!(read(two), Ok(Some((Frame::Control { control, is_dnstap: true }, two.len()))));
    }

    #[test]
    fn refuses_malformed_and_long_frames() {
        assert_eq!(read(b"\0\0\0\0\0\0\0\x04\0\0\0\x09"), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0\0\x02\0\0"), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0\0\x08\0\0\0\x01\0\0\0\x01"), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0\x02\x01"), Err(FrameError::Length));
        assert_eq!(read(b"\0\0\0\0\xff\xff\xff\xff"), Err(FrameError::Length));
        assert_eq!(read(b"HTTP/1.1 400 Bad Request"), Err(FrameError::Length));
    }
}
