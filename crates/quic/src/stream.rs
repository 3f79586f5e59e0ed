//! One stream: the query that arrives and the answer that leaves.

use bytes::Bytes;

use host::invariant::holds;

use crate::assembly::{Assembly, TooManyPieces};
use crate::doq::{self, ProtocolError};
use crate::h3::{self, Session, UniStream};
use crate::limits::{STREAM_COST, Settings};
use crate::protocol::Protocol;

/// Mistake of the client on a stream, by its consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFault {
    /// The connection is closed with this code and reason.
    Connection(u32, &'static str),
    /// The stream is reset with this code.
    Stream(u32),
    /// The request gets this response.
    Refused(doh::Refusal),
    /// The client has given up the query before it was complete.
    Cancelled,
    /// The stream needs more memory than any loss of packets explains.
    Load,
}

impl From<ProtocolError> for StreamFault {
    fn from(error: ProtocolError) -> Self {
        StreamFault::Connection(doq::code::PROTOCOL_ERROR, error.0)
    }
}

impl From<h3::ConnectionError> for StreamFault {
    fn from(error: h3::ConnectionError) -> Self {
        StreamFault::Connection(error.code, error.reason)
    }
}

impl From<h3::Failure> for StreamFault {
    fn from(failure: h3::Failure) -> Self {
        match failure {
            h3::Failure::Connection(error) => error.into(),
            h3::Failure::Stream(code) => StreamFault::Stream(code),
            h3::Failure::Refused(refusal) => StreamFault::Refused(refusal),
        }
    }
}

impl From<TooManyPieces> for StreamFault {
    fn from(_: TooManyPieces) -> Self {
        StreamFault::Load
    }
}

/// Open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// True after the first gap: quinn-proto then hands out bytes in the order of their arrival.
    pub(crate) is_unordered: bool,
    pub(crate) is_uni: bool,
    /// Memory that is counted for the stream, in bytes.
    pub(crate) cost: usize,
}

/// Receiving side.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nothing has arrived.
    New,
    /// The query is arriving.
    Arriving(Box<Arriving>),
    /// The query is complete, but the client has not ended the stream.
    Complete,
    /// The client has ended the stream, or nothing more on it is of interest.
    Ended,
}

/// Sending side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// There is no answer yet.
    Awaited,
    /// A message is being written.
    Writing {
        /// Bytes for which the client has given no credit yet.
        rest: Bytes,
        /// Length of the message with its framing.
        length: usize,
        /// True if no further message follows.
        is_last: bool,
    },
    /// One of several messages has been written.
    Ready,
    /// The answer of this length has been written, and the client has not acknowledged it.
    Written(usize),
    /// The client has the answer, or does not want it.
    Done,
}

impl Stream {
    /// Creates a stream of which nothing has been read.
    pub(crate) const fn new(is_uni: bool) -> Stream {
        let output = if is_uni { Output::Done } else { Output::Awaited };
        Stream { input: Input::New, output, is_unordered: false, is_uni, cost: 0 }
    }

    /// Returns true if nothing more happens on the stream.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.input, Input::Ended) && self.output == Output::Done
    }

    /// Returns true while the query is not complete.
    pub(crate) const fn is_arriving(&self) -> bool {
        matches!(self.input, Input::New | Input::Arriving(_))
    }

    /// Memory of the stream in bytes.
    pub(crate) fn current_cost(&self) -> usize {
        let input = if let Input::Arriving(arriving) = &self.input { arriving.cost() } else { 0 };
        let output = match &self.output {
            Output::Writing { length, .. } | Output::Written(length) => *length,
            Output::Awaited | Output::Ready | Output::Done => 0,
        };
        STREAM_COST + input + output
    }

    /// Takes the bytes at `offset`, and then the early ones that they complete. Returns the query if it is complete.
    pub(crate) fn take(
        &mut self,
        offset: u64,
        bytes: &Bytes,
        settings: &Settings,
        session: &mut Session,
    ) -> Result<Fed, StreamFault> {
        holds(!self.is_uni || self.output == Output::Done, "a stream in one direction has no answer");
        if matches!(self.input, Input::New) {
            // The usual case: the whole query in one packet. It needs no buffer.
            if settings.protocol == Protocol::Doq
                && offset == 0
                && let Some(message) = doq::message(bytes)?
            {
                doq::check(message)?;
                self.input = Input::Complete;
                return Ok(Fed::Query(bytes.slice_ref(message)));
            }
            self.input = Input::Arriving(Box::new(Arriving::new(settings, self.is_uni)));
        }
        let Input::Arriving(arriving) = &mut self.input else {
            return Err(doq::TRAILING_BYTES.into());
        };
        holds(self.is_uni == matches!(arriving.reader, Reader::Uni(_)), "the reader fits the direction of the stream");
        let fed = arriving.feed(offset, bytes, self.is_unordered, session)?;
        match fed {
            Fed::Query(_) => self.input = Input::Complete,
            Fed::Ignored => self.input = Input::Ended,
            Fed::More => {}
        }
        Ok(fed)
    }

    /// Ends the input. Returns the query if the end completes it.
    pub(crate) fn end(&mut self, settings: &Settings) -> Result<Option<Bytes>, StreamFault> {
        match std::mem::replace(&mut self.input, Input::Ended) {
            Input::New => Arriving::new(settings, self.is_uni).reader.end(),
            Input::Arriving(arriving) => arriving.reader.end(),
            Input::Complete | Input::Ended => Ok(None),
        }
    }
}

