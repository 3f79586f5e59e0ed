//! Fake Kubernetes API server for tests, on a free port of 127.0.0.1 and in a thread of its own.
//!
//! It stores objects as JSON and serves lists and watches like the real server: pages with continue tokens, streaming
//! lists (`sendInitialEvents`), bookmarks, label and field selectors, 410 Gone after a compaction, and protobuf for
//! clients that prefer it. Tests write objects directly, or over HTTP (POST, PUT, DELETE) in JSON.
//!
//! Access reviews allow everything that a test does not deny. Other paths have the documents that a test puts there.
//!
//! Not supported: patches, validation, discovery, and RBAC for other requests than access reviews.
//!
//! Tests order failures with a [`Fault`]. Nothing depends on the clock: bookmarks, compactions and broken connections
//! happen when a test calls for them.
//!
//! Like test code, it panics on errors.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server for tests: it opens sockets, starts a thread, and its errors are to fail the test"
)]

mod answer;
mod format;
mod object;
pub mod protobuf;
mod query;
mod reply;
mod review;
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

/// Maximum time that a test waits for a condition.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Failure ordered by a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answers requests with this status and, if set, `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Rejects requests because their resource version is newer than the server's.
    Ahead,
    /// Rejects requests because the storage was restored, like a relay that has seen it.
    Restored,
    /// Accepts requests and never answers.
    Stall,
    /// Rejects streaming lists, like a server with the feature disabled.
    NoStreamingLists,
    /// Starts streaming lists and then rejects them, like a server whose etcd is too old for them.
    OldStore,
    /// Sends nothing on watches, including open ones, until healed; then sends the events held back. Not allowed in a
    /// script.
    Silence,
    /// Sends bodies in chunks of this many bytes, with this pause in between.
    Slow(usize, Duration),
    /// Breaks the connection after this many bytes of the body.
    Cut(usize),
    /// Replaces the byte at this offset of the body by 255.
    Corrupt(usize),
    /// Ends watches immediately, as if they had timed out.
    Short,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Method: `GET`, `POST` etc.
    pub method: String,
    /// Plural name of the resource, such as `endpointslices`.
    pub resource: String,
    /// Namespace; empty for all.
    pub namespace: String,
    /// Name of the object; empty for a collection.
    pub name: String,
    /// Query parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// `Authorization` header; empty if absent.
    pub authorization: String,
    /// `Accept` header; empty if absent.
    pub accept: String,
    /// `Accept-Encoding` header; empty if absent.
    pub accept_encoding: String,
    /// `Portolan-Profile` header, which clients send to relays; empty if absent.
    pub profile: String,
    /// True if the client presented a certificate.
    pub certificate: bool,
    /// Time of arrival.
    pub at: Instant,
}

impl ReceivedRequest {
    /// Returns a query parameter; empty if absent.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// Returns true for a watch request.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), "1" | "true")
    }

    /// Returns true for a consistent list that selects one object by name, by which a client learns that its watch is
    /// current.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        let is_list = self.method == "GET" && self.name.is_empty() && !self.is_watch();
        let selects_one = self.parameter("fieldSelector").contains("metadata.name=");
        is_list && selects_one && self.parameter("limit").is_empty() && self.parameter("resourceVersion").is_empty()
    }

    /// Returns true for a streaming list request.
    #[must_use]
    pub fn is_streaming_list(&self) -> bool {
        self.is_watch() && self.parameter("sendInitialEvents") == "true"
    }
}

