//! Simulated API server: two servers with one storage, and their faults. It answers the requests of the client for the
//! API server, which has no other connections.

mod body;
mod content;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, sleep};

use crate::check::Model;
use crate::counts::{Counts, What};
use crate::mirror::{Effect, Mirror, Mirrors};
use crate::objects::Kind;
use crate::random::Generator;
use crate::store::Store;
use body::ApiBody;
use content::{Content, Parameters};

/// Number of API servers of a cluster.
pub(crate) const SERVERS: usize = 2;
/// Time after which an API server gives up to wait for a version.
const VERSION_WAIT: Duration = Duration::from_secs(3);

/// Time in which the number of requests is bounded.
const RATE_SPAN: Duration = Duration::from_secs(10);
/// Maximum number of requests in that time, besides the further pages of a list. The client pauses after a failure, and
/// a list begins again after a fault in it.
const RATE_MAX: usize = 150;

/// Condition of an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Fine,
    /// Refuses connections and breaks open ones.
    Down,
    /// Answers every request with this status and with `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Accepts requests and does not answer.
    Hanging,
    /// Breaks the connection within a response.
    Cutting,
    /// Sends responses slowly.
    Slow,
    /// Ends every watch at once.
    Short,
    /// Keeps watches open without sending events.
    Stalled,
}

/// One of the API servers.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) condition: Condition,
    /// Incremented when its connections break.
    generation: u64,
    /// Version up to which its cache is current, if it lags.
    pub(crate) frozen: Option<u64>,
    /// True if its watches leave out events.
    pub(crate) omits: bool,
}

/// State of the API servers.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) mirrors: Mirrors,
    /// Model of the mirrors and the storage, until one of them changes.
    model: Option<Arc<Model>>,
    pub(crate) servers: [Server; SERVERS],
    /// True if watches leave out deletions, false if they leave out additions. As many of both cannot be noticed.
    pub(crate) omits_deletions: bool,
    /// Number of servers that requests reach.
    pub(crate) reachable: usize,
    /// True if the servers know streaming lists.
    pub(crate) has_streams: bool,
    pub(crate) counts: Counts,
    /// First violation of a rule by the client.
    pub(crate) violation: Option<String>,
    random: Generator,
    wakers: Vec<Waker>,
    /// Times of the last requests.
    requests: VecDeque<Instant>,
}

impl State {
    /// Checks that the client does not ask too often.
    fn count_request(&mut self, uri: &Uri) {
        if uri.query().is_some_and(|query| query.contains("continue=")) {
            return;
        }
        let now = now();
        self.requests.push_back(now);
        while self.requests.front().is_some_and(|first| *first + RATE_SPAN < now) {
            self.requests.pop_front();
        }
        let number = self.requests.len();
        if number > RATE_MAX {
            self.violate(format!("{number} requests in {RATE_SPAN:?}"));
        }
    }

    /// Returns the version up to which the cache of a server is current.
    fn visible(&self, server: usize) -> u64 {
        self.servers[server].frozen.map_or(self.store.version, |frozen| frozen.min(self.store.version))
    }

    /// Returns the model of what was delivered.
    pub(crate) fn model(&mut self) -> Arc<Model> {
        let State { store, mirrors, model, counts, .. } = self;
        let has_omissions = counts.has(What::Omitted);
        Arc::clone(model.get_or_insert_with(|| Arc::new(Model::new(mirrors, &store.current, has_omissions))))
    }

    /// Returns the mirror of a kind, to change it.
    fn mirror(&mut self, kind: Kind) -> &mut Mirror {
        self.model = None;
        self.mirrors.of(kind)
    }

