//! Load on the cluster DNS: clients of three kinds that send at a fixed rate, whatever is answered, and that say why
//! each query failed.
//!
//! - `udp`: sockets that keep their source port, as resolvers with a connected socket do. Connection tracking sends all
//!   queries of a port to the same pod.
//! - `udp-port`: a new source port for each query, as the resolvers of C libraries do.
//! - `tcp`: a new connection for each query.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use testkit::Question;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::LocalSet;
use wire::{Name, Type};
use xtask::Failed;

/// Time after which a query is lost. Stub resolvers send it again after 5 s (resolv.conf(5), `timeout`).
const LOST_AFTER: Duration = Duration::from_secs(2);
/// Clients that keep their source port.
const SOCKETS: u32 = 16;
/// Queries per second of each kind of client.
const RATES: [(&str, u32); 3] = [("udp", 320), ("udp-port", 100), ("tcp", 40)];
/// Losses that are listed one by one.
const LISTED_MAX: usize = 20_000;

/// Returns the hidden command line.
pub(crate) fn command() -> Command {
    Command::new("load")
        .hide(true)
        .arg(Arg::new("server").required(true))
        .arg(Arg::new("names").required(true).num_args(1..))
}

/// Sends queries until standard input ends, then prints the result as JSON.
pub(crate) fn main(options: &ArgMatches) -> Result<(), Failed> {
    let word = |name: &str| options.get_one::<String>(name).map_or("", String::as_str);
    let server: SocketAddr = word("server").parse().map_err(|_| format!("`{}` is not ADDRESS:PORT", word("server")))?;
    let names = options.get_many::<String>("names").into_iter().flatten();
    let queries: Vec<_> =
        names.filter_map(|name| Some(Question::new(Name::from_text(name).ok()?, Type::A).packet())).collect();
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
        for (kind, rate) in &RATES[1..] {
            let client = Rc::clone(&shared).one_by_one(kind, *rate);
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
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, Counts>,
    /// Failures of `udp`: time of the query in milliseconds since 1970, source port and cause.
    listed: Vec<(u64, u16, Cause)>,
}

impl Tally {
    fn count(&mut self, kind: &'static str, since: Instant, outcome: Result<u8, Cause>) {
        let counts = self.counts.entry(kind).or_default();
        counts.sent += 1;
        match outcome {
            Ok(0) => counts.micros.push(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)),
            Ok(code) => *counts.causes.entry(Cause::Code(code)).or_default() += 1,
            Err(cause) => *counts.causes.entry(cause).or_default() += 1,
        }
    }

    fn list(&mut self, since: Instant, port: u16, cause: Cause) {
        if self.listed.len() < LISTED_MAX {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let time = now.saturating_sub(since.elapsed());
            self.listed.push((u64::try_from(time.as_millis()).unwrap_or(u64::MAX), port, cause));
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
            ((*kind).to_owned(), json!({ "sent": counts.sent, "causes": causes, "micros": latencies }))
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
        let mut tick = tokio::time::interval(Duration::from_secs(1) * SOCKETS / RATES[0].1);
        let mut id = 0_u16;
        let mut buffer = [0; 1232];
        let lose = |since: Instant, cause: Cause| {
            let mut tally = self.tally.borrow_mut();
            tally.count(RATES[0].0, since, Err(cause));
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
        let Some((id, code)) = answer(message) else { return };
        if let Some(since) = waiting.remove(&id) {
            self.tally.borrow_mut().count(RATES[0].0, since, Ok(code));
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
                    if kind == "tcp" { over_tcp(own.server, &query).await } else { over_udp(own.server, &query).await }
                };
                let outcome = match tokio::time::timeout(LOST_AFTER, ask).await {
                    Ok(Ok(code)) => Ok(code),
                    Ok(Err(error)) => Err(Cause::of(&error)),
                    Err(_) => Err(Cause::Timeout),
                };
                own.tally.borrow_mut().count(kind, since, outcome);
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

async fn over_udp(server: SocketAddr, query: &[u8]) -> io::Result<u8> {
    let socket = connected(server).await?;
    socket.send(query).await?;
    let mut buffer = [0; 1232];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some((id, code)) = answer(&buffer[..length])
            && id.to_be_bytes() == query[..2]
        {
            return Ok(code);
        }
    }
}

async fn over_tcp(server: SocketAddr, query: &[u8]) -> io::Result<u8> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).unwrap_or(0);
    stream.write_all(&[&length.to_be_bytes(), query].concat()).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    answer(&message).map(|(_, code)| code).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the ID and the response code of an answer.
fn answer(message: &[u8]) -> Option<(u16, u8)> {
    let [high, low, _, flags] = message.first_chunk()?;
    Some((u16::from_be_bytes([*high, *low]), flags & 15))
}
