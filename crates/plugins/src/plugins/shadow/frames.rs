//! Collector's side of Frame Streams: the frames that arrive, and those that go back.
//!
//! A sender that begins with START, and not with READY, expects nothing back.

use crate::shared::frame_streams::{Control, Frame, FrameError, read};

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
        let Some((frame, length)) = read(self.unread.get(self.at..).unwrap_or_default())? else { return Ok(None) };
        self.at += length;
        let frame = match frame {
            Frame::Data(data) => StreamFrame::Data(data),
            Frame::Control { control: Control::Ready, is_dnstap: true } => {
                StreamFrame::Control(Control::Accept.to_bytes())
            }
            Frame::Control { control: Control::Start, is_dnstap: true } => StreamFrame::Control(Vec::new()),
            Frame::Control { control: Control::Ready | Control::Start, .. } => return Err(FrameError::ContentType),
            Frame::Control { control: Control::Stop, .. } => StreamFrame::End(Control::Finish.to_bytes()),
            Frame::Control { control: Control::Accept | Control::Finish, .. } => return Err(FrameError::Control),
        };
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stream_in_pieces_of_any_size() {
        let [ready, start, stop] = [Control::Ready, Control::Start, Control::Stop].map(Control::to_bytes);
        let stream = [&ready[..], &start, b"\0\0\0\x03abc", &stop].concat();
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
    fn refuses_other_content_and_frames_of_a_collector() {
        let read = |bytes: &[u8]| {
            let mut reader = FrameReader::default();
            reader.push(bytes);
            reader.next_frame().map(|frame| frame.is_some())
        };
        assert_eq!(read(b"\0\0\0\0\0\0\0\x0d\0\0\0\x04\0\0\0\x01\0\0\0\x01x"), Err(FrameError::ContentType));
        assert_eq!(read(&Control::Accept.to_bytes()), Err(FrameError::Control));
        assert_eq!(read(b"\0\0\0\0\0\0"), Ok(false));
    }
}
