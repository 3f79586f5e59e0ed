//! Follower of one kind at the API server: [`listwatch`] decides on the requests, and the objects go to the relay as
//! bytes. The API server may be another relay.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use host::invariant::{Expected as _, holds};
use kubeapi::decode::{ListCount, RawEvent, RawEvents, RawItem, RawList};
use kubeapi::{RawClient, RawError, RawResponse};
use listwatch::{Comparison, Failure, Notice, Page, Policy, Received, Request, Source, Tally};
use relay::{EventType, Kind, ObjectError, Relay};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::hub::{Hub, now};
use super::url::url;
use super::{LOG, earlier};

/// Number of objects per page.
const PAGE: &str = "500";
/// Shortest `timeoutSeconds` of a watch request. The longest is twice that.
const WATCH_SECONDS: f64 = 300.0;
/// Age of the last proof from which the API server is asked whether the state is current, below [`relay::FRESH`].
const PROVE: Duration = Duration::from_secs(5);
/// Maximum time for an answer that proves something.
const PROOF_MAX: Duration = Duration::from_secs(2);
/// Mean interval between comparisons of the number of objects with that of the API server. It is shorter than that of
/// *kubernetes*: there are few relays, and many nodes know what they know.
const COUNT: Duration = Duration::from_secs(20);

/// Follower of one kind.
pub(super) struct Follower {
    hub: Rc<Hub>,
    client: Rc<RawClient>,
    kind: Kind,
    reading: Option<Reading>,
    relist: tokio::sync::watch::Receiver<u64>,
    following: Rc<Following>,
}

/// State of a follower that its proofs need.
#[derive(Default)]
struct Following {
    /// True while the open response continues a complete list.
    is_current: Cell<bool>,
    /// Number of objects at the version of the relay.
    tally: Cell<Tally>,
    /// Error that a proof or a comparison has found, and with which the watch ends.
    found: Cell<Option<RawError>>,
    /// Wakes the follower for it.
    ended: Notify,
}

impl Following {
    fn end(&self, error: RawError) {
        self.found.set(Some(error));
        self.ended.notify_one();
    }

    fn change_tally<T>(&self, change: impl FnOnce(&mut Tally) -> T) -> T {
        let mut tally = self.tally.get();
        let changed = change(&mut tally);
        self.tally.set(tally);
        changed
    }
}

struct Reading {
    response: RawResponse,
    content: Content,
    /// Error that follows the events of the last chunk. Their version counts, so that no event comes twice.
    failure: Option<RawError>,
}

enum Content {
    Events {
        decoder: RawEvents,
        is_listing: bool,
    },
    Items {
        decoder: RawList,
        page: Option<(u64, String)>,
    },
    /// Only the success matters.
    Check,
}

/// Effect of a chunk.
#[derive(Default)]
struct Progress {
    events: u64,
    position: Option<u64>,
    ends_list: bool,
    failure: Option<RawError>,
    /// Number of objects that were added, less those that were removed.
    objects: i64,
}

impl Follower {
    /// Follows a kind until dropped.
    pub(super) async fn run(hub: Rc<Hub>, client: Rc<RawClient>, kind: Kind) {
        let following = Rc::new(Following::default());
        let relist = hub.relist.subscribe();
        let prover = prove(Rc::clone(&hub), Rc::clone(&client), kind, Rc::clone(&following));
        let counter = count(Rc::clone(&hub), Rc::clone(&client), kind, Rc::clone(&following));
        let earlier = earlier::read(Rc::clone(&hub), Rc::clone(&client), kind);
        let mut follower = Follower { hub, client, kind, reading: None, relist, following };
        tokio::select! {
            never = listwatch::run(&mut follower, Policy::default()) => match never {},
            ((), (), ()) = async { tokio::join!(prover, counter, earlier) } => {}
        }
    }

    fn watch_seconds() -> String {
        format!("{:.0}", WATCH_SECONDS * (1.0 + random()))
    }

    async fn get(&self, parameters: &[(&str, &str)]) -> Result<RawResponse, RawError> {
        self.client.get(&url(self.kind, parameters)).await
    }

