//! Probe query to a name server, and the check of its response.

use core::error::Error;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use engine::{Connections, Exchange, ExchangeError, Io, Transport};
use wire::{Class, Flags, Header, MessageBuf, MessageError, Name, NameError, Rcode, Reply, Section, Type};

use crate::shared::probe_mark::finish_probe;

/// Each query is one datagram; no connection is kept.
const CONNECTIONS: Connections =
    Connections { idle_max: Duration::ZERO, age_max: Duration::ZERO, kept_max: 1, source: None };

/// Query and the expected response.
pub(super) struct Question {
    pub(super) server: SocketAddr,
    pub(super) name: Name,
    pub(super) qtype: Type,
    pub(super) rcode: Rcode,
    pub(super) may_be_empty: bool,
    /// Data that one of the records must have.
    pub(super) expected: Option<Vec<u8>>,
    pub(super) timeout: Duration,
}

impl Question {
    /// Sends the query over UDP and checks the response.
    pub(super) async fn ask(&self, io: &dyn Io) -> Result<(), ProbeError> {
        let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
        let mut message = MessageBuf::new();
        message.start(header, Some((self.name.as_ref(), self.qtype, Class::IN)));
        // Other hosts need not know that it is a probe.
        let is_own = self.server.ip().is_loopback();
        let query = if is_own { finish_probe(&mut message) } else { message.finish(None, core::iter::empty()) };
        let exchange = Exchange::new(self.server, Transport::Udp, query, io.now() + self.timeout, CONNECTIONS);
        let exchanged = io.exchange(exchange).await.map_err(ProbeError::Exchange)?;
        self.check(&exchanged.reply)
    }

    fn check(&self, reply: &Reply) -> Result<(), ProbeError> {
        let reply = reply.message().map_err(ProbeError::Malformed)?;
        let rcode = reply.header().flags.rcode();
        if rcode != self.rcode {
            return Err(ProbeError::Rcode { actual: rcode, expected: self.rcode });
        }
        let mut answer = MessageBuf::new();
        answer.adopt(&reply).map_err(ProbeError::Name)?;
        let mut records = answer.section(Section::Answer).peekable();
        let wants_record = self.rcode == Rcode::NOERROR && !self.may_be_empty;
        if records.peek().is_none() && wants_record {
            return Err(ProbeError::NoRecords);
        }
        let Some(expected) = &self.expected else { return Ok(()) };
        let is_there =
            records.any(|mark| mark.rtype == self.qtype && answer.bytes_at(mark.rdata_range()) == expected.as_slice());
        if is_there { Ok(()) } else { Err(ProbeError::OtherValue) }
    }
}

/// Reason why a probe failed.
#[derive(Clone, Debug)]
pub(super) enum ProbeError {
    /// No response arrived.
    Exchange(ExchangeError),
    /// The response is malformed.
    Malformed(MessageError),
    /// A name in the response is malformed.
    Name(NameError),
    /// The response has another code.
    Rcode { actual: Rcode, expected: Rcode },
    /// The response has no records.
    NoRecords,
    /// No record has the expected value.
    OtherValue,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Exchange(error) => error.fmt(f),
            ProbeError::Malformed(_) | ProbeError::Name(_) => f.write_str("malformed response"),
            ProbeError::Rcode { actual, expected } => write!(f, "{actual} instead of {expected}"),
            ProbeError::NoRecords => f.write_str("response without records"),
            ProbeError::OtherValue => f.write_str("no record has the expected value"),
        }
    }
}

impl Error for ProbeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ProbeError::Exchange(error) => Some(error),
            ProbeError::Malformed(error) => Some(error),
            ProbeError::Name(error) => Some(error),
            ProbeError::Rcode { .. } | ProbeError::NoRecords | ProbeError::OtherValue => None,
        }
    }
}
