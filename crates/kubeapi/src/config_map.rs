//! Follows one ConfigMap. List and watch requests select it by name, so that a Role for this one object is sufficient.

use core::error::Error;
use core::fmt;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::Source as ClusterSource;
use host::invariant::broken;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use kube::client::Body;
use listwatch::{Failure, Notice, Page, Policy, Received, Request, Resume, Source};
use metrics::Registry;
use rand::RngExt;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use crate::api::Api;
use crate::decode::JSON;
use crate::decode::json::lines::{Line, Lines};
use crate::failure::ApiError;
use crate::meter::Meter;
use crate::target::percent_encode;
use crate::watch::{log_failure, log_recovery, next};
use crate::{LOG, SetupError, Timing, credentials};

/// Key-value pairs of a ConfigMap.
pub type Data = BTreeMap<String, String>;

/// Maximum size of a response in bytes. etcd stores objects up to 1.5 MiB, and JSON may escape a byte as six.
const RESPONSE_MAX: usize = 10 << 20;
/// Value of the metric label `resource`.
const RESOURCE: &str = "configmaps";

/// Follows one ConfigMap.
pub struct ConfigMap {
    api: Api,
    timing: Rc<Timing>,
    meter: Rc<Meter>,
    path: String,
    what: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    data: Option<Data>,
}

/// Watch event. If the object is a Status, it has a `code`.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    what: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(flatten)]
    item: Item,
    #[serde(default)]
    code: u16,
}

impl ConfigMap {
    /// Creates a follower for the ConfigMap with this name in the cluster of `source`. It does not connect yet.
    ///
    /// # Errors
    /// A problem that does not go away without a change of configuration.
    pub fn new(
        source: &ClusterSource,
        namespace: &str,
        name: &str,
        registry: &Arc<Registry>,
    ) -> Result<ConfigMap, SetupError> {
        ConfigMap::with_timing(source, namespace, name, registry, Timing::default())
    }

    /// Creates a follower with custom timing.
    ///
    /// # Errors
    /// As [`ConfigMap::new`].
    pub fn with_timing(
        source: &ClusterSource,
        namespace: &str,
        name: &str,
        registry: &Arc<Registry>,
        timing: Timing,
    ) -> Result<ConfigMap, SetupError> {
        let config = credentials::config(source)?;
        let (timing, meter) = (Rc::new(timing), Rc::new(Meter::new(registry)));
        let api = Api::new(&cluster::Request::new(source.clone()), &config, Rc::clone(&timing), Rc::clone(&meter));
        let mut path = "/api/v1/namespaces/".to_owned();
        percent_encode(&mut path, namespace);
        path.push_str("/configmaps?fieldSelector=metadata.name%3D");
        percent_encode(&mut path, name);
        Ok(ConfigMap { api, timing, meter, path, what: format!("ConfigMap {namespace}/{name}") })
    }

    /// Returns the current data, or `None` if the ConfigMap does not exist.
    ///
    /// # Errors
    /// The request failed.
    pub async fn read(&self) -> Result<Option<Data>, ReadError> {
        let response = async { self.read_list(self.api.get(&self.path, JSON).await?.body.into_plain()).await };
        response.await.map(|(data, _)| data).map_err(ReadError)
    }

    /// Calls `each` with the data at the start and after each change, with `None` while the ConfigMap does not exist.
    /// Failed requests are retried. The future never completes.
    pub async fn follow(self, each: impl FnMut(Option<Data>)) {
        let policy = Policy { streams: false, resume: Resume::ListIfDoubted, ..self.timing.policy() };
        let (random, start) = ((self.timing.random)(), Instant::now());
        let news = News { each, last: None };
        let mut follower = Follower { map: self, news, random, start, reading: None };
        listwatch::run(&mut follower, policy).await;
    }

    /// Reads a list, which contains at most this ConfigMap. Returns its data and the version of the list.
    async fn read_list(&self, body: Body) -> Result<(Option<Data>, String), ApiError> {
        let body = timeout(self.timing.list_silence, Limited::new(body, RESPONSE_MAX).collect()).await;
        let body = body.map_err(|_| ApiError::Silent(self.timing.list_silence))?;
        let bytes = body.map_err(|error| ApiError::Unexpected(error.to_string()))?.to_bytes();
        let list: List = serde_json::from_slice(&bytes).map_err(|error| ApiError::Unexpected(error.to_string()))?;
        let item = list.items.unwrap_or_default().pop();
        Ok((item.map(|item| item.data.unwrap_or_default()), list.metadata.resource_version))
    }
}

/// Error of [`ConfigMap::read`] and of a [`Reader`](crate::Reader). Another attempt may succeed.
#[derive(Debug)]
pub struct ReadError(pub(crate) ApiError);

