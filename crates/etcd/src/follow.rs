//! Follows one store until dropped: lists it, watches it from there, and continues with the next member after a
//! failure.
//!
//! ```text
//! connect ─▶ list every range, page by page ─▶ watch from there
//!    ▲                                                │
//!    └── next member; a pause after all have failed ◀─┘
//! ```
//!
//! After a failure, the ranges are always listed completely, even where a watch could resume. The reason is that a
//! store that was emptied or restored from a backup may count its revisions differently. Compaction thus needs no
//! special handling. The reducer only applies the differences.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Clock;
use rand::RngExt;
use rand::rngs::StdRng;
use skydns::{Event, Pair, Range, RecordError, Reducer, Request};
use tokio::sync::Notify;
use tokio::time::Instant;
use transport::MonotonicClock;

use crate::Timing;
use crate::client::{Client, Messages};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::EtcdError;
use crate::health::Health;
use crate::meter::Meter;
use crate::proto::{KeyValue, WatchEvent, WatchResponse};

/// Keys per page of a list, as long as they fit into a message.
const PAGE: i64 = 2000;
const PAGE_STEP: i64 = 8;
/// Maximum number of leases to look up in a row. The requests are sent one at a time.
const LEASES: usize = 256;
/// Event type of a deletion.
const DELETION: i32 = 1;

/// Follows one store.
pub(crate) struct Follower {
    request: Request,
    endpoints: Vec<Endpoint>,
    reducer: RefCell<Reducer>,
    timing: Rc<Timing>,
    meter: Rc<Meter>,
    /// Notified when there may be new leases to look up.
    leases: Notify,
}

impl Follower {
    pub(crate) fn new(
        request: Request,
        endpoints: Vec<Endpoint>,
        reducer: Reducer,
        timing: &Rc<Timing>,
        meter: &Rc<Meter>,
    ) -> Follower {
        let (timing, meter) = (Rc::clone(timing), Rc::clone(meter));
        Follower { request, endpoints, reducer: RefCell::new(reducer), timing, meter, leases: Notify::new() }
    }

    /// Runs until dropped.
    pub(crate) async fn run(self) {
        let mut random: StdRng = rand::make_rng();
        let mut health = Health::default();
        let mut failures = 0;
        for endpoint in self.endpoints.iter().cycle() {
            let start = Instant::now();
            let Err(failure) = self.follow(endpoint, &mut health).await;
            self.reducer.borrow().set_lost();
            self.meter.failure(&failure);
            health.failed(endpoint, &failure);
            failures = if start.elapsed() > self.timing.calm { 1 } else { failures + 1 };
            // Pause only after every member has been tried.
            let rounds = failures / self.endpoints.len();
            if rounds > 0 {
                tokio::time::sleep(self.timing.pause(rounds, random.random())).await;
            }
        }
    }

    /// Follows one member until a failure.
    async fn follow(&self, endpoint: &Endpoint, health: &mut Health) -> Result<Infallible, EtcdError> {
        let connection = Connection::open(endpoint, self.request.tls.as_ref(), &self.timing).await?;
        let credentials = self.request.credentials.clone();
        let mut client = Client::new(connection, endpoint, credentials, &self.timing).await?;
        let ranges = self.request.ranges();
        let mut watched = Vec::with_capacity(ranges.len());
        for range in &ranges {
            if let Some(revision) = self.list(&mut client, range).await? {
                watched.push((range, revision + 1));
            }
        }
        let events = client.watch(watched.into_iter()).await?;
        self.reducer.borrow().set_listed();
        self.meter.list();
        health.well(endpoint);
        tokio::select! {
            ended = self.take_events(events) => ended,
            ended = self.query_leases(client.clone()) => ended,
        }
    }

