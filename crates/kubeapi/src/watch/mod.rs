//! Watch of one kind of object: lists all objects, then follows every change until dropped.
//!
//! ```text
//!            ┌──────────── refused, silent, cut short ───────────┐
//!            │  ┌───────────────────────────────────────────┐    │
//!            │  │                                           ▼    ▼
//!  start ─► Stream ── its final bookmark ───► Follow ◄── the last page ── Page ◄─┐
//!            ▲                                │ ▲ │                       ▲ └─────┘ a page
//!            │                                │ └─┘ an event, a bookmark, │
//!            │                                │     the server's timeout
//!            └───────────── 410 Gone ─────────┴───────────────────────────┘
//! ```
//!
//! After a failure, the watcher pauses and tries again in the state that it had reached. A broken connection thus needs
//! no new list. The last known state is served in all states. A new list marks the objects that it finds and then
//! removes the others, so that memory never holds two copies.
//!
//! A resource version is only useful if the server has it. A server whose etcd was restored from an older backup would
//! accept a watch from the version and never send an event. Therefore, after a broken connection or a long silence, the
//! watcher first checks that the server has the version.

mod health;
mod mesh_log;
mod sink;

use std::rc::Rc;
use std::time::Duration;

use cluster::object::{Event, Meta, Object};
use cluster::{Change, Kind};
pub(crate) use health::Health;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use rand::RngExt;
use rand::rngs::StdRng;
pub(crate) use sink::{Shared, Sink};
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use crate::age::Mark;
use crate::api::{Api, Response};
use crate::decode::{Encoding, EventDecoder, JSON, ListDecoder, WatchEvent};
use crate::failure::{ApiError, connection_problem};
use crate::target::Target;
use crate::timing::Backoff;
use crate::{LOG, Timing};

/// Number of objects per page. The server may send more.
const PAGE: &str = "500";

/// State of a watch, which decides on the next request.
#[derive(Debug)]
enum State {
    /// No complete list yet. The next request is a streaming list, which continues as a watch.
    Stream,
    /// No complete list yet, and streaming lists are not available. The next request is for a page.
    Page {
        /// Continue token of the next page, empty for the first one.
        token: String,
    },
    /// Everything up to this version is known. The next request is a watch from it.
    Follow { version: String },
}

impl State {
    fn first_page() -> State {
        State::Page { token: String::new() }
    }
}

/// Watch of one kind of object, in one namespace or all.
pub(crate) struct Watcher {
    api: Rc<Api>,
    target: Target,
    /// Media types to accept.
    accept: &'static str,
    sink: Sink,
    timing: Rc<Timing>,
    random: StdRng,
    backoff: Backoff,
    health: Health,
    mark: Mark,
    /// True if the server does not support streaming lists.
    streams_rejected: bool,
    /// True if the server may not have the known version.
    doubted: bool,
    /// True until the first list is complete. The server may answer the first list from its cache. Later lists must not
    /// be older than what is already known.
    first: bool,
    /// True if the server does not know the kind, so that there are no objects.
    absent: bool,
}

impl Watcher {
    pub(crate) fn new(api: &Rc<Api>, target: Target, sink: Sink, timing: &Rc<Timing>) -> Watcher {
        sink.meter().watches(target.resource);
        Watcher {
            api: Rc::clone(api),
            accept: Encoding::accepted(target.kind),
            target,
            mark: Mark::new(&sink.meter().failing),
            sink,
            timing: Rc::clone(timing),
            random: rand::make_rng(),
            backoff: Backoff::default(),
            health: Health::New,
            streams_rejected: false,
            doubted: false,
            first: true,
            absent: false,
        }
    }

    /// Lists and watches until dropped.
    pub(crate) async fn run(mut self) {
        let mut state = State::Stream;
        loop {
            let outcome = match &state {
                State::Stream => self.stream(&mut state).await,
                State::Page { .. } => self.page(&mut state).await,
                State::Follow { .. } => self.follow(&mut state).await,
            };
            match outcome {
                Ok(()) => {}
                Err(failure) => self.recover(&mut state, &failure).await,
            }
        }
    }

