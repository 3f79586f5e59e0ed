//! Destination of the events of one watch: updates the reducer and the counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::object::{Event, Meta, Object};
use cluster::{Change, Index, Kind, Reducer, Request, ServiceKind};
use tokio::sync::Notify;
use tracing::warn;

use crate::LOG;
use crate::decode::Unreadable;
use crate::health::{ViewHealth, WatchHealth};
use crate::meter::Meter;
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
            mesh_log: MeshLog::default(),
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
}

impl Sink {
    pub(crate) fn new(shared: &Rc<Shared>, watch: usize, kind: Kind) -> Sink {
        Sink { shared: Rc::clone(shared), watch, kind }
    }

    pub(crate) fn apply(&self, event: &Event<'_>) -> Change {
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
    pub(crate) fn unreadable(&self, unreadable: &Unreadable<'_>) {
        let Unreadable { namespace, name, reason, ref message, .. } = *unreadable;
        if !name.is_empty() {
            self.apply(&Event::Unreadable { namespace, name });
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
