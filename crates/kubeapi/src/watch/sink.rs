//! Destination of the events of one watch: updates the reducer and the counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::object::{Event, Meta, Object};
use cluster::snapshot::{Entry, Record};
use cluster::{Change, Index, Kind, Reducer, Request, Resumable, ServiceKind, Watch};
use host::invariant::holds;
use host::planted::{Bug, is_planted};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tracing::warn;

use crate::LOG;
use crate::decode::Unreadable;
use crate::health::{ViewHealth, WatchHealth};
use crate::meter::Meter;
use crate::snapshot::Journal;
use crate::timing::now_seconds;
use crate::watch::mesh_log::MeshLog;

/// Reducer with everything that the watches of a subscription share. It is borrowed for one event at a time, never
/// across an await.
pub(crate) struct Shared {
    pub(crate) reducer: RefCell<Reducer>,
    pub(crate) index: Arc<Index>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) health: Arc<ViewHealth>,
    /// Notified when the set of namespaced watches may have to change: a namespace was added or removed, or a watch
    /// started a list and may replace other watches.
    pub(crate) namespaces_changed: Notify,
    /// True if the subscription limits the age of its view.
    limits_age: bool,
    /// Changes if everything has to be listed again.
    relist: watch::Sender<()>,
    /// Log of the events, if there is a snapshot.
    journal: Option<Rc<Journal>>,
    /// Watches of an earlier process that have not started in this one.
    resumable: RefCell<Vec<Resumable>>,
    mesh_log: MeshLog,
}

impl Shared {
    pub(crate) fn new(
        (reducer, index): (Reducer, &Arc<Index>),
        meter: &Rc<Meter>,
        health: &Arc<ViewHealth>,
        request: &Request,
    ) -> Shared {
        Shared {
            reducer: RefCell::new(reducer),
            index: Arc::clone(index),
            meter: Rc::clone(meter),
            health: Arc::clone(health),
            namespaces_changed: Notify::new(),
            limits_age: request.stale_after.is_some(),
            relist: watch::Sender::new(()),
            journal: None,
            resumable: RefCell::default(),
            mesh_log: MeshLog::default(),
        }
    }

    /// Keeps a journal from now on, and resumes the watches of an earlier process.
    pub(crate) fn with_snapshot(mut self, journal: &Rc<Journal>, resumable: Vec<Resumable>) -> Shared {
        self.journal = Some(Rc::clone(journal));
        self.resumable = resumable.into();
        self
    }

    /// Makes all watches list everything again.
    pub(crate) fn list_all(&self) {
        self.relist.send_replace(());
    }

    /// Closes a watch of a namespace that is no longer selected.
    pub(crate) fn close(&self, number: usize, watch: &Watch) {
        self.resumable.borrow_mut().retain(|known| known.watch != *watch);
        let closed: Record<'_> = Record::of(watch, Entry::Closed);
        self.append(&closed, true);
        self.reducer.borrow_mut().close(number, now_seconds());
        self.complete();
    }

    fn append<O: Serialize>(&self, record: &Record<'_, O>, urgent: bool) {
        if let Some(journal) = &self.journal {
            journal.append(record, urgent);
        }
    }

    /// Completes the file of the journal if it has a list of each watch.
    fn complete(&self) {
        if let Some(journal) = self.journal.as_ref().filter(|_| self.index.is_synced()) {
            journal.complete(self.reducer.borrow().watches().into_iter().map(|(number, _)| number));
        }
    }
}

/// Destination of the events of one watch.
#[derive(Clone)]
pub(crate) struct Sink {
    shared: Rc<Shared>,
    /// Number of the watch in the reducer.
    watch: usize,
    pub(crate) kind: Kind,
    namespace: Option<Box<str>>,
}

impl Sink {
    /// Creates the destination of a watch with a number in the reducer.
    pub(crate) fn new(shared: &Rc<Shared>, number: usize, watch: &Watch) -> Sink {
        Sink { shared: Rc::clone(shared), watch: number, kind: watch.kind, namespace: watch.namespace.clone() }
    }

    /// Returns the watch of an earlier process, the first time, if that one knew its objects.
    pub(crate) fn take_resumable(&self) -> Option<Resumable> {
        let is_own = |watch: &Watch| watch.kind == self.kind && watch.namespace == self.namespace;
        let mut resumable = self.shared.resumable.borrow_mut();
        let at = resumable.iter().position(|known| is_own(&known.watch))?;
        let own = resumable.swap_remove(at);
        holds(!resumable.iter().any(|known| is_own(&known.watch)), "a watch resumes once");
        Some(own)
    }

    /// Returns a channel that changes if everything has to be listed again.
    pub(crate) fn relist(&self) -> watch::Receiver<()> {
        self.shared.relist.subscribe()
    }

    /// Applies a part of a list.
    pub(crate) fn apply(&self, event: &Event<'_>) -> Change {
        self.apply_at(event, None)
    }

    /// Applies the end of a list, from which the watch continues at a position.
    pub(crate) fn listed(&self, position: &str) {
        self.apply_at(&Event::Listed, Some(position));
    }

    /// Records that the watch of an earlier process continues, so that its objects are current.
    pub(crate) fn resumed(&self) {
        self.shared.reducer.borrow_mut().resumed(self.watch);
        self.shared.namespaces_changed.notify_one();
    }

