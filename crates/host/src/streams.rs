//! Byte streams to servers that are not DNS servers, for example a dnstap or trace collector.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::LocalFuture;
use crate::time::Instant;
use crate::tls::{TlsClient, TlsServer};

/// Address of a byte stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAddress {
    /// Path of a Unix domain socket.
    Unix(PathBuf),
    /// `HOST:PORT`.
    Tcp(String),
}

/// Parameters of an outgoing stream.
#[derive(Clone, Copy)]
pub struct Dial<'a> {
    /// Address to connect to.
    pub to: &'a StreamAddress,
    /// TLS configuration; `None` for plain text.
    pub tls: Option<&'a TlsClient>,
    /// Size in bytes of the send buffer; `None` for the default of the system.
    pub send_buffer: Option<usize>,
    /// Deadline.
    pub until: Instant,
}

/// Parameters of a listener.
#[derive(Clone, Copy)]
pub struct Listen<'a> {
    /// Address to listen on. A stale Unix domain socket is replaced.
    pub at: &'a StreamAddress,
    /// TLS configuration; `None` for plain text.
    pub tls: Option<&'a Arc<dyn TlsServer>>,
    /// Size in bytes of the send buffer of accepted streams; see [`Dial::send_buffer`].
    pub send_buffer: Option<usize>,
}

/// Bidirectional byte stream, closed on drop.
pub trait ByteStream {
    /// Reads available bytes into `buffer` and returns their number; 0 at the end of the stream.
    fn read<'a>(&'a mut self, buffer: &'a mut [u8]) -> LocalFuture<'a, io::Result<usize>>;

    /// Writes all bytes.
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> LocalFuture<'a, io::Result<()>>;
}

/// Listener for byte streams, closed on drop.
pub trait ByteListener {
    /// Accepts the next stream.
    fn accept(&self) -> LocalFuture<'_, io::Result<Box<dyn ByteStream>>>;
}
