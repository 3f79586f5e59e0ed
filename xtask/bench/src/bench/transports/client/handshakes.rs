//! TLS handshakes over TCP: full ones as fast as possible, and resumed ones one after the other.

use std::rc::Rc;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::client::Resumption;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::super::super::tls;
use super::dns::Dns;
use super::measure;
use super::order::Order;
use super::protocol::Plan;
use super::stream;
use super::tally::Tally;
use xtask::Failed;

/// Opens connections with full handshakes, several at the same time, asks one query over each and closes it.
pub(crate) async fn full(order: &Order) -> Result<Value, Failed> {
    let mut config = tls::client(&order.ca, None, order.group.as_deref())?;
    config.resumption = Resumption::disabled();
    let (tls, tally) = (TlsConnector::from(Arc::new(config)), Rc::new(Tally::default()));
    for _ in 0..order.connections {
        let (tls, tally, port) = (tls.clone(), Rc::clone(&tally), order.ports[0]);
        tokio::task::spawn_local(async move {
            loop {
                let ended = visit(port, &tls, &tally).await.and_then(|kind| match kind {
                    Some(HandshakeKind::Full) => Ok(()),
                    other => Err(format!("the handshake is {other:?}, not full")),
                });
                let has_failed = ended.is_err();
                tally.note(ended);
                if has_failed {
                    return;
                }
            }
        });
    }
    measure(order, &tally).await
}

/// Opens connections one after the other, with the tickets of those before, and counts the resumed sessions.
pub(crate) async fn resumed(order: &Order) -> Result<Value, Failed> {
    let tls = TlsConnector::from(Arc::new(tls::client(&order.ca, None, None)?));
    let (tally, mut resumed) = (Tally::default(), 0);
    // There is no ticket for the first.
    visit(order.ports[0], &tls, &tally).await?;
    for _ in 0..order.connections {
        let kind = visit(order.ports[0], &tls, &tally).await?;
        resumed += u32::from(kind == Some(HandshakeKind::Resumed));
    }
    Ok(json!({"resumed": resumed, "answers": tally.answers()}))
}

/// Connects, asks one query and closes the connection. Returns the kind of the handshake.
async fn visit(port: u16, tls: &TlsConnector, tally: &Tally) -> Result<Option<HandshakeKind>, Failed> {
    let mut stream = stream::shake_hands(port, tls).await?;
    let kind = stream.get_ref().1.handshake_kind();
    stream::converse(&mut stream, &mut Dns::new(), Plan { in_flight: 1, queries: 1, stays: false }, tally).await?;
    stream.shutdown().await.map_err(|error| format!("cannot close: {error}"))?;
    // The server closes too. How it does so is of no interest here.
    let _ = stream.read(&mut [0]).await;
    Ok(kind)
}