impl ReadError {
    /// Returns the status of the response; `None` without a response.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match &self.0 {
            ApiError::Status { code, .. } => Some(*code),
            ApiError::Gone => Some(410),
            _ => None,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Source of a [`ConfigMap`].
struct Follower<E> {
    map: ConfigMap,
    news: News<E>,
    random: StdRng,
    start: Instant,
    reading: Option<Reading>,
}

/// Receiver of the data, which is called only if they have changed.
struct News<E> {
    each: E,
    last: Option<Option<Data>>,
}

impl<E: FnMut(Option<Data>)> News<E> {
    fn set(&mut self, data: Option<Data>) {
        if self.last.as_ref() != Some(&data) {
            (self.each)(data.clone());
            self.last = Some(data);
        }
    }
}

/// Response that is being read.
enum Reading {
    List(Body),
    Watch {
        body: Body,
        lines: Lines,
        /// Error found together with other events.
        failure: Option<ApiError>,
    },
}

impl<E: FnMut(Option<Data>)> Source for Follower<E> {
    type Position = String;
    type Cursor = Infallible;
    type Error = ApiError;

    async fn open(&mut self, request: Request<String, Infallible>) -> Result<(), ApiError> {
        self.reading = None;
        let ConfigMap { api, path, timing, .. } = &self.map;
        self.reading = Some(match request {
            Request::Watch { position } | Request::Check { position } | Request::Confirm { position } => {
                let seconds = timing.watch.as_secs();
                let watch = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}");
                let body =
                    api.get(&format!("{path}&{watch}&resourceVersion={position}"), JSON).await?.body.into_plain();
                Reading::Watch { body, lines: Lines::default(), failure: None }
            }
            Request::Page { .. } | Request::Stream { .. } => {
                Reading::List(api.get(path, JSON).await?.body.into_plain())
            }
        });
        Ok(())
    }

    async fn read(&mut self, silence: Duration) -> Result<Received<String, Infallible>, ApiError> {
        match &mut self.reading {
            Some(Reading::Watch { body, lines, failure }) => {
                if let Some(failure) = failure.take() {
                    return Err(failure);
                }
                let Some(bytes) = next(body, silence).await? else { return Ok(Received::End) };
                take_lines(lines, &bytes, failure, &mut self.news)
            }
            Some(Reading::List(_)) => self.finish_list().await,
            None => {
                broken("a response that is read was opened");
                Ok(Received::End)
            }
        }
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
        let (error, what) = (error.unwrap_or(&ApiError::Short), &self.map.what);
        // An expired version is part of a watch's life.
        if notice.is_failure() && !matches!(error, ApiError::Gone) {
            self.map.meter.failure(RESOURCE, error.label());
        }
        match notice {
            Notice::PositionLost if !matches!(error, ApiError::Gone) => {
                info!(target: LOG, "Listing {what} again: {error}");
            }
            Notice::Failed { is_news } => {
                if error.wants_new_client() {
                    self.map.api.distrust();
                }
                if is_news {
                    log_failure(what, self.map.api.url(), error);
                }
            }
            Notice::Recovered { after } => log_recovery(what, after),
            _ => {}
        }
    }
}

impl<E: FnMut(Option<Data>)> Follower<E> {
    /// Reads the list to its end.
    async fn finish_list(&mut self) -> Result<Received<String, Infallible>, ApiError> {
        let Some(Reading::List(body)) = self.reading.take() else { return Ok(Received::End) };
        let (data, version) = self.map.read_list(body).await?;
        self.news.set(data);
        Ok(Received::PageEnd(Page::Last(version)))
    }
}

/// Processes the lines of a watch. An error after other events is left for the next call.
fn take_lines<E: FnMut(Option<Data>)>(
    lines: &mut Lines,
    bytes: &Bytes,
    failure: &mut Option<ApiError>,
    news: &mut News<E>,
) -> Result<Received<String, Infallible>, ApiError> {
    let (mut events, mut position) = (0, None);
    lines.feed(bytes, RESPONSE_MAX, |line| {
        if failure.is_none() {
            *failure = take(&line, &mut position, news).err();
            events += u64::from(failure.is_none());
        }
    });
    match failure.take_if(|_| events == 0) {
        Some(failure) => Err(failure),
        None => Ok(Received::Data { events, position, ends_list: false }),
    }
}

/// Processes one watch event.
fn take<E>(line: &Line<'_>, position: &mut Option<String>, news: &mut News<E>) -> Result<(), ApiError>
where
    E: FnMut(Option<Data>),
{
    let Line::Whole(line) = line else { return Err(ApiError::Unexpected("an event is too long".to_owned())) };
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let event: Event = serde_json::from_slice(line).map_err(|error| ApiError::Unexpected(error.to_string()))?;
    let Object { item, code } = event.object;
    match event.what.as_str() {
        "ADDED" | "MODIFIED" => news.set(Some(item.data.unwrap_or_default())),
        "DELETED" => news.set(None),
        "BOOKMARK" => {}
        // Any error status ends this watch. After 410, a new list follows.
        _ if code == 410 => return Err(ApiError::Gone),
        other => return Err(ApiError::Unexpected(format!("an event of type '{other}', code {code}"))),
    }
    if !item.metadata.resource_version.is_empty() {
        *position = Some(item.metadata.resource_version);
    }
    Ok(())
}
