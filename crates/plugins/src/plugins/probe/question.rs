//! Probe query to a name server, and the check of its response.

use core::net::SocketAddr;
use core::time::Duration;

use engine::{Connections, Exchange, Io, Transport};
use wire::{Class, Flags, Header, MessageBuf, Name, Rcode, Reply, Section, Type};

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
    /// Sends the query over UDP and checks the response. The error describes the failure.
    pub(super) async fn ask(&self, io: &dyn Io) -> Result<(), String> {
        let header = Header { flags: Flags::default().with_recursion_desired(true), ..Header::default() };
        let mut message = MessageBuf::new();
        message.start(header, Some((self.name.as_ref(), self.qtype, Class::IN)));
        let query = message.finish(None, core::iter::empty());
        let exchange = Exchange::new(self.server, Transport::Udp, query, io.now() + self.timeout, CONNECTIONS);
        let exchanged = io.exchange(exchange).await.map_err(|error| error.to_string())?;
        self.judge(&exchanged.reply)
    }

    fn judge(&self, reply: &Reply) -> Result<(), String> {
        let reply = reply.message().map_err(|_| "malformed response".to_owned())?;
        let rcode = reply.header().flags.rcode();
        if rcode != self.rcode {
            return Err(format!("{rcode} instead of {}", self.rcode));
        }
        let mut answer = MessageBuf::new();
        answer.adopt(&reply).map_err(|_| "malformed response".to_owned())?;
        let mut records = answer.section(Section::Answer).peekable();
        let wants_record = self.rcode == Rcode::NOERROR && !self.may_be_empty;
        if records.peek().is_none() && wants_record {
            return Err("response without records".to_owned());
        }
        let Some(expected) = &self.expected else { return Ok(()) };
        let is_there =
            records.any(|mark| mark.rtype == self.qtype && answer.octets_at(mark.rdata_range()) == expected.as_slice());
        if is_there { Ok(()) } else { Err("no record has the expected value".to_owned()) }
    }
}
