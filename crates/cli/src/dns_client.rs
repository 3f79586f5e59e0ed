//! One query to one server, over UDP or TCP, without retransmission, for commands.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover};
use stub_resolver::exchange::{connect_udp, frame, read_frame, receive};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use wire::{Class, Flags, Header, Message, MessageBuf, Name, Opt, OptionCode, Rcode, Type};

/// Time to wait for a response: longer than any healthy server needs, and shorter than the time of a gatherer.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time after which a query is repeated, since any network loses a packet now and then.
const REPEAT_AFTER: Duration = Duration::from_millis(500);
/// UDP payload size in bytes advertised with EDNS (DNS flag day 2020).
const UDP_SIZE: u16 = 1_232;
/// Length of the code and the length of an option.
const OPTION_HEADER: usize = 4;

/// Query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) name: Name,
    pub(crate) qtype: Type,
    /// Length of the message in bytes, filled up with padding (RFC 7830), and sent over UDP with DF.
    pub(crate) length: Option<usize>,
    /// True for a query with the mark of a probe, which only servers of the cluster get.
    pub(crate) is_marked: bool,
    /// True to ask for the records of DNSSEC too.
    pub(crate) dnssec_ok: bool,
    /// True to ask for the name of the server (NSID, RFC 5001).
    pub(crate) asks_server: bool,
}

/// Response, as it arrived.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Time since the query was sent.
    pub(crate) seconds: f64,
    /// Message, which parses.
    pub(crate) message: Vec<u8>,
}

/// What probes need of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) seconds: f64,
    /// Length of the message in bytes.
    pub(crate) length: usize,
    pub(crate) is_truncated: bool,
    pub(crate) rcode: Rcode,
    pub(crate) has_edns: bool,
    /// True if the question has the name as the query has it, upper and lower case included.
    pub(crate) keeps_case: bool,
    /// True if the answer section has an address.
    pub(crate) has_address: bool,
}

/// Reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// Nothing arrived in time.
    #[error("no answer in time")]
    Silent,
    /// The operating system reports an error.
    #[error("{}", host::errors::describe(.0))]
    Failed(#[source] io::Error),
    /// The response is not a DNS message for this query.
    #[error("the response is not a DNS message for this query")]
    Invalid,
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> ProbeError {
        ProbeError::Failed(error)
    }
}

impl Query {
    /// Creates a query of its natural length.
    pub(crate) const fn new(name: Name, qtype: Type) -> Query {
        Query { name, qtype, length: None, is_marked: false, dnssec_ok: false, asks_server: false }
    }

    /// Asks for the records of DNSSEC too, so that the response is longer.
    pub(crate) const fn with_dnssec(self) -> Query {
        Query { dnssec_ok: true, ..self }
    }

    /// Asks for the name of the server too.
    pub(crate) const fn asking_server(self) -> Query {
        Query { asks_server: true, ..self }
    }

    /// Adds the mark of a probe.
    pub(crate) const fn marked(self) -> Query {
        Query { is_marked: true, ..self }
    }

    fn bytes(&self, id: u16) -> Vec<u8> {
        let plain = self.message(id, None);
        match self.length.and_then(|length| length.checked_sub(plain.len() + OPTION_HEADER)) {
            Some(padding) => self.message(id, Some(&vec![0; padding])),
            None => plain,
        }
    }

    fn message(&self, id: u16, padding: Option<&[u8]>) -> Vec<u8> {
        let flags = Flags::default().with_recursion_desired(true);
        let mut message = MessageBuf::new();
        message.start(Header { id, flags, ..Header::default() }, Some((self.name.as_ref(), self.qtype, Class::IN)));
        let opt = Opt { udp_size: UDP_SIZE, extended_rcode: 0, version: 0, dnssec_ok: self.dnssec_ok };
        let mark = self.is_marked.then_some((OptionCode::PROBE, &[][..]));
        let name = self.asks_server.then_some((OptionCode::NSID, &[][..]));
        let padding = padding.map(|padding| (OptionCode::PADDING, padding));
        message.finish(Some(opt), mark.into_iter().chain(name).chain(padding)).to_vec()
    }

