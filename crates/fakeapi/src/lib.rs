//! A Kubernetes API server for tests, on a free port of 127.0.0.1 and a thread of its own.
//!
//! It keeps objects as JSON and lists and watches them as the real one does: pages with continue tokens, streaming lists
//! (`sendInitialEvents`), bookmarks, label and field selectors, 410 Gone after a compaction; in protobuf for who prefers
//! that. Objects are written by the test, or over HTTP (POST, PUT, DELETE) in JSON. What it does not do: patches, validation,
//! discovery, authorization by rules. What goes wrong is ordered by the test: see [`Fault`].
//! Nothing happens by the clock: a bookmark, a compaction, a lost connection come when they are called for.
//!
//! It is part of tests: what cannot be, panics.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server for tests: it opens sockets, starts a thread, and a test that it fails is to fail"
)]

mod answer;
mod format;
mod object;
pub mod protobuf;
mod query;
mod reply;
mod selection;
mod serve;
mod store;
mod tls;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use object::{namespace, object, service, service_entry, slice};
use serde_json::Value;
use store::Store;
pub use tls::Pems;
use tokio::sync::{oneshot, watch};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Requests are answered with this status and, if given, `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Requests are taken and never answered.
    Stall,
    /// Streaming lists are refused, as by a server that has them switched off.
    NoStreamingLists,
    /// Streaming lists begin and are refused then, as by a server whose etcd is too old for them.
    OldStore,
    /// Watches, also those that are open, say nothing. Once healed they say what they held back. Not for a script.
    Silence,
    /// Bodies come in pieces of so many octets, with this pause between them.
    Slow(usize, Duration),
    /// The connection breaks after so many octets of the body.
    Cut(usize),
    /// The octet at this place of the body is 255.
    Corrupt(usize),
    /// Watches end at once, as if their time were up.
    Short,
}

/// A request that was made.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The plural name of what was asked for: `endpointslices`.
    pub resource: String,
    /// In which namespace; empty for all.
    pub namespace: String,
    /// Which one; empty for all.
    pub name: String,
    /// The parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// The header `Authorization`; empty if there was none.
    pub authorization: String,
    /// The header `Accept`; empty if there was none.
    pub accept: String,
    /// Whether the client showed a certificate.
    pub certificate: bool,
    /// When it came.
    pub at: Instant,
}

impl Seen {
    /// A parameter; empty if absent.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// Whether it asked for a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), "1" | "true")
    }

    /// Whether it asked for a streaming list.
    #[must_use]
    pub fn is_streaming_list(&self) -> bool {
        self.is_watch() && self.parameter("sendInitialEvents") == "true"
    }
}

/// The server. It ends when it is dropped.
pub struct FakeApi {
    shared: Arc<Shared>,
    url: String,
    pems: Option<Pems>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What tests and connections share.
struct Shared {
    state: Mutex<State>,
    /// Told of each request, and of each connection that ends.
    told: Condvar,
    /// Ticks with each change, for the watches.
    changed: watch::Sender<u64>,
    /// Ticks when all connections are to break.
    broken: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    store: Store,
    faults: BTreeMap<String, Faults>,
    seen: Vec<Seen>,
    token: Option<String>,
    json_only: bool,
    down: bool,
    /// The connections that are open, by number.
    connections: BTreeSet<u64>,
    accepted: u64,
}

/// With which requests for a resource something goes wrong.
enum Faults {
    Always(Fault),
    Next(VecDeque<Option<Fault>>),
}

impl FakeApi {
    /// A server over plain HTTP.
    #[must_use]
    pub fn start() -> FakeApi {
        FakeApi::start_with(None)
    }

    /// A server with the objects of [`FakeApi::put_shop`].
    #[must_use]
    pub fn with_shop() -> FakeApi {
        let api = FakeApi::start();
        api.put_shop();
        api
    }

    /// A server over TLS, with certificates made for the occasion.
    #[must_use]
    pub fn start_tls() -> FakeApi {
        FakeApi::start_with(Some(tls::Authority::new()))
    }

    fn start_with(authority: Option<tls::Authority>) -> FakeApi {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            told: Condvar::new(),
            changed: watch::Sender::new(0),
            broken: watch::Sender::new(0),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let scheme = if authority.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let (pems, acceptor) = authority.map(|authority| (authority.pems, authority.acceptor)).unzip();
        let for_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || serve::run(listener, acceptor.as_ref(), &for_thread, stopped));
        FakeApi { shared, url, pems, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it is: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a client needs to trust it and to be trusted, if it speaks TLS.
    #[must_use]
    pub fn pems(&self) -> Option<&Pems> {
        self.pems.as_ref()
    }

    /// Puts the namespace `shop` and the Service `shop/web`, 10.96.0.11, with the endpoints 10.1.0.5 and 10.1.0.6.
    pub fn put_shop(&self) {
        let endpoints = slice("shop", "web", &["10.1.0.5", "10.1.0.6"]);
        self.put_all([namespace("shop"), service("shop", "web", "10.96.0.11"), endpoints]);
    }

    /// Creates an object or replaces it; gives its new version.
    pub fn put(&self, object: Value) -> u64 {
        self.put_all([object])
    }

    /// Puts many objects; watches learn of them all at once.
    pub fn put_all(&self, objects: impl IntoIterator<Item = Value>) -> u64 {
        self.change(|state| objects.into_iter().map(|object| state.store.put(object)).last().unwrap_or_default())
    }

    /// Knows a kind of objects from now on, in this group and version, as if its definition were installed. A kind is also
    /// known once there is an object of it.
    pub fn install(&self, kind: &str, group_version: &str) {
        self.change(|state| state.store.install(kind, group_version));
    }

    /// Deletes an object; `resource` is its plural name, and a namespace is in the namespace "".
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) {
        self.change(|state| state.store.delete(resource, namespace, name));
    }

    /// Gives Services that are created over HTTP no IPv6 addresses from now on.
    pub fn single_stack(&self) {
        self.change(|state| state.store.single_stack = true);
    }

    /// An object; `resource` is its plural name.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.shared.lock().store.get(resource, &(namespace.to_owned(), name.to_owned()))
    }

    /// Forgets the past: what continues from a version until now is answered with 410 Gone.
    pub fn compact(&self) {
        self.change(|state| state.store.compact());
    }

    /// Goes back to an earlier version, as when etcd is restored from a backup: the server does not have the versions that
    /// it gave since. The objects are as they are: which of them were there then is up to the test.
    pub fn put_back(&self, version: u64) {
        self.change(|state| state.store.put_back(version));
    }

    /// Sends a bookmark to every open watch that takes them.
    pub fn bookmark(&self) {
        self.change(|state| state.store.bookmark());
    }

    /// Sends a line, whatever it holds, to every open watch of a resource; to those in protobuf as an event if it is one in
    /// JSON, else its octets in a frame.
    pub fn inject(&self, resource: &str, line: &str) {
        self.change(|state| state.store.inject(resource, line));
    }

    /// Lets something go wrong with a resource from now on.
    pub fn fault(&self, resource: &str, fault: Fault) {
        self.change(|state| state.faults.insert(resource.to_owned(), Faults::Always(fault)));
    }

    /// Lets something go wrong, or not, with the next requests for a resource, in this order; with those that come after
    /// them nothing goes wrong.
    pub fn script(&self, resource: &str, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.change(|state| state.faults.insert(resource.to_owned(), Faults::Next(faults.into_iter().collect())));
    }

    /// Nothing goes wrong with a resource any more.
    pub fn heal(&self, resource: &str) {
        self.change(|state| state.faults.remove(resource));
    }

    /// Breaks all connections; none of them says anything after this.
    pub fn drop_connections(&self) {
        let broken = self.shared.lock().connections.clone();
        self.shared.broken.send_modify(|tick| *tick += 1);
        self.wait("the end of connections", |state| state.connections.is_disjoint(&broken));
    }

    /// Breaks all connections, and new ones at once, until [`up`](FakeApi::up).
    pub fn down(&self) {
        self.change(|state| state.down = true);
        self.drop_connections();
    }

    /// Serves again.
    pub fn up(&self) {
        self.change(|state| state.down = false);
    }

    /// Refuses with 401 who does not bring this bearer token.
    pub fn require_token(&self, token: &str) {
        self.change(|state| state.token = Some(token.to_owned()));
    }

    /// Speaks nothing but JSON from now on, as a server without protobuf.
    pub fn json_only(&self) {
        self.change(|state| state.json_only = true);
    }

    /// The requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// Waits until the requests are as they must become; panics if that takes too long.
    pub fn wait_seen(&self, what: &str, condition: impl Fn(&[Seen]) -> bool) {
        self.wait(what, |state| condition(&state.seen));
    }

    fn wait(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        while !condition(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}; seen: {:#?}", state.seen);
            state = self.shared.told.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        self.shared.change(change)
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.send_modify(|tick| *tick += 1);
        result
    }
}

impl State {
    /// What goes wrong with the next request for a resource.
    fn next_fault(&mut self, resource: &str) -> Option<Fault> {
        match self.faults.get_mut(resource)? {
            Faults::Always(fault) => Some(*fault),
            Faults::Next(faults) => faults.pop_front().flatten(),
        }
    }

    fn is_silent(&self, resource: &str) -> bool {
        matches!(self.faults.get(resource), Some(Faults::Always(Fault::Silence)))
    }
}

#[cfg(test)]
mod tests;
