//! Lists, watches and their faults. Requests for a single object are in [`crate::write`].

use std::future;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use hyper::{Method, Response};
use serde_json::Value;

use crate::format::Format;
use crate::query::Query;
use crate::reply::{Body, Reply, status, status_object};
use crate::selection::Selection;
use crate::store::{Key, Span, WatchPosition};
use crate::{Fault, Shared, review, write};

/// Maximum number of bytes sent at once.
const CHUNK: usize = 16 * 1024;
/// Time before the end of a watch at which it gets a bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Interval of bookmarks that are not sent.
const NEVER: Duration = Duration::from_secs(3600);

/// How a relay answers a request.
#[derive(Clone, Copy)]
pub(crate) struct Relaying {
    /// Interval of the bookmarks.
    pub(crate) heartbeat: Duration,
    /// True if the client accepts compressed bodies.
    pub(crate) accepts_gzip: bool,
}

/// Answers a request.
pub(crate) async fn answer(
    method: &Method,
    query: Query,
    object: Value,
    (fault, relaying): (Option<Fault>, Option<Relaying>),
    preferred: Format,
    shared: &Arc<Shared>,
) -> Reply {
    match fault {
        Some(Fault::Status(code, retry_after)) => return status(code, retry_after, "injected fault"),
        Some(Fault::Ahead) => return status(504, Some(1), "Timeout: Too large resource version: 9, current: 8"),
        Some(Fault::Restored) => {
            let message = "too old resource version: the API server has been restored from a backup or replaced";
            return status(410, None, message);
        }
        Some(Fault::Stall) => future::pending().await,
        _ => {}
    }
    if let Some(reply) = review::answer(&query.resource, object.clone(), shared) {
        return reply;
    }
    let Some(kind) = shared.lock().store.kind_of(&query.resource, &query.group_version) else {
        return status(404, None, "the server could not find the requested resource");
    };
    if method != Method::GET || !query.name.is_empty() {
        return write::answer(method, &query, object, shared);
    }
    let selection = match query.selection() {
        Ok(selection) => selection,
        Err(error) => return status(400, None, &error.to_string()),
    };
    let format = preferred.of_kind(&kind);
    let request = CollectionRequest { query, kind, selection, fault, relaying, format, shared: Arc::clone(shared) };
    if request.query.is("watch") { request.watch() } else { request.list() }
}

/// A valid list or watch request.
struct CollectionRequest {
    query: Query,
    kind: String,
    selection: Selection,
    fault: Option<Fault>,
    relaying: Option<Relaying>,
    format: Format,
    shared: Arc<Shared>,
}

impl CollectionRequest {
    fn list(self) -> Reply {
        let token = self.query.parameter("continue");
        let version = self.query.parameter("resourceVersion");
        if !token.is_empty() && !matches!(version, "" | "0") {
            return status(400, None, "specifying resource version is not allowed when using continue");
        }
        let after = token.split_once('|').and_then(|(_, key)| key.split_once('/'));
        let after: Option<Key> = after.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let store = &self.shared.lock().store;
        if number(version) > store.version {
            return too_large(version, store.version);
        }
        let token_version = token.split_once('|').map(|(version, _)| number(version));
        if token_version.is_some_and(|version| version < store.compacted) {
            return status(410, None, "The provided continue parameter is too old");
        }
        let limit = self.query.parameter("limit").parse().unwrap_or_default();
        let is_exact = self.query.parameter("resourceVersionMatch") == "Exact";
        if is_exact && number(version) < store.compacted {
            return status(410, None, "The resourceVersion for the provided list is too old");
        }
        let exact = is_exact.then(|| number(version));
        let span = Span { version: token_version.or(exact).unwrap_or(store.version), after, limit, is_exact };
        let page = store.page(&self.kind, &self.selection, &span, self.format);
        let (out, response) = self.begin(false);
        tokio::spawn(out.send_all(page));
        Reply::Stream(response)
    }