    /// Reads a chunk and hands what it says to the relay.
    async fn read_chunk(&mut self, silence: Duration) -> Result<Received<u64, String>, RawError> {
        let Some(reading) = self.reading.as_mut().expected("a response that is read") else {
            return Ok(Received::End);
        };
        if let Some(failure) = reading.failure.take() {
            return Err(failure);
        }
        let chunk = reading.response.next(silence).await?;
        let Some(chunk) = chunk else { return end(reading, &self.hub, self.kind) };
        let (kind, hub) = (self.kind, &self.hub);
        let progress = match &mut reading.content {
            Content::Check => Progress::default(),
            Content::Items { decoder, page } => items(hub, kind, decoder, page, &chunk),
            Content::Events { decoder, is_listing } => events(hub, kind, decoder, is_listing, &chunk),
        };
        let Progress { events, position, ends_list, failure, objects } = progress;
        reading.failure = failure;
        if let Some(failure) = reading.failure.take_if(|_| events == 0) {
            return Err(failure);
        }
        self.following.change_tally(|tally| tally.add(objects));
        self.relist_others();
        if ends_list {
            holds(!self.following.is_current.get(), "a watch is followed after its list");
            self.following.is_current.set(true);
        }
        Ok(Received::Data { events, position, ends_list })
    }

    fn begin_list(&self) {
        self.hub.change(|relay| relay.begin_list(self.kind));
        self.following.change_tally(Tally::begin_list);
    }

    /// Lets the other kinds list again after a change of the cluster.
    fn relist_others(&self) {
        let relay = self.hub.relay.borrow();
        if Kind::ALL.into_iter().any(|kind| kind != self.kind && relay.needs_list(kind)) {
            self.hub.relist.send_modify(|number| *number += 1);
        }
    }
}

fn items(hub: &Hub, kind: Kind, decoder: &mut RawList, page: &mut Option<(u64, String)>, chunk: &[u8]) -> Progress {
    let mut progress = Progress::default();
    let decoded = hub.change(|relay| {
        decoder.feed(chunk, &mut |item| {
            progress.events += 1;
            match item {
                RawItem::Object(object) => {
                    progress.objects += 1;
                    note(hub, kind, relay.add_to_list(kind, object));
                }
                RawItem::Metadata { version, token, .. } => match version.parse() {
                    Ok(version) => *page = Some((version, token.to_owned())),
                    Err(_) => progress.failure = Some(unknown_version(version)),
                },
                RawItem::Unreadable(reason) => {
                    progress.objects += 1;
                    unreadable(hub, kind, reason);
                }
            }
        })
    });
    progress.failure = progress.failure.or(decoded.err().map(RawError::from));
    progress
}

fn events(hub: &Hub, kind: Kind, decoder: &mut RawEvents, is_listing: &mut bool, chunk: &[u8]) -> Progress {
    let (mut progress, now) = (Progress::default(), now());
    let decoded = hub.change(|relay| {
        let decoded = decoder.feed(chunk, &mut |event| {
            progress.events += u64::from(!matches!(event, RawEvent::Refused { .. }));
            apply(hub, relay, kind, event, is_listing, &mut progress, now);
        });
        if !*is_listing {
            progress.position = Some(relay.version(kind));
        }
        decoded
    });
    progress.failure = progress.failure.or(decoded.err().map(RawError::from));
    progress
}

fn apply(
    hub: &Hub,
    relay: &mut Relay,
    kind: Kind,
    event: RawEvent<'_>,
    is_listing: &mut bool,
    progress: &mut Progress,
    now: host::Instant,
) {
    progress.objects += match event {
        RawEvent::Added(_) => 1,
        RawEvent::Deleted(_) => -1,
        RawEvent::Modified(_) | RawEvent::Unreadable(_) => i64::from(*is_listing),
        RawEvent::Bookmark { .. } | RawEvent::Refused { .. } => 0,
    };
    match event {
        RawEvent::Added(object) | RawEvent::Modified(object) if *is_listing => {
            note(hub, kind, relay.add_to_list(kind, object));
        }
        RawEvent::Added(object) => note(hub, kind, relay.apply(kind, EventType::Added, object, now)),
        RawEvent::Modified(object) => note(hub, kind, relay.apply(kind, EventType::Modified, object, now)),
        RawEvent::Deleted(object) => note(hub, kind, relay.apply(kind, EventType::Deleted, object, now)),
        RawEvent::Bookmark { version, ends_list } => match version.parse() {
            Ok(version) if ends_list && *is_listing => {
                relay.end_list(kind, version, now);
                (*is_listing, progress.ends_list) = (false, true);
            }
            Ok(version) if !*is_listing => relay.note_bookmark(kind, version, now),
            Ok(_) => {}
            Err(_) => progress.failure = Some(unknown_version(version)),
        },
        RawEvent::Refused { code, message } => progress.failure = Some(RawError::refused(code, message)),
        RawEvent::Unreadable(reason) => unreadable(hub, kind, reason),
    }
}

