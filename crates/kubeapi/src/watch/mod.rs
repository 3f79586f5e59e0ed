//! Watch of one kind of object: lists all objects, then follows every change until dropped.
//!
//! [`listwatch`] decides on the requests. [`Watcher`] is its source: it sends the requests, decodes the responses,
//! and applies the objects. The last known state is served at all times. A new list marks the objects that it finds and
//! then removes the others, so that memory never holds two copies.

mod count;
mod lookout;
mod mesh_log;
mod proof;
mod report;
mod response;
mod sink;

use std::rc::Rc;
use std::time::Duration;

use cluster::Kind;
use cluster::object::{Event, Meta, Object};
use count::{Collection, Count};
use host::invariant::{Expected as _, broken, holds};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use listwatch::{Earlier, Failure, Notice, Page, Policy, Received, Request, Source, Transfer};
use lookout::Lookout;
use proof::Prover;
use rand::RngExt;
use rand::rngs::StdRng;
pub(crate) use report::{log_failure, log_recovery};
use response::Reading;
pub(crate) use sink::{Shared, Sink};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info};

use crate::age::Mark;
use crate::api::{Api, Response};
use crate::decode::{Encoding, JSON};
use crate::failure::{ApiError, connection_problem};
use crate::health::WatchHealth;
use crate::servers::Servers;
use crate::target::Target;
use crate::{LOG, Timing};

/// Number of objects per page. The server may send more.
const PAGE: &str = "500";

/// Watch of one kind of object, in one namespace or all.
pub(crate) struct Watcher {
    servers: Rc<Servers>,
    /// Number of the current server, and its client.
    server: usize,
    api: Rc<Api>,
    /// Time of the last request.
    asked: Instant,
    /// Number of the last relay.
    relay: usize,
    /// Search for a relay while the API server is used.
    lookout: Option<Lookout>,
    count: Count,
    target: Target,
    /// Media types to accept.
    accept: &'static str,
    sink: Sink,
    timing: Rc<Timing>,
    random: StdRng,
    mark: Mark,
    health: WatchHealth,
    start: Instant,
    reading: Option<Reading>,
    /// True while what is read continues a complete list, so that it shows that the objects are current.
    is_following: bool,
    /// Changes if everything has to be listed again.
    relist: watch::Receiver<()>,
    /// Position after the last list. With several servers, that of the watch.
    position: String,
}

impl Watcher {
    pub(crate) fn new(servers: &Rc<Servers>, target: Target, sink: Sink, timing: &Rc<Timing>) -> Watcher {
        sink.meter().watches(target.resource);
        Watcher {
            servers: Rc::clone(servers),
            server: 0,
            api: Rc::clone(servers.first()),
            asked: Instant::now(),
            relay: 0,
            lookout: None,
            count: Count::new(timing.count, (timing.random)()),
            accept: Encoding::accepted(target.kind),
            target,
            mark: Mark::new(&sink.meter().failing),
            health: sink.watch_health(),
            relist: sink.relist(),
            position: String::new(),
            sink,
            timing: Rc::clone(timing),
            random: (timing.random)(),
            start: Instant::now(),
            reading: None,
            is_following: false,
        }
    }

    /// Lists and watches until dropped. If an earlier process knew the objects, continues its watch.
    pub(crate) async fn run(mut self) {
        self.use_server(0);
        let policy = Policy {
            unknown_is_empty: self.target.kind.is_of_mesh(),
            forbidden_is_listed: self.target.kind == Kind::Namespace && self.target.namespace.is_some(),
            order: self.servers.order().cloned(),
            ..self.timing.policy()
        };
        match self.sink.take_resumable() {
            Some(earlier) => {
                if earlier.position.is_none() {
                    // The list that was not completed may have been one of another history.
                    self.sink.forget_versions();
                }
                let earlier = earlier.position.map_or(Earlier::Partial(earlier.floor), Earlier::Complete);
                listwatch::resume(&mut self, policy, earlier).await
            }
            None => listwatch::run(&mut self, policy).await,
        };
    }

    /// Sends a request with parameters.
    async fn get(&mut self, parameters: &[(&str, &str)]) -> Result<Response, ApiError> {
        self.request(|target| target.url(parameters)).await
    }