    fn watch(self) -> Reply {
        let streaming = self.query.is("sendInitialEvents");
        let bookmarks = self.query.is("allowWatchBookmarks");
        if streaming && self.fault == Some(Fault::NoStreamingLists) {
            return status(422, None, "sendInitialEvents is forbidden for watch");
        }
        let not_older_than = self.query.parameter("resourceVersionMatch") == "NotOlderThan";
        if streaming != not_older_than || streaming && !bookmarks {
            return status(422, None, "sendInitialEvents needs resourceVersionMatch=NotOlderThan and bookmarks");
        }
        let (version, current) = (self.query.parameter("resourceVersion"), self.shared.lock().store.version);
        // The real server accepts a watch from a version that it will have one day.
        if number(version) > current && (streaming || self.relaying.is_some()) {
            return too_large(version, current);
        }
        let (out, response) = self.begin(true);
        let open = OpenWatch::new(&self.shared, &self.query.resource);
        tokio::spawn(async move {
            let _open = open;
            self.follow(out, streaming, bookmarks).await
        });
        Reply::Stream(response)
    }

    /// Sends the initial events and then all changes, until the client disconnects or the watch times out.
    async fn follow(self, mut out: BodyWriter, streaming: bool, bookmarks: bool) -> Option<()> {
        let mut changed = self.shared.changed.subscribe();
        let seconds = self.query.parameter("timeoutSeconds").parse().unwrap_or(3600);
        let end = tokio::time::sleep(Duration::from_secs(seconds));
        // As the real server does: a client whose kind is quiet learns the version before its watch ends.
        let before_end = tokio::time::sleep(Duration::from_secs(seconds).saturating_sub(BOOKMARK_BEFORE_END));
        let is_short = Duration::from_secs(seconds) <= BOOKMARK_BEFORE_END;
        let mut has_last_bookmark = !bookmarks || is_short;
        tokio::pin!(end, before_end);
        let (first, mut from) = self.first(streaming);
        out.send(first).await?;
        let ends = self.fault == Some(Fault::Short) || streaming && self.fault == Some(Fault::OldStore);
        if ends {
            return Some(());
        }
        let mut beat = tokio::time::interval(self.relaying.map_or(NEVER, |relaying| relaying.heartbeat));
        loop {
            let (lines, next) = self.due(bookmarks, from);
            from.position = next;
            out.send(lines).await?;
            tokio::select! {
                _ = changed.changed() => {}
                _ = beat.tick(), if self.relaying.is_some() => {
                    let (lines, next) = self.beat(bookmarks, from);
                    from.position = next;
                    out.send(lines).await?;
                }
                () = &mut before_end, if !has_last_bookmark => {
                    has_last_bookmark = true;
                    let (lines, next) = self.beat(bookmarks, from);
                    from.position = next;
                    out.send(lines).await?;
                }
                () = &mut end => break,
            }
        }
        Some(())
    }

    /// Returns what is due and the bookmark of a relay after it, unless it is silent.
    fn beat(&self, bookmarks: bool, from: WatchPosition) -> (Vec<u8>, usize) {
        let state = self.shared.lock();
        if state.is_silent(&self.query.resource) {
            return (Vec::new(), from.position);
        }
        let (mut lines, next) = state.store.events(&self.kind, &self.selection, bookmarks, from, self.format);
        lines.extend(state.store.bookmark_event(&self.kind, &serde_json::json!({}), self.format));
        (lines, next)
    }

    /// Begins a response.
    fn begin(&self, is_watch: bool) -> (BodyWriter, Response<Body>) {
        let (sender, channel) = Channel::new(1);
        let compresses = self.relaying.is_some_and(|relaying| relaying.accepts_gzip);
        let response = Response::builder().header("content-type", self.format.content_type(is_watch));
        let response = if compresses { response.header("content-encoding", "gzip") } else { response };
        (BodyWriter { sender, fault: self.fault, compresses, sent: 0 }, response.body(channel).unwrap())
    }

