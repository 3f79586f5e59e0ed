//! Zone transfers: a query on a connection of its own, and a reply of several messages.

use engine::{Exchange, ExchangeError, OnMessage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout_at;
use transport::MonotonicClock;
use upstream::{FrameReader, append_frame};

use super::network;
use super::route::{Route, connect};

/// Bytes to read at once.
const READ_AT_ONCE: usize = 16 << 10;

/// Sends a query with the message ID `id` on a new connection, and passes each message of the reply to `on_message`,
/// until that returns false.
pub(crate) async fn transfer(exchange: Exchange<'_>, id: u16, on_message: OnMessage<'_>) -> Result<(), ExchangeError> {
    let transfer = timeout_at(MonotonicClock::tokio_instant(exchange.until), run(exchange, id, on_message));
    transfer.await.unwrap_or(Err(ExchangeError::Timeout { local: None }))
}

async fn run(exchange: Exchange<'_>, id: u16, on_message: OnMessage<'_>) -> Result<(), ExchangeError> {
    let route = Route::new(&exchange);
    let (_, mut stream) = connect(&route).await.map_err(|error| network("dial", &error))?;
    let mut frame = Vec::new();
    append_frame(&mut frame, id, exchange.query).ok_or(ExchangeError::Exhausted)?;
    let sent = async {
        stream.write_all(&frame).await?;
        stream.flush().await
    };
    sent.await.map_err(|error| network("write", &error))?;
    let (mut reader, mut buffer) = (FrameReader::default(), vec![0; READ_AT_ONCE]);
    loop {
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0).ok_or(ExchangeError::Closed)?;
        let mut bytes = &buffer[..length];
        while let Some(message) = reader.next_frame(&mut bytes) {
            if message.first_chunk() != Some(&id.to_be_bytes()) {
                return Err(ExchangeError::Unreadable);
            }
            if !on_message(message) {
                return Ok(());
            }
        }
    }
}
