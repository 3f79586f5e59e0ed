//! What the control thread keeps, and who may ask for it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use net::Taps;
use tokio::sync::mpsc::Sender;

use super::ControlCommand;
use super::history::History;
use super::view::View;
use super::watch::Watch;

/// State that all connections share. It stays on the control thread.
pub(super) struct Context {
    pub(super) view: Arc<View>,
    pub(super) history: Rc<RefCell<History>>,
    pub(super) commands: Sender<ControlCommand>,
    pub(super) watch: Rc<Watch>,
}

impl Context {
    pub(super) fn new(view: Arc<View>, taps: Taps, commands: Sender<ControlCommand>) -> Context {
        Context { view, history: Rc::default(), commands, watch: Rc::new(Watch::new(taps)) }
    }
}

/// Kind of listener, which decides about access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Unix socket: the user of the peer was checked when it connected.
    Full {
        /// User ID of the peer.
        user: u32,
    },
    /// TCP: reads only, and the headers of each request are checked.
    ReadOnly,
    /// TCP with TLS: reads only. The client has shown a certificate.
    ReadOnlyTls,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Full { user } => write!(f, "user {user}"),
            Access::ReadOnly | Access::ReadOnlyTls => f.write_str("a client over TCP"),
        }
    }
}
