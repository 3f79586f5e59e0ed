//! Follows one ConfigMap. List and watch requests select it by name, so that a Role for this one object is sufficient.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Request, Source};
use http_body_util::{BodyExt, Limited};
use metrics::Registry;
use rand::RngExt;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use crate::api::{Api, Response};
use crate::decode::JSON;
use crate::decode::json::lines::{Line, Lines};
use crate::failure::ApiError;
use crate::meter::Meter;
use crate::target::encode;
use crate::timing::Backoff;
use crate::watch::{Health, next};
use crate::{SetupError, Timing, credentials};

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
        source: &Source,
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
        source: &Source,
        namespace: &str,
        name: &str,
        registry: &Arc<Registry>,
        timing: Timing,
    ) -> Result<ConfigMap, SetupError> {
        let config = credentials::config(source)?;
        let (timing, meter) = (Rc::new(timing), Rc::new(Meter::new(registry)));
        let api = Api::new(&Request::new(source.clone()), &config, Rc::clone(&timing), Rc::clone(&meter));
        let mut path = "/api/v1/namespaces/".to_owned();
        encode(&mut path, namespace);
        path.push_str("/configmaps?fieldSelector=metadata.name%3D");
        encode(&mut path, name);
        Ok(ConfigMap { api, timing, meter, path, what: format!("ConfigMap {namespace}/{name}") })
    }

    /// Returns the current data, or `None` if the ConfigMap does not exist.
    ///
    /// # Errors
    /// The text of the failure if the request failed.
    pub async fn read(&self) -> Result<Option<Data>, String> {
        self.list().await.map(|(data, _)| data).map_err(|failure| failure.to_string())
    }

    /// Calls `each` with the data at the start and after each change, with `None` while the ConfigMap does not exist.
    /// Failed requests are retried. The future never completes.
    pub async fn follow(self, mut each: impl FnMut(Option<Data>)) {
        let mut random: StdRng = rand::make_rng();
        let (mut backoff, mut health) = (Backoff::default(), Health::default());
        let (mut version, mut told) = (None, None);
        let mut each = |data: Option<Data>| {
            if told.as_ref() != Some(&data) {
                each(data.clone());
                told = Some(data);
            }
        };
        loop {
            let outcome = match &mut version {
                None => self.list().await.map(|(data, listed)| {
                    each(data);
                    version = Some(listed);
                }),
                Some(known) => match self.watch(known, &mut each).await {
                    // The watch may have stalled, or the storage of the server was restored from a backup, and the
                    // version is newer than all its events. A new list finds out.
                    Err(ApiError::Silent(_)) => {
                        version = None;
                        Ok(())
                    }
                    outcome => outcome,
                },
            };
            let Err(failure) = outcome else {
                health.well(&self.what, Instant::now());
                continue;
            };
            // After a broken connection, another server may answer. If it does not have this version, a watch from it
            // would have no events.
            if failure.loses_the_version() || matches!(failure, ApiError::Connection(_)) {
                version = None;
            }
            if matches!(failure, ApiError::Gone) {
                continue;
            }
            self.meter.failure(RESOURCE, failure.label());
            health.failed((&self.what, self.api.url()), &failure, Instant::now());
            if failure.wants_new_client() {
                self.api.distrust();
            }
            let pause = backoff.pause(&self.timing, Instant::now(), random.random::<f64>(), &failure);
            sleep(pause).await;
        }
    }

    async fn list(&self) -> Result<(Option<Data>, String), ApiError> {
        let response = self.api.get(&self.path, JSON).await?;
        let body = timeout(self.timing.list_silence, Limited::new(response.body, RESPONSE_MAX).collect()).await;
        let body = body.map_err(|_| ApiError::Silent(self.timing.list_silence))?;
        let bytes = body.map_err(|error| ApiError::Unexpected(error.to_string()))?.to_bytes();
        let list: List = serde_json::from_slice(&bytes).map_err(|error| ApiError::Unexpected(error.to_string()))?;
        let item = list.items.unwrap_or_default().pop();
        Ok((item.map(|item| item.data.unwrap_or_default()), list.metadata.resource_version))
    }

    /// Watches from a version until the server ends the watch.
    async fn watch(&self, version: &mut String, each: &mut impl FnMut(Option<Data>)) -> Result<(), ApiError> {
        let seconds = self.timing.watch.as_secs();
        let url = format!(
            "{}&watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}",
            self.path
        );
        let begin = Instant::now();
        let Response { mut body, .. } = self.api.get(&url, JSON).await?;
        let (mut lines, mut pieces) = (Lines::default(), 0);
        loop {
            let Some(bytes) = next(&mut body, self.timing.watch_silence).await? else { break };
            let mut outcome = Ok(());
            lines.feed(&bytes, RESPONSE_MAX, |line| {
                pieces += 1;
                outcome = core::mem::replace(&mut outcome, Ok(())).and_then(|()| take(&line, version, each));
            });
            outcome?;
        }
        if pieces == 0 && begin.elapsed() < self.timing.watch_min { Err(ApiError::Short) } else { Ok(()) }
    }
}

/// Processes one watch event.
fn take(line: &Line<'_>, version: &mut String, each: &mut impl FnMut(Option<Data>)) -> Result<(), ApiError> {
    let Line::Whole(line) = line else { return Err(ApiError::Unexpected("an event is too long".to_owned())) };
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let event: Event = serde_json::from_slice(line).map_err(|error| ApiError::Unexpected(error.to_string()))?;
    let Object { item, code } = event.object;
    match event.what.as_str() {
        "ADDED" | "MODIFIED" => each(Some(item.data.unwrap_or_default())),
        "DELETED" => each(None),
        "BOOKMARK" => {}
        // Any error status ends this watch. With 410, the caller lists again.
        _ if code == 410 => return Err(ApiError::Gone),
        other => return Err(ApiError::Unexpected(format!("an event of type '{other}', code {code}"))),
    }
    if !item.metadata.resource_version.is_empty() {
        *version = item.metadata.resource_version;
    }
    Ok(())
}
