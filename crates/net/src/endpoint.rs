//! Listening address as one worker serves it: its generation, its settings, and its shutdown stage.

use std::cell::{Ref, RefCell};
use std::sync::Arc;

use engine::tls::TlsServer;
use engine::{Generation, Listener, ListenerId, Listening, Scheme};
use host::invariant::holds;
use tokio::sync::watch;

use crate::connections::ConnectionTable;
use crate::responses::Responses;
use crate::shared::Shared;

/// Listening address of one worker.
pub(crate) struct Endpoint {
    label: String,
    seen: RefCell<Seen>,
    /// Counters of its responses, by status.
    pub(crate) responses: Responses,
    /// Connections to this address across all workers, if it has a limit of its own.
    pub(crate) connections: Arc<ConnectionTable>,
    /// Shutdown stage.
    stage: watch::Sender<Stage>,
}

/// Cached generation, and the listener for this address in it.
pub(crate) struct Seen {
    pub(crate) generation: Arc<Generation>,
    pub(crate) listener: ListenerId,
}

impl Seen {
    fn listener(&self) -> &Listener {
        self.generation.listener(self.listener)
    }
}

/// Shutdown stage of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Open,
    /// Streams end once they have no query in flight. Datagrams are still answered.
    Ending,
    /// The address is no longer served.
    Closed,
}

/// Receiver of the shutdown stage.
///
/// It returns stages as values. A reference into the channel is a lock: in a branch of `tokio::select!` it lives until
/// the end of the branch, and if that waits, the next [`Endpoint::reach`] on the same thread never returns.
#[derive(Clone)]
pub(crate) struct Closing(watch::Receiver<Stage>);

impl Closing {
    /// Waits until the address has reached this stage. An address that is gone is closed.
    pub(crate) async fn reaches(&mut self, stage: Stage) -> Stage {
        self.0.wait_for(|reached| *reached >= stage).await.map_or(Stage::Closed, |reached| *reached)
    }

    /// Waits until the address has passed this stage.
    pub(crate) async fn passes(&mut self, stage: Stage) -> Stage {
        self.0.wait_for(|reached| *reached > stage).await.map_or(Stage::Closed, |reached| *reached)
    }
}

impl Endpoint {
    /// Finds the listener with this label. Returns `None` if the current generation has none, which happens if another
    /// reload has already removed it.
    pub(crate) fn new(label: &str, shared: &Shared, connections: Arc<ConnectionTable>) -> Option<Endpoint> {
        let live = shared.live.load_full();
        let listener = live.find_listener(label)?;
        let responses = Responses::new(&shared.registry, label, live.listener(listener).scheme);
        holds(live.listener(listener).label == label, "an address has the listener with its label");
        Some(Endpoint {
            label: label.to_owned(),
            responses,
            seen: RefCell::new(Seen { generation: live, listener }),
            connections,
            stage: watch::Sender::new(Stage::Open),
        })
    }

    /// Returns true if the address has this label.
    pub(crate) fn is(&self, label: &str) -> bool {
        self.label == label
    }

    /// Subscribes to the shutdown stage.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.stage.subscribe())
    }

    /// Moves the address to a shutdown stage.
    pub(crate) fn reach(&self, stage: Stage) {
        let former = self.stage.send_replace(stage);
        holds(former <= stage, "an address that shuts down does not open again");
    }

    /// Returns the current generation and the index of this address in it. Callers borrow it instead of cloning the
    /// `Arc`, because otherwise all workers would write to its reference count for each batch.
    pub(crate) fn seen(&self, shared: &Shared) -> Ref<'_, Seen> {
        let live = shared.live.load();
        let is_new = !Arc::ptr_eq(&live, &self.seen.borrow().generation);
        // A task that still borrows the old generation continues with it.
        if is_new && let Ok(mut seen) = self.seen.try_borrow_mut() {
            // An address that the new generation lacks is about to be closed. The old generation answers until then.
            if let Some(listener) = live.find_listener(&self.label) {
                *seen = Seen { generation: Arc::clone(&live), listener };
            }
        }
        self.seen.borrow()
    }

    /// Returns the TLS configuration of the listener, if it has one.
    pub(crate) fn tls(&self, shared: &Shared) -> Option<Arc<dyn TlsServer>> {
        self.seen(shared).listener().tls.clone()
    }

    /// Returns the scheme of the listener.
    pub(crate) fn scheme(&self, shared: &Shared) -> Scheme {
        self.seen(shared).listener().scheme
    }

    /// Returns the listener settings from the Corefile.
    pub(crate) fn listening(&self, shared: &Shared) -> Listening {
        self.seen(shared).listener().listening.clone()
    }
}
