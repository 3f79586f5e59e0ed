//! Byte streams to programs other than DNS servers, on tokio.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::LocalFuture;
use host::streams::{ByteListener, ByteStream, Dial, Listen, StreamAddress};
use host::tls::TlsServer;
use socket2::SockRef;
use stub_resolver::{resolve, resolve_async};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{timeout, timeout_at};

use crate::clock::MonotonicClock;
use crate::spare::{Freed, Spare};
use crate::tls::{Client, accept_tls};

/// Time for a peer to complete the TLS handshake. Other connections wait meanwhile.
const GREETING: Duration = Duration::from_secs(5);
/// Spare descriptors of a listener.
const SPARE: usize = 1;

/// Opens a stream.
///
/// # Errors
/// Fails if the peer cannot be reached in time, or if the TLS handshake fails.
pub async fn connect(dial: Dial<'_>) -> io::Result<Box<dyn ByteStream>> {
    let opened = timeout_at(MonotonicClock::tokio_instant(dial.until), open(dial)).await;
    opened.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")))
}

async fn open(dial: Dial<'_>) -> io::Result<Box<dyn ByteStream>> {
    let address = match dial.to {
        StreamAddress::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            make_room(&SockRef::from(&stream), dial.send_buffer);
            return Ok(Box::new(Stream(stream)));
        }
        StreamAddress::Tcp(address) => address,
    };
    // As everywhere in a Corefile, an address without a host means localhost.
    let local = address.strip_prefix(':').map(|port| format!("localhost:{port}"));
    let stream = TcpStream::connect(&*resolve_async(local.as_deref().unwrap_or(address)).await?).await?;
    make_room(&SockRef::from(&stream), dial.send_buffer);
    let Some(tls) = dial.tls else { return Ok(Box::new(Stream(stream))) };
    let peer = stream.peer_addr()?.ip();
    Ok(Box::new(Stream(Client::of(tls)?.connect(stream, peer).await?)))
}

/// Sets the send buffer. A system that grants less is no reason to fail.
fn make_room(socket: &SockRef<'_>, bytes: Option<usize>) {
    if let Some(bytes) = bytes {
        let _ = socket.set_send_buffer_size(bytes);
    }
}

/// Bidirectional stream of tokio. Boxed, streams of all kinds have one type.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// Adapter for tokio streams.
struct Stream<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for Stream<S> {
    fn read<'a>(&'a mut self, buffer: &'a mut [u8]) -> LocalFuture<'a, io::Result<usize>> {
        Box::pin(self.0.read(buffer))
    }

    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.0.write_all(bytes).await?;
            self.0.flush().await
        })
    }
}

/// Opens a listening socket.
///
/// # Errors
/// Fails if the address cannot be bound.
pub fn listen(listen: Listen<'_>) -> io::Result<Box<dyn ByteListener>> {
    let socket = match listen.at {
        StreamAddress::Unix(path) => Socket::Unix(UnixListener::bind(unused(path)?)?, path.clone()),
        StreamAddress::Tcp(address) => {
            let everywhere = address.strip_prefix(':').map(|port| format!("[::]:{port}"));
            let socket = std::net::TcpListener::bind(&*resolve(everywhere.as_deref().unwrap_or(address))?)?;
            socket.set_nonblocking(true)?;
            Socket::Tcp(TcpListener::from_std(socket)?)
        }
    };
    Ok(Box::new(Listener {
        socket,
        spare: Spare::empty(SPARE),
        tls: listen.tls.cloned(),
        send_buffer: listen.send_buffer,
    }))
}

/// Removes a stale Unix socket that no process listens on, so that the path can be bound again.
fn unused(path: &Path) -> io::Result<&Path> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(path)
}

struct Listener {
    socket: Socket,
    spare: Spare,
    tls: Option<Arc<dyn TlsServer>>,
    send_buffer: Option<usize>,
}

enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Accepts a connection. Tries again if that fails, most likely for lack of descriptors. An owner that tried again
    /// at once would keep its thread busy.
    async fn accepted<T>(&self, listener: &impl AsFd, accept: impl AsyncFn() -> io::Result<T>) -> T {
        self.spare.refill();
        loop {
            if let Ok(accepted) = accept().await {
                return accepted;
            }
            if self.spare.free_one_now(listener) != Freed::One {
                self.spare.pause().await;
            }
        }
    }
}

impl ByteListener for Listener {
    fn accept(&self) -> LocalFuture<'_, io::Result<Box<dyn ByteStream>>> {
        Box::pin(async {
            let (stream, _): (_, SocketAddr) = match &self.socket {
                Socket::Tcp(listener) => self.accepted(listener, || listener.accept()).await,
                Socket::Unix(listener, _) => {
                    let (stream, _) = self.accepted(listener, || listener.accept()).await;
                    make_room(&SockRef::from(&stream), self.send_buffer);
                    return Ok(Box::new(Stream(stream)) as Box<dyn ByteStream>);
                }
            };
            make_room(&SockRef::from(&stream), self.send_buffer);
            let Some(tls) = &self.tls else { return Ok(Box::new(Stream(stream)) as Box<dyn ByteStream>) };
            let greeted = timeout(GREETING, accept_tls(&**tls, stream)).await;
            let greeted = greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
            Ok(Box::new(Stream(greeted)) as Box<dyn ByteStream>)
        })
    }
}
