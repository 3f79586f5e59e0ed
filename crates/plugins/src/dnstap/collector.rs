//! One collector that is connected: the greeting, data, the farewell.

use core::time::Duration;
use std::io;

use engine::octets::OctetStream;
use engine::{LocalFuture, Outside};

use super::frames::Control;
use crate::outlet::{First, first};

/// How long a collector may take to answer when it is connected to, and to take what is sent.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to say that it has all.
const GOODBYE: Duration = Duration::from_secs(1);
/// Octets that a collector may say at a time.
const SAID_MAX: usize = 1024;

/// A collector that waits for data.
pub(super) struct Collector(Box<dyn OctetStream>);

impl Collector {
    /// Greets whoever is at the other end.
    ///
    /// # Errors
    /// If it does not speak as it should, or not in time.
    pub(super) async fn greet(stream: Box<dyn OctetStream>, outside: &dyn Outside) -> io::Result<Collector> {
        let mut collector = Collector(stream);
        let greeting = async {
            collector.0.write_all(&Control::Ready.octets()).await?;
            collector.hear(Control::Accept).await?;
            collector.0.write_all(&Control::Start.octets()).await
        };
        within(PATIENCE, Box::pin(greeting), outside).await?;
        Ok(collector)
    }

    /// Sends data frames.
    ///
    /// # Errors
    /// If they are not taken, or not in time.
    pub(super) async fn send(&mut self, frames: &[u8], outside: &dyn Outside) -> io::Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        within(PATIENCE, self.0.write_all(frames), outside).await
    }

    /// Says that this was all, and waits a moment to hear that it came.
    pub(super) async fn take_leave(mut self, outside: &dyn Outside) {
        let farewell = async {
            self.0.write_all(&Control::Stop.octets()).await?;
            self.hear(Control::Finish).await
        };
        // Nobody is left to be told of a collector that does not answer.
        let _ = within(GOODBYE, Box::pin(farewell), outside).await;
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

/// The outcome of `work`, if it comes in time.
async fn within<T>(span: Duration, mut work: LocalFuture<'_, io::Result<T>>, outside: &dyn Outside) -> io::Result<T> {
    match first(&mut work, &mut outside.sleep_until(outside.now() + span)).await {
        First::One(outcome) => outcome,
        First::Other(()) => Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")),
    }
}
