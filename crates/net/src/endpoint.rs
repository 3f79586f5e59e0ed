//! An address as one worker serves it: which generation answers there and how, and how far the address is from its end.

use std::cell::RefCell;
use std::sync::Arc;

use engine::setup::Listening;
use engine::tls::TlsServer;
use engine::{Generation, Scheme};
use tokio::sync::watch;

use crate::connections::ConnectionTable;
use crate::shared::Shared;

/// An address as this worker serves it.
pub(crate) struct Endpoint {
    label: String,
    /// The generation that was seen last, with the index of this address in it.
    seen: RefCell<(Arc<Generation>, usize)>,
    /// Connections to it that have a bound of their own, at all workers.
    pub(crate) connections: Arc<ConnectionTable>,
    /// How far it is from its end.
    stage: watch::Sender<Stage>,
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
        let index = live.listeners.iter().position(|listener| listener.label == label)?;
        Some(Endpoint {
            label: label.to_owned(),
            seen: RefCell::new((live, index)),
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

    /// The generation that serves now, and the index of this address in it.
    pub(crate) fn listener(&self, shared: &Shared) -> (Arc<Generation>, usize) {
        let mut seen = self.seen.borrow_mut();
        let live = shared.live.load();
        if !Arc::ptr_eq(&live, &seen.0) {
            // An address that the new generation does not have is about to be closed; the old one answers until then.
            if let Some(index) = live.listeners.iter().position(|listener| listener.label == self.label) {
                *seen = (Arc::clone(&live), index);
            }
        }
        seen.clone()
    }

    /// What clients on streams are greeted with here.
    pub(crate) fn tls(&self, shared: &Shared) -> Option<Arc<dyn TlsServer>> {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener)?.tls.clone()
    }

    /// How clients speak here.
    pub(crate) fn scheme(&self, shared: &Shared) -> Scheme {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener).map(|listener| listener.scheme).unwrap_or_default()
    }

    /// What directives say of how this address is served.
    pub(crate) fn listening(&self, shared: &Shared) -> Listening {
        let (generation, listener) = self.listener(shared);
        generation.listeners.get(listener).map(|listener| listener.listening.clone()).unwrap_or_default()
    }
}
