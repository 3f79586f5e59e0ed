//! UDP load generator. In closed-loop mode, a fixed number of queries is in flight and each answer triggers the next
//! query. In paced mode, queries are sent at a fixed rate regardless of the answers.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use linux::datagrams::{BATCH, Batch};
use serde_json::{Value, json};
use testkit::Question;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::LocalSet;

use super::processes::{LOAD_CPU, Pinned};
use wire::Name;
use xtask::Failed;

/// Number of client sockets.
const SOCKETS: usize = 16;
/// Queries in flight per socket, unless the caller says otherwise.
const WINDOW: usize = 32;
/// Timeout after which a query counts as lost.
const LOST: Duration = Duration::from_secs(1);
/// Maximum number of latencies kept per socket.
const SAMPLES_MAX: usize = 200_000;

/// Result of a load run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) lost: u64,
    pub(crate) per_second: f64,
    /// Latency percentiles 50, 99 and 99.9 in microseconds.
    pub(crate) latencies: [f64; 3],
    /// Number of answers by response code.
    pub(crate) rcodes: Vec<u64>,
    /// CPU time of the server per answer in microseconds.
    pub(crate) cpu_each: f64,
}

/// Loads a server in closed-loop mode, from the other processor.
pub(crate) fn run(server: &Pinned, queries: &[String], time: Duration) -> Result<Load, Failed> {
    start(server, queries, time, 0, WINDOW)
}

/// Loads a server in closed-loop mode, with `window` queries in flight on each socket.
pub(crate) fn run_with(server: &Pinned, queries: &[String], time: Duration, window: usize) -> Result<Load, Failed> {
    start(server, queries, time, 0, window)
}

/// Loads a server with `pace` queries per second.
pub(crate) fn run_at(server: &Pinned, queries: &[String], time: Duration, pace: u64) -> Result<Load, Failed> {
    start(server, queries, time, pace, WINDOW)
}

