//! Requests to an upstream, and its responses.

use bytes::Bytes;
use doh::{BODY_MAX, PATH, ResponseError, ResponseHead, check_response, get_target, subtract_age};

use host::invariant::holds;

use super::frame::{FrameReader, FrameType, Part, put_frame};
use super::qpack::{self, SectionError, put_indexed, put_literal, put_prefix};
use super::{ConnectionError, Decimal, HEADERS_MAX, code, error};

/// Indexes of the static table.
const AUTHORITY: usize = 0;
const PATH_NAME: usize = 1;
const CONTENT_LENGTH: usize = 4;
const GET: usize = 17;
const POST: usize = 20;
const SCHEME_HTTPS: usize = 23;
const ACCEPT_DNS_MESSAGE: usize = 30;
const DNS_MESSAGE: usize = 44;

/// Returns the request with a query, by GET or POST (RFC 8484 §4.1).
pub(crate) fn request(authority: &str, is_get: bool, message: &[u8]) -> Bytes {
    let mut section = Vec::new();
    put_prefix(&mut section);
    put_indexed(&mut section, if is_get { GET } else { POST });
    put_indexed(&mut section, SCHEME_HTTPS);
    put_literal(&mut section, AUTHORITY, authority.as_bytes());
    let target = if is_get { get_target(message) } else { PATH.to_owned() };
    put_literal(&mut section, PATH_NAME, target.as_bytes());
    put_indexed(&mut section, ACCEPT_DNS_MESSAGE);
    let mut frames = Vec::new();
    if is_get {
        put_frame(&mut frames, FrameType::HEADERS, &section);
    } else {
        put_indexed(&mut section, DNS_MESSAGE);
        put_literal(&mut section, CONTENT_LENGTH, Decimal::new(message.len()).text());
        put_frame(&mut frames, FrameType::HEADERS, &section);
        put_frame(&mut frames, FrameType::DATA, message);
    }
    frames.into()
}

/// Reason why a response has no DNS message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyFailure {
    /// The connection must be closed.
    Connection(ConnectionError),
    /// The response is malformed. Only its stream ends.
    Malformed,
    /// The response is refused by its status or header fields.
    Refused(ResponseError),
}

impl From<ConnectionError> for ReplyFailure {
    fn from(error: ConnectionError) -> Self {
        ReplyFailure::Connection(error)
    }
}

impl From<ResponseError> for ReplyFailure {
    fn from(error: ResponseError) -> Self {
        ReplyFailure::Refused(error)
    }
}

/// Response of an upstream that is being received.
#[derive(Debug, Default)]
pub struct Response {
    frames: FrameReader,
    /// Header section while it is being received.
    section: Vec<u8>,
    stage: Stage,
    /// Announced length of the body.
    announced: Option<usize>,
    age: Option<Vec<u8>>,
    message: Vec<u8>,
}

/// What has been received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing but interim responses.
    #[default]
    Start,
    /// The header section, and a part of the body.
    Body,
    /// The trailers. Nothing may follow.
    Trailers,
}

