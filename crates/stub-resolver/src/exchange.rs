//! Messages to one server and back, on tokio, for clients that build and check their messages on their own.
//!
//! The caller decides about repetitions and time limits.

use std::io;
use std::net::SocketAddr;
use std::num::TryFromIntError;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UdpSocket;

/// Opens a UDP socket that exchanges messages with `server` only.
///
/// Each query needs a socket of its own, so that a Service with several servers can send each to another one.
///
/// # Errors
/// Fails if the operating system refuses the socket or has no route to the server.
pub async fn connect_udp(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    Ok(socket)
}

/// Receives messages until `read` returns a response. `read` returns `Ok(None)` for a message of another query.
///
/// # Errors
/// Fails if the socket does, for example because no process listens on the port, or if `read` does.
pub async fn receive<T, E: From<io::Error>>(
    socket: &UdpSocket,
    read: impl Fn(&[u8]) -> Result<Option<T>, E>,
) -> Result<T, E> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some(response) = read(buffer.get(..length).unwrap_or_default())? {
            return Ok(response);
        }
    }
}

/// Returns a message as a TCP connection carries it: after its length (RFC 1035 §4.2.2).
///
/// # Errors
/// The message is longer than 65535 bytes.
pub fn frame(message: &[u8]) -> Result<Vec<u8>, TryFromIntError> {
    let length = u16::try_from(message.len())?;
    Ok([&length.to_be_bytes(), message].concat())
}

/// Reads the next message of a TCP connection.
///
/// # Errors
/// The connection broke or ended.
pub async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut message = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_frame_is_read_as_it_was_written() {
        for message in [&b""[..], b"query", &[7; u16::MAX as usize]] {
            let bytes = frame(message).unwrap();
            assert_eq!(bytes.len(), message.len() + 2);
            assert_eq!(read_frame(&mut &bytes[..]).await.unwrap(), message);
        }
        assert!(frame(&[0; u16::MAX as usize + 1]).is_err());
        assert!(read_frame(&mut &[0, 5, b'q'][..]).await.is_err());
    }
}