    /// Returns true if a message is the response, false if it belongs to another query.
    fn accepts(&self, id: u16, bytes: &[u8]) -> Result<bool, ProbeError> {
        let header = Header::read(bytes).ok_or(ProbeError::Invalid)?;
        if header.id != id || !header.flags.is_response() {
            return Ok(false);
        }
        let message = Message::parse(bytes).map_err(|_| ProbeError::Invalid)?;
        // A server that refuses the form of the query may leave out the question.
        let question = message.question();
        if question.is_some_and(|question| question != (self.name.clone(), self.qtype, Class::IN)) {
            return Err(ProbeError::Invalid);
        }
        Ok(true)
    }

    /// Returns what probes need of the response.
    fn answer(&self, reply: &Reply) -> Result<Answer, ProbeError> {
        let message = Message::parse(&reply.message).map_err(|_| ProbeError::Invalid)?;
        let header = message.header();
        let is_address = |record: &wire::Record<'_>| matches!(record.rtype(), Type::A | Type::AAAA);
        Ok(Answer {
            seconds: reply.seconds,
            length: reply.message.len(),
            is_truncated: header.flags.truncated(),
            rcode: header.flags.rcode(),
            has_edns: message.records().any(|record| record.rtype() == Type::OPT),
            keeps_case: message.question().is_none_or(|(name, ..)| name.as_bytes() == self.name.as_bytes()),
            has_address: message.records().take(usize::from(header.answers)).any(|record| is_address(&record)),
        })
    }
}

/// Maximum length in bytes of the name of a server.
const SERVER_NAME_MAX: usize = 255;