impl Response {
    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The response has no DNS message, or breaks the protocol.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ReplyFailure> {
        while let Some(part) = self.frames.next(&mut bytes) {
            match part {
                Part::Start(frame, length) => self.begin(frame, length)?,
                Part::Payload(FrameType::HEADERS, payload) => {
                    self.section.extend_from_slice(payload);
                    holds(self.section.len() <= HEADERS_MAX, "the length of a header section was checked");
                }
                Part::Payload(FrameType::DATA, payload) => {
                    holds(self.stage == Stage::Body, "a body follows its header section");
                    if self.message.len() + payload.len() > BODY_MAX {
                        return Err(ResponseError::TooLong.into());
                    }
                    self.message.extend_from_slice(payload);
                }
                Part::End(FrameType::HEADERS) => self.end_section()?,
                // Frames of unknown types are ignored (RFC 9114 §9).
                Part::Payload(..) | Part::End(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the bytes that are kept.
    #[must_use]
    pub const fn kept_len(&self) -> usize {
        self.section.len() + self.message.len()
    }

    /// Returns the message of a response whose stream has ended. TTLs are less by the age of the response.
    ///
    /// # Errors
    /// The response is not complete.
    pub fn end(mut self) -> Result<Vec<u8>, ReplyFailure> {
        if self.frames.is_partial() {
            return Err(error(code::FRAME_ERROR, "a frame is cut").into());
        }
        if self.stage == Stage::Start || self.announced.is_some_and(|announced| announced != self.message.len()) {
            return Err(ReplyFailure::Malformed);
        }
        holds(self.section.is_empty(), "a complete header section was decoded");
        holds(self.message.len() <= BODY_MAX, "the length of a body was checked");
        if let Some(age) = &self.age {
            subtract_age(&mut self.message, age);
        }
        Ok(self.message)
    }

    /// Decides about a frame by its header.
    fn begin(&mut self, frame: FrameType, length: u64) -> Result<(), ReplyFailure> {
        if frame == FrameType::PUSH_PROMISE {
            return Err(error(code::ID_ERROR, "push is not allowed").into());
        }
        let is_misplaced = match self.stage {
            Stage::Start => frame == FrameType::DATA,
            Stage::Body => false,
            Stage::Trailers => matches!(frame, FrameType::DATA | FrameType::HEADERS),
        };
        if frame.is_forbidden_on_request_streams() || is_misplaced {
            return Err(error(code::FRAME_UNEXPECTED, "the frame does not belong to a response").into());
        }
        if frame == FrameType::HEADERS && length > HEADERS_MAX as u64 {
            return Err(ReplyFailure::Malformed);
        }
        Ok(())
    }

    /// Decodes a header section that is complete.
    fn end_section(&mut self) -> Result<(), ReplyFailure> {
        holds(self.stage != Stage::Trailers, "nothing follows the trailers");
        let section = std::mem::take(&mut self.section);
        let mut fields = Fields::default();
        match qpack::decode(&section, HEADERS_MAX, |name, value| fields.add(name, value)) {
            Err(SectionError::TooLong) => return Err(ReplyFailure::Malformed),
            Err(SectionError::Invalid) => {
                return Err(error(code::QPACK_DECOMPRESSION_FAILED, "the header section is invalid").into());
            }
            Ok(()) => {}
        }
        if self.stage == Stage::Body {
            self.stage = Stage::Trailers;
            return if fields.status.is_none() { Ok(()) } else { Err(ReplyFailure::Malformed) };
        }
        match fields.status {
            Some(100..200) => return Ok(()),
            Some(status) => check_response(&ResponseHead {
                status,
                content_type: fields.content_type.as_deref(),
                content_encoding: fields.content_encoding.as_deref(),
                content_length: fields.content_length.as_deref(),
            })?,
            None => return Err(ReplyFailure::Malformed),
        }
        let length = fields.content_length.as_deref().map(core::str::from_utf8);
        self.announced = length.and_then(|text| text.ok()?.parse().ok());
        self.age = fields.age;
        self.stage = Stage::Body;
        Ok(())
    }
}

/// Fields of a header section that matter.
#[derive(Debug, Default)]
struct Fields {
    status: Option<u16>,
    content_type: Option<Vec<u8>>,
    content_encoding: Option<Vec<u8>>,
    content_length: Option<Vec<u8>>,
    age: Option<Vec<u8>>,
}

impl Fields {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" => {
                self.status =
                    core::str::from_utf8(value).ok().filter(|text| text.len() == 3).and_then(|text| text.parse().ok());
            }
            b"content-type" => self.content_type = Some(value.to_vec()),
            b"content-encoding" => self.content_encoding = Some(value.to_vec()),
            b"content-length" => self.content_length = Some(value.to_vec()),
            b"age" => self.age = Some(value.to_vec()),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
