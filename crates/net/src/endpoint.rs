//! An address as one worker serves it: which generation answers there and how, and how far the address is from its end.

use std::cell::{Ref, RefCell};
use std::sync::Arc;

use engine::setup::Listening;
use engine::tls::TlsServer;
use engine::{Generation, Listener, Scheme};
use tokio::sync::watch;

use crate::connections::ConnectionTable;
use crate::shared::Shared;

/// An address as this worker serves it.
pub(crate) struct Endpoint {
    label: String,
    seen: RefCell<Seen>,
    /// Connections to it that have a bound of their own, at all workers.
    pub(crate) connections: Arc<ConnectionTable>,
    /// How far it is from its end.
    stage: watch::Sender<Stage>,
}

/// The generation that was seen last, and the index of this address in it.
pub(crate) struct Seen {
    pub(crate) generation: Arc<Generation>,
    pub(crate) listener: usize,
}

impl Seen {
    fn listener(&self) -> Option<&Listener> {
        self.generation.listeners.get(self.listener)
    }
}

/// How far an address is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Open,
    /// Streams end when nothing is on its way; datagrams are answered.
    Ending,
    /// It is served no more.
    Closed,
}

/// Tells the stage of an address.
pub(crate) type Closing = watch::Receiver<Stage>;

impl Endpoint {
    /// The address of this label; `None` if the generation that serves has it no more, since another reload came at once.
    pub(crate) fn new(label: &str, shared: &Shared, connections: Arc<ConnectionTable>) -> Option<Endpoint> {
        let live = shared.live.load_full();
        let listener = live.listeners.iter().position(|listener| listener.label == label)?;
        Some(Endpoint {
            label: label.to_owned(),
            seen: RefCell::new(Seen { generation: live, listener }),
            connections,
            stage: watch::Sender::new(Stage::Open),
        })
    }

    /// Whether this is its label.
    pub(crate) fn is(&self, label: &str) -> bool {
        self.label == label
    }

    /// Tells how far the address is from its end.
    pub(crate) fn closing(&self) -> Closing {
        self.stage.subscribe()
    }

    /// It is as far as that now.
    pub(crate) fn reach(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// The generation that serves now, and the index of this address in it. It is borrowed and not cloned: all workers
    /// would write to the one counter of its clones for each batch.
    pub(crate) fn seen(&self, shared: &Shared) -> Ref<'_, Seen> {
        let live = shared.live.load();
        let is_new = !Arc::ptr_eq(&live, &self.seen.borrow().generation);
        // Who borrows it at the moment goes on with what it has seen.
        if is_new && let Ok(mut seen) = self.seen.try_borrow_mut() {
            // An address that the new generation does not have is about to be closed; the old one answers until then.
            if let Some(listener) = live.listeners.iter().position(|listener| listener.label == self.label) {
                *seen = Seen { generation: Arc::clone(&live), listener };
            }
        }
        self.seen.borrow()
    }

    /// What clients on streams are greeted with here.
    pub(crate) fn tls(&self, shared: &Shared) -> Option<Arc<dyn TlsServer>> {
        self.seen(shared).listener()?.tls.clone()
    }

    /// How clients speak here.
    pub(crate) fn scheme(&self, shared: &Shared) -> Scheme {
        self.seen(shared).listener().map(|listener| listener.scheme).unwrap_or_default()
    }

    /// What directives say of how this address is served.
    pub(crate) fn listening(&self, shared: &Shared) -> Listening {
        self.seen(shared).listener().map(|listener| listener.listening.clone()).unwrap_or_default()
    }
}