/// Returns the name of the server in a response; `None` if it has none, or one that is not a text.
fn server_name(message: &[u8]) -> Option<String> {
    let message = Message::parse(message).ok()?;
    let opt = message.records().find(|record| record.rtype() == Type::OPT)?;
    let (_, name) = wire::options(opt.rdata()).find(|(code, _)| *code == OptionCode::NSID)?;
    let is_name = !name.is_empty() && name.len() <= SERVER_NAME_MAX && name.iter().all(u8::is_ascii_graphic);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

/// Sends a query over UDP, and returns the name of the server that answers, if it says one.
pub(crate) async fn udp_server(server: SocketAddr, query: &Query) -> Result<Option<String>, ProbeError> {
    let reply = within(TIMEOUT, udp_exchange(server, query)).await?;
    Ok(server_name(&reply.message))
}

/// Sends a query over UDP.
pub(crate) async fn udp(server: SocketAddr, query: &Query) -> Result<Answer, ProbeError> {
    query.answer(&within(TIMEOUT, udp_exchange(server, query)).await?)
}

/// Sends a query over UDP, and once more if there is no response.
pub(crate) async fn udp_repeated(server: SocketAddr, query: &Query) -> Result<Answer, ProbeError> {
    let reply = match within(REPEAT_AFTER, udp_exchange(server, query)).await {
        Err(ProbeError::Silent) => within(TIMEOUT.saturating_sub(REPEAT_AFTER), udp_exchange(server, query)).await,
        outcome => outcome,
    };
    query.answer(&reply?)
}

/// Sends a query over TCP.
pub(crate) async fn tcp(server: SocketAddr, query: &Query) -> Result<Answer, ProbeError> {
    query.answer(&within(TIMEOUT, tcp_exchange(server, query)).await?)
}

/// Connects over TCP, and returns the time in seconds.
pub(crate) async fn connect(server: SocketAddr) -> Result<f64, ProbeError> {
    let start = Instant::now();
    timeout(TIMEOUT, TcpStream::connect(server)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Sends a query over UDP, and over TCP if the response is truncated, within a time for both.
pub(crate) async fn exchange(server: SocketAddr, query: &Query, limit: Duration) -> Result<Reply, ProbeError> {
    let both = async {
        let reply = udp_exchange(server, query).await?;
        let is_truncated = Header::read(&reply.message).is_some_and(|header| header.flags.truncated());
        if is_truncated { tcp_exchange(server, query).await } else { Ok(reply) }
    };
    within(limit, both).await
}

async fn within(
    limit: Duration,
    exchange: impl Future<Output = Result<Reply, ProbeError>>,
) -> Result<Reply, ProbeError> {
    timeout(limit, exchange).await.unwrap_or(Err(ProbeError::Silent))
}

async fn udp_exchange(server: SocketAddr, query: &Query) -> Result<Reply, ProbeError> {
    let socket = connect_udp(server).await?;
    if query.length.is_some() {
        match server {
            SocketAddr::V4(_) => set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO).map_err(io::Error::from)?,
            SocketAddr::V6(_) => set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO).map_err(io::Error::from)?,
        }
    }
    let (id, start) = (rand::random(), Instant::now());
    socket.send(&query.bytes(id)).await?;
    receive(&socket, |bytes| {
        let is_ours = query.accepts(id, bytes)?;
        Ok(is_ours.then(|| Reply { seconds: start.elapsed().as_secs_f64(), message: bytes.to_vec() }))
    })
    .await
}

async fn tcp_exchange(server: SocketAddr, query: &Query) -> Result<Reply, ProbeError> {
    let start = Instant::now();
    let mut stream = TcpStream::connect(server).await?;
    let id = rand::random();
    stream.write_all(&frame(&query.bytes(id)).map_err(|_| ProbeError::Invalid)?).await?;
    let message = read_frame(&mut stream).await?;
    if !query.accepts(id, &message)? {
        return Err(ProbeError::Invalid);
    }
    Ok(Reply { seconds: start.elapsed().as_secs_f64(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, length: Option<usize>) -> Query {
        Query { length, ..Query::new(Name::from_text(name).unwrap(), Type::A) }
    }

    #[test]
    fn fills_a_query_up_to_its_length() {
        for length in [900, 1_232] {
            let bytes = query("a.test.", Some(length)).bytes(7);
            assert_eq!((bytes.len(), Message::parse(&bytes).is_ok()), (length, true));
        }
        assert!(query("a.test.", Some(5)).bytes(7).len() < 50);
    }

    #[test]
    fn only_a_marked_query_says_that_it_is_a_probe() {
        for length in [None, Some(900)] {
            let plain = query("a.test.", length);
            for (query, expected) in [(plain.clone(), false), (plain.marked(), true)] {
                let bytes = query.bytes(7);
                let mut request = wire::Request::default();
                request.read(Header::read(&bytes).unwrap(), &bytes).unwrap();
                assert_eq!(request.options(&bytes).any(|(code, _)| code == OptionCode::PROBE), expected);
                assert_eq!(bytes.len(), length.unwrap_or(bytes.len()));
            }
        }
    }

    #[test]
    fn reads_the_name_of_the_server() {
        let response = |name: &[u8]| {
            let mut message = MessageBuf::new();
            let question = (Name::from_text("a.test.").unwrap(), Type::A, Class::IN);
            let header = Header { id: 7, flags: Flags::default().with_response(true), ..Header::default() };
            message.start(header, Some((question.0.as_ref(), question.1, question.2)));
            let opt = Opt { udp_size: UDP_SIZE, extended_rcode: 0, version: 0, dnssec_ok: false };
            message.finish(Some(opt), [(OptionCode::NSID, name)].into_iter()).to_vec()
        };
        assert_eq!(server_name(&response(b"portolan-x7k2p")).as_deref(), Some("portolan-x7k2p"));
        for name in [&b""[..], b"a b", b"\x1b[31m", &[b'a'; SERVER_NAME_MAX + 1]] {
            assert_eq!(server_name(&response(name)), None, "{name:?}");
        }
        let plain = query("a.test.", None);
        assert_eq!(server_name(&plain.bytes(7)), None);
        let bytes = plain.asking_server().bytes(7);
        let mut request = wire::Request::default();
        request.read(Header::read(&bytes).unwrap(), &bytes).unwrap();
        assert!(request.options(&bytes).any(|(code, _)| code == OptionCode::NSID));
    }

    #[test]
    fn accepts_only_responses_to_its_own_query() {
        let asked = query("DoCtOr.test.", None);
        let mut bytes = asked.bytes(7);
        assert!(matches!(asked.accepts(7, &bytes), Ok(false)), "a query is no response");
        bytes[2] |= 0x80;
        assert!(matches!(asked.accepts(7, &bytes), Ok(true)));
        assert!(matches!(asked.accepts(8, &bytes), Ok(false)));
        assert!(query("other.test.", None).accepts(7, &bytes).is_err());
        assert!(asked.accepts(7, &bytes[..20]).is_err() && asked.accepts(7, &bytes[..3]).is_err());
        let reply = Reply { seconds: 0.1, message: bytes };
        let answer = asked.answer(&reply).unwrap();
        assert!(answer.keeps_case && answer.has_edns && !answer.has_address);
        assert!(!query("doctor.test.", None).answer(&reply).unwrap().keeps_case);
    }
}
