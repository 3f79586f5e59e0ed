//! Inspection of a running server: the control socket, a window into the process, as HTTP/1.1 and JSON.
//!
//! The crate `control` has the endpoints and their types. This crate serves them, and `cli` has the commands that use
//! them:
//!
//! ```text
//!   portolan status ── commands, client ──► Unix socket ── listen, peer ──► connection ──► endpoints ──► View
//! ```
//!
//! One thread of its own serves all connections, so that neither a slow reader nor an expensive request delays a DNS
//! worker, the watches of the cluster or a reload. Endpoints read counters, tables that have lock-free readers, and the
//! [`View`] that the main thread publishes. A request that changes the configuration goes to the main thread as a
//! [`ControlCommand`].

#![allow(clippy::disallowed_methods, reason = "this crate is at the edge: it opens sockets and asks the time")]

mod answer;
mod connection;
mod context;
mod dns_service;
mod drops;
mod endpoints;
pub mod explain;
mod history;
mod limits;
mod listen;
mod peer;
mod refusal;
pub mod replica;
mod secrets;
mod view;
mod watch;

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::ControlAddress;
use host::boxed;
use net::Taps;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

pub use secrets::without_secrets;
pub use view::{EarlierExits, FollowedFiles, Loaded, View, Warning};

use context::Context;
use listen::Listeners;

/// Maximum number of commands that wait for the main thread. Each connection has at most one.
const COMMANDS_MAX: usize = 16;

/// Command to the main thread.
pub enum ControlCommand {
    /// Reload the Corefile, and report the error if it fails.
    Reload(oneshot::Sender<Option<String>>),
}

/// Handle of the control thread.
pub struct Control {
    view: Arc<View>,
    addresses: UnboundedSender<Vec<ControlAddress>>,
}

impl Control {
    /// Starts the thread. It listens once [`Control::listen`] names addresses.
    ///
    /// # Errors
    /// The system refuses a thread or a runtime.
    pub fn start(view: View, taps: Taps) -> io::Result<(Control, Receiver<ControlCommand>)> {
        let (addresses, changes) = unbounded_channel();
        let (commands, received) = channel(COMMANDS_MAX);
        let view = Arc::new(view);
        let own = Arc::clone(&view);
        let runtime = net::ThreadRuntime::new()?;
        let serve = move || runtime.block_on(&LocalSet::new(), run(own, taps, commands, changes));
        std::thread::Builder::new().name("control".to_owned()).spawn(serve)?;
        Ok((Control { view, addresses }, received))
    }

    /// Listens on exactly these addresses. An address that cannot be bound is tried again.
    pub fn listen(&self, addresses: Vec<ControlAddress>) {
        let _ = self.addresses.send(addresses);
    }

    /// Returns what the endpoints read.
    pub fn view(&self) -> &View {
        &self.view
    }
}

/// Serves until the handle is dropped.
async fn run(
    view: Arc<View>,
    taps: Taps,
    commands: Sender<ControlCommand>,
    mut changes: UnboundedReceiver<Vec<ControlAddress>>,
) {
    let context = Rc::new(Context::new(view, taps, commands));
    tokio::task::spawn_local(boxed(history::keep(Rc::clone(&context.history), Arc::clone(&context.view.registry))));
    tokio::task::spawn_local(boxed(watch::run(Rc::clone(&context.watch), Arc::clone(&context.view))));
    let mut listeners = Listeners::new(&context);
    while let Some(addresses) = changes.recv().await {
        context.watch.switch(!addresses.is_empty());
        listeners.serve(&addresses);
    }
}
