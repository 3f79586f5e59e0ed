//! One request on its stream: frames, header section, body, and the decision about it.

use doh::{Accepted, BODY_MAX, Head, Policy, Refusal};

use host::invariant::holds;

use super::frame::{FrameReader, FrameType, Part};
use super::qpack::{self, SectionError};
use super::{ConnectionError, HEADERS_MAX, code, error};

/// Reason why a request is not answered by DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection must be closed.
    Connection(ConnectionError),
    /// The stream must be reset with this code.
    Stream(u32),
    /// The request gets this response.
    Refused(Refusal),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

const fn connection(code: u32, reason: &'static str) -> Failure {
    Failure::Connection(error(code, reason))
}

/// Query of a complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome(pub Vec<u8>);

/// Request that is being received.
#[derive(Debug)]
pub struct Request {
    policy: Policy,
    frames: FrameReader,
    /// Header section while it is being received.
    section: Vec<u8>,
    stage: Stage,
    /// Announced length of the body.
    announced: Option<u64>,
    /// Message: from the path, or the body.
    message: Vec<u8>,
    /// Bytes in frames of type DATA.
    received: u64,
}

/// What has been received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing.
    Start,
    /// The header section of a GET.
    Get,
    /// The header section of a POST, and a part of its body.
    Post,
    /// The trailers. Nothing may follow.
    Trailers,
}

impl Request {
    /// Creates a request of which nothing has been received.
    #[must_use]
    pub fn new(policy: Policy) -> Request {
        Request {
            policy,
            frames: FrameReader::default(),
            section: Vec::new(),
            stage: Stage::Start,
            announced: None,
            message: Vec::new(),
            received: 0,
        }
    }

    /// Memory of the request, in bytes.
    pub(crate) fn cost(&self) -> usize {
        size_of::<Request>() + self.section.capacity() + self.message.capacity()
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The request is refused, or breaks the protocol.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while let Some(part) = self.frames.next(&mut bytes) {
            match part {
                Part::Start(frame, length) => self.begin(frame, length)?,
                Part::Payload(FrameType::HEADERS, payload) => {
                    self.section.extend_from_slice(payload);
                    holds(self.section.len() <= HEADERS_MAX, "the length of a header section was checked");
                }
                Part::Payload(FrameType::DATA, payload) => {
                    holds(self.stage == Stage::Post, "only a POST has a body");
                    self.message.extend_from_slice(payload);
                    holds(self.message.len() as u64 <= self.received, "the length of a body was checked");
                }
                Part::End(FrameType::HEADERS) => self.end_section()?,
                // Frames of unknown types are ignored (RFC 9114 §9).
                Part::Payload(..) | Part::End(_) => {}
            }
        }
        Ok(())
    }

    /// Ends the request, because the stream has ended.
    ///
    /// # Errors
    /// The request is incomplete, or its message is no query.
    pub fn end(self) -> Result<Outcome, Failure> {
        if self.frames.is_partial() {
            return Err(connection(code::FRAME_ERROR, "a frame is cut"));
        }
        if self.stage == Stage::Start {
            return Err(Failure::Stream(code::REQUEST_INCOMPLETE));
        }
        if self.announced.is_some_and(|announced| announced != self.received) {
            return Err(Failure::Stream(code::MESSAGE_ERROR));
        }
        holds(self.section.is_empty(), "a complete header section was decoded");
        let is_whole = self.received == 0 || self.message.len() as u64 == self.received;
        holds(is_whole, "the body of a complete request has arrived");
        doh::check_message(&self.message)?;
        Ok(Outcome(self.message))
    }

    /// Decides about a frame by its header.
    fn begin(&mut self, frame: FrameType, length: u64) -> Result<(), Failure> {
        if frame.is_forbidden_on_request_streams() {
            return Err(connection(code::FRAME_UNEXPECTED, "the frame does not belong to a request"));
        }
        match (frame, self.stage) {
            (FrameType::DATA, Stage::Start) => {
                return Err(connection(code::FRAME_UNEXPECTED, "the body precedes the header section"));
            }
            (FrameType::DATA | FrameType::HEADERS, Stage::Trailers) => {
                return Err(connection(code::FRAME_UNEXPECTED, "frames follow the trailers"));
            }
            (FrameType::HEADERS, _) if length > HEADERS_MAX as u64 => return Err(Refusal::HEADERS_TOO_LONG.into()),
            (FrameType::DATA, _) => self.begin_body(length)?,
            _ => {}
        }
        Ok(())
    }

