//! Probe query to a name server, and the check of its response.

use core::net::SocketAddr;
use core::time::Duration;

use engine::{Connections, Exchange, ExchangeError, Io, Transport};
use wire::{Class, Flags, Header, MessageBuf, MessageError, Name, NameError, Rcode, Reply, Section, Type};

use common_plugins::shared::probe_mark::finish_probe;

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
        answer.start(Header::default(), None);
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
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// No response arrived.
    #[error("{0}")]
    Exchange(#[source] ExchangeError),
    /// The response is malformed.
    #[error("malformed response")]
    Malformed(#[source] MessageError),
    /// A name in the response is malformed.
    #[error("malformed response")]
    Name(#[source] NameError),
    /// The response has another code.
    #[error("{actual} instead of {expected}")]
    Rcode { actual: Rcode, expected: Rcode },
    /// The response has no records.
    #[error("response without records")]
    NoRecords,
    /// No record has the expected value.
    #[error("no record has the expected value")]
    OtherValue,
}