    /// Records that the API server may have another history now.
    pub(crate) fn forget_versions(&self) {
        self.shared.reducer.borrow_mut().forget_versions(self.watch);
    }

    /// Records that everything up to a position is known.
    pub(crate) fn position(&self, position: &str) {
        let (kind, namespace) = (self.kind, self.namespace.as_deref());
        let record: Record<'_> = Record::Event { kind, namespace, entry: Entry::Position(position) };
        if self.shared.reducer.borrow().is_open(self.watch) {
            self.shared.append(&record, true);
        }
    }

    /// Applies an event. `position` is the one after it, or `None` within a list.
    pub(crate) fn apply_at(&self, event: &Event<'_>, position: Option<&str>) -> Change {
        holds(position.is_none() || !matches!(event, Event::Listing), "a list has a position at its end");
        self.record(event, position.filter(|position| !position.is_empty()));
        let change = self.reduce(event);
        if matches!(event, Event::Listed) {
            self.shared.complete();
        }
        change
    }

    /// Writes an event before it is applied, so that no later process knows less than what was answered.
    fn record(&self, event: &Event<'_>, position: Option<&str>) {
        let Some(journal) = &self.shared.journal else { return };
        if is_planted(Bug::UnwrittenDeletion) && matches!(event, Event::Deleted { .. }) {
            return;
        }
        let reducer = self.shared.reducer.borrow();
        // Before the end of the first list, nothing is known that a later process could contradict.
        let is_first = !reducer.is_listed(self.watch) && !self.shared.index.is_remembered();
        let urgent = !is_first || matches!(event, Event::Listed);
        let record = if journal.is_new() {
            reducer.whole_record(self.watch, event, position)
        } else {
            reducer.record(self.watch, event, position)
        };
        if let Some(record) = record {
            journal.append(&record, urgent);
        }
        if let Event::Listing | Event::Listed = event {
            journal.listed(self.watch, matches!(event, Event::Listed));
        }
    }

    fn reduce(&self, event: &Event<'_>) -> Change {
        let Shared { reducer, index, meter, mesh_log, namespaces_changed, .. } = &*self.shared;
        let (change, notes) = {
            let mut reducer = reducer.borrow_mut();
            (reducer.apply(self.watch, event, now_seconds()), reducer.take_notes())
        };
        let changes_namespaces = self.kind == Kind::Namespace && change != Change::Nothing;
        if changes_namespaces || matches!(event, Event::Listing) {
            namespaces_changed.notify_one();
        }
        if self.kind.is_of_mesh() {
            mesh_log.log(self.kind, change, &notes, index, meter);
        }
        change
    }

    /// Handles an object that cannot be decoded. Without a name, the known objects stay unaffected.
    /// `position` is the one after the event, or `None` within a list.
    pub(crate) fn unreadable(&self, unreadable: &Unreadable<'_>, position: Option<&str>) {
        let Unreadable { namespace, name, reason, ref message, .. } = *unreadable;
        if !name.is_empty() {
            self.apply_at(&Event::Unreadable { namespace, name }, position);
        }
        let kind = format!("{:?}", self.kind);
        self.shared.meter.object_error(&kind, reason);
        if self.shared.meter.may_log() {
            warn!(target: LOG, "{kind} '{namespace}/{name}' cannot be read, what was known of it stays: {message}");
        }
    }

    /// Records the time from a change of endpoints until queries see it, if the slice has its trigger time.
    pub(crate) fn observe(&self, object: &Object<'_>, trigger: &str) {
        let Object::EndpointSlice(slice) = object else { return };
        let Some(service_kind) = self.service_kind(slice.meta, slice.service) else { return };
        match trigger.parse::<jiff::Timestamp>() {
            Ok(trigger) => {
                let since = jiff::Timestamp::now().duration_since(trigger);
                // A trigger time in the future, from a clock ahead of ours, counts as now.
                let time = Duration::try_from(since).unwrap_or(Duration::ZERO);
                let is_common = self.kind.is_of_clusterset();
                self.shared.meter.programmed(service_kind, is_common, time);
            }
            Err(error) if self.shared.meter.may_log() => {
                let Meta { namespace, name, .. } = slice.meta;
                warn!(
                    target: LOG,
                    "DnsProgrammingLatency cannot be calculated for Endpoints '{namespace}/{name}': {error}"
                );
            }
            Err(_) => {}
        }
    }

    fn service_kind(&self, slice: Meta<'_>, service: &str) -> Option<&'static str> {
        let is_common = self.kind.is_of_clusterset();
        let index = if is_common { self.shared.index.clusterset()? } else { &self.shared.index };
        let kind = |service: &cluster::Service| match service.kind {
            ServiceKind::ClusterIp(_) if is_common => Some("clusterset_ip"),
            ServiceKind::Headless if is_common => Some("clusterset_headless"),
            ServiceKind::ClusterIp(_) => Some("cluster_ip"),
            ServiceKind::Headless => Some("headless_with_selector"),
            ServiceKind::ExternalName(_) | ServiceKind::Undeclared => None,
        };
        index.service(slice.namespace.as_bytes(), service.as_bytes(), kind)?
    }

    /// Returns true if the subscription limits the age of its view.
    pub(crate) fn limits_age(&self) -> bool {
        self.shared.limits_age
    }

    /// Adds a watch to the health of the subscription.
    pub(crate) fn watch_health(&self) -> WatchHealth {
        self.shared.health.watch(self.kind)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.shared.meter
    }
}
