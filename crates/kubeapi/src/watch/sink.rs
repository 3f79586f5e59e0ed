//! Where the pieces of one watch go: into the world, and the counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::object::{Event, Meta, Object};
use cluster::{Change, Index, Kind, ServiceKind, World};
use tokio::sync::Notify;
use tracing::warn;

use crate::LOG;
use crate::decode::Unreadable;
use crate::meter::Meter;
use crate::timing::{now_seconds, since_epoch};
use crate::watch::mesh_log::MeshLog;

/// The world as all watches of a subscription share it. It is borrowed for one event at a time, never while waiting.
pub(crate) struct Shared {
    pub(crate) world: RefCell<World>,
    pub(crate) index: Arc<Index>,
    pub(crate) meter: Rc<Meter>,
    /// Told when there may be other watches to run: namespaces came or went, or a watch began a list, by which it may
    /// have taken the place of others.
    pub(crate) places_changed: Notify,
    mesh_log: MeshLog,
}

impl Shared {
    pub(crate) fn new(world: World, index: &Arc<Index>, meter: &Rc<Meter>) -> Shared {
        Shared {
            world: RefCell::new(world),
            index: Arc::clone(index),
            meter: Rc::clone(meter),
            places_changed: Notify::new(),
            mesh_log: MeshLog::default(),
        }
    }
}

/// Where the pieces of one watch go.
#[derive(Clone)]
pub(crate) struct Sink {
    shared: Rc<Shared>,
    /// The position of the watch in the world.
    watch: usize,
    pub(crate) kind: Kind,
}

impl Sink {
    pub(crate) fn new(shared: &Rc<Shared>, watch: usize, kind: Kind) -> Sink {
        Sink { shared: Rc::clone(shared), watch, kind }
    }

    pub(crate) fn apply(&self, event: &Event<'_>) -> Change {
        let Shared { world, index, meter, mesh_log, places_changed } = &*self.shared;
        let (change, notes) = {
            let mut world = world.borrow_mut();
            (world.apply(self.watch, event, now_seconds()), world.take_notes())
        };
        let is_of_places = self.kind == Kind::Namespace && change != Change::Nothing;
        if is_of_places || matches!(event, Event::Listing) {
            places_changed.notify_one();
        }
        if self.kind.is_of_mesh() {
            mesh_log.tell(self.kind, change, &notes, index, meter);
        }
        change
    }

    /// The object is not known to exist if it has no name.
    pub(crate) fn unreadable(&self, namespace: &str, name: &str, reason: Unreadable, problem: &str) {
        if !name.is_empty() {
            self.apply(&Event::Unreadable { namespace, name });
        }
        let kind = format!("{:?}", self.kind);
        self.shared.meter.object_error(&kind, reason);
        if self.shared.meter.may_log() {
            warn!(target: LOG, "{kind} '{namespace}/{name}' cannot be read, what was known of it stays: {problem}");
        }
    }

    /// Observes how long it took from a change of endpoints until answers show it, if somebody wrote down when it was.
    pub(crate) fn observe(&self, object: &Object<'_>, trigger: &str) {
        let Object::EndpointSlice(slice) = object else { return };
        let Some(service_kind) = self.service_kind(slice.meta, slice.service) else { return };
        match trigger.parse::<jiff::Timestamp>() {
            Ok(trigger) => {
                let now = i128::try_from(since_epoch().as_nanos()).unwrap_or(i128::MAX);
                let nanos = u64::try_from(now - trigger.as_nanosecond()).unwrap_or_default();
                let is_common = self.kind.is_of_clusterset();
                self.shared.meter.programmed(service_kind, is_common, Duration::from_nanos(nanos));
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

    pub(crate) fn meter(&self) -> &Meter {
        &self.shared.meter
    }
}
