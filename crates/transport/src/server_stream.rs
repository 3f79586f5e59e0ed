//! TLS on the server's side of a byte stream.
//!
//! It keeps no buffer while the stream is idle. [`rustls::ServerConnection`] would keep 4 KiB for the next record, a
//! third of what an idle connection may take. Here, a record that has arrived whole is decrypted where it was read, and
//! only incomplete records and unsent bytes are kept.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use host::invariant::holds;
use rustls::HandshakeKind;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{Error, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read at once: several records with queries, or a part of a handshake.
const READ_AT_ONCE: usize = 4096;
/// Maximum number of bytes of incomplete records: a handshake message of 64 KiB, which a client sends if it has a long
/// chain of certificates, with the headers of its records.
const INCOMPLETE_MAX: usize = (64 << 10) + READ_AT_ONCE;
/// Content of the longest record (RFC 8446 §5.1).
const RECORD_MAX: usize = 16 << 10;
/// Most bytes that a record adds to its content, in all versions and cipher suites (RFC 5246 §6.2.3).
const RECORD_OVERHEAD: usize = 128;
/// Capacity in bytes that an empty buffer keeps.
const KEPT: usize = 128;

/// Performs handshakes.
pub struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    pub(crate) const fn new(config: Arc<ServerConfig>) -> Acceptor {
        Acceptor(config)
    }

    /// Performs the handshake with a client.
    ///
    /// # Errors
    /// The handshake fails, or the stream ends.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<ServerStream<S>> {
        let mut stream = ServerStream::new(Arc::clone(&self.0), stream)?;
        std::future::poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }
}

/// Stream that is encrypted by TLS.
pub struct ServerStream<S> {
    io: S,
    /// Boxed, because futures contain their arguments several times.
    tls: Box<UnbufferedServerConnection>,
    /// Incomplete record that has arrived.
    incoming: Vec<u8>,
    /// Decrypted bytes, and the number of those that have been read.
    plain: Vec<u8>,
    taken: usize,
    /// Records to send, and the number of bytes that have been sent.
    outgoing: Vec<u8>,
    sent: usize,
    stage: Stage,
    /// True after the close_notify.
    is_closing: bool,
}