    /// Lists a range and returns its revision. Returns `None` if we may not read a zone's own key, since a permission
    /// for the keys below it does not include it.
    async fn list(&self, client: &mut Client, range: &Range) -> Result<Option<i64>, EtcdError> {
        let (mut rest, mut revision, mut page) = (range.clone(), 0, PAGE);
        loop {
            let response = match client.range(&rest, page, revision).await {
                Err(EtcdError::TooLong) if page > 1 => {
                    page = (page / PAGE_STEP).max(1);
                    continue;
                }
                Err(EtcdError::Forbidden(_)) if range.is_single => return Ok(None),
                response => response?,
            };
            if revision == 0 {
                revision = response.header.map_or(0, |header| header.revision);
            }
            let next = response.kvs.last().filter(|_| response.more).map(|last| [&last.key[..], b"\0"].concat());
            let listed = Range { to: next.clone().unwrap_or_else(|| range.to.clone()), ..rest.clone() };
            self.take_page(&listed, &response.kvs);
            match next {
                None => return Ok(Some(revision)),
                Some(next) => rest.from = next,
            }
        }
    }

    fn take_page(&self, range: &Range, kvs: &[KeyValue]) {
        let pairs: Vec<Pair<'_>> = kvs.iter().map(pair).collect();
        self.reducer.borrow_mut().list(range, &pairs, now_seconds(), &mut |key, error| self.on_error(key, error));
        self.leases.notify_one();
    }

    /// Processes watch events until the stream ends.
    async fn take_events(&self, mut events: Messages) -> Result<Infallible, EtcdError> {
        loop {
            let response: Option<WatchResponse> = events.next().await?;
            let response = response.ok_or_else(|| EtcdError::Connection("it ended the watch".to_owned()))?;
            if response.canceled {
                return Err(canceled(response));
            }
            if !response.events.is_empty() {
                self.take(&response.events);
            }
        }
    }

    fn take(&self, events: &[WatchEvent]) {
        let changes: Vec<Event<'_>> = events.iter().filter_map(event).collect();
        self.reducer.borrow_mut().apply(&changes, now_seconds(), &mut |key, error| self.on_error(key, error));
        self.meter.events(changes.len());
        self.leases.notify_one();
    }

    fn on_error(&self, key: &[u8], error: &RecordError) {
        self.meter.refused(key, error);
    }

    /// Looks up the remaining time of leases as they become due.
    async fn query_leases(&self, mut client: Client) -> Result<Infallible, EtcdError> {
        loop {
            let due = self.reducer.borrow_mut().leases_due(now_nanos(), LEASES);
            for id in &due {
                let left = match client.lease(*id).await {
                    // Without a response, assume that the lease may end at any moment. This is the safe choice.
                    Err(EtcdError::Forbidden(_) | EtcdError::Refused(_)) => None,
                    left => left?,
                };
                self.reducer.borrow_mut().set_lease(*id, left, now_nanos());
            }
            if due.len() < LEASES {
                // Check again after the interval or a notification.
                let _ = tokio::time::timeout(self.timing.leases, self.leases.notified()).await;
            }
        }
    }
}

fn pair(kv: &KeyValue) -> Pair<'_> {
    Pair { key: &kv.key, value: &kv.value, lease: kv.lease }
}

fn event(event: &WatchEvent) -> Option<Event<'_>> {
    let kv = event.kv.as_ref()?;
    Some(if event.kind == DELETION { Event::Delete(&kv.key) } else { Event::Put(pair(kv)) })
}

/// Converts a canceled watch to an error.
fn canceled(response: WatchResponse) -> EtcdError {
    match response.cancel_reason {
        _ if response.compact_revision > 0 => EtcdError::Compacted,
        reason if reason.contains("permission denied") => EtcdError::Forbidden(reason),
        reason if reason.contains("auth token") => EtcdError::Credentials(reason),
        reason => EtcdError::Refused(format!("it ended the watch: {reason}")),
    }
}

fn now_nanos() -> u64 {
    MonotonicClock.now().nanos()
}

fn now_seconds() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
