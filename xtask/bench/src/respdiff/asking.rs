//! Client that asks two servers the same questions at the same time, with a bounded number on their way.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, UdpSocket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::questions::{Query, WINDOW};
use xtask::Failed;

/// Time without a response after which a question is asked again. All upstreams answer at once.
const TIMEOUT: Duration = Duration::from_millis(2500);
/// Number of times that a question is sent to a server.
const SENT_MAX: u32 = 2;
/// Interval at which timeouts are checked.
const TICK: Duration = Duration::from_millis(100);
/// Length in bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;

/// Responses of both servers to a question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair {
    /// Messages; `None` without a response.
    pub(crate) bytes: [Option<Vec<u8>>; 2],
    /// Time between the responses, or more.
    pub(crate) apart: Duration,
}

/// Question on its way.
struct Open {
    pair: Pair,
    left: [bool; 2],
    sent: Instant,
    count: u32,
    first: Instant,
}

/// Response over TCP: index of the question, index of the server, message.
type Arrived = (usize, usize, Option<Vec<u8>>);

struct Exchange<'q> {
    servers: [SocketAddr; 2],
    /// One socket for both servers, so that both see the same port of the client.
    socket: UdpSocket,
    queries: &'q [Query],
    open: BTreeMap<usize, Open>,
    pairs: Vec<Pair>,
    streams: (UnboundedSender<Arrived>, UnboundedReceiver<Arrived>),
}

/// Asks both servers all questions. Stops at the deadline: then the list is shorter than that of the questions.
pub(crate) async fn all(servers: [SocketAddr; 2], queries: &[Query], deadline: Instant) -> Result<Vec<Pair>, Failed> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(|error| format!("socket for the questions: {error}"))?;
    let pairs = vec![Pair::default(); queries.len()];
    let streams = unbounded_channel();
    let mut exchange = Exchange { servers, socket, queries, open: BTreeMap::new(), pairs, streams };
    Ok(exchange.run(deadline).await)
}

impl Exchange<'_> {
    async fn run(&mut self, deadline: Instant) -> Vec<Pair> {
        let mut next = 0;
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            while self.open.len() < WINDOW && next < self.queries.len() {
                self.start(next).await;
                next += 1;
            }
            if self.open.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                let done = self.open.keys().next().copied().unwrap_or(next);
                self.pairs.truncate(done);
                break;
            }
            let arrived = tokio::select! {
                received = self.socket.recv_from(&mut buffer) => self.received(received, &buffer),
                arrived = self.streams.1.recv() => arrived,
                () = tokio::time::sleep(TICK) => None,
            };
            if let Some(arrived) = arrived {
                self.take(arrived);
            }
            self.expire().await;
        }
        std::mem::take(&mut self.pairs)
    }

    async fn start(&mut self, index: usize) {
        let now = Instant::now();
        let open = Open { pair: Pair::default(), left: [true; 2], sent: now, count: 1, first: now };
        self.open.insert(index, open);
        self.send(index, [true; 2]).await;
    }

    /// Sends a question to the servers that have not answered it; over TCP to both.
    async fn send(&self, index: usize, left: [bool; 2]) {
        let query = &self.queries[index];
        let packet = with_id(&query.packet, index);
        if query.tcp {
            let (servers, arrived) = (self.servers, self.streams.0.clone());
            tokio::spawn(async move {
                let Ok(sockets) = two_with_one_port() else { return };
                let ask = async |side: usize, socket| {
                    let answer = tokio::time::timeout(TIMEOUT, over_tcp(servers[side], socket, &packet)).await;
                    // The receiver is gone if the deadline has passed.
                    let _ = arrived.send((index, side, answer.ok().and_then(Result::ok)));
                };
                let [first, second] = sockets;
                tokio::join!(ask(0, first), ask(1, second));
            });
            return;
        }
        for side in (0..2).filter(|&side| left[side]) {
            // An error is that of an earlier datagram. What is lost is sent again.
            let _ = self.socket.send_to(&packet, self.servers[side]).await;
        }
    }

    /// Returns a datagram with its server and the index of its question, which is the ID.
    fn received(&self, received: std::io::Result<(usize, SocketAddr)>, buffer: &[u8]) -> Option<Arrived> {
        let (length, server) = received.ok()?;
        let side = self.servers.iter().position(|&known| known == server)?;
        let bytes = &buffer[..length];
        let id = bytes.first_chunk().map(|id| u16::from_be_bytes(*id))?;
        Some((usize::from(id), side, Some(bytes.to_vec())))
    }

    fn take(&mut self, (index, side, bytes): Arrived) {
        let Some(open) = self.open.get_mut(&index) else { return };
        if bytes.is_none() || !open.left[side] {
            return;
        }
        open.left[side] = false;
        open.pair.bytes[side] = bytes;
        if open.left == [false; 2] {
            self.close(index);
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(mut open) = self.open.remove(&index) {
            open.pair.apart = open.first.elapsed();
            self.pairs[index] = open.pair;
        }
    }

    /// Asks again what has no response, and gives up on what was asked often enough.
    async fn expire(&mut self) {
        let is_late = |open: &Open| open.sent.elapsed() > TIMEOUT;
        let late: Vec<usize> = self.open.iter().filter(|(_, open)| is_late(open)).map(|(index, _)| *index).collect();
        for index in late {
            let Some(open) = self.open.get_mut(&index) else { continue };
            if open.count == SENT_MAX {
                self.close(index);
                continue;
            }
            open.count += 1;
            open.sent = Instant::now();
            let left = open.left;
            self.send(index, left).await;
        }
    }
}

fn with_id(packet: &[u8], index: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let id = u16::try_from(index).unwrap_or_default().to_be_bytes();
    packet.iter_mut().zip(id).for_each(|(byte, id)| *byte = id);
    packet
}

/// Returns two sockets with one port, for connections to both servers.
fn two_with_one_port() -> std::io::Result<[TcpSocket; 2]> {
    let bound = |port| {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
        std::io::Result::Ok(socket)
    };
    let first = bound(0)?;
    let second = bound(first.local_addr()?.port())?;
    Ok([first, second])
}

async fn over_tcp(server: SocketAddr, socket: TcpSocket, packet: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = socket.connect(server).await?;
    let length = u16::try_from(packet.len()).unwrap_or_default().to_be_bytes();
    stream.write_all(&[&length[..], packet].concat()).await?;
    let mut response = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut response).await?;
    Ok(response)
}
