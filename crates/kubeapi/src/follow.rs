//! Watches that start and stop with the namespaces that `namespace_labels` selects.
//!
//! Watching each selected namespace separately keeps requests and memory small, and RBAC rights in these namespaces are
//! sufficient. If too many namespaces are selected, cluster-wide watches take over.

use std::collections::BTreeMap;
use std::rc::Rc;

use cluster::{Kind, Request, Watch};
use host::boxed;
use host::invariant::holds;
use tokio::task::{AbortHandle, JoinSet};
use tracing::warn;

use crate::servers::Servers;
use crate::target::Target;
use crate::watch::{Shared, Sink, Watcher};
use crate::{LOG, Timing};

/// Maximum number of namespaces with separate watches. Each namespace takes two connections to the API server, or three
/// with Pods, and each connection has buffers at both ends. Above this number, a cluster-wide watch costs less.
const NAMESPACES_MAX: usize = 50;

/// Number of the watch of the namespaces themselves.
const NAMESPACES: usize = 0;

/// Keeps the set of running watches in sync with the selected namespaces.
pub(crate) struct Follower {
    servers: Rc<Servers>,
    shared: Rc<Shared>,
    request: Request,
    timing: Rc<Timing>,
    kinds: Vec<Kind>,
    /// Running watches, by their number in the reducer.
    running: BTreeMap<usize, AbortHandle>,
    tasks: JoinSet<()>,
    is_wide: bool,
}

impl Follower {
    pub(crate) fn new(servers: &Rc<Servers>, shared: &Rc<Shared>, request: &Request, timing: &Rc<Timing>) -> Follower {
        Follower {
            servers: Rc::clone(servers),
            shared: Rc::clone(shared),
            request: request.clone(),
            timing: Rc::clone(timing),
            kinds: request.watches().followed,
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            is_wide: false,
        }
    }

    /// Runs until dropped. Dropping also ends the watches.
    pub(crate) async fn run(mut self) {
        if self.was_wide() {
            self.watch_everything();
        }
        loop {
            self.shared.namespaces_changed.notified().await;
            self.keep_up();
        }
    }

    /// Starts and stops watches until they match the selected namespaces.
    fn keep_up(&mut self) {
        self.close_gone();
        self.end_closed();
        if self.is_wide || !self.shared.reducer.borrow().is_listed(NAMESPACES) {
            return;
        }
        let mut namespaces: Vec<Box<str>> = Vec::new();
        self.shared.index.for_each_namespace(|name| namespaces.push(name.into()));
        if namespaces.len() > NAMESPACES_MAX {
            return self.widen(namespaces.len());
        }
        for kind in self.kinds.clone() {
            namespaces.iter().for_each(|name| self.watch(&Watch { kind, namespace: Some(name.clone()) }));
        }
        holds(self.running.len() <= self.kinds.len() * NAMESPACES_MAX, "the number of watches is bounded");
    }

    /// Closes the watches of namespaces that are no longer selected.
    fn close_gone(&self) {
        let watches = self.shared.reducer.borrow().watches();
        for (number, watch) in watches {
            let is_gone = |name: &str| !self.shared.index.namespace_exists(name.as_bytes());
            if watch.kind != Kind::Namespace && watch.namespace.as_deref().is_some_and(is_gone) {
                self.shared.close(number, &watch);
            }
        }
    }

    /// Returns true if an earlier process had switched to cluster-wide watches.
    fn was_wide(&self) -> bool {
        let watches = self.shared.reducer.borrow().watches();
        watches.iter().any(|(_, watch)| watch.namespace.is_none() && self.kinds.contains(&watch.kind))
    }

    /// Aborts the tasks of closed watches.
    fn end_closed(&mut self) {
        let reducer = self.shared.reducer.borrow();
        self.running.retain(|number, task| {
            let is_open = reducer.is_open(*number);
            if !is_open {
                task.abort();
            }
            is_open
        });
        while self.tasks.try_join_next().is_some() {}
    }

    /// Switches to cluster-wide watches. The watches of single namespaces continue until the API server answers a
    /// cluster-wide list, because we may only have a Role in each of the namespaces.
    fn widen(&mut self, namespaces: usize) {
        warn!(
            target: LOG,
            "{namespaces} namespaces are selected, more than {NAMESPACES_MAX}: \
             watching everything instead of each of them"
        );
        self.shared.meter.widened();
        self.watch_everything();
    }

    fn watch_everything(&mut self) {
        holds(!self.is_wide, "watches are widened once");
        self.is_wide = true;
        self.kinds.clone().into_iter().for_each(|kind| self.watch(&Watch { kind, namespace: None }));
    }

    fn watch(&mut self, watch: &Watch) {
        let number = self.shared.reducer.borrow_mut().open(watch);
        let sink = Sink::new(&self.shared, number, watch);
        let make = || Watcher::new(&self.servers, Target::new(watch, &self.request), sink, &self.timing);
        self.running.entry(number).or_insert_with(|| self.tasks.spawn_local(boxed(make().run())));
    }
}