    /// Sends a request, with the next API version of the kind while the server does not know it.
    async fn request(&mut self, url: impl Fn(&Target) -> String) -> Result<Response, ApiError> {
        loop {
            let response = self.api.get(&url(&self.target), self.accept).await;
            let is_unknown = matches!(response, Err(ApiError::Status { code: 404, .. }));
            if !(is_unknown && self.target.try_next_version()) {
                return response;
            }
        }
    }

    /// Returns the `timeoutSeconds` of a watch request, random so that watches do not end at the same time.
    fn watch_seconds(&mut self) -> String {
        let seconds = self.timing.watch.as_secs_f64() * (1.0 + self.random.random::<f64>());
        format!("{seconds:.0}")
    }

    /// Logs and counts a failure.
    fn failed(&mut self, failure: &ApiError, is_news: bool) {
        if failure.wants_new_client() {
            self.api.distrust();
        }
        if is_news {
            log_failure(&self.target.describe(), self.api.url(), failure);
        }
        if matches!(failure, ApiError::Missed { .. }) {
            // The API server may have another history: a backup that was restored, and has passed the position since.
            self.sink.forget_versions();
        }
        self.mark.set(true);
        self.health.failed(failure);
        if matches!(failure, ApiError::Unexpected(_)) && self.accept != JSON {
            // A proxy in between may not support protobuf.
            info!(target: LOG, "Asking for {} in JSON from now on", self.target.describe());
            self.accept = JSON;
        }
    }

    /// Records that the list is complete.
    fn listed(&mut self, transfer: Transfer) {
        self.target.keep_version();
        let way = match transfer {
            Transfer::Stream => "stream",
            Transfer::Pages => "pages",
        };
        debug!(target: LOG, "Listed {} ({way})", self.target.describe());
        self.sink.meter().list(self.target.resource, way);
        self.sink.listed(&self.position);
        self.is_following = true;
        self.health.proved();
    }

    /// Records that the watch continues from the position of an earlier process.
    fn resumed(&mut self) {
        self.target.keep_version();
        debug!(target: LOG, "Resumed {}", self.target.describe());
        self.sink.meter().resume(self.target.resource);
        self.sink.resumed();
        self.health.proved();
    }

    /// Keeps the position at the end of a list, and with several servers that of the watch.
    fn note_position(&mut self, received: &Received<String, String>) {
        match received {
            Received::Data { position: Some(position), .. } if self.is_following => self.position.clone_from(position),
            Received::Data { position: Some(position), ends_list: true, .. }
            | Received::PageEnd(Page::Last(position)) => self.position.clone_from(position),
            _ => {}
        }
    }

    /// Treats an unknown kind of a mesh as an empty list, because the mesh is not installed.
    fn assume_empty(&mut self) {
        info!(target: LOG, "The API server has no {}: there are none until it does", self.target.resource);
        self.sink.apply(&Event::Listing);
        self.sink.apply(&Event::Listed);
        self.count.tally().forget();
        self.health.assumed();
    }

    /// Assumes that a configured namespace exists if we may not read it. A Role in the namespace, which allows access
    /// to its Services, cannot grant access to the Namespace itself.
    fn assume_namespace(&mut self, is_first: bool, is_known: bool) {
        let Some(name) = self.target.namespace.as_deref() else {
            return debug_assert!(false, "only a single namespace is assumed to exist");
        };
        if is_first {
            info!(target: LOG, "Namespace {name} is taken to exist: we may not see whether it does");
        }
        if !is_known {
            self.sink.apply(&Event::Listing);
            self.sink.apply(&Event::Applied(Object::Namespace(Meta { namespace: "", name, version: "" })));
            self.sink.apply(&Event::Listed);
        }
        self.count.tally().forget();
        self.health.assumed();
    }