/// What may be read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The handshake is in progress.
    Handshake,
    /// The handshake is complete.
    Open,
    /// The client has closed the stream.
    Ended,
    /// The client has broken the protocol.
    Failed,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ServerStream<S> {
    fn new(config: Arc<ServerConfig>, io: S) -> io::Result<ServerStream<S>> {
        let tls = Box::new(UnbufferedServerConnection::new(config).map_err(io::Error::other)?);
        let (incoming, plain, outgoing) = Default::default();
        Ok(ServerStream {
            io,
            tls,
            incoming,
            plain,
            taken: 0,
            outgoing,
            sent: 0,
            stage: Stage::Handshake,
            is_closing: false,
        })
    }

    /// Protocol that was negotiated inside TLS (ALPN).
    #[must_use]
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// Returns true if the client resumed an earlier session, so that no certificate was sent.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.stage == Stage::Handshake {
            ready!(self.poll_send(context))?;
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        ready!(self.poll_send(context))?;
        ready!(Pin::new(&mut self.io).poll_flush(context))?;
        let is_open = self.stage == Stage::Open;
        Poll::Ready(if is_open { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) })
    }

    /// Reads and decrypts what has arrived. Returns the number of bytes read, which is 0 at the end of the stream.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [0; READ_AT_ONCE];
        let mut read = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(context, &mut read))?;
        let read = read.filled_mut();
        let processed = if self.incoming.is_empty() {
            self.process(read).map(|used| self.incoming.extend_from_slice(&read[used..]))
        } else {
            self.incoming.extend_from_slice(read);
            self.process_incoming()
        };
        if let Err(error) = processed {
            // The alert is lost if the client does not read.
            let _ = self.poll_send(context);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        if self.incoming.len() > INCOMPLETE_MAX {
            self.stage = Stage::Failed;
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(read.len()))
    }

    /// Processes the complete records in `incoming`, and removes them.
    fn process_incoming(&mut self) -> Result<(), Error> {
        let mut incoming = std::mem::take(&mut self.incoming);
        let used = self.process(&mut incoming)?;
        incoming.drain(..used);
        shrink(&mut incoming);
        self.incoming = incoming;
        Ok(())
    }

    /// Processes the complete records at the start of `records`. Returns their length. rustls remembers where parts of
    /// messages are in the rest, so the next call must begin with it. After an error, there must be no other call.
    fn process(&mut self, records: &mut [u8]) -> Result<usize, Error> {
        holds(self.stage != Stage::Failed, "after an error, nothing more is processed");
        let mut used = 0;
        loop {
            let (discard, next) = self.process_once(&mut records[used..]);
            used += discard;
            holds(used <= records.len(), "only records that have arrived are removed");
            match next {
                Ok(true) => {}
                Ok(false) => return Ok(used),
                Err(error) => {
                    self.stage = Stage::Failed;
                    // The alert that tells the client what is wrong. In TLS 1.3, records of the handshake may precede
                    // it, which the client needs to decrypt it. Without any left, rustls would fail once more.
                    while self.tls.wants_write()
                        && let Ok(ConnectionState::EncodeTlsData(mut data)) =
                            self.tls.process_tls_records(&mut records[used..]).state
                    {
                        let _ = write_handshake(&mut self.outgoing, |space| data.encode(space));
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Makes one step. Returns the number of bytes that are no longer needed, and true if there is more to do.
    fn process_once(&mut self, records: &mut [u8]) -> (usize, Result<bool, Error>) {
        let UnbufferedStatus { mut discard, state } = self.tls.process_tls_records(records);
        let next = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(Ok(record)) = traffic.next_record() {
                    self.plain.extend_from_slice(record.payload);
                    discard += record.discard;
                }
                Ok(true)
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                write_handshake(&mut self.outgoing, |space| data.encode(space)).map(|()| true)
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(true)
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                self.stage = Stage::Ended;
                Ok(false)
            }
            Ok(ConnectionState::WriteTraffic(_)) => {
                if self.stage == Stage::Handshake {
                    self.stage = Stage::Open;
                }
                Ok(false)
            }
            // Early data is off. Other states need more bytes.
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        (discard, next)
    }

    /// Appends a record with a content of this length to the outgoing ones.
    fn append(
        &mut self,
        length: usize,
        encrypt: impl FnOnce(&mut Traffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<()> {
        holds(length <= RECORD_MAX, "a record has a bounded content");
        if matches!(self.stage, Stage::Handshake | Stage::Failed) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // Messages of TLS itself come first.
        self.process_incoming().map_err(io::Error::other)?;
        let start = self.outgoing.len();
        holds(self.sent <= start, "no more is sent than was encrypted");
        self.outgoing.resize(start + length + RECORD_OVERHEAD, 0);
        let written = match self.tls.process_tls_records(&mut self.incoming).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                encrypt(&mut traffic, &mut self.outgoing[start..]).map_err(io::Error::other)
            }
            Ok(_) => Err(io::ErrorKind::NotConnected.into()),
            Err(error) => Err(io::Error::other(error)),
        };
        self.outgoing.truncate(start + written.as_ref().copied().unwrap_or(0));
        written.map(|_| ())
    }

    /// Sends what is encrypted.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.outgoing.len() {
            let sent = ready!(Pin::new(&mut self.io).poll_write(context, &self.outgoing[self.sent..]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
            holds(self.sent <= self.outgoing.len(), "no more is sent than was encrypted");
        }
        self.sent = 0;
        self.outgoing.clear();
        shrink(&mut self.outgoing);
        Poll::Ready(Ok(()))
    }
}

/// Encrypts a close_notify. A method as an argument would have a single lifetime.
fn close_notify(traffic: &mut Traffic<'_>, space: &mut [u8]) -> Result<usize, EncryptError> {
    traffic.queue_close_notify(space)
}

/// Frees an empty buffer, unless it is small.
fn shrink(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEPT {
        *buffer = Vec::new();
    }
}

/// Appends a message of the handshake to `outgoing`.
fn write_handshake(
    outgoing: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let start = outgoing.len();
    let general = |error: EncodeError| Error::General(error.to_string());
    match encode(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => outgoing.resize(start + needed.required_size, 0),
        other => return other.map(|_| ()).map_err(general),
    }
    encode(&mut outgoing[start..]).map(|_| ()).map_err(general)
}

/// Encryption of a connection whose handshake is complete.
type Traffic<'c> = WriteTraffic<'c, ServerConnectionData>;

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ServerStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.taken == this.plain.len() && this.stage == Stage::Open {
            if ready!(this.poll_receive(context))? == 0 {
                // Without a close_notify, someone else may have cut the stream (RFC 8446 §6.1).
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            // The answer to a key update leaves with the next bytes at the latest.
            let _ = this.poll_send(context)?;
        }
        let rest = &this.plain[this.taken..];
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        this.taken += length;
        holds(this.taken <= this.plain.len(), "no more is read than was decrypted");
        if this.taken == this.plain.len() {
            this.taken = 0;
            this.plain.clear();
            shrink(&mut this.plain);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ServerStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // At most one record waits, so that a client that does not read holds little memory.
        ready!(this.poll_send(context))?;
        let bytes = &bytes[..bytes.len().min(RECORD_MAX)];
        this.append(bytes.len(), |traffic, space| traffic.encrypt(bytes, space))?;
        let _ = this.poll_send(context)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut used = slices.iter().filter(|slice| !slice.is_empty());
        match (used.next(), used.next()) {
            (None, _) => Poll::Ready(Ok(0)),
            (Some(only), None) => self.poll_write(context, only),
            // One record for all: a header and a body would otherwise leave as two packets.
            (Some(_), Some(_)) => self.poll_write(context, &one_record(slices)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_closing {
            this.is_closing = true;
            // A handshake that is not complete, or has failed, ends without a close_notify.
            let _ = this.append(0, close_notify);
        }
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.io).poll_shutdown(context)
    }
}

/// Copies the slices one after the other, up to the length of a record.
fn one_record(slices: &[io::IoSlice<'_>]) -> Vec<u8> {
    let length = slices.iter().map(|slice| slice.len()).sum::<usize>().min(RECORD_MAX);
    let mut bytes = Vec::with_capacity(length);
    for slice in slices {
        let room = length - bytes.len();
        bytes.extend_from_slice(&slice[..slice.len().min(room)]);
    }
    bytes
}

#[cfg(test)]
#[path = "server_stream_tests.rs"]
mod tests;
