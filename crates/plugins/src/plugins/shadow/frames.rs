//! Frame Streams: the frames that a collector reads, and those that it sends back.
//!
//! ```text
//!     sender     READY ──►            START ──► data … STOP ──►
//!     collector          ◄── ACCEPT                            ◄── FINISH
//! ```
//!
//! A sender may also begin with START, and then expects nothing back.

use core::fmt;

/// Content type, which both sides must agree on.
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";
/// Number of the content type field.
const FIELD_CONTENT_TYPE: u32 = 1;
/// Maximum length in bytes of a control frame without its length field, as in libfstrm.
const CONTROL_MAX: usize = 512;
/// Maximum length in bytes of a data frame: twice the longest DNS message, for a query and its response.
const DATA_MAX: usize = 160 << 10;
/// Types of control frames.
const ACCEPT: u32 = 1;
const START: u32 = 2;
const STOP: u32 = 3;
const READY: u32 = 4;
const FINISH: u32 = 5;

/// Reader of a stream.
#[derive(Debug, Default)]
pub struct FrameReader {
    unread: Vec<u8>,
    /// Position of the next frame in `unread`.
    at: usize,
}

/// Frame.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamFrame<'a> {
    /// Control frame, with the bytes to send back.
    Control(Vec<u8>),
    /// Last control frame, with the bytes to send back.
    End(Vec<u8>),
    /// Data.
    Data(&'a [u8]),
}

/// Reason why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A control frame is malformed or has an unexpected type.
    Control,
    /// The stream does not contain dnstap messages.
    ContentType,
    /// A frame exceeds the maximum length.
    Length,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrameError::Control => "malformed control frame",
            FrameError::ContentType => "the content type is not protobuf:dnstap.Dnstap",
            FrameError::Length => "a frame is too long",
        })
    }
}

impl core::error::Error for FrameError {}

impl FrameReader {
    /// Appends received bytes. Fewer than one frame remains from earlier ones if all frames were taken.
    pub fn push(&mut self, bytes: &[u8]) {
        self.unread.drain(..self.at);
        self.at = 0;
        self.unread.extend_from_slice(bytes);
    }

    /// Returns the next frame; `None` if it is not complete.
    ///
    /// # Errors
    /// The stream cannot be read on.
    pub fn next_frame(&mut self) -> Result<Option<StreamFrame<'_>>, FrameError> {
        let rest = self.unread.get(self.at..).unwrap_or_default();
        let Some((length, rest)) = number(rest) else { return Ok(None) };
        if length != 0 {
            let Some(data) = bounded(rest, length, DATA_MAX)? else { return Ok(None) };
            self.at += 4 + data.len();
            return Ok(Some(StreamFrame::Data(data)));
        }
        let Some((length, rest)) = number(rest) else { return Ok(None) };
        let Some(body) = bounded(rest, length, CONTROL_MAX)? else { return Ok(None) };
        self.at += 8 + body.len();
        let (kind, fields) = number(body).ok_or(FrameError::Control)?;
        match kind {
            READY if is_dnstap(fields)? => Ok(Some(StreamFrame::Control(control(ACCEPT, true)))),
            START if is_dnstap(fields)? => Ok(Some(StreamFrame::Control(Vec::new()))),
            READY | START => Err(FrameError::ContentType),
            STOP => Ok(Some(StreamFrame::End(control(FINISH, false)))),
            _ => Err(FrameError::Control),
        }
    }
}

/// Splits off a number of 32 bits.
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

/// Writes a control frame.
fn control(kind: u32, has_content_type: bool) -> Vec<u8> {
    let mut body = kind.to_be_bytes().to_vec();
    if has_content_type {
        body.extend_from_slice(&FIELD_CONTENT_TYPE.to_be_bytes());
        body.extend_from_slice(&length(CONTENT_TYPE));
        body.extend_from_slice(CONTENT_TYPE);
    }
    [&[0; 4][..], &length(&body), &body].concat()
}

/// Length of a part of a control frame, which has at most some dozen bytes.
fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stream_in_pieces_of_any_size() {
        let stream =
            [control(READY, true), control(START, true), b"\0\0\0\x03abc".to_vec(), control(STOP, false)].concat();
        for size in 1..=stream.len() {
            let (mut reader, mut seen) = (FrameReader::default(), Vec::new());
            for piece in stream.chunks(size) {
                reader.push(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    seen.push(match frame {
                        StreamFrame::Control(back) => format!("control {}", back.len()),
                        StreamFrame::End(back) => format!("end {}", back.len()),
                        StreamFrame::Data(data) => String::from_utf8_lossy(data).into_owned(),
                    });
                }
            }
            assert_eq!(seen, ["control 42", "control 0", "abc", "end 12"], "{size}");
        }
    }

    #[test]
    fn refuses_other_content_and_long_frames() {
        let read = |bytes: &[u8]| {
            let mut reader = FrameReader::default();
            reader.push(bytes);
            reader.next_frame().map(|frame| frame.is_some())
        };
        assert_eq!(read(b"\0\0\0\0\0\0\0\x0d\0\0\0\x04\0\0\0\x01\0\0\0\x01x"), Err(FrameError::ContentType));
        assert_eq!(read(b"\0\0\0\0\0\0\0\x04\0\0\0\x09"), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0\0\x02\0\0"), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0\x02\x01"), Err(FrameError::Length));
        assert_eq!(read(b"HTTP/1.1 400 Bad Request"), Err(FrameError::Length));
        assert_eq!(read(b"\0\0\0\0\0\0"), Ok(false));
    }
}