/// Handles the end of a response.
fn end(reading: &mut Reading, hub: &Hub, kind: Kind) -> Result<Received<u64, String>, RawError> {
    match &mut reading.content {
        Content::Check => Ok(Received::End),
        Content::Events { decoder, .. } if decoder.is_within_an_event() => Err(RawError::cut()),
        Content::Events { .. } => Ok(Received::End),
        Content::Items { decoder, .. } if !decoder.is_complete() => Err(RawError::cut()),
        Content::Items { page, .. } => match page.take() {
            None => Ok(Received::End),
            Some((version, token)) if token.is_empty() => {
                hub.change(|relay| relay.end_list(kind, version, now()));
                Ok(Received::PageEnd(Page::Last(version)))
            }
            Some((_, token)) => Ok(Received::PageEnd(Page::Next(token))),
        },
    }
}

fn unknown_version(version: &str) -> RawError {
    RawError::unexpected(format!("the resource version `{version}` is not a number"))
}

fn note(hub: &Hub, kind: Kind, outcome: Result<(), ObjectError>) {
    if let Err(error) = outcome {
        unreadable(hub, kind, &error.to_string());
    }
}

fn unreadable(hub: &Hub, kind: Kind, reason: &str) {
    hub.meter.unreadable();
    tracing::warn!(target: LOG, "An object of {} cannot be stored: {reason}", kind.resource());
}

impl Source for Follower {
    type Position = u64;
    type Cursor = String;
    type Error = RawError;

    async fn open(&mut self, request: Request<u64, String>) -> Result<(), RawError> {
        self.reading = None;
        self.following.is_current.set(false);
        self.relist.mark_unchanged();
        let seconds = Follower::watch_seconds();
        let watch = [("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", seconds.as_str())];
        let (response, content) = match &request {
            Request::Stream { .. } => {
                let list = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
                let response = self.get(&[&watch[..], &list].concat()).await?;
                self.begin_list();
                (response, Content::Events { decoder: RawEvents::default(), is_listing: true })
            }
            // Always the latest state: a relay that starts again would otherwise know less than its subscribers do.
            Request::Page { cursor, .. } => {
                let token = cursor.as_deref().unwrap_or_default();
                let page = [("limit", PAGE), ("continue", token)];
                let response = self.get(&page).await?;
                if cursor.is_none() {
                    self.begin_list();
                }
                (response, Content::Items { decoder: RawList::default(), page: None })
            }
            Request::Check { position } | Request::Confirm { position } => {
                let (position, rule) = (position.to_string(), ("resourceVersionMatch", "NotOlderThan"));
                (self.get(&[("limit", "1"), ("resourceVersion", &position), rule]).await?, Content::Check)
            }
            Request::Watch { position } => {
                let position = position.to_string();
                let response = self.get(&[&watch[..], &[("resourceVersion", position.as_str())]].concat()).await?;
                self.following.is_current.set(true);
                (response, Content::Events { decoder: RawEvents::default(), is_listing: false })
            }
        };
        self.reading = Some(Reading { response, content, failure: None });
        Ok(())
    }

    async fn read(&mut self, silence: Duration) -> Result<Received<u64, String>, RawError> {
        let (mut relist, hub, following) = (self.relist.clone(), Rc::clone(&self.hub), Rc::clone(&self.following));
        loop {
            let is_current = self.following.is_current.get();
            tokio::select! {
                biased;
                () = following.ended.notified(), if is_current => {
                    if let Some(error) = following.found.take() {
                        return Err(error);
                    }
                }
                // The sender is in the hub, so it is there.
                _ = relist.changed(), if is_current => {
                    if hub.relay.borrow().needs_list(self.kind) {
                        return Err(RawError::gone());
                    }
                }
                received = self.read_chunk(silence) => return received,
            }
        }
    }

    async fn sleep(&mut self, pause: Duration) {
        self.reading = None;
        self.following.is_current.set(false);
        sleep(pause).await;
    }

    fn now(&self) -> host::Instant {
        now()
    }

    fn jitter(&mut self) -> f64 {
        random()
    }

    fn classify(&self, error: &RawError) -> Failure {
        error.classify()
    }

