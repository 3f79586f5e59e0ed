//! Hooks into the lifecycle of a server, for `portolan node`: sockets that are shared with another process, and setup
//! that must exist exactly while the server serves.

use net::Opened;

/// Kind of shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownKind {
    /// The server answers all queries that have arrived.
    Drain,
    /// Another process reads from the same sockets and answers the remaining queries.
    Leave,
}

/// Lifecycle hooks of a server.
pub(crate) trait LifecycleHooks {
    /// Returns the sockets of a listener that another process has handed over, by its label.
    fn adopted(&self, _label: &str) -> Option<Opened> {
        None
    }

    /// Called when nothing can fail any more before the workers serve these sockets.
    fn opened(&self, _opened: &Opened) {}

    /// Called when the sockets of a listener are no longer served.
    fn closed(&self, _label: &str) {}

    /// Called for each configuration. `true` if a crash is to end the process (directive *debug*).
    fn crashes_wanted(&self, _are_wanted: bool) {}

    /// Called once, at the start, after [`LifecycleHooks::opened`] of all sockets and before the workers serve any.
    fn serves_next(&self) {}

    /// Called when the server serves.
    fn started(&self) {}

    /// Called when the shutdown begins and again when the sockets are about to close. Returns its kind.
    fn shutdown_kind(&self) -> ShutdownKind {
        ShutdownKind::Drain
    }
}

/// Hooks without any effect.
pub(crate) struct NoHooks;

impl LifecycleHooks for NoHooks {}
