//! HTTP requests to an API server. All watches of a subscription share one client, which is rebuilt when it seems to be
//! at fault, for example after credentials have been rotated.

use cluster::{RateLimit, Relays, Source, Spec};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request};
use kube::Client;
use kube::Config;
use kube::client::Body;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::body::ResponseBody;
use crate::credentials::{self, HttpVersion, Profile};
use crate::decode::{Encoding, Status};
use crate::failure::{ApiError, connection_problem};
use crate::meter::Meter;
use crate::rate_limit::{Permit, RateLimiter};
use crate::{ClientError, SetupError, Timing};

/// Maximum number of bytes read from the body of an error response.
const PROBLEM_MAX: usize = 64 * 1024;
/// Timeout for the body of an error response.
const PROBLEM_TIME: Duration = Duration::from_secs(5);
/// Text in the message of a 504 response to a request for a resource version that the server does not have yet.
/// Kubernetes clients recognize this error by its text.
const AHEAD: &str = "Too large resource version";

/// Text in the message of a 410 response of a relay that has seen that the storage of the API server was restored.
pub(crate) const RESTORED: &str = "has been restored";

/// Maximum number of watches on one HTTP/2 connection. API servers accept 100 requests in flight
/// (`--http2-max-streams-per-connection`); lists and checks need room beside the watches.
const WATCHES_MAX: usize = 50;

/// One API server, or relays behind one address.
pub(crate) struct Api {
    origin: Origin,
    version: HttpVersion,
    timing: Rc<Timing>,
    meter: Rc<Meter>,
    host: String,
    url: String,
    /// Held while a client is built. Building can take long, and concurrent requests shall share the result.
    making: Mutex<()>,
    client: RefCell<Option<(Client, Instant)>>,
    distrusted: Cell<bool>,
    limiter: RateLimiter,
}

/// Configuration of an [`Api`], which is read again for each client.
#[derive(Clone)]
enum Origin {
    Server(Source),
    Relay { relays: Relays, url: String, profile: Profile },
}

/// Successful response whose body has not been read yet.
pub(crate) struct Response {
    pub(crate) body: ResponseBody,
    pub(crate) encoding: Encoding,
    /// Counts the request as in flight until dropped.
    pub(crate) permit: Permit,
}

impl Api {
    pub(crate) fn new(request: &cluster::Request, config: &Config, timing: Rc<Timing>, meter: Rc<Meter>) -> Api {
        let version = version_for(&request.watches());
        let origin = Origin::Server(request.source.clone());
        Api::with((origin, version), config, request.rate_limit, timing, meter)
    }

    /// Creates the client of relays behind a URL. The rate limit of the API server does not apply to them.
    ///
    /// # Errors
    /// A problem of the configuration.
    pub(crate) fn relay(
        (relays, url): (&Relays, &str),
        request: &cluster::Request,
        timing: &Timing,
        meter: &Rc<Meter>,
    ) -> Result<Api, SetupError> {
        let profile = Profile::of(request);
        let config = credentials::relay(relays, url, profile)?;
        let origin = Origin::Relay { relays: relays.clone(), url: url.to_owned(), profile };
        let (version, timing) = (version_for(&request.watches()), Rc::new(timing.of_relay()));
        Ok(Api::with((origin, version), &config, RateLimit::default(), timing, Rc::clone(meter)))
    }

    fn with(
        (origin, version): (Origin, HttpVersion),
        config: &Config,
        rate_limit: RateLimit,
        timing: Rc<Timing>,
        meter: Rc<Meter>,
    ) -> Api {
        let (host, url) = (credentials::host(config), credentials::server_url(config));
        let (making, client, distrusted) = (Mutex::new(()), RefCell::default(), Cell::new(false));
        let limiter = RateLimiter::new(rate_limit);
        Api { origin, version, timing, meter, host, url, making, client, distrusted, limiter }
    }

