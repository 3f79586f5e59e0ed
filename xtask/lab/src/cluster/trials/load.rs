//! Load on the cluster DNS: clients of three kinds that send at a fixed rate, whatever is answered, and that say why
//! each query failed.
//!
//! - `udp`: sockets that keep their source port, as resolvers with a connected socket do. Connection tracking sends all
//!   queries of a port to the same pod.
//! - `udp-port`: a new source port for each query, as the resolvers of C libraries do.
//! - `tcp`: a new connection for each query.
//!
//! Each query asks the server for its name (NSID, RFC 5001), to count who answers. Answers that say that they may be
//! stale are counted too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use testkit::{Parsed, Question};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::LocalSet;
use wire::{EdeCode, Name, OptionCode, Type};
use xtask::Failed;

/// Time after which a query is lost. Stub resolvers send it again after 5 s (resolv.conf(5), `timeout`).
const LOST_AFTER: Duration = Duration::from_secs(2);
/// Clients that keep their source port.
const SOCKETS: u32 = 16;
/// Queries per second of the clients that keep their source port, and of those with new connections.
const UDP_RATE: u32 = 320;
const TCP_RATE: u32 = 40;
/// Kinds of clients.
const UDP: &str = "udp";
const UDP_PORT: &str = "udp-port";
const TCP: &str = "tcp";
/// Losses that are listed one by one.
const LISTED_MAX: usize = 20_000;

/// Returns the hidden command line.
pub(crate) fn command() -> Command {
    Command::new("load")
        .hide(true)
        .arg(Arg::new("new-ports").long("new-ports").required(true).value_parser(value_parser!(u32).range(1..)))
        .arg(Arg::new("server").required(true))
        .arg(Arg::new("names").required(true).num_args(1..))
}

/// Sends queries until standard input ends, then prints the result as JSON.
pub(crate) fn main(options: &ArgMatches) -> Result<(), Failed> {
    let word = |name: &str| options.get_one::<String>(name).map_or("", String::as_str);
    let server: SocketAddr = word("server").parse().map_err(|_| format!("`{}` is not ADDRESS:PORT", word("server")))?;
    let names = options.get_many::<String>("names").into_iter().flatten();
    let queries: Vec<_> = names.filter_map(|name| query(name)).collect();
    if queries.is_empty() {
        return Err("no name is valid".to_owned());
    }
    let ends = Arc::new(AtomicBool::new(false));
    let shared = Rc::new(Shared { server, queries, ends: Arc::clone(&ends), tally: RefCell::default() });
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        ends.store(true, Ordering::Relaxed);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        let mut clients = Vec::new();
        for number in 0..SOCKETS {
            let client = Rc::clone(&shared).keep_port(number);
            clients.push(tokio::task::spawn_local(async move { client.await.map_err(|error| error.to_string()) }));
        }
        let new_ports = options.get_one::<u32>("new-ports").copied().unwrap_or(1);
        for (kind, rate) in [(UDP_PORT, new_ports), (TCP, TCP_RATE)] {
            let client = Rc::clone(&shared).one_by_one(kind, rate);
            clients.push(tokio::task::spawn_local(async move {
                client.await;
                Ok(())
            }));
        }
        for client in clients {
            client.await.map_err(|error| error.to_string())??;
        }
        Ok::<(), Failed>(())
    })?;
    println!("{}", shared.tally.borrow().report());
    Ok(())
}

/// Returns a query for a name that asks for the name of the server too.
fn query(name: &str) -> Option<Vec<u8>> {
    let mut question = Question::new(Name::from_text(name).ok()?, Type::A);
    question.options.push((OptionCode::NSID, Vec::new()));
    Some(question.packet())
}

/// Failure of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// No answer in time.
    Timeout,
    /// The kernel reported that nothing listens, or that the host or network cannot be reached.
    Unreachable,
    /// Answer with another code than NOERROR.
    Code(u8),
}

impl Cause {
    fn of(error: &io::Error) -> Cause {
        if error.kind() == io::ErrorKind::TimedOut { Cause::Timeout } else { Cause::Unreachable }
    }

    fn text(self) -> String {
        match self {
            Cause::Timeout => "timeout".to_owned(),
            Cause::Unreachable => "unreachable".to_owned(),
            Cause::Code(code) => wire::Rcode(u16::from(code)).to_string(),
        }
    }
}