    /// Restores a backup of this version. What is known from before it stays true.
    pub(crate) fn restore(&mut self, version: u64) {
        self.store.restore(version);
        let known = self.mirrors.0.iter_mut().filter(|mirror| mirror.version <= self.store.version);
        known.for_each(|mirror| mirror.epoch = self.store.epoch);
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    fn deliver(&mut self, kind: Kind, effect: Effect) {
        self.counts.count(What::Event);
        if let Err(violation) = self.mirror(kind).apply(effect) {
            self.violation.get_or_insert(format!("{kind:?}: {violation}"));
        }
    }

    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}

/// The API servers, shared by the simulation and the client.
#[derive(Clone)]
pub(crate) struct Api(Arc<Mutex<State>>);

impl Api {
    pub(crate) fn new(random: &mut Generator) -> Api {
        let server = || Server { condition: Condition::Fine, generation: 0, frozen: None, omits: false };
        Api(Arc::new(Mutex::new(State {
            store: Store::new(),
            mirrors: Mirrors::default(),
            model: None,
            servers: [server(), server()],
            omits_deletions: random.is(50),
            reachable: if random.is(40) { SERVERS } else { 1 },
            has_streams: random.is(60),
            counts: Counts::default(),
            violation: None,
            random: random.fork(),
            wakers: Vec::new(),
            requests: VecDeque::new(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes what waits for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        state.model = None;
        let changed = change(&mut state);
        state.wake();
        changed
    }

    /// Sets the condition of a server.
    pub(crate) fn set(&self, server: usize, condition: Condition) {
        self.change(|state| {
            let server = &mut state.servers[server];
            server.condition = condition;
            server.generation += u64::from(condition == Condition::Down);
        });
    }

    /// Breaks all connections.
    pub(crate) fn disconnect(&self) {
        self.change(|state| state.servers.iter_mut().for_each(|server| server.generation += 1));
    }

    /// Creates a client for the servers.
    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| api.clone().answer(request.uri().clone()));
        Client::new(service, "")
    }

    async fn answer(self, uri: Uri) -> io::Result<Response<ApiBody>> {
        let (server, latency) = {
            let mut state = self.lock();
            let reachable = state.reachable;
            state.count_request(&uri);
            (state.random.index(reachable), state.random.millis(30))
        };
        sleep(latency).await;
        self.until_answering(server).await;
        let condition = self.lock().servers[server].condition;
        match condition {
            Condition::Down => {
                self.lock().counts.count(What::Refused);
                Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the API server is down"))
            }
            Condition::Status(code, retry_after) => {
                self.lock().counts.count(What::Refused);
                Ok(self.refusal(server, code, retry_after, "injected fault"))
            }
            _ => Ok(self.serve(server, &uri).await),
        }
    }

    /// Waits while a server answers no request.
    async fn until_answering(&self, server: usize) {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.servers[server].condition == Condition::Hanging {
                state.wakers.push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    async fn serve(&self, server: usize, uri: &Uri) -> Response<ApiBody> {
        let resource = uri.path().rsplit('/').next().unwrap_or_default();
        let Some(kind) = Kind::of_resource(resource) else {
            return self.refusal(server, 404, None, "the server could not find the requested resource");
        };
        let parameters = Parameters::of(uri.query().unwrap_or_default());
        if self.lacks(server, &parameters) {
            sleep(VERSION_WAIT).await;
        }
        if self.lacks(server, &parameters) {
            self.lock().counts.count(What::Ahead);
            return self.refusal(server, 504, Some(1), "Timeout: Too large resource version: 9, current: 8");
        }
        let opened = content::open(&mut self.lock(), server, kind, &parameters);
        match opened {
            Ok(content) => self.response(server, kind, content),
            Err((code, message)) => self.refusal(server, code, None, message),
        }
    }

    /// Returns true if the cache of a server does not have the version that a list must not be older than.
    fn lacks(&self, server: usize, parameters: &Parameters) -> bool {
        parameters.not_older() > self.lock().visible(server)
    }

    fn response(&self, server: usize, kind: Kind, content: Content) -> Response<ApiBody> {
        let mut response = Response::new(ApiBody::new(self, server, kind, content));
        let header = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, header);
        response
    }

    fn refusal(&self, server: usize, code: u16, retry_after: Option<u32>, message: &str) -> Response<ApiBody> {
        let mut response = self.response(server, Kind::Service, content::status(code, message));
        *response.status_mut() = http::StatusCode::from_u16(code).expect("a status code");
        let header = retry_after.map(http::HeaderValue::from);
        header.into_iter().for_each(|seconds| drop(response.headers_mut().insert(http::header::RETRY_AFTER, seconds)));
        response
    }
}

/// Returns the time of the runtime.
fn now() -> Instant {
    Instant::now()
}