    /// Sends a GET request for a path with a query. `accept` lists the acceptable media types.
    ///
    /// # Errors
    /// A [`ApiError`] if the request could not be sent, the response did not start within [`Timing::response`],
    /// the status was not 2xx, or the content type is unknown.
    pub(crate) async fn get(&self, url: &str, accept: &'static str) -> Result<Response, ApiError> {
        let (permit, waited) = self.limiter.pass().await;
        self.meter.delayed(&self.host, waited);
        let client = self.client().await?;
        let request = Request::get(url)
            .header(ACCEPT, accept)
            .header(USER_AGENT, concat!("portolan/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|error| ApiError::Unexpected(error.to_string()))?;
        let start = Instant::now();
        let response = timeout(self.timing.response, client.send(request)).await;
        let status = response.as_ref().ok().and_then(|response| Some(response.as_ref().ok()?.status().as_u16()));
        self.meter.request(&self.host, status, start.elapsed());
        let response = response.map_err(|_| ApiError::Unanswered(self.timing.response))?;
        let response = response.map_err(|error| ApiError::Connection(connection_problem(&error)))?;
        read(response, permit, matches!(self.origin, Origin::Relay { .. })).await
    }

    /// URL of the API server.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Marks the client as possibly at fault. The next request builds another one if this one is older than
    /// [`Timing::client_min`].
    pub(crate) fn distrust(&self) {
        self.distrusted.set(true);
    }

    /// Uses new connections for the next requests, unless this has happened since a request was sent at a time. They
    /// may lead to another server behind the same address.
    pub(crate) fn reconnect(&self, asked: Instant) {
        self.client.borrow_mut().take_if(|(_, made)| *made <= asked);
    }

    async fn client(&self) -> Result<Client, ApiError> {
        let _one_at_a_time = self.making.lock().await;
        if let Some(client) = self.trusted() {
            return Ok(client);
        }
        let made = self.make().await;
        self.distrusted.set(false);
        // Without a new client, keep the old one: the cause of its failures may be the server.
        let before = self.client.borrow_mut().take().map(|(client, _)| client);
        let client = match (made, before) {
            (Ok(client), _) | (Err(_), Some(client)) => client,
            (Err(problem), None) => return Err(ApiError::Credentials(problem)),
        };
        *self.client.borrow_mut() = Some((client.clone(), Instant::now()));
        Ok(client)
    }

    fn trusted(&self) -> Option<Client> {
        let client = self.client.borrow();
        let (client, made) = client.as_ref()?;
        (!self.distrusted.get() || made.elapsed() < self.timing.client_min).then(|| client.clone())
    }

    /// Builds a client on a blocking thread, because this reads files and may run a credential plugin.
    async fn make(&self) -> Result<Client, ClientError> {
        if let Some(client) = self.timing.client {
            return Ok(client(&self.url));
        }
        let (origin, timing, version) = (self.origin.clone(), (*self.timing).clone(), self.version);
        let making = tokio::task::spawn_blocking(move || {
            let config = match &origin {
                Origin::Server(source) => credentials::config(source),
                Origin::Relay { relays, url, profile } => credentials::relay(relays, url, *profile),
            };
            let config = config.map_err(|error| ClientError::Setup(Box::new(error)))?;
            credentials::client(&config, &timing, version)
        });
        making.await.map_err(ClientError::Thread)?
    }
}

/// Chooses the HTTP version for these watches. A watch is a request that never ends.
fn version_for(spec: &Spec) -> HttpVersion {
    // The number of watches that follow namespaces is known later.
    let is_one_connection_enough = spec.followed.is_empty() && spec.watches.len() <= WATCHES_MAX;
    if is_one_connection_enough { HttpVersion::Best } else { HttpVersion::One }
}

async fn read(response: http::Response<Body>, permit: Permit, is_relay: bool) -> Result<Response, ApiError> {
    let (head, body) = response.into_parts();
    if is_relay && head.status.as_u16() == 410 {
        let message = message(&head.headers, body).await;
        return Err(if message.contains(RESTORED) { ApiError::Restored } else { ApiError::Gone });
    }
    if !head.status.is_success() {
        return Err(problem(head.status.as_u16(), &head.headers, body).await);
    }
    let content_type = content_type(&head.headers);
    let unknown =
        || ApiError::Unexpected(format!("unexpected content type `{content_type}`; expected JSON or protobuf"));
    let body = ResponseBody::new(body, &head.headers);
    Ok(Response { body, encoding: Encoding::of(content_type).ok_or_else(unknown)?, permit })
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Converts a response with a status other than 2xx to a [`ApiError`].
pub(crate) async fn problem(code: u16, headers: &HeaderMap, body: Body) -> ApiError {
    if code == 410 {
        return ApiError::Gone;
    }
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let message = message(headers, body).await;
    if code == 504 && message.contains(AHEAD) {
        return ApiError::Ahead;
    }
    ApiError::Status { code, message, retry_after: seconds.map(Duration::from_secs) }
}

/// Reads the message of an error response.
async fn message(headers: &HeaderMap, body: Body) -> String {
    let bytes = ResponseBody::new(body, headers).rest(PROBLEM_MAX, PROBLEM_TIME).await;
    let status = Encoding::of(content_type(headers)).and_then(|encoding| Status::read(encoding, &bytes));
    match status {
        Some(status) => status.message,
        None => String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().chars().take(200).collect(),
    }
}
