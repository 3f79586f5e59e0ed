//! Links to the upstream: relays for UDP and TCP that lose, delay, reorder and cut.
//!
//! They are used in place of netem, which many kernels lack, and of network interfaces that are set down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

use crate::random::Random;
use xtask::Failed;
use xtask::server::free_port;

/// Time after which a relayed query is forgotten.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Percentage of the datagrams that are lost, in each direction.
const LOSS: usize = 33;
/// Maximum delay in milliseconds, in each direction.
const DELAY: usize = 400;

/// Fault of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkFault {
    None,
    Cut,
    Lossy,
    Slow,
}

/// Link to the upstream.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) port: u16,
    fault: watch::Sender<LinkFault>,
}

impl Link {
    /// Starts a link to a server of this host, in a thread of its own.
    pub(crate) fn start(server: u16) -> Result<Link, Failed> {
        let port = free_port()?;
        let (fault, state) = watch::channel(LinkFault::None);
        let [own, server] = [port, server].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let bind = async { Ok::<_, std::io::Error>((UdpSocket::bind(own).await?, TcpListener::bind(own).await?)) };
        let (datagrams, streams) = runtime.block_on(bind).map_err(|error| format!("a link: {error}"))?;
        thread::spawn(move || {
            runtime.block_on(async {
                let datagrams = relay_datagrams(Arc::new(datagrams), server, state.clone());
                tokio::join!(datagrams, relay_streams(streams, server, state))
            })
        });
        Ok(Link { port, fault })
    }

    /// Sets the fault.
    pub(crate) fn set(&self, fault: LinkFault) {
        self.fault.send_replace(fault);
    }
}

async fn relay_datagrams(own: Arc<UdpSocket>, server: SocketAddr, state: watch::Receiver<LinkFault>) {
    let random = Arc::new(Mutex::new(Random::new(u64::from(server.port()))));
    let mut buffer = [0; 65_535];
    loop {
        let Ok((length, client)) = own.recv_from(&mut buffer).await else { continue };
        let (own, state, random, query) =
            (Arc::clone(&own), state.clone(), Arc::clone(&random), buffer[..length].to_vec());
        tokio::spawn(async move {
            let Ok(socket) = UdpSocket::bind("127.0.0.1:0").await else { return };
            if socket.connect(server).await.is_err() || !pass(&state, &random).await {
                return;
            }
            let mut reply = [0; 65_535];
            let _ = socket.send(&query).await;
            if let Ok(Ok(length)) = timeout(REPLY_TIMEOUT, socket.recv(&mut reply)).await
                && pass(&state, &random).await
            {
                let _ = own.send_to(&reply[..length], client).await;
            }
        });
    }
}

/// Waits for the delay of a datagram. Returns false if it is lost.
async fn pass(state: &watch::Receiver<LinkFault>, random: &Mutex<Random>) -> bool {
    let fault = *state.borrow();
    match fault {
        LinkFault::None => true,
        LinkFault::Cut => false,
        LinkFault::Lossy => !random.lock().await.percent(LOSS),
        LinkFault::Slow => {
            let delay = random.lock().await.below(DELAY);
            sleep(Duration::from_millis(u64::try_from(delay).unwrap_or_default())).await;
            true
        }
    }
}

async fn relay_streams(own: TcpListener, server: SocketAddr, state: watch::Receiver<LinkFault>) {
    loop {
        let Ok((mut client, _)) = own.accept().await else { continue };
        let mut state = state.clone();
        tokio::spawn(async move {
            if *state.borrow_and_update() == LinkFault::Cut {
                return;
            }
            let Ok(mut server) = TcpStream::connect(server).await else { return };
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                _ = state.wait_for(|fault| *fault == LinkFault::Cut) => {}
            }
        });
    }
}