    /// Requests a streaming list that continues as a watch.
    async fn stream(&mut self, state: &mut State) -> Result<(), ApiError> {
        let seconds = self.watch_seconds();
        let url = self.target.url(&[
            ("watch", "1"),
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds),
        ]);
        let response = match self.api.get(&url, self.accept).await {
            Err(failure) if failure.rejects_request() => {
                self.use_pages(state, &failure);
                return Ok(());
            }
            response => response?,
        };
        self.sink.apply(&Event::Listing);
        match self.events(response, state).await {
            Err(failure) if matches!(state, State::Stream) && failure.rejects_stream() => {
                self.use_pages(state, &failure);
                Ok(())
            }
            Ok(_) if matches!(state, State::Stream) => Err(ApiError::Short),
            outcome => outcome.map(drop),
        }
    }

    /// Switches to paginated lists for good.
    fn use_pages(&mut self, state: &mut State, rejection: &ApiError) {
        info!(target: LOG, "Listing {} by pages: {rejection}", self.target.describe());
        self.streams_rejected = true;
        *state = State::first_page();
    }

    /// Requests the next page.
    async fn page(&mut self, state: &mut State) -> Result<(), ApiError> {
        let State::Page { token } = state else { return Ok(()) };
        let is_first_page = token.is_empty();
        let version = if is_first_page && self.first { "0" } else { "" };
        let url = self.target.url(&[("limit", PAGE), ("resourceVersion", version), ("continue", token)]);
        let response = self.api.get(&url, self.accept).await?;
        if is_first_page {
            self.sink.apply(&Event::Listing);
        }
        *state = self.items(response).await?;
        if matches!(state, State::Follow { .. }) {
            self.listed("pages");
        }
        Ok(())
    }

    /// Requests a watch from the known version.
    async fn follow(&mut self, state: &mut State) -> Result<(), ApiError> {
        let State::Follow { version } = &*state else { return Ok(()) };
        if self.doubted {
            self.verify(version).await?;
        }
        let seconds = self.watch_seconds();
        let url = self.target.url(&[
            ("watch", "1"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds),
        ]);
        let begin = Instant::now();
        let response = self.api.get(&url, self.accept).await?;
        let count = match self.events(response, state).await {
            // The watch may have stalled. A new one from the last known version finds out.
            Err(ApiError::Silent(_)) => {
                self.sink.meter().renewal(self.target.resource);
                self.doubted = true;
                return Ok(());
            }
            count => count?,
        };
        let is_short = count == 0 && begin.elapsed() < self.timing.watch_min;
        if is_short { Err(ApiError::Short) } else { Ok(()) }
    }

    /// Checks that the server has this version, with a list of one object that must not be older than it.
    async fn verify(&mut self, version: &str) -> Result<(), ApiError> {
        let url =
            self.target.url(&[("limit", "1"), ("resourceVersion", version), ("resourceVersionMatch", "NotOlderThan")]);
        let Response { mut body, .. } = self.api.get(&url, self.accept).await?;
        while next(&mut body, self.timing.list_silence).await?.is_some() {}
        self.doubted = false;
        Ok(())
    }

    /// Processes the events of a watch until the server ends it. Returns the number of events.
    async fn events(&mut self, response: Response, state: &mut State) -> Result<u64, ApiError> {
        let Response { mut body, encoding, mut permit } = response;
        let mut decoder = EventDecoder::new(encoding, self.target.kind);
        let mut count = 0;
        loop {
            let listing = matches!(state, State::Stream);
            permit = permit.filter(|_| listing);
            let is_doubted = !listing && self.health.is_failing();
            let bytes = match next(&mut body, self.silence(listing)).await {
                // An open watch without events works.
                Err(ApiError::Silent(_)) if is_doubted => {
                    self.well();
                    continue;
                }
                bytes => bytes?,
            };
            let Some(bytes) = bytes else { break };
            let mut refused = None;
            let fed = decoder.feed(&bytes, &mut |event| {
                count += 1;
                refused = self.event(event, state).err().or(refused.take());
            });
            if let Some(refused) = refused {
                return Err(refused);
            }
            fed?;
            if count > 0 && self.health.is_failing() && !matches!(state, State::Stream) {
                self.well();
            }
        }
        if decoder.is_within_an_event() { Err(ApiError::Cut) } else { Ok(count) }
    }

    /// Returns the timeout for the next data of the response.
    fn silence(&self, listing: bool) -> Duration {
        match (listing, self.health.is_failing()) {
            (true, _) => self.timing.list_silence,
            (false, true) => self.timing.watch_min,
            (false, false) => self.timing.watch_silence,
        }
    }

    /// Processes one event of a watch.
    fn event(&mut self, event: WatchEvent<'_>, state: &mut State) -> Result<(), ApiError> {
        match event {
            WatchEvent::Applied { object, trigger } => self.applied(object, trigger, state),
            WatchEvent::Deleted { namespace, name, version } => {
                self.sink.apply(&Event::Deleted { namespace, name });
                advance(state, version);
            }
            WatchEvent::Unreadable { namespace, name, version, reason, message } => {
                self.sink.unreadable(namespace, name, reason, &message);
                advance(state, version);
            }
            WatchEvent::Bookmark { version, ends_list } => {
                if ends_list && matches!(state, State::Stream) {
                    *state = State::Follow { version: version.to_owned() };
                    self.listed("stream");
                }
                advance(state, version);
            }
            WatchEvent::Refused { code: 410, .. } => return Err(ApiError::Gone),
            WatchEvent::Refused { code, message } => {
                return Err(ApiError::Status { code, message: message.to_owned(), retry_after: None });
            }
            WatchEvent::List { .. } => {}
        }
        Ok(())
    }

    fn applied(&self, object: Object<'_>, trigger: &str, state: &mut State) {
        let version = object.meta().version;
        let event = Event::Applied(object);
        let change = self.sink.apply(&event);
        let Event::Applied(object) = event else { return };
        let is_live = matches!(state, State::Follow { .. });
        if is_live && !trigger.is_empty() && matches!(change, Change::Added | Change::Updated) {
            self.sink.observe(&object, trigger);
        }
        advance(state, version);
    }

    /// Processes the items of a page and returns the next state.
    async fn items(&mut self, response: Response) -> Result<State, ApiError> {
        let Response { mut body, encoding, permit: _permit } = response;
        let mut decoder = ListDecoder::new(encoding, self.target.kind);
        let mut after = None;
        while let Some(bytes) = next(&mut body, self.timing.list_silence).await? {
            let fed = decoder.feed(&bytes, &mut |event| match event {
                WatchEvent::Applied { object, .. } => drop(self.sink.apply(&Event::Applied(object))),
                WatchEvent::Unreadable { namespace, name, reason, message, .. } => {
                    self.sink.unreadable(namespace, name, reason, &message);
                }
                WatchEvent::List { version, token: "" } => {
                    after = Some(State::Follow { version: version.to_owned() });
                }
                WatchEvent::List { token, .. } => after = Some(State::Page { token: token.to_owned() }),
                WatchEvent::Deleted { .. } | WatchEvent::Bookmark { .. } | WatchEvent::Refused { .. } => {}
            });
            fed?;
        }
        if !decoder.is_complete() {
            return Err(ApiError::Cut);
        }
        after.ok_or_else(|| ApiError::Unexpected("the list has no metadata".to_owned()))
    }

    /// Records that the list is complete.
    fn listed(&mut self, way: &str) {
        (self.first, self.absent, self.doubted) = (false, false, false);
        self.target.keep_version();
        self.sink.meter().list(self.target.resource, way);
        self.sink.apply(&Event::Listed);
        self.well();
    }

    fn well(&mut self) {
        self.health.well(&self.target.describe(), Instant::now());
        self.mark.set(false);
    }

    /// Handles a failure: chooses the next request and waits.
    async fn recover(&mut self, state: &mut State, failure: &ApiError) {
        let is_unknown = matches!(failure, ApiError::Status { code: 404, .. });
        if is_unknown && self.target.try_next_version() {
            // Try the next API version immediately: a pause has no benefit.
            return;
        }
        if is_unknown && self.assume_absent() {
            return sleep(self.timing.absent).await;
        }
        self.sink.meter().failure(self.target.resource, failure.label());
        if failure.wants_new_client() {
            self.api.distrust();
        }
        self.doubted |= matches!(failure, ApiError::Connection(_));
        let is_assumed = self.assume_if_forbidden(state, failure);
        if !is_assumed {
            self.health.failed((&self.target.describe(), self.api.url()), failure, Instant::now());
            self.mark.set(self.health.is_failing());
        }
        if matches!(failure, ApiError::Unexpected(_)) && self.accept != JSON {
            // A proxy in between may not support protobuf.
            info!(target: LOG, "Asking for {} in JSON from now on", self.target.describe());
            self.accept = JSON;
        }
        self.choose(state, failure);
        let jitter = self.random.random::<f64>();
        let pause = match failure {
            _ if is_assumed => self.timing.forbidden,
            // The server works. The random part of the pause is enough to spread the requests of a fleet.
            ApiError::Gone => self.timing.pause_min.mul_f64(jitter),
            _ => self.backoff.pause(&self.timing, Instant::now(), jitter, failure),
        };
        sleep(pause).await;
    }

    /// Chooses the next request after a failure, unless the same one is repeated.
    fn choose(&mut self, state: &mut State, failure: &ApiError) {
        match state {
            // Changes since then are lost, so a new list is needed.
            State::Follow { .. } | State::Page { .. } if failure.loses_the_version() => *state = self.start(),
            State::Stream if failure.is_response() => *state = State::first_page(),
            // The form of the request may be the cause, so try the other one.
            State::Page { token } if token.is_empty() && failure.is_response() => *state = self.start(),
            _ => {}
        }
    }

    /// Returns the state that starts a new list.
    fn start(&self) -> State {
        if self.streams_rejected { State::first_page() } else { State::Stream }
    }

    /// Treats an unknown kind of a mesh as an empty list, because the mesh is not installed. Returns false for other
    /// kinds, and if objects of the kind were known before: a starting API server briefly does not know its CRDs.
    fn assume_absent(&mut self) -> bool {
        if !self.sink.kind.is_of_mesh() || !(self.first || self.absent) {
            return false;
        }
        if self.first {
            info!(target: LOG, "The API server has no {}: there are none until it does", self.target.resource);
            self.sink.apply(&Event::Listing);
            self.sink.apply(&Event::Listed);
        }
        (self.first, self.absent) = (false, true);
        self.well();
        true
    }

    /// Assumes that a configured namespace exists if we may not read it. A Role in the namespace, which allows access
    /// to its Services, cannot grant access to the Namespace itself.
    fn assume_if_forbidden(&mut self, state: &State, failure: &ApiError) -> bool {
        let (Kind::Namespace, Some(name)) = (self.target.kind, &self.target.namespace) else { return false };
        if !matches!(failure, ApiError::Status { code: 403, .. }) {
            return false;
        }
        if self.first {
            info!(target: LOG, "Namespace {name} is taken to exist: we may not see whether it does");
        }
        if !matches!(state, State::Follow { .. }) {
            self.sink.apply(&Event::Listing);
            let name: &str = name;
            self.sink.apply(&Event::Applied(Object::Namespace(Meta { namespace: "", name, version: "" })));
            self.sink.apply(&Event::Listed);
            self.first = false;
        }
        true
    }

    /// Returns the `timeoutSeconds` of a watch request, random so that watches do not end at the same time.
    fn watch_seconds(&mut self) -> String {
        let seconds = self.timing.watch.as_secs_f64() * (1.0 + self.random.random::<f64>());
        format!("{seconds:.0}")
    }
}

/// Returns the next chunk of a body, or `None` at its end.
pub(crate) async fn next(body: &mut Body, silence: Duration) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = timeout(silence, body.frame()).await.map_err(|_| ApiError::Silent(silence))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(ApiError::Connection(connection_problem(&error))),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// Stores the version up to which everything is known.
fn advance(state: &mut State, version: &str) {
    if let State::Follow { version: known } = state
        && !version.is_empty()
        && known != version
    {
        known.clear();
        known.push_str(version);
    }
}