/// The server. Dropping it stops it.
pub struct FakeApi {
    shared: Arc<Shared>,
    url: String,
    pems: Option<Pems>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// State shared by the test and the connections.
struct Shared {
    state: Mutex<State>,
    /// Notified of each request and of each connection that ends.
    activity: Condvar,
    /// Incremented at each change, to wake the watches.
    changed: watch::Sender<u64>,
    /// Incremented to break all connections.
    broken: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    store: Store,
    faults: BTreeMap<String, Faults>,
    seen: Vec<ReceivedRequest>,
    token: Option<String>,
    /// Verbs and plural names of resources that access reviews deny.
    denied: BTreeSet<(String, String)>,
    /// Documents at paths that are not those of objects.
    documents: BTreeMap<String, Value>,
    json_only: bool,
    /// Interval of the bookmarks, for a relay.
    heartbeat: Option<Duration>,
    down: bool,
    /// Number of open watches of each resource.
    watches: BTreeMap<String, usize>,
    /// Numbers of the open connections.
    connections: BTreeSet<u64>,
    accepted: u64,
}

/// Faults ordered for a resource.
enum Faults {
    Always(Fault),
    Next(VecDeque<Option<Fault>>),
}

impl FakeApi {
    /// Starts a server over plain HTTP.
    #[must_use]
    pub fn start() -> FakeApi {
        FakeApi::start_with(None)
    }

    /// Starts a server with the objects of [`FakeApi::put_shop`].
    #[must_use]
    pub fn with_shop() -> FakeApi {
        let api = FakeApi::start();
        api.put_shop();
        api
    }

    /// Starts a server over TLS, with newly generated certificates.
    #[must_use]
    pub fn start_tls() -> FakeApi {
        FakeApi::start_with(Some(tls::Authority::new()))
    }

    /// Starts a server over TLS whose certificate is the CA certificate itself, as `openssl req -x509` makes it.
    #[must_use]
    pub fn start_tls_self_signed() -> FakeApi {
        FakeApi::start_with(Some(tls::Authority::self_signed()))
    }

    fn start_with(authority: Option<tls::Authority>) -> FakeApi {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            activity: Condvar::new(),
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

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// Returns the number of open watches of a resource. One whose client has left counts until the next event for it.
    #[must_use]
    pub fn watches(&self, resource: &str) -> usize {
        self.shared.lock().watches.get(resource).copied().unwrap_or_default()
    }

    /// Returns the URL: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the PEM files that a TLS client needs: the CA certificate, and a client certificate with its key.
    #[must_use]
    pub fn pems(&self) -> Option<&Pems> {
        self.pems.as_ref()
    }

    /// Puts the namespace `shop` and the Service `shop/web`, 10.96.0.11, with the endpoints 10.1.0.5 and 10.1.0.6.
    pub fn put_shop(&self) {
        let endpoints = slice("shop", "web", &["10.1.0.5", "10.1.0.6"]);
        self.put_all([namespace("shop"), service("shop", "web", "10.96.0.11"), endpoints]);
    }

    /// Creates or replaces an object and returns its resource version.
    pub fn put(&self, object: Value) -> u64 {
        self.put_all([object])
    }

    /// Puts several objects; watches see all of them at once. Returns the last resource version.
    pub fn put_all(&self, objects: impl IntoIterator<Item = Value>) -> u64 {
        self.change(|state| objects.into_iter().map(|object| state.store.put(object, true)).last().unwrap_or_default())
    }

    /// Adds a kind in this group and version, like a CustomResourceDefinition. Putting an object adds its kind too.
    pub fn install(&self, kind: &str, group_version: &str) {
        self.change(|state| state.store.install(kind, group_version));
    }

    /// Deletes an object. `resource` is its plural name; a Namespace object is in the namespace "".
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) {
        self.change(|state| state.store.delete(resource, namespace, name, true));
    }

    /// Creates or replaces an object whose event no watch gets.
    pub fn put_unseen(&self, object: Value) {
        self.change(|state| state.store.put(object, false));
    }

    /// Deletes an object whose event no watch gets.
    pub fn delete_unseen(&self, resource: &str, namespace: &str, name: &str) {
        self.change(|state| state.store.delete(resource, namespace, name, false));
    }

    /// Assigns only IPv4 addresses to Services created over HTTP from now on.
    pub fn single_stack(&self) {
        self.change(|state| state.store.single_stack = true);
    }

    /// Returns an object. `resource` is its plural name.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.shared.lock().store.get(resource, &(namespace.to_owned(), name.to_owned()))
    }

    /// Forgets all changes so far: a watch from a version before the current one is refused with 410.
    pub fn forget_changes(&self) {
        self.change(|state| state.store.forget_changes());
    }