    /// Returns the initial events of a watch, and the position in the log where it continues.
    fn first(&self, streaming: bool) -> (Vec<u8>, WatchPosition) {
        let store = &self.shared.lock().store;
        let refused = |code, message| self.format.event(&self.kind, "ERROR", &status_object(code, message));
        let version = self.query.parameter("resourceVersion");
        if streaming && self.fault == Some(Fault::OldStore) {
            let lines = refused(500, "the required storage feature RequestWatchProgress is disabled");
            return (lines, store.from(u64::MAX));
        }
        if streaming || matches!(version, "" | "0") {
            let lines = store.initial_events(&self.kind, &self.selection, streaming, self.format);
            return (lines, store.from(store.version));
        }
        if number(version) < store.compacted {
            return (refused(410, "too old resource version"), store.from(u64::MAX));
        }
        (Vec::new(), store.from(number(version)))
    }

    fn due(&self, bookmarks: bool, from: WatchPosition) -> (Vec<u8>, usize) {
        let state = self.shared.lock();
        if state.is_silent(&self.query.resource) {
            return (Vec::new(), from.position);
        }
        state.store.events(&self.kind, &self.selection, bookmarks, from, self.format)
    }
}

/// Open watch, counted until dropped.
struct OpenWatch {
    shared: Arc<Shared>,
    resource: String,
}

impl OpenWatch {
    fn new(shared: &Arc<Shared>, resource: &str) -> OpenWatch {
        *shared.lock().watches.entry(resource.to_owned()).or_default() += 1;
        OpenWatch { shared: Arc::clone(shared), resource: resource.to_owned() }
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        *self.shared.lock().watches.entry(self.resource.clone()).or_default() -= 1;
    }
}

fn too_large(version: &str, current: u64) -> Reply {
    status(504, Some(1), &format!("Timeout: Too large resource version: {version}, current: {current}"))
}

/// Compresses what is sent at once as a gzip member of its own.
fn member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Response body, subject to a fault.
struct BodyWriter {
    sender: Sender<Bytes, io::Error>,
    fault: Option<Fault>,
    compresses: bool,
    sent: usize,
}

impl BodyWriter {
    async fn send_all(mut self, bytes: Vec<u8>) {
        self.send(bytes).await;
    }

    /// Sends bytes. Returns `None` if no more can be sent.
    async fn send(&mut self, bytes: Vec<u8>) -> Option<()> {
        let bytes = if self.compresses && !bytes.is_empty() { member(&bytes) } else { bytes };
        let (most, pause) = match self.fault {
            Some(Fault::Slow(most, pause)) => (most, pause),
            _ => (CHUNK, Duration::ZERO),
        };
        for chunk in bytes.chunks(most) {
            if let Some(Fault::Cut(after)) = self.fault
                && self.sent + chunk.len() > after
            {
                return self.cut(chunk.get(..after - self.sent)?).await;
            }
            self.sender.send_data(self.corrupt(chunk)).await.ok()?;
            self.sent += chunk.len();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        Some(())
    }

    fn corrupt(&self, chunk: &[u8]) -> Bytes {
        let mut bytes = chunk.to_vec();
        if let Some(Fault::Corrupt(at)) = self.fault
            && let Some(byte) = at.checked_sub(self.sent).and_then(|at| bytes.get_mut(at))
        {
            *byte = 0xff;
        }
        bytes.into()
    }

    async fn cut(&mut self, last: &[u8]) -> Option<()> {
        self.sender.send_data(Bytes::copy_from_slice(last)).await.ok()?;
        // Once the connection has accepted the bytes, it writes them before anything else runs on this thread.
        while self.sender.capacity() < self.sender.max_capacity() {
            tokio::task::yield_now().await;
        }
        let (sender, _) = Channel::new(1);
        std::mem::replace(&mut self.sender, sender).abort(io::Error::other("connection cut by an injected fault"));
        None
    }
}