    /// Reads the next part of the response. Meanwhile, asks the API server whether a silent watch is current, and how
    /// many objects there are, to detect lost events.
    async fn read_part(&mut self, silence: Duration) -> Result<Received<String, String>, ApiError> {
        let is_relay = self.servers.is_relay(self.server);
        let Watcher { api, target, accept, sink, timing, health, reading, is_following, relist, count, .. } = self;
        let Some(reading) = reading.as_mut().expected("a response that is read") else { return Ok(Received::End) };
        let position = &self.position;
        let proof = Prover { api, target, accept, health, timing, position };
        let collection = Collection { api, target, accept, position, meter: sink.meter() };
        // With relays, they ask: one of thousands of nodes does not.
        let counts = *is_following && self.servers.order().is_none() && target.is_countable();
        let lookout = self.lookout.as_mut().filter(|_| *is_following);
        tokio::select! {
            biased;
            // The sender is in the sink, so it is there.
            _ = relist.changed() => Err(ApiError::Unrecorded),
            received = reading.read(sink, silence) => received,
            // The bookmarks of a relay prove that it is current.
            error = proof.run(), if *is_following && sink.limits_age() && !is_relay => Err(error),
            error = count.differs(&collection), if counts => Err(error),
            () = found(lookout, target, position, accept) => Ok(Received::RelayFound),
        }
    }
}

impl Watcher {
    /// Sends the next requests to a server, because another one has failed.
    fn move_to(&mut self, number: usize) {
        self.use_server(number);
        let order = self.servers.order();
        holds(order.is_some(), "a watch moves if it has several servers");
        self.lookout = None;
        if self.servers.is_relay(number) {
            self.relay = number;
            // A relay may be one of several behind an address.
            self.api.reconnect(self.asked);
        } else if let Some(order) = order {
            debug!(target: LOG, "Asking the API server for {}, without a relay", self.target.describe());
            self.lookout = Some(Lookout::new(self.servers.get(self.relay), order, (self.timing.random)()));
        }
    }

    /// Continues at a relay that was found.
    fn return_to(&mut self, number: usize) {
        holds(self.servers.is_relay(number), "a watch returns to a relay");
        info!(target: LOG, "Watching {} at a relay again", self.target.describe());
        self.lookout = None;
        self.use_server(number);
    }

    fn use_server(&mut self, number: usize) {
        self.server = number;
        self.api = Rc::clone(self.servers.get(number));
        if self.servers.order().is_some() {
            self.health.uses(self.api.url(), self.servers.is_relay(number));
        }
    }

    /// Returns the version that what is read must have reached, with several servers.
    fn floor(&self, position: Option<&String>) -> Option<String> {
        self.servers.order().map(|_| position.cloned().unwrap_or_default())
    }

    /// Opens a list.
    async fn list(&mut self, request: &Request<String, String>) -> Result<Reading, ApiError> {
        let (kind, seconds) = (self.target.kind, self.watch_seconds());
        let rule = |bound: &Option<String>| if bound.is_some() { "NotOlderThan" } else { "" };
        Ok(match request {
            Request::Stream { not_before } => {
                let version = not_before.as_deref().unwrap_or_default();
                let list = [
                    ("sendInitialEvents", "true"),
                    ("resourceVersion", version),
                    ("resourceVersionMatch", "NotOlderThan"),
                ];
                let watch = [("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", &seconds)];
                let response = self.get(&[&watch[..1], &list, &watch[1..]].concat()).await?;
                Reading::list_as_stream(kind, response, self.floor(not_before.as_ref()))
            }
            Request::Page { cursor, may_be_old, not_before } => {
                let version = if *may_be_old { "0" } else { not_before.as_deref().unwrap_or_default() };
                let token = cursor.as_deref().unwrap_or_default();
                let page = [("limit", PAGE), ("resourceVersion", version), ("continue", token)];
                let response = self.get(&[&page[..], &[("resourceVersionMatch", rule(not_before))]].concat()).await?;
                Reading::page(kind, response, not_before.clone())
            }
            Request::Check { .. } | Request::Confirm { .. } | Request::Watch { .. } => {
                broken("a list is requested as a stream or by pages");
                return Err(ApiError::Unexpected("no list is requested".to_owned()));
            }
        })
    }
}

/// Returns the parameters of a list that must not be older than a position.
const fn not_older(position: &str) -> [(&str, &str); 2] {
    [("resourceVersion", position), ("resourceVersionMatch", "NotOlderThan")]
}

