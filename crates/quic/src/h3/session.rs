//! Unidirectional streams of a connection: the control stream, the two of QPACK, and the unknown ones.

use host::invariant::holds;

use super::frame::{FrameReader, FrameType, INTEGER_LEN_MAX, Part, put_frame, put_varint, varint};
use super::{ConnectionError, HEADERS_MAX, code, error};

/// Setting: longest header section that this side accepts (RFC 9114 §7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// Settings of HTTP/2, which are forbidden.
const SETTINGS_OF_HTTP2: [u64; 4] = [0x2, 0x3, 0x4, 0x5];
/// Longest payload in bytes of a frame on the control stream whose content matters.
const PAYLOAD_MAX: usize = 1024;

/// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// Peer of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Peer {
    #[default]
    Client,
    Server,
}

/// Critical streams that a connection has.
#[derive(Debug, Default)]
pub(crate) struct Session {
    peer: Peer,
    seen: [bool; 4],
    is_going_away: bool,
}

/// Returns the bytes that open the control stream of this side: its type and the settings. Settings that are absent
/// have their defaults, which are a QPACK table of 0 bytes and no push.
pub(crate) fn control_stream() -> Vec<u8> {
    let mut settings = Vec::new();
    put_varint(&mut settings, MAX_FIELD_SECTION_SIZE);
    put_varint(&mut settings, HEADERS_MAX as u64);
    let mut stream = vec![0];
    put_frame(&mut stream, FrameType::SETTINGS, &settings);
    stream
}

/// Returns the frame that tells the client which streams are no longer served: this one and all after it.
pub(crate) fn goaway(stream: u64) -> Vec<u8> {
    holds(stream.is_multiple_of(4), "the stream was opened by the client, in both directions (RFC 9000 §2.1)");
    let (mut payload, mut frame) = (Vec::new(), Vec::new());
    put_varint(&mut payload, stream);
    put_frame(&mut frame, FrameType::GOAWAY, &payload);
    frame
}

/// Reader of one unidirectional stream of a connection, for tests with any bytes.
#[derive(Debug, Default)]
pub struct CriticalStreams {
    session: Session,
    stream: UniStream,
}

impl CriticalStreams {
    /// Reads a stream that arrives in these pieces.
    ///
    /// # Errors
    /// The stream breaks the protocol.
    pub fn read<'b>(&mut self, pieces: impl IntoIterator<Item = &'b [u8]>) -> Result<(), ConnectionError> {
        pieces.into_iter().try_for_each(|bytes| self.stream.feed(&mut self.session, bytes).map(drop))
    }
}

/// Unidirectional stream of the peer.
#[derive(Debug, Default)]
pub(crate) struct UniStream {
    kind: Kind,
}

#[derive(Debug, Default)]
enum Kind {
    /// The type has not arrived, or only a part of it.
    #[default]
    New,
    Partial(Vec<u8>),
    Control(Control),
    Encoder,
    /// True in the middle of an instruction.
    Decoder(bool),
    /// The content is of no interest.
    Ignored,
}

/// Reader of the control stream.
#[derive(Debug, Default)]
struct Control {
    frames: FrameReader,
    payload: Vec<u8>,
    has_settings: bool,
}

impl UniStream {
    /// Takes the next bytes. Returns false if the stream is of no interest, so that the peer may be told to stop.
    pub(crate) fn feed(&mut self, session: &mut Session, mut bytes: &[u8]) -> Result<bool, ConnectionError> {
        if matches!(self.kind, Kind::New | Kind::Partial(_)) {
            match self.read_type(&mut bytes) {
                Some(stream_type) => self.kind = session.open(stream_type)?,
                None => return Ok(true),
            }
        }
        match &mut self.kind {
            Kind::New | Kind::Partial(_) | Kind::Ignored => Ok(false),
            Kind::Control(control) => control.feed(session, bytes).map(|()| true),
            Kind::Encoder => check_encoder(bytes).map(|()| true),
            Kind::Decoder(is_inside) => check_decoder(bytes, is_inside).map(|()| true),
        }
    }

    /// Checks that the stream may end.
    pub(crate) const fn end(&self) -> Result<(), ConnectionError> {
        match self.kind {
            Kind::Control(_) | Kind::Encoder | Kind::Decoder(_) => {
                Err(error(code::CLOSED_CRITICAL_STREAM, "a critical stream ended"))
            }
            Kind::New | Kind::Partial(_) | Kind::Ignored => Ok(()),
        }
    }

    fn read_type(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        let mut collected = match std::mem::take(&mut self.kind) {
            Kind::Partial(collected) => collected,
            _ => Vec::new(),
        };
        while let Some((first, rest)) = bytes.split_first() {
            collected.push(*first);
            *bytes = rest;
            if let Some((stream_type, _)) = varint(&collected) {
                return Some(stream_type);
            }
        }
        holds(collected.len() < INTEGER_LEN_MAX, "the longest integer is complete");
        self.kind = Kind::Partial(collected);
        None
    }
}

