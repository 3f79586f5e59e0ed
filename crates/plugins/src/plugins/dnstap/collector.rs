//! Connection to one collector: handshake, data, shutdown.

use core::time::Duration;
use std::io;

use engine::streams::ByteStream;
use engine::{Io, LocalFuture};

use super::handshake::has_arrived;
use crate::shared::frame_streams::Control;
use crate::shared::record_queue::{First, first};

/// Timeout for the handshake and for sending.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the confirmation at the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size in bytes of a control frame from the collector.
const CONTROL_FRAME_MAX: usize = 1024;

/// A collector after the handshake.
pub(super) struct Collector(Box<dyn ByteStream>);

impl Collector {
    /// Performs the handshake.
    ///
    /// # Errors
    /// Fails if the collector violates the protocol or times out.
    pub(super) async fn handshake(stream: Box<dyn ByteStream>, io: &dyn Io) -> io::Result<Collector> {
        let mut collector = Collector(stream);
        let handshake = async {
            collector.0.write_all(&Control::Ready.to_bytes()).await?;
            collector.expect_frame(Control::Accept).await?;
            collector.0.write_all(&Control::Start.to_bytes()).await
        };
        within(TIMEOUT, Box::pin(handshake), io).await?;
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
    pub(super) async fn close(mut self, io: &dyn Io) {
        let closing = async {
            self.0.write_all(&Control::Stop.to_bytes()).await?;
            self.expect_frame(Control::Finish).await
        };
        // The connection ends in either case, so an error changes nothing.
        let _ = within(FINISH_TIMEOUT, Box::pin(closing), io).await;
    }

    /// Waits for one control frame.
    async fn expect_frame(&mut self, expected: Control) -> io::Result<()> {
        let (mut received, mut length) = ([0; CONTROL_FRAME_MAX], 0);
        while !has_arrived(expected, &received[..length]).map_err(io::Error::other)? {
            match self.0.read(&mut received[length..]).await? {
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
