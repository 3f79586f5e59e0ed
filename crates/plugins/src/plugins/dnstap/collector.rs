//! Connection to one collector: handshake, data, shutdown.

use core::time::Duration;
use std::io;

use engine::streams::ByteStream;
use engine::{Io, LocalFuture};

use super::frames::Control;
use crate::shared::record_queue::{First, first};

/// Timeout for the handshake and for sending.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for the confirmation at the end.
const GOODBYE: Duration = Duration::from_secs(1);
/// Maximum size in bytes of a control frame from the collector.
const SAID_MAX: usize = 1024;

/// A collector after the handshake.
pub(super) struct Collector(Box<dyn ByteStream>);

impl Collector {
    /// Performs the handshake.
    ///
    /// # Errors
    /// Fails if the collector violates the protocol or times out.
    pub(super) async fn greet(stream: Box<dyn ByteStream>, io: &dyn Io) -> io::Result<Collector> {
        let mut collector = Collector(stream);
        let greeting = async {
            collector.0.write_all(&Control::Ready.octets()).await?;
            collector.hear(Control::Accept).await?;
            collector.0.write_all(&Control::Start.octets()).await
        };
        within(TIMEOUT, Box::pin(greeting), io).await?;
        Ok(collector)
    }

    /// Sends data frames.
    ///
    /// # Errors
    /// Fails if the connection breaks or the collector does not read in time.
    pub(super) async fn send(&mut self, frames: &[u8], io: &dyn Io) -> io::Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        within(TIMEOUT, self.0.write_all(frames), io).await
    }

    /// Ends the stream and waits briefly for the confirmation.
    pub(super) async fn take_leave(mut self, io: &dyn Io) {
        let farewell = async {
            self.0.write_all(&Control::Stop.octets()).await?;
            self.hear(Control::Finish).await
        };
        // The connection ends in either case, so an error changes nothing.
        let _ = within(GOODBYE, Box::pin(farewell), io).await;
    }

    /// Waits for one control frame.
    async fn hear(&mut self, expected: Control) -> io::Result<()> {
        let (mut said, mut length) = ([0; SAID_MAX], 0);
        while !expected.is_in(&said[..length]).map_err(|what| io::Error::other(what.to_string()))? {
            match self.0.read(&mut said[length..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        Ok(())
    }
}

/// Awaits `work` with a timeout.
async fn within<T>(span: Duration, mut work: LocalFuture<'_, io::Result<T>>, io: &dyn Io) -> io::Result<T> {
    match first(&mut work, &mut io.sleep_until(io.now() + span)).await {
        First::One(outcome) => outcome,
        First::Other(()) => Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")),
    }
}
