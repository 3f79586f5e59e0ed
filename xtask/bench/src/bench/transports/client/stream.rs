//! Conversations over byte streams: TCP and TLS, with the version of the protocol on top as a [`Protocol`].

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::super::tls;
use super::dns::Dns;
use super::http1::Http1;
use super::http2::Http2;
use super::order::Transport;
use super::protocol::{Plan, Protocol};
use super::tally::Tally;
use xtask::Failed;

/// Bytes that are read at once.
const INPUT: usize = 64 << 10;

/// Converses with a server over a connection of its own.
pub(crate) async fn connect_and_converse(
    port: u16,
    transport: Transport,
    tls: rustls::ClientConfig,
    plan: Plan,
    tally: &Tally,
) -> Result<(), Failed> {
    if transport == Transport::Tcp {
        let mut stream = connect(port).await?;
        return converse(&mut stream, &mut Dns::new(), plan, tally).await;
    }
    let mut stream = shake_hands(port, &TlsConnector::from(std::sync::Arc::new(tls))).await?;
    match transport {
        Transport::Http1 => converse(&mut stream, &mut Http1::new(), plan, tally).await,
        Transport::Http2 => converse(&mut stream, &mut Http2::new(), plan, tally).await,
        _ => converse(&mut stream, &mut Dns::new(), plan, tally).await,
    }
}

/// Opens a TCP connection.
async fn connect(port: u16) -> Result<TcpStream, Failed> {
    let connect = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connect.await.map_err(|error: std::io::Error| format!("cannot connect: {error}"))
}

/// Opens a TCP connection with TLS.
pub(crate) async fn shake_hands(port: u16, tls: &TlsConnector) -> Result<TlsStream<TcpStream>, Failed> {
    let stream = connect(port).await?;
    tls.connect(tls::server_name()?, stream).await.map_err(|error| format!("TLS handshake: {error}"))
}

/// Asks queries over a stream according to the plan.
pub(crate) async fn converse(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    protocol: &mut impl Protocol,
    plan: Plan,
    tally: &Tally,
) -> Result<(), Failed> {
    let (mut input, mut out) = (Vec::with_capacity(INPUT), Vec::new());
    let (mut asked, mut in_flight) = (0, 0);
    protocol.start(&mut out);
    loop {
        while in_flight < plan.in_flight && asked < plan.queries && protocol.ask(&mut out) {
            (asked, in_flight) = (asked + 1, in_flight + 1);
        }
        if asked == plan.queries && in_flight == 0 && !plan.stays {
            return Ok(());
        }
        let read = write_and_read(stream, &mut out, &mut input).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return Err(format!("the server closed the connection after {asked} queries"));
        }
        let taken = protocol.take(&input, &mut out, tally)?;
        input.drain(..taken.bytes);
        in_flight -= taken.answers;
    }
}

/// Writes all output, and reads what has arrived. Returns the number of bytes that were read, or 0 at the end.
async fn write_and_read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    out: &mut Vec<u8>,
    input: &mut Vec<u8>,
) -> std::io::Result<usize> {
    stream.write_all(out).await?;
    stream.flush().await?;
    out.clear();
    stream.read_buf(input).await
}