/// Waits until a relay is found, or forever if none is looked for.
async fn found(lookout: Option<&mut Lookout>, target: &Target, position: &str, accept: &'static str) {
    match lookout {
        Some(lookout) => lookout.found(target, position, accept).await,
        None => core::future::pending().await,
    }
}

impl Source for Watcher {
    type Position = String;
    type Cursor = String;
    type Error = ApiError;

    async fn open(&mut self, request: Request<String, String>) -> Result<(), ApiError> {
        self.reading = None;
        self.asked = Instant::now();
        self.is_following = matches!(request, Request::Watch { .. });
        debug!(target: LOG, "Requesting {}: {request:?}", self.target.describe());
        let kind = self.target.kind;
        self.reading = Some(match &request {
            Request::Stream { .. } | Request::Page { .. } => self.list(&request).await?,
            // A list of one object that must not be older than the position. A relay ignores the limit.
            Request::Check { position } if self.servers.order().is_some() => {
                Reading::check(self.request(|target| target.url_of_one(&not_older(position))).await?)
            }
            Request::Check { position } => {
                let [version, rule] = not_older(position);
                Reading::check(self.get(&[("limit", "1"), version, rule]).await?)
            }
            // A list of at most one object that is as new as the storage.
            Request::Confirm { position } => {
                let response = self.request(|target| target.url_of_one(&[])).await?;
                Reading::confirmation(kind, response, position.clone())
            }
            Request::Watch { position } => {
                let seconds = self.watch_seconds();
                let watch = [("watch", "1"), ("resourceVersion", position), ("allowWatchBookmarks", "true")];
                let response = self.get(&[&watch[..], &[("timeoutSeconds", &seconds)]].concat()).await?;
                self.position.clone_from(position);
                Reading::watch(kind, response, self.floor(Some(position)))
            }
        });
        Ok(())
    }

    async fn read(&mut self, silence: Duration) -> Result<Received<String, String>, ApiError> {
        let received = self.read_part(silence).await;
        if let Some(reading) = &mut self.reading {
            self.sink.meter().received(self.target.resource, reading.new_bytes());
            self.count.tally().add(reading.new_objects());
        }
        if let Ok(part) = &received {
            self.health.heard();
            self.note_position(part);
            if self.is_following && !matches!(part, Received::End | Received::RelayFound) {
                self.health.proved();
            }
        }
        received
    }

    async fn sleep(&mut self, pause: Duration) {
        self.reading = None;
        sleep(pause).await;
    }

    fn now(&self) -> host::Instant {
        host::Instant::START + self.start.elapsed()
    }

    fn jitter(&mut self) -> f64 {
        self.random.random()
    }

    fn classify(&self, error: &ApiError) -> Failure {
        error.classify()
    }

    fn notify(&mut self, notice: Notice, error: Option<&ApiError>) {
        let (error, resource) = (error.unwrap_or(&ApiError::Short), self.target.resource);
        if notice.is_failure() {
            self.sink.meter().failure(resource, error.label());
        }
        match notice {
            Notice::ListBegins => {
                self.count.tally().begin_list();
                self.sink.apply(&Event::Listing);
            }
            Notice::Listed(transfer) => self.listed(transfer),
            Notice::Resumed => self.resumed(),
            Notice::AssumedEmpty => self.assume_empty(),
            Notice::AssumedListed { is_first, is_known } => self.assume_namespace(is_first, is_known),
            Notice::UsesPages => info!(target: LOG, "Listing {} by pages: {error}", self.target.describe()),
            Notice::Renewed => self.sink.meter().renewal(resource),
            // Part of a watch's life: the server keeps about five minutes of history.
            Notice::PositionLost => {
                info!(target: LOG, "Listing {} again: {error}", self.target.describe());
                if error.is_of_other_history() {
                    self.sink.forget_versions();
                }
            }
            Notice::Moved { source } => self.move_to(source),
            Notice::Returned { source } => self.return_to(source),
            Notice::Failed { is_news } => self.failed(error, is_news),
            Notice::Recovered { after } => {
                log_recovery(&self.target.describe(), after);
                self.mark.set(false);
                self.health.recovered();
            }
        }
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
