//! What goes with a server through its life without being in its Corefile: who else has its sockets, what must be in place
//! before it serves and be gone when it no longer does.

use net::Opened;

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What still comes is its own to answer.
    Alone,
    /// Another process reads from the same sockets: what comes is left to that.
    OthersServe,
}

/// What goes with a server.
pub(crate) trait Companion {
    /// Sockets of this label that another process has given.
    fn adopted(&self, _label: &str) -> Option<Opened> {
        None
    }

    /// These sockets are about to be served: nothing can come between any more.
    fn opened(&self, _opened: &Opened) {}

    /// Those of this label are served no more.
    fn closed(&self, _label: &str) {}

    /// It serves.
    fn started(&self) {}

    /// It is told to end, and does not yet.
    fn ending(&self) -> Ending {
        Ending::Alone
    }
}

/// Nothing does.
pub(crate) struct Alone;

impl Companion for Alone {}