    /// Compacts the history: requests that continue from an earlier version get 410 Gone.
    pub fn compact(&self) {
        self.change(|state| state.store.compact());
    }

    /// Resets the resource version to an earlier one, as if etcd had been restored from a backup. The objects stay;
    /// the test decides which of them existed then.
    pub fn put_back(&self, version: u64) {
        self.change(|state| state.store.put_back(version));
    }

    /// Sends a bookmark to every open watch that allows them.
    pub fn bookmark(&self) {
        self.change(|state| state.store.bookmark());
    }

    /// Sends a line to every open watch of a resource. Watches in protobuf get it as an event if it is one in JSON,
    /// otherwise its bytes in a frame.
    pub fn inject(&self, resource: &str, line: &str) {
        self.change(|state| state.store.inject(resource, line));
    }

    /// Makes all requests for a resource fail from now on.
    pub fn fault(&self, resource: &str, fault: Fault) {
        self.change(|state| state.faults.insert(resource.to_owned(), Faults::Always(fault)));
    }

    /// Sets the faults (or `None`) of the next requests for a resource, in this order. Later requests succeed.
    pub fn script(&self, resource: &str, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.change(|state| state.faults.insert(resource.to_owned(), Faults::Next(faults.into_iter().collect())));
    }

    /// Ends the faults of a resource.
    pub fn heal(&self, resource: &str) {
        self.change(|state| state.faults.remove(resource));
    }

    /// Breaks all connections. Returns when none of them can send any more.
    pub fn drop_connections(&self) {
        let broken = self.shared.lock().connections.clone();
        self.shared.broken.send_modify(|tick| *tick += 1);
        self.wait("the end of connections", |state| state.connections.is_disjoint(&broken));
    }

    /// Breaks all connections, and new ones immediately, until [`up`](FakeApi::up).
    pub fn down(&self) {
        self.change(|state| state.down = true);
        self.drop_connections();
    }

    /// Accepts connections again.
    pub fn up(&self) {
        self.change(|state| state.down = false);
    }

    /// Answers 401 to requests without this bearer token from now on.
    pub fn require_token(&self, token: &str) {
        self.change(|state| state.token = Some(token.to_owned()));
    }

    /// Makes access reviews deny a verb on a resource. Requests for the resource still succeed.
    pub fn deny(&self, verb: &str, resource: &str) {
        self.change(|state| state.denied.insert((verb.to_owned(), resource.to_owned())));
    }

    /// Puts a document at a path that is not that of an object, such as `/api/v1/nodes/NAME/proxy/configz`.
    /// [`Fault::Stall`] for the path holds it back.
    pub fn put_document(&self, path: &str, document: Value) {
        self.change(|state| state.documents.insert(path.to_owned(), document));
    }

    /// Behaves like a relay from now on: sends a bookmark on each watch at this interval, compresses for clients that
    /// accept it, and rejects watches from a resource version that it does not have yet.
    pub fn act_as_relay(&self, heartbeat: Duration) {
        self.change(|state| state.heartbeat = Some(heartbeat));
    }

    /// Serves only JSON from now on, like a server without protobuf.
    pub fn json_only(&self) {
        self.change(|state| state.json_only = true);
    }

    /// Returns the requests received so far.
    #[must_use]
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.shared.lock().seen.clone()
    }

    /// Waits until the received requests meet a condition. Panics after a timeout.
    pub fn wait_seen(&self, goal: &str, condition: impl Fn(&[ReceivedRequest]) -> bool) {
        self.wait(goal, |state| condition(&state.seen));
    }

    fn wait(&self, goal: &str, condition: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        let mut state = self.shared.lock();
        while !condition(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "timed out waiting for {goal}; seen: {:#?}", state.seen);
            state = self.shared.activity.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
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
    /// Returns the document at a path, and the fault that a test set for the path.
    fn document(&mut self, path: &str) -> Option<(Value, Option<Fault>)> {
        let document = self.documents.get(path)?.clone();
        Some((document, self.next_fault(path)))
    }

    /// Returns the fault of the next request for a resource.
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
