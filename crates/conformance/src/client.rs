//! DNS client that queries the server over UDP and TCP like a stub resolver.
//!
//! A response is parsed into an [`Response`]; checking it is up to the caller. A malformed response, or one with
//! another question, is an error.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use stub_resolver::exchange;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::{Class, Flags, HEADER_LEN, Header, Message, MessageBuf, Name, Opcode, Opt, OptionCode, Type};

use crate::response::Response;
use crate::script::QueryExtra;

/// Time to wait for a response before the query is repeated or given up.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Number of attempts over UDP. One datagram may get lost; three in a row do not.
const TRIES: usize = 3;
/// UDP payload size in bytes advertised with EDNS. It avoids fragmentation on any path (DNS flag day 2020).
const UDP_SIZE: u16 = 1232;
/// Option code reserved for local use (RFC 6891 §9), which no server knows.
const LOCAL_OPTION: OptionCode = OptionCode(65_001);

/// Error: no valid response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    /// No response to any attempt.
    #[error("no answer")]
    Silence,
    /// Error of the operating system.
    #[error("{0}")]
    Network(String),
    /// Invalid response.
    #[error("invalid response: {0}")]
    Invalid(&'static str),
}

impl From<io::Error> for QueryError {
    fn from(error: io::Error) -> QueryError {
        QueryError::Network(kubeapi::causes(&error))
    }
}

/// A query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) name: Name,
    pub(crate) qtype: Type,
    pub(crate) extra: QueryExtra,
}

impl Query {
    fn bytes(&self, id: u16) -> Vec<u8> {
        let flags = Flags::default().with_recursion_desired(self.extra != QueryExtra::NoRecursion);
        let mut message = MessageBuf::new();
        message.start(Header { id, flags, ..Header::default() }, Some((self.name.as_ref(), self.qtype, Class::IN)));
        let opt = Opt {
            udp_size: UDP_SIZE,
            extended_rcode: 0,
            version: u8::from(self.extra == QueryExtra::Version),
            dnssec_ok: self.extra == QueryExtra::DnssecOk,
        };
        let opt = (!matches!(self.extra, QueryExtra::Nothing | QueryExtra::NoRecursion)).then_some(opt);
        let option = (self.extra == QueryExtra::Option).then_some((LOCAL_OPTION, &b"conformance"[..]));
        message.finish(opt, option.into_iter()).to_vec()
    }

    /// Parses a response. Returns `Ok(None)` if it belongs to another query.
    fn read(&self, id: u16, bytes: &[u8]) -> Result<Option<Response>, QueryError> {
        let message = Message::parse(bytes).map_err(|_| QueryError::Invalid("malformed message"))?;
        let header = message.header();
        if header.id != id || !header.flags.is_response() {
            return Ok(None);
        }
        if header.flags.opcode() != Opcode::QUERY {
            return Err(QueryError::Invalid("the opcode is not QUERY"));
        }
        let asked = (self.name.clone(), self.qtype, Class::IN);
        if message.question() != Some(asked) {
            return Err(QueryError::Invalid("the question differs"));
        }
        let question = bytes.get(HEADER_LEN..HEADER_LEN + self.name.as_bytes().len());
        let kept = question == Some(self.name.as_bytes());
        Response::read(&message, kept).map(Some).ok_or(QueryError::Invalid("malformed record"))
    }
}

/// Sends a query over UDP.
pub(crate) async fn udp(server: SocketAddr, query: &Query) -> Result<Response, QueryError> {
    for _ in 0..TRIES {
        if let Ok(response) = timeout(TIMEOUT, udp_once(server, query)).await {
            return response;
        }
    }
    Err(QueryError::Silence)
}

async fn udp_once(server: SocketAddr, query: &Query) -> Result<Response, QueryError> {
    let socket = exchange::connect_udp(server).await?;
    let id = rand::random();
    socket.send(&query.bytes(id)).await?;
    exchange::receive(&socket, |bytes| query.read(id, bytes)).await
}

/// Sends queries over one TCP connection, all at once. The responses may arrive in any order (RFC 7766 §6.2.1.1).
pub(crate) async fn tcp(server: SocketAddr, queries: &[Query]) -> Result<Vec<Response>, QueryError> {
    timeout(TIMEOUT, tcp_once(server, queries)).await.unwrap_or(Err(QueryError::Silence))
}

async fn tcp_once(server: SocketAddr, queries: &[Query]) -> Result<Vec<Response>, QueryError> {
    let mut stream = TcpStream::connect(server).await?;
    let first: u16 = rand::random();
    let ids: Vec<u16> = (0..u16::MAX).map(|step| first.wrapping_add(step)).take(queries.len()).collect();
    let mut bytes = Vec::new();
    for (query, id) in queries.iter().zip(&ids) {
        // A query has one name and an OPT record, so its length fits.
        bytes.extend(exchange::frame(&query.bytes(*id)).map_err(io::Error::other)?);
    }
    stream.write_all(&bytes).await?;
    let mut answers = Vec::new();
    while answers.len() < queries.len() {
        let message = exchange::read_frame(&mut stream).await?;
        for (query, id) in queries.iter().zip(&ids) {
            answers.extend(query.read(*id, &message)?);
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str) -> Query {
        Query { name: Name::from_text(name).unwrap(), qtype: Type::A, extra: QueryExtra::Nothing }
    }

    #[test]
    fn accepts_only_responses_to_its_own_question() {
        let asked = query("Web.test");
        let mut bytes = asked.bytes(7);
        assert!(matches!(asked.read(7, &bytes), Ok(None)), "a query is no answer");
        bytes[2] |= 0x80;
        assert!(asked.read(7, &bytes).unwrap().unwrap().question_kept);
        assert!(matches!(asked.read(8, &bytes), Ok(None)));
        assert!(query("other.test").read(7, &bytes).is_err());
        assert!(!query("web.test").read(7, &bytes).unwrap().unwrap().question_kept);
        bytes.truncate(20);
        assert!(asked.read(7, &bytes).is_err());
    }
}