/// Counts of one kind of client.
#[derive(Default)]
struct Counts {
    sent: u64,
    causes: BTreeMap<Cause, u64>,
    /// Latencies of answers in microseconds.
    micros: Vec<u64>,
    /// Number of answers by the name of their server, which is empty if it has not said it.
    servers: BTreeMap<String, u64>,
    /// Times of the first and of the last query that failed, in milliseconds since 1970.
    failing: Option<[u64; 2]>,
    /// Number of answers that say that they may be stale, and the time of the first, in milliseconds since 1970.
    stale: [u64; 2],
    /// What the last one said.
    stale_text: String,
}

impl Counts {
    fn answer(&mut self, since: Instant, message: &[u8]) {
        let parsed = Parsed::read(message).ok();
        *self.servers.entry(parsed.as_ref().map(server_of).unwrap_or_default()).or_default() += 1;
        if let Some((EdeCode::STALE_ANSWER, text)) = parsed.and_then(|parsed| parsed.ede()) {
            let [count, first] = self.stale;
            self.stale = [count + 1, if count == 0 { milliseconds(since) } else { first }];
            self.stale_text = text;
        }
    }

    fn fail(&mut self, since: Instant, cause: Cause) {
        *self.causes.entry(cause).or_default() += 1;
        let time = milliseconds(since);
        let [first, last] = self.failing.unwrap_or([time; 2]);
        self.failing = Some([first.min(time), last.max(time)]);
    }
}

/// Returns the time of an instant in milliseconds since 1970.
fn milliseconds(instant: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(instant.elapsed()).as_millis()).unwrap_or(u64::MAX)
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, Counts>,
    /// Failures of `udp`: time of the query in milliseconds since 1970, source port and cause.
    listed: Vec<(u64, u16, Cause)>,
}

impl Tally {
    fn count(&mut self, kind: &'static str, since: Instant, outcome: Result<&[u8], Cause>) {
        let counts = self.counts.entry(kind).or_default();
        counts.sent += 1;
        if let Ok(message) = outcome {
            counts.answer(since, message);
        }
        match outcome.map(|message| answer(message).map_or(0, |(_, code)| code)) {
            Ok(0) => counts.micros.push(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)),
            Ok(code) => counts.fail(since, Cause::Code(code)),
            Err(cause) => counts.fail(since, cause),
        }
    }

    fn list(&mut self, since: Instant, port: u16, cause: Cause) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push((milliseconds(since), port, cause));
        }
    }

    fn report(&self) -> Value {
        let kinds = self.counts.iter().map(|(kind, counts)| {
            let mut micros = counts.micros.clone();
            micros.sort_unstable();
            let at = |thousandths: usize| {
                micros.get(micros.len().saturating_sub(1) * thousandths / 1000).copied().unwrap_or(0)
            };
            let causes: BTreeMap<String, u64> =
                counts.causes.iter().map(|(cause, count)| (cause.text(), *count)).collect();
            let latencies = [at(500), at(990), at(1000)];
            let report = json!({
                "sent": counts.sent,
                "causes": causes,
                "micros": latencies,
                "servers": counts.servers,
                "failing": counts.failing,
                "stale": counts.stale,
                "stale_text": counts.stale_text,
            });
            ((*kind).to_owned(), report)
        });
        let listed = self.listed.iter().map(|(time, port, cause)| json!([time, port, cause.text()]));
        json!({ "kinds": kinds.collect::<serde_json::Map<_, _>>(), "listed": listed.collect::<Vec<_>>() })
    }
}

struct Shared {
    server: SocketAddr,
    queries: Vec<Vec<u8>>,
    /// True if no further query is sent.
    ends: Arc<AtomicBool>,
    tally: RefCell<Tally>,
}

impl Shared {
    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn query(&self, number: u32, id: u16) -> Vec<u8> {
        let mut query = self.queries[number as usize % self.queries.len()].clone();
        query[..2].copy_from_slice(&id.to_be_bytes());
        query
    }