    fn notify(&mut self, notice: Notice, error: Option<&RawError>) {
        let resource = self.kind.resource();
        let reason = || error.map_or_else(|| RawError::short().to_string(), RawError::to_string);
        if let Some(error) = error {
            self.client.note(error);
        }
        match notice {
            Notice::Failed { is_news: true } => {
                let (url, reason) = (self.client.url(), reason());
                tracing::error!(target: LOG, "Failed to list or watch {resource} at {url}: {reason}");
            }
            Notice::PositionLost => tracing::info!(target: LOG, "Listing {resource} again: {}", reason()),
            Notice::Listed(_) => tracing::info!(target: LOG, "Listed {resource}"),
            Notice::Recovered { after: Some(after) } => {
                tracing::info!(target: LOG, "Watching {resource} again after {} s", after.as_secs());
            }
            _ => {}
        }
    }
}

/// Asks the API server whether the state is current while the watch is silent, until dropped.
async fn prove(hub: Rc<Hub>, client: Rc<RawClient>, kind: Kind, following: Rc<Following>) {
    loop {
        let age = hub.relay.borrow().states(now()).into_iter().find(|state| state.kind == kind);
        let age = age.and_then(|state| state.age).unwrap_or_default();
        sleep(PROVE.saturating_sub(age).max(Duration::from_millis(500))).await;
        if !following.is_current.get() || age < PROVE {
            continue;
        }
        // The watch may bring newer changes before the answer does, so that only the version of now can be compared.
        let (asked, known) = (now(), hub.relay.borrow().version(kind));
        let Ok(Ok(version)) = timeout(PROOF_MAX, latest_version(&client, kind)).await else {
            // The watch itself finds out and reports what is wrong.
            continue;
        };
        if !following.is_current.get() {
            continue;
        }
        if version < known {
            following.end(RawError::restored());
        } else {
            hub.relay.borrow_mut().prove(kind, asked);
        }
    }
}

/// Compares the number of objects with that of the API server now and then, until dropped: a relay passes on what its
/// watch has left out to all nodes.
async fn count(hub: Rc<Hub>, client: Rc<RawClient>, kind: Kind, following: Rc<Following>) {
    loop {
        sleep(COUNT.mul_f64(0.5 + random())).await;
        if !following.is_current.get() {
            continue;
        }
        let version = hub.relay.borrow().version(kind).to_string();
        following.change_tally(Tally::ask);
        let Ok(Ok(Some(counted))) = timeout(PROOF_MAX, number_at(&client, kind, &version)).await else {
            // An API server that does not say it, or has forgotten the version.
            continue;
        };
        if let Comparison::Different { known, counted } = following.change_tally(|tally| tally.answer(counted)) {
            following.end(RawError::missed(known, counted));
        }
    }
}

/// Returns the number of objects as of a version, if the API server says it.
async fn number_at(client: &RawClient, kind: Kind, version: &str) -> Result<Option<u64>, RawError> {
    let page = [("limit", "1"), ("resourceVersion", version), ("resourceVersionMatch", "Exact")];
    let mut response = client.get(&url(kind, &page)).await?;
    let (mut decoder, mut count) = (RawList::default(), ListCount::default());
    while let Some(chunk) = response.next(PROOF_MAX).await? {
        decoder.feed(&chunk, &mut |item| match item {
            RawItem::Metadata { version: listed, token, left } => count.metadata(listed == version, token, left),
            RawItem::Object(_) | RawItem::Unreadable(_) => count.item(),
        })?;
    }
    Ok(count.total().filter(|_| decoder.is_complete()))
}

/// Returns the version of the storage, from a consistent list that selects one object by its name.
async fn latest_version(client: &RawClient, kind: Kind) -> Result<u64, RawError> {
    let selector = if kind.is_namespaced() {
        "metadata.namespace%3Ddefault%2Cmetadata.name%3Dportolan"
    } else {
        "metadata.name%3Dportolan"
    };
    let mut response = client.get(&format!("{}?fieldSelector={selector}", kind.path())).await?;
    let (mut decoder, mut latest) = (RawList::default(), Err(RawError::cut()));
    while let Some(chunk) = response.next(PROOF_MAX).await? {
        decoder.feed(&chunk, &mut |item| {
            if let RawItem::Metadata { version, .. } = item {
                latest = version.parse().map_err(|_| unknown_version(version));
            }
        })?;
    }
    latest
}

/// Returns a random number from 0 to 1.
fn random() -> f64 {
    rand::random()
}