/// Query that is arriving.
#[derive(Debug)]
pub(crate) struct Arriving {
    assembly: Assembly,
    reader: Reader,
}

impl Arriving {
    fn new(settings: &Settings, is_uni: bool) -> Arriving {
        let reader = match (settings.protocol, is_uni) {
            (_, true) => Reader::Uni(UniStream::default()),
            (Protocol::Doq, false) => Reader::Doq(Vec::new()),
            (Protocol::Http3, false) => Reader::Http3(h3::Request::new(settings.policy)),
        };
        Arriving { assembly: Assembly::default(), reader }
    }

    fn cost(&self) -> usize {
        let reader = match &self.reader {
            Reader::Doq(bytes) => bytes.capacity(),
            Reader::Http3(request) => request.cost(),
            Reader::Uni(_) => 0,
        };
        size_of::<Arriving>() + self.assembly.cost() + reader
    }

    fn feed(
        &mut self,
        offset: u64,
        bytes: &[u8],
        is_unordered: bool,
        session: &mut Session,
    ) -> Result<Fed, StreamFault> {
        holds(is_unordered || self.assembly.is_next(offset), "ordered bytes follow each other");
        if !is_unordered {
            self.assembly.advance(bytes.len());
            return self.reader.feed(bytes, session);
        }
        self.assembly.keep(offset, bytes)?;
        holds(!self.assembly.is_empty(), "early bytes are kept");
        let mut fed = Fed::More;
        while let Some(piece) = self.assembly.take() {
            fed = self.reader.feed(&piece, session)?;
        }
        Ok(fed)
    }
}

/// Result of taking bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// More bytes are needed.
    More,
    /// The query is complete, even before the end of the stream.
    Query(Bytes),
    /// Nothing on this stream is of interest.
    Ignored,
}

/// Reader of the bytes of a stream, in order.
#[derive(Debug)]
enum Reader {
    /// Bytes of a query over DNS over QUIC.
    Doq(Vec<u8>),
    /// Request of HTTP/3.
    Http3(h3::Request),
    /// Unidirectional stream of HTTP/3.
    Uni(UniStream),
}

impl Reader {
    fn feed(&mut self, bytes: &[u8], session: &mut Session) -> Result<Fed, StreamFault> {
        match self {
            Reader::Doq(collected) => {
                if collected.len() + bytes.len() > doq::STREAM_MAX {
                    return Err(doq::TRAILING_BYTES.into());
                }
                collected.extend_from_slice(bytes);
                holds(collected.len() <= doq::STREAM_MAX, "a query is at most as long as its prefix can say");
                let Some(message) = doq::message(collected)? else { return Ok(Fed::More) };
                doq::check(message)?;
                Ok(Fed::Query(Bytes::copy_from_slice(message)))
            }
            Reader::Http3(request) => {
                request.feed(bytes)?;
                Ok(Fed::More)
            }
            Reader::Uni(stream) => Ok(if stream.feed(session, bytes)? { Fed::More } else { Fed::Ignored }),
        }
    }

    fn end(self) -> Result<Option<Bytes>, StreamFault> {
        match self {
            Reader::Doq(_) => Err(doq::INCOMPLETE.into()),
            Reader::Http3(request) => Ok(Some(request.end()?.0.into())),
            Reader::Uni(stream) => {
                stream.end()?;
                Ok(None)
            }
        }
    }
}