    /// Sends queries from one source port.
    async fn keep_port(self: Rc<Self>, number: u32) -> io::Result<()> {
        let socket = connected(self.server).await?;
        let port = socket.local_addr()?.port();
        let mut waiting: BTreeMap<u16, Instant> = BTreeMap::new();
        let mut tick = tokio::time::interval(Duration::from_secs(1) * SOCKETS / UDP_RATE);
        let mut id = 0_u16;
        let mut buffer = [0; 1232];
        let lose = |since: Instant, cause: Cause| {
            let mut tally = self.tally.borrow_mut();
            tally.count(UDP, since, Err(cause));
            tally.list(since, port, cause);
        };
        while !self.has_ended() || !waiting.is_empty() {
            tokio::select! {
                _ = tick.tick() => {
                    if !self.has_ended() {
                        id = id.wrapping_add(1);
                        waiting.insert(id, Instant::now());
                        if let Err(error) = socket.send(&self.query(number + u32::from(id), id)).await {
                            // The error may belong to an earlier query; this one was not sent.
                            let since = waiting.remove(&id).unwrap_or_else(Instant::now);
                            lose(since, Cause::of(&error));
                        }
                    }
                    // After a pause of this process, answers may wait that are older than the limit.
                    while let Ok(length) = socket.try_recv(&mut buffer) {
                        self.receive(&buffer[..length], &mut waiting);
                    }
                    while let Some((first, since)) = waiting.first_key_value().map(|(id, since)| (*id, *since)) {
                        if since.elapsed() < LOST_AFTER {
                            break;
                        }
                        waiting.remove(&first);
                        lose(since, Cause::Timeout);
                    }
                }
                received = socket.recv(&mut buffer) => match received {
                    Ok(length) => self.receive(&buffer[..length], &mut waiting),
                    // An ICMP message answers one of the queries; the oldest is the most probable one.
                    Err(error) => if let Some((_, since)) = waiting.pop_first() {
                        lose(since, Cause::of(&error));
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts an answer to a query that waits.
    fn receive(&self, message: &[u8], waiting: &mut BTreeMap<u16, Instant>) {
        let Some((id, _)) = answer(message) else { return };
        if let Some(since) = waiting.remove(&id) {
            self.tally.borrow_mut().count(UDP, since, Ok(message));
        }
    }

    /// Sends each query from its own socket.
    async fn one_by_one(self: Rc<Self>, kind: &'static str, rate: u32) {
        let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
        let mut tasks = Vec::new();
        let mut number = 0_u32;
        while !self.has_ended() {
            tick.tick().await;
            number += 1;
            let own = Rc::clone(&self);
            tasks.push(tokio::task::spawn_local(async move {
                let since = Instant::now();
                let query = own.query(number, u16::try_from(number & 0xffff).unwrap_or(0));
                let ask = async {
                    if kind == TCP { over_tcp(own.server, &query).await } else { over_udp(own.server, &query).await }
                };
                let outcome = match tokio::time::timeout(LOST_AFTER, ask).await {
                    Ok(Ok(message)) => Ok(message),
                    Ok(Err(error)) => Err(Cause::of(&error)),
                    Err(_) => Err(Cause::Timeout),
                };
                own.tally.borrow_mut().count(kind, since, outcome.as_deref().map_err(|cause| *cause));
            }));
        }
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn connected(server: SocketAddr) -> io::Result<UdpSocket> {
    let local: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(local).await?;
    socket.connect(server).await?;
    Ok(socket)
}

async fn over_udp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let socket = connected(server).await?;
    socket.send(query).await?;
    let mut buffer = [0; 1232];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if answer(&buffer[..length]).is_some_and(|(id, _)| id.to_be_bytes() == query[..2]) {
            return Ok(buffer[..length].to_vec());
        }
    }
}

async fn over_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).unwrap_or(0);
    stream.write_all(&[&length.to_be_bytes(), query].concat()).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    answer(&message).map(|_| ()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(message)
}

/// Returns the ID and the response code of an answer.
fn answer(message: &[u8]) -> Option<(u16, u8)> {
    let [high, low, _, flags] = message.first_chunk()?;
    Some((u16::from_be_bytes([*high, *low]), flags & 15))
}

/// Returns the name that the server of an answer has given, or an empty one.
fn server_of(answer: &Parsed) -> String {
    let name = answer.options.iter().find(|(code, _)| *code == OptionCode::NSID);
    name.map(|(_, name)| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_answers_by_server_and_those_that_may_be_stale() {
        let answer = |options: &[(OptionCode, &[u8])]| {
            let mut question = Question::new(Name::from_text(".").unwrap(), Type::A);
            question.options = options.iter().map(|(code, value)| (*code, value.to_vec())).collect();
            question.packet()
        };
        let mut counts = Counts::default();
        let since = Instant::now();
        counts.answer(since, &answer(&[]));
        counts.answer(since, &answer(&[(OptionCode::NSID, b"a")]));
        assert_eq!(counts.stale, [0, 0]);
        let first = milliseconds(since);
        counts.answer(since, &answer(&[(OptionCode::NSID, b"a"), (OptionCode::EXTENDED_ERROR, b"\0\x03old")]));
        counts.answer(since, &answer(&[(OptionCode::EXTENDED_ERROR, b"\0\x16none")]));
        assert_eq!(counts.servers, BTreeMap::from([(String::new(), 2), ("a".to_owned(), 2)]));
        assert_eq!((counts.stale[0], counts.stale_text.as_str()), (1, "old"));
        assert!(counts.stale[1] >= first);
    }
}