    fn begin_body(&mut self, length: u64) -> Result<(), Failure> {
        self.received = self.received.saturating_add(length);
        match self.stage {
            // RFC 9110 §9.3.1 gives the body of a GET no meaning and allows to refuse it.
            Stage::Get if length > 0 => Err(Refusal::GET_WITH_BODY.into()),
            _ if self.received > BODY_MAX as u64 => Err(Refusal::too_long(self.policy).into()),
            _ => Ok(()),
        }
    }

    /// Decodes a header section that is complete.
    fn end_section(&mut self) -> Result<(), Failure> {
        holds(self.stage != Stage::Trailers, "nothing follows the trailers");
        let section = std::mem::take(&mut self.section);
        let mut fields = Fields::default();
        match qpack::decode(&section, HEADERS_MAX, |name, value| fields.add(name, value)) {
            Err(SectionError::TooLong) => return Err(Refusal::HEADERS_TOO_LONG.into()),
            Err(SectionError::Invalid) => {
                return Err(connection(code::QPACK_DECOMPRESSION_FAILED, "the header section is invalid"));
            }
            Ok(()) => {}
        }
        if self.stage != Stage::Start {
            self.stage = Stage::Trailers;
            return if fields.are_trailers() { Ok(()) } else { Err(Failure::Stream(code::MESSAGE_ERROR)) };
        }
        if !fields.are_request() {
            return Err(Failure::Stream(code::MESSAGE_ERROR));
        }
        self.announced = fields.content_length;
        let head = Head {
            method: fields.method.as_deref().unwrap_or_default(),
            target: fields.path.as_deref().unwrap_or_default(),
            content_type: fields.content_type.as_deref(),
        };
        match doh::accept(&head, self.policy)? {
            Accepted::Query(message) => {
                self.message = message;
                self.stage = Stage::Get;
            }
            Accepted::Body => self.stage = Stage::Post,
        }
        Ok(())
    }
}

/// Fields of a header section that matter.
#[derive(Debug, Default)]
struct Fields {
    method: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    content_type: Option<Vec<u8>>,
    content_length: Option<u64>,
    has_scheme: bool,
    has_authority: bool,
    /// True after the first field that is no pseudo-header.
    is_past_pseudo: bool,
    has_pseudo: bool,
    is_malformed: bool,
}

impl Fields {
    /// Takes a field and checks it (RFC 9114 §4.2, §4.3).
    fn add(&mut self, name: &[u8], value: &[u8]) {
        let is_valid = match name.strip_prefix(b":") {
            Some(pseudo) => self.add_pseudo(pseudo, value),
            None => self.add_usual(name, value),
        };
        self.is_malformed |= !is_valid || value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    }

    fn add_pseudo(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.has_pseudo = true;
        let is_first = match name {
            b"method" => self.method.replace(value.to_vec()).is_none(),
            b"path" => self.path.replace(value.to_vec()).is_none(),
            b"scheme" => !std::mem::replace(&mut self.has_scheme, true),
            b"authority" => !std::mem::replace(&mut self.has_authority, true),
            _ => false,
        };
        is_first && !self.is_past_pseudo && !value.is_empty()
    }

    fn add_usual(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.is_past_pseudo = true;
        match name {
            b"content-type" => self.content_type = Some(value.to_vec()),
            b"content-length" => {
                let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let known = self.content_length.replace(length.unwrap_or(0));
                return length.is_some() && known.is_none_or(|known| Some(known) == length);
            }
            b"host" => self.has_authority = true,
            b"te" => return value.eq_ignore_ascii_case(b"trailers"),
            b"" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                return false;
            }
            _ => {}
        }
        !name.iter().any(|byte| byte.is_ascii_uppercase() || *byte <= b' ' || *byte >= 0x7f)
    }

    const fn are_request(&self) -> bool {
        let is_complete = self.method.is_some() && self.path.is_some() && self.has_scheme && self.has_authority;
        is_complete && !self.is_malformed
    }

    const fn are_trailers(&self) -> bool {
        !self.has_pseudo && !self.is_malformed
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
