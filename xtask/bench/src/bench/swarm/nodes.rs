//! Thread with all simulated nodes: connections over TLS to the relays.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{LocalSet, yield_now};
use tokio::time::{sleep, sleep_until};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::tls;
use super::node::{Node, Role};
use super::tally::Tally;
use xtask::Failed;

/// Longest pause before the next relay is asked, as in Portolan.
const RECONNECT: Duration = Duration::from_secs(1);
/// Time over which a node spreads its first connection, per node: the start is not what is measured.
const START_SPREAD: Duration = Duration::from_millis(2);
/// Pause of counting nodes between two reads. With all nodes on one processor, a node that reads each change at once
/// would measure the load generator.
const COUNTING_PAUSE: Duration = Duration::from_millis(200);
/// Bytes that are read at once: a TLS record.
const INPUT: usize = 16 << 10;

/// Node to start: its number and its role.
pub(crate) type Start = (usize, Role);

/// Settings that all nodes have.
pub(crate) struct Settings {
    pub(crate) tally: Arc<Tally>,
    pub(crate) token: Arc<str>,
    /// Ports of the relays. A node begins at the one of its number.
    pub(crate) ports: Vec<u16>,
    tls: TlsConnector,
}

impl Settings {
    /// Creates settings with the file of the authority of the relays.
    pub(crate) fn new(tally: Arc<Tally>, token: &str, ports: Vec<u16>, ca: &Path) -> Result<Settings, Failed> {
        let tls = TlsConnector::from(Arc::new(tls::client(ca, Some(b"h2"), None)?));
        Ok(Settings { tally, token: token.into(), ports, tls })
    }
}

/// Thread of the nodes, which ends when this is dropped.
pub(crate) struct Nodes {
    start: Option<mpsc::UnboundedSender<Start>>,
    thread: Option<JoinHandle<()>>,
}

impl Nodes {
    /// Starts the thread, without nodes.
    pub(crate) fn run(settings: Settings) -> Result<Nodes, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (start, started) = mpsc::unbounded_channel();
        let thread = std::thread::spawn(move || LocalSet::new().block_on(&runtime, serve(Arc::new(settings), started)));
        Ok(Nodes { start: Some(start), thread: Some(thread) })
    }

    /// Starts a node.
    pub(crate) fn start(&self, node: Start) {
        // The thread ends after the sender.
        let _ = self.start.as_ref().map(|start| start.send(node));
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        drop(self.start.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(settings: Arc<Settings>, mut started: mpsc::UnboundedReceiver<Start>) {
    while let Some((number, role)) = started.recv().await {
        let node = Node::new(number, role, Arc::clone(&settings.token), Arc::clone(&settings.tally));
        tokio::task::spawn_local(live(node, number, role, Arc::clone(&settings)));
    }
}

/// Follows the relays until a joining node has joined.
async fn live(mut node: Node, number: usize, role: Role, settings: Arc<Settings>) {
    let mut relay = number;
    if role != Role::Joining {
        sleep(START_SPREAD * u32::try_from(number).unwrap_or(0)).await;
    }
    loop {
        let done = converse(&mut node, settings.ports[relay % settings.ports.len()], &settings).await;
        node.end();
        if done.is_ok() {
            settings.tally.joined.fetch_add(1, Ordering::Relaxed);
            return;
        }
        settings.tally.ended.fetch_add(1, Ordering::Relaxed);
        relay += 1;
        sleep(node.part_of(RECONNECT)).await;
    }
}

/// Reads from a relay. Returns when a joining node has joined.
///
/// # Errors
/// The end of the connection.
async fn converse(node: &mut Node, port: u16, settings: &Settings) -> Result<(), Failed> {
    let mut stream = connect(port, settings).await.map_err(|error| error.to_string())?;
    let (mut input, mut out) = (Vec::with_capacity(INPUT), Vec::new());
    node.start(&mut out);
    while !node.is_done() {
        if node.may_pause() {
            sleep(COUNTING_PAUSE).await;
        }
        let read = write_and_read(&mut stream, &mut out, &mut input, node).await.map_err(|error| error.to_string())?;
        if read == Some(0) {
            return Err("the relay has closed the connection".to_owned());
        }
        take(node, &mut input, &mut out)?;
        while node.may_pause() && read_now(&mut stream, &mut input).await.map_err(|error| error.to_string())? > 0 {
            take(node, &mut input, &mut out)?;
        }
        // A list takes many reads, and the changes for other nodes go first.
        yield_now().await;
    }
    Ok(())
}

fn take(node: &mut Node, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Failed> {
    let taken = node.take(input, out)?;
    input.drain(..taken);
    Ok(())
}

/// Reads what has arrived. Returns the number of bytes, or 0 if there are none.
async fn read_now(stream: &mut TlsStream<Counted>, input: &mut Vec<u8>) -> io::Result<usize> {
    tokio::select! {
        biased;
        read = stream.read_buf(input) => read,
        () = core::future::ready(()) => Ok(0),
    }
}

async fn connect(port: u16, settings: &Settings) -> io::Result<TlsStream<Counted>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let name = tls::server_name().map_err(io::Error::other)?;
    settings.tls.connect(name, Counted { stream, tally: Arc::clone(&settings.tally) }).await
}

/// Writes all output, and reads what has arrived. Returns the number of bytes that were read, 0 at the end, or nothing
/// when a request is due.
async fn write_and_read(
    stream: &mut TlsStream<Counted>,
    out: &mut Vec<u8>,
    input: &mut Vec<u8>,
    node: &mut Node,
) -> io::Result<Option<usize>> {
    if !out.is_empty() {
        stream.write_all(out).await?;
        stream.flush().await?;
        out.clear();
    }
    let Some(due) = node.due() else { return stream.read_buf(input).await.map(Some) };
    tokio::select! {
        read = stream.read_buf(input) => read.map(Some),
        () = sleep_until(due.into()) => {
            node.ask_again(due, out);
            Ok(None)
        }
    }
}

/// Stream whose received bytes are counted.
struct Counted {
    stream: TcpStream,
    tally: Arc<Tally>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        self.tally.wire.fetch_add((into.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
