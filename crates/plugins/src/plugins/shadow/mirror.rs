//! Collector for the dnstap messages of another server, whose answers are compared with ours.

use core::net::SocketAddr;
use core::pin::Pin;
use core::time::Duration;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use engine::Io;
use engine::log::{Level, Source};
use engine::streams::{ByteListener, ByteStream, Listen, StreamAddress};

use super::frames::{FrameReader, StreamFrame};
use super::message::{Mirrored, read_client_response};
use super::queue::{Entrance, MESSAGE_MAX, Sample};
use super::results::{Outcomes, Results};
use crate::shared::record_queue::{First, any, first};

/// Maximum number of connections: one per replica of the other server.
const CONNECTIONS_MAX: usize = 64;
/// Number of bytes that are read at once.
const READ_SIZE: usize = 16 << 10;
/// Delay before the listener is opened, or accepts, again after a failure.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Job that receives the messages.
pub(super) struct Mirror {
    pub(super) at: StreamAddress,
    pub(super) local: SocketAddr,
    /// Takes the first number of messages of the second.
    pub(super) sample: (usize, usize),
    pub(super) entrance: Entrance,
    pub(super) results: Arc<Results>,
    pub(super) outcomes: Outcomes,
}

impl Mirror {
    /// Runs until the generation ends.
    pub(super) async fn run(self, io: Rc<dyn Io>) {
        let io = &*io;
        let listener = self.listener(io).await;
        let mut connections: Vec<Pin<Box<_>>> = Vec::new();
        let mut accept = listener.accept();
        loop {
            let event = first(&mut any(&mut connections), &mut accept).await;
            match event {
                First::One((at, ())) => drop(connections.swap_remove(at)),
                First::Other(accepted) => {
                    match accepted {
                        Ok(stream) if connections.len() < CONNECTIONS_MAX => {
                            connections.push(Box::pin(self.serve(stream, io)));
                        }
                        Ok(_) => log(Level::Warning, &"too many dnstap connections", io),
                        Err(_) => io.sleep_until(io.now() + AGAIN_AFTER).await,
                    }
                    accept = listener.accept();
                }
            }
        }
    }

    /// Opens the listener. Retries while an earlier generation still holds the address.
    async fn listener(&self, io: &dyn Io) -> Box<dyn ByteListener> {
        let mut failures = 0;
        loop {
            match io.listen(Listen { at: &self.at, tls: None, send_buffer: None }) {
                Ok(listener) => return listener,
                Err(error) if failures == 1 => log(Level::Error, &format_args!("No dnstap listener: {error}"), io),
                Err(_) => {}
            }
            failures += 1;
            io.sleep_until(io.now() + AGAIN_AFTER).await;
        }
    }

    /// Reads a stream until it ends.
    async fn serve(&self, stream: Box<dyn ByteStream>, io: &dyn Io) {
        match self.read(stream, io).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                log(Level::Warning, &format_args!("dnstap connection closed: {error}"), io);
            }
            // The other server connects again.
            Ok(()) | Err(_) => {}
        }
    }

    async fn read(&self, mut stream: Box<dyn ByteStream>, io: &dyn Io) -> io::Result<()> {
        let (mut reader, mut buffer) = (FrameReader::default(), vec![0; READ_SIZE]);
        loop {
            let length = stream.read(&mut buffer).await?;
            if length == 0 {
                return Ok(());
            }
            reader.push(buffer.get(..length).unwrap_or_default());
            loop {
                let frame = reader.next_frame();
                match frame.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                    None => break,
                    Some(StreamFrame::Data(data)) => self.take(data, io),
                    Some(StreamFrame::Control(back)) if back.is_empty() => {}
                    Some(StreamFrame::Control(back)) => stream.write_all(&back).await?,
                    Some(StreamFrame::End(back)) => return stream.write_all(&back).await,
                }
            }
        }
    }

    /// Appends an answer of the other server to the queue, if it belongs to the sample.
    fn take(&self, frame: &[u8], io: &dyn Io) {
        let (part, whole) = self.sample;
        let Some(mirrored) = read_client_response(frame) else { return };
        if part < whole && io.random() % whole as u64 >= part as u64 {
            return;
        }
        let peer = mirrored.peer(self.local);
        let Mirrored { query, response, .. } = mirrored;
        if query.len().max(response.len()) > MESSAGE_MAX {
            self.results.count_skipped();
            return io.counters().count(self.outcomes.skipped);
        }
        let (query, response) = (query.into(), response.into());
        let sample = Sample { query, response, peer, at: io.now(), since_1970: io.since_1970() };
        if self.entrance.is_full() || !self.entrance.put(sample) {
            self.results.count_dropped();
            io.counters().count(self.outcomes.dropped);
        }
    }
}

fn log(level: Level, message: &dyn core::fmt::Display, io: &dyn Io) {
    io.log(level, Source::Plugin(super::MANIFEST.name), format_args!("{message}"));
}