impl Session {
    /// Creates the session of a connection on which no stream exists.
    pub(crate) fn new(peer: Peer) -> Session {
        Session { peer, ..Session::default() }
    }

    /// Returns true if the peer has announced the end of the connection (RFC 9114 §5.2).
    pub(crate) const fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    fn open(&mut self, stream_type: u64) -> Result<Kind, ConnectionError> {
        let kind = match stream_type {
            CONTROL => Kind::Control(Control::default()),
            ENCODER => Kind::Encoder,
            DECODER => Kind::Decoder(false),
            PUSH if self.peer == Peer::Client => return Err(error(code::STREAM_CREATION_ERROR, "clients cannot push")),
            PUSH => return Err(error(code::ID_ERROR, "push is not allowed")),
            _ => return Ok(Kind::Ignored),
        };
        let seen = usize::try_from(stream_type).ok().and_then(|at| self.seen.get_mut(at));
        if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
            return Err(error(code::STREAM_CREATION_ERROR, "a critical stream exists twice"));
        }
        Ok(kind)
    }
}

impl Control {
    fn feed(&mut self, session: &mut Session, mut bytes: &[u8]) -> Result<(), ConnectionError> {
        while let Some(part) = self.frames.next(&mut bytes) {
            match part {
                Part::Start(frame, length) => self.begin(session, frame, length)?,
                Part::Payload(FrameType::SETTINGS, payload) => {
                    holds(self.has_settings, "a frame begins before its payload");
                    self.payload.extend_from_slice(payload);
                    holds(self.payload.len() <= PAYLOAD_MAX, "the length of the settings was checked");
                }
                Part::End(FrameType::SETTINGS) => check_settings(&std::mem::take(&mut self.payload))?,
                Part::Payload(..) | Part::End(_) => {}
            }
        }
        Ok(())
    }

    fn begin(&mut self, session: &mut Session, frame: FrameType, length: u64) -> Result<(), ConnectionError> {
        if !self.has_settings && frame != FrameType::SETTINGS {
            return Err(error(code::MISSING_SETTINGS, "the control stream does not begin with the settings"));
        }
        let is_forbidden = frame.is_of_http2()
            || matches!(frame, FrameType::DATA | FrameType::HEADERS | FrameType::PUSH_PROMISE)
            || frame == FrameType::MAX_PUSH_ID && session.peer == Peer::Server
            || frame == FrameType::SETTINGS && self.has_settings;
        if is_forbidden {
            return Err(error(code::FRAME_UNEXPECTED, "the frame does not belong to the control stream"));
        }
        if frame == FrameType::CANCEL_PUSH {
            return Err(error(code::ID_ERROR, "there is no push to cancel"));
        }
        if frame == FrameType::SETTINGS && length > PAYLOAD_MAX as u64 {
            return Err(error(code::EXCESSIVE_LOAD, "too many settings"));
        }
        session.is_going_away |= frame == FrameType::GOAWAY;
        self.has_settings = true;
        Ok(())
    }
}

/// Checks the settings of the peer, none of which concerns this side.
fn check_settings(mut payload: &[u8]) -> Result<(), ConnectionError> {
    let mut seen: Vec<u64> = Vec::new();
    while !payload.is_empty() {
        let pair = varint(payload).and_then(|(name, at)| varint(&payload[at..]).map(|(_, length)| (name, at + length)));
        let (name, length) = pair.ok_or(error(code::FRAME_ERROR, "a setting is cut"))?;
        if SETTINGS_OF_HTTP2.contains(&name) || seen.contains(&name) {
            return Err(error(code::SETTINGS_ERROR, "a setting is forbidden or repeated"));
        }
        seen.push(name);
        payload = &payload[length..];
    }
    Ok(())
}

/// Checks the instructions of the peer's encoder. It may only set the size of the table to 0, in one byte (RFC 9204
/// §4.3.1).
fn check_encoder(bytes: &[u8]) -> Result<(), ConnectionError> {
    const CAPACITY_0: u8 = 0x20;
    if bytes.iter().any(|byte| *byte != CAPACITY_0) {
        return Err(error(code::QPACK_ENCODER_STREAM_ERROR, "the dynamic table has no room"));
    }
    Ok(())
}

/// Checks the instructions of the peer's decoder. It may only cancel streams (RFC 9204 §4.4.2), because no header
/// section of this side needs an acknowledgement. `is_inside` is true in the middle of a stream ID.
fn check_decoder(bytes: &[u8], is_inside: &mut bool) -> Result<(), ConnectionError> {
    const ID_MASK: u8 = 0x3f;
    for byte in bytes {
        if *is_inside {
            *is_inside = byte & 0x80 != 0;
        } else if byte & !ID_MASK == 0x40 {
            *is_inside = byte & ID_MASK == ID_MASK;
        } else {
            return Err(error(code::QPACK_DECODER_STREAM_ERROR, "there is nothing to acknowledge"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