fn start(server: &Pinned, queries: &[String], time: Duration, pace: u64, window: usize) -> Result<Load, Failed> {
    let path = std::env::temp_dir().join(format!("portolan-load-{}.txt", server.port));
    std::fs::write(&path, queries.join("\n")).map_err(|error| error.to_string())?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let before = server.cpu();
    let output = Command::new("taskset")
        .args(["-c", LOAD_CPU])
        .arg(own)
        .args(["load", &server.port.to_string()])
        .arg(&path)
        .args([time.as_millis().to_string(), pace.to_string(), window.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let used = server.cpu() - before;
    let _ = std::fs::remove_file(&path);
    let read: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("output of the load generator: {error}"))?;
    let number = |name: &str| read[name].as_u64().unwrap_or(0);
    let latency = |at: usize| read["latencies"][at].as_f64().unwrap_or(0.0);
    let answers = number("answers");
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    Ok(Load {
        lost: number("lost"),
        per_second: answers as f64 / time.as_secs_f64(),
        latencies: [latency(0), latency(1), latency(2)],
        rcodes: read["rcodes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
        cpu_each: used.as_secs_f64() * 1e6 / answers.max(1) as f64,
    })
}

/// Runs the load generator: `load PORT FILE MILLISECONDS QUERIES_PER_SECOND WINDOW`, in closed-loop mode if the
/// pace is 0.
pub(crate) fn main(options: &ArgMatches) -> Result<(), Failed> {
    let word = |name: &str| options.get_one::<String>(name).cloned().unwrap_or_default();
    let port: u16 = word("port").parse().map_err(|_| "not a port")?;
    let time = Duration::from_millis(word("milliseconds").parse().map_err(|_| "not a time")?);
    let pace: f64 = word("pace").parse().map_err(|_| "not a pace")?;
    let window: usize = word("window").parse().map_err(|_| "not a window")?;
    let text = std::fs::read_to_string(word("file")).map_err(|error| error.to_string())?;
    let queries: Rc<Vec<Vec<u8>>> = Rc::new(text.lines().filter_map(packet).collect());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let end = Instant::now() + time;
    let total = Rc::new(RefCell::new(Tally::default()));
    LocalSet::new().block_on(&runtime, async {
        let clients = (0..SOCKETS).map(|number| {
            let client = Client::new(Rc::clone(&queries), number * 7919, window, end, Rc::clone(&total));
            let server = SocketAddr::from(([127, 0, 0, 1], port));
            tokio::task::spawn_local(async move {
                if pace > 0.0 { client.run_at(server, pace / SOCKETS as f64).await } else { client.run(server).await }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            let _ = client.await;
        }
    });
    println!("{}", total.borrow_mut().report());
    Ok(())
}

/// Builds a query from a line `NAME TYPE`.
pub(crate) fn packet(line: &str) -> Option<Vec<u8>> {
    let (name, rtype) = line.split_once(' ')?;
    Some(Question::new(Name::from_text(name).ok()?, rtype.trim().parse().ok()?).packet())
}

#[derive(Default)]
struct Tally {
    answers: u64,
    lost: u64,
    rcodes: [u64; 16],
    nanos: Vec<u64>,
}

impl Tally {
    fn report(&mut self) -> Value {
        self.nanos.sort_unstable();
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let at = |thousandths: usize| {
            let place = self.nanos.len().saturating_sub(1) * thousandths / 1000;
            self.nanos.get(place).copied().unwrap_or(0) as f64 / 1000.0
        };
        json!({
            "answers": self.answers,
            "lost": self.lost,
            "latencies": [at(500), at(990), at(999)],
            "rcodes": self.rcodes,
        })
    }
}

struct Client {
    queries: Rc<Vec<Vec<u8>>>,
    next: usize,
    window: usize,
    end: Instant,
    total: Rc<RefCell<Tally>>,
    /// Send time by query ID, until the answer arrives.
    sent: Vec<Option<Instant>>,
    id: u16,
}

impl Client {
    fn new(queries: Rc<Vec<Vec<u8>>>, next: usize, window: usize, end: Instant, total: Rc<RefCell<Tally>>) -> Client {
        Client { queries, next, window, end, total, sent: vec![None; 1 << 16], id: 0 }
    }

    async fn run(mut self, server: SocketAddr) -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let mut batch = Batch::new();
        self.send(&socket, server, self.window).await?;
        while Instant::now() < self.end {
            if tokio::time::timeout(LOST, socket.readable()).await.is_err() {
                self.give_up();
                self.send(&socket, server, self.window).await?;
                continue;
            }
            let received = receive(&socket, &mut batch);
            let now = Instant::now();
            for at in 0..received {
                if self.count(batch.datagram(at), now) {
                    let query = self.take_query(now);
                    batch.answer(at, &query);
                }
            }
            batch.send(socket.as_raw_fd());
        }
        Ok(())
    }

    /// Sends `pace` queries per second. Queries without an answer in time count as lost.
    async fn run_at(mut self, server: SocketAddr, pace: f64) -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let (mut batch, begin, mut sent) = (Batch::new(), Instant::now(), 0);
        let mut tick = tokio::time::interval(Duration::from_millis(1));
        while Instant::now() < self.end + LOST {
            tokio::select! {
                _ = tick.tick() => {
                    let due = begin.elapsed().min(self.end - begin).as_secs_f64() * pace;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred thousand")]
                    let due = due as usize;
                    self.send(&socket, server, due - sent).await?;
                    sent = due;
                }
                _ = socket.readable() => {
                    let received = receive(&socket, &mut batch);
                    let now = Instant::now();
                    for at in 0..received {
                        self.count(batch.datagram(at), now);
                    }
                }
            }
        }
        self.give_up();
        Ok(())
    }

    async fn send(&mut self, socket: &UdpSocket, server: SocketAddr, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let query = self.take_query(Instant::now());
            socket.send_to(&query, server).await?;
        }
        Ok(())
    }

    /// Counts all queries in flight as lost.
    fn give_up(&mut self) {
        self.total.borrow_mut().lost += self.sent.iter_mut().filter_map(Option::take).count() as u64;
    }

    fn take_query(&mut self, now: Instant) -> Vec<u8> {
        let mut query = self.queries[self.next % self.queries.len()].clone();
        self.next += 1;
        self.id = self.id.wrapping_add(1);
        query[..2].copy_from_slice(&self.id.to_be_bytes());
        if self.sent[usize::from(self.id)].replace(now).is_some() {
            self.total.borrow_mut().lost += 1;
        }
        query
    }

    /// Counts an answer. Returns false if no query is waiting for it.
    fn count(&mut self, answer: &[u8], now: Instant) -> bool {
        let Some([high, low, _, flags]) = answer.first_chunk() else { return false };
        let Some(since) = self.sent[usize::from(u16::from_be_bytes([*high, *low]))].take() else { return false };
        let mut total = self.total.borrow_mut();
        total.answers += 1;
        total.rcodes[usize::from(flags & 15)] += 1;
        if total.nanos.len() < SAMPLES_MAX * SOCKETS {
            total.nanos.push(u64::try_from(now.duration_since(since).as_nanos()).unwrap_or(u64::MAX));
        }
        true
    }
}

/// Receives up to one batch of answers and returns their number.
fn receive(socket: &UdpSocket, batch: &mut Batch) -> usize {
    let mut received = 0;
    let _ = socket.try_io(Interest::READABLE, || {
        received = batch.receive(socket.as_raw_fd())?;
        if received < BATCH { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    received
}
