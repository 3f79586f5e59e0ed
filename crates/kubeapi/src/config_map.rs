//! One ConfigMap, followed: what it holds now, and again each time that changes. Only that object is listed and watched,
//! by its name, so that a Role which names it is enough.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Request, Source};
use engine::metrics::Registry;
use http_body_util::{BodyExt, Limited};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use crate::api::{Answer, Api};
use crate::decode::JSON;
use crate::decode::json::lines::{Line, Lines};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::target::encode;
use crate::timing::Backoff;
use crate::watch::{Health, next};
use crate::{SetupProblem, Timing, credentials};

/// The keys and values of a ConfigMap.
pub type Data = BTreeMap<String, String>;

/// Octets of the longest answer: etcd takes objects of 1.5 MiB, and JSON may write an octet as six.
const ANSWER_MAX: usize = 10 << 20;
/// What the metrics call it.
const RESOURCE: &str = "configmaps";

/// One ConfigMap.
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

/// An event of a watch; an object of another kind (a Status) has its `code` instead.
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
    /// The ConfigMap of this name, in the cluster that a source describes. Nothing is connected to yet.
    ///
    /// # Errors
    /// What can never become right by itself.
    pub fn new(
        source: &Source,
        namespace: &str,
        name: &str,
        registry: &Arc<Registry>,
    ) -> Result<ConfigMap, SetupProblem> {
        let host = credentials::host(&credentials::config(source)?);
        let (timing, meter) = (Rc::new(Timing::default()), Rc::new(Meter::new(registry)));
        let api = Api::new(&Request::new(source.clone()), host, Rc::clone(&timing), Rc::clone(&meter));
        let mut path = "/api/v1/namespaces/".to_owned();
        encode(&mut path, namespace);
        path.push_str("/configmaps?fieldSelector=metadata.name%3D");
        encode(&mut path, name);
        Ok(ConfigMap { api, timing, meter, path, what: format!("ConfigMap {namespace}/{name}") })
    }

    /// What it holds at this moment; `None` if there is none.
    ///
    /// # Errors
    /// In words, whatever kept the server from saying it.
    pub async fn read(&self) -> Result<Option<Data>, String> {
        self.list().await.map(|(data, _)| data).map_err(|failure| failure.to_string())
    }

    /// Tells what it holds, at the beginning and after each change, for as long as it is polled; `None` while there is
    /// none. What cannot be reached is asked again and again.
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
                Some(known) => self.watch(known, &mut each).await,
            };
            let Err(failure) = outcome else {
                health.well(&self.what, Instant::now());
                continue;
            };
            if matches!(failure, Failure::Gone) {
                version = None;
                continue;
            }
            if matches!(failure, Failure::Connection(_)) {
                // Who is there then may not have the version, and would let a watch from it wait.
                version = None;
            }
            self.meter.failure(RESOURCE, failure.label());
            health.failed(&self.what, &failure, Instant::now());
            if failure.wants_new_client() {
                self.api.distrust();
            }
            let pause = backoff.pause(&self.timing, Instant::now(), random.random::<f64>(), &failure);
            sleep(pause).await;
        }
    }

    async fn list(&self) -> Result<(Option<Data>, String), Failure> {
        let answer = self.api.get(&self.path, JSON).await?;
        let body = timeout(self.timing.list_silence, Limited::new(answer.body, ANSWER_MAX).collect()).await;
        let body = body.map_err(|_| Failure::Silent(self.timing.list_silence))?;
        let octets = body.map_err(|error| Failure::Unexpected(error.to_string()))?.to_bytes();
        let list: List = serde_json::from_slice(&octets).map_err(|error| Failure::Unexpected(error.to_string()))?;
        let item = list.items.unwrap_or_default().pop();
        Ok((item.map(|item| item.data.unwrap_or_default()), list.metadata.resource_version))
    }

    /// Watches from a version on, until the server's time is up.
    async fn watch(&self, version: &mut String, each: &mut impl FnMut(Option<Data>)) -> Result<(), Failure> {
        let seconds = self.timing.watch.as_secs();
        let url = format!(
            "{}&watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}",
            self.path
        );
        let begin = Instant::now();
        let Answer { mut body, .. } = self.api.get(&url, JSON).await?;
        let (mut lines, mut pieces) = (Lines::default(), 0);
        loop {
            let octets = match next(&mut body, self.timing.watch_silence).await {
                // Nothing may have happened, or nothing of it came: asking again from the version that is known tells.
                Err(Failure::Silent(_)) => return Ok(()),
                octets => octets?,
            };
            let Some(octets) = octets else { break };
            let mut outcome = Ok(());
            lines.feed(&octets, ANSWER_MAX, |line| {
                pieces += 1;
                outcome = core::mem::replace(&mut outcome, Ok(())).and_then(|()| take(&line, version, each));
            });
            outcome?;
        }
        if pieces == 0 && begin.elapsed() < self.timing.watch_min { Err(Failure::Short) } else { Ok(()) }
    }
}

/// Takes one event.
fn take(line: &Line<'_>, version: &mut String, each: &mut impl FnMut(Option<Data>)) -> Result<(), Failure> {
    let Line::Whole(line) = line else { return Err(Failure::Unexpected("an event is too long".to_owned())) };
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let event: Event = serde_json::from_slice(line).map_err(|error| Failure::Unexpected(error.to_string()))?;
    let Object { item, code } = event.object;
    match event.what.as_str() {
        "ADDED" | "MODIFIED" => each(Some(item.data.unwrap_or_default())),
        "DELETED" => each(None),
        "BOOKMARK" => {}
        // Whatever the server says, all is asked for anew.
        _ if code == 410 => return Err(Failure::Gone),
        other => return Err(Failure::Unexpected(format!("an event of type '{other}', code {code}"))),
    }
    if !item.metadata.resource_version.is_empty() {
        *version = item.metadata.resource_version;
    }
    Ok(())
}
