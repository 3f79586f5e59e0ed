//! Streams of octets to programs that are no name servers: what collects messages, spans, statistics.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::tls::{TlsClient, TlsServer};
use crate::{LocalFuture, Moment};

/// Where a stream leads to, or is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A socket in the file system.
    Unix(PathBuf),
    /// `HOST:PORT`.
    Tcp(String),
}

/// A stream that is to be opened.
#[derive(Clone, Copy)]
pub struct Dial<'a> {
    /// Where it leads to.
    pub to: &'a Place,
    /// Within TLS.
    pub tls: Option<&'a TlsClient>,
    /// Octets that the system keeps for it until they can be sent; `None` for what it thinks right.
    pub send_buffer: Option<usize>,
    /// When to give up.
    pub until: Moment,
}

/// Where streams are waited for.
#[derive(Clone, Copy)]
pub struct Listen<'a> {
    /// Where. A socket in the file system that nobody listens on any more is replaced.
    pub at: &'a Place,
    /// Within TLS.
    pub tls: Option<&'a Arc<dyn TlsServer>>,
    /// As [`Dial::send_buffer`].
    pub send_buffer: Option<usize>,
}

/// A stream of octets, both ways; it is closed when it is dropped.
pub trait OctetStream {
    /// Reads what there is, as far as it fits; 0 octets at the end.
    fn read<'a>(&'a mut self, buffer: &'a mut [u8]) -> LocalFuture<'a, io::Result<usize>>;

    /// Writes all octets.
    fn write_all<'a>(&'a mut self, octets: &'a [u8]) -> LocalFuture<'a, io::Result<()>>;
}

/// A place where streams arrive; it is closed when it is dropped.
pub trait OctetListener {
    /// The next one.
    fn accept(&self) -> LocalFuture<'_, io::Result<Box<dyn OctetStream>>>;
}
