//! Resident memory of idle connections. `crates/portolan/tests/idle_connections.rs` checks the limits in each build.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use super::client::Order;
use super::site::Site;
use super::turn::{self, Turn};
use xtask::Failed;

/// Connections to each listener. CoreDNS allows 200 over QUIC.
const CONNECTIONS: usize = 150;
/// Connections to each listener that allocate what all share, before the measurement.
const FIRST: usize = 5;
/// Time in which allocators return free memory to the system.
const SETTLING: Duration = Duration::from_secs(4);

/// Measures the growth of the resident memory for each idle connection, in KiB.
pub(crate) fn measure(site: &Site, order: &Order) -> Result<Turn, Failed> {
    let hold = |connections| Held::start(&Order { connections, ..order.clone() });
    drop(hold(FIRST)?);
    sleep(SETTLING);
    let before = site.server.memory().0;
    let held = hold(CONNECTIONS)?;
    sleep(SETTLING);
    let after = site.server.memory().0;
    held.check()?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let each = after.saturating_sub(before) as f64 / (CONNECTIONS * order.ports.len()) as f64;
    Ok(Turn { figure: each / 1024.0, load: None })
}

/// Clients that keep connections open until dropped.
struct Held(Child);

impl Held {
    /// Starts the clients, and waits until each connection has its answer.
    fn start(order: &Order) -> Result<Held, Failed> {
        let mut child = turn::start_clients(order)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let held = Held(child);
        if line.is_empty() { Err(held.failure()) } else { Ok(held) }
    }

    /// Ends the clients.
    ///
    /// # Errors
    /// The reason why a connection ended before.
    fn check(mut self) -> Result<(), Failed> {
        drop(self.0.stdin.take());
        let status = self.0.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(self.failure()) }
    }

    fn failure(mut self) -> Failed {
        drop(self.0.stdin.take());
        let mut line = String::new();
        if let Some(errors) = self.0.stderr.take() {
            let _ = BufReader::new(errors).read_line(&mut line);
        }
        line.trim().to_owned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
